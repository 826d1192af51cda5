"""How long the comparison of a log may take, and how many processes it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

from marketsched.comparisons.comparing import LOG_DEFAULT
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.memory import available_memory
from marketsched.play.workers import cores

JOB_S = 140e-6  # a job under a mechanism, bounds included: the mean of `LOG_DEFAULT` on NASA's log, measured
MOMENT_S = 20.0  # what takes longer in one process is shared
PROCESS_BYTES, JOB_BYTES = 3e8, 3e3  # of a process that compares, and more for each job of its log


class LogPlan(NamedTuple):
    """The sizes of a comparison of a log."""

    jobs: int  # of the log
    mechanisms: int
    plays: int  # of a mechanism, seeds and loads included
    workers: int  # processes
    at_once: int  # plays: no more than there are seeds and loads
    seconds: float  # expected

    @property
    def is_long(self) -> bool:
        """Whether one process would take more than a moment."""
        return self.seconds * self.at_once > MOMENT_S


def plan_of_log(
    base: Scenario,
    names: Sequence[str] | None,
    runs: int,
    n_loads: int = 1,
    n_windows: int = 1,
    *,
    data: str | PathLike[str] | None = None,
    workers: int | None = None,
) -> LogPlan:
    """Return the sizes of a comparison of a log.

    Parameters
    ----------
    base : Scenario
        Of a log.
    names : sequence of str, optional
        Mechanisms; None: `LOG_DEFAULT`.
    runs, n_loads, n_windows : int
        Seeds of each window, and loads of each; windows.
    data : path, optional
        As of `compare`.
    workers : int, optional
        Processes. None: one if that takes no more than a moment; else one for each processor that has a seed and a
        load of its own, as far as half of the free memory goes.
    """
    mechanisms, parts = len(LOG_DEFAULT if names is None else names), runs * n_loads * n_windows
    if n_windows > 1:
        base = base.model_copy(update={"workload": base.workload.model_copy(update={"windows": n_windows})})
    n_jobs = len(base.workload_of(0, data).jobs)
    alone = JOB_S * n_jobs * mechanisms * parts
    if workers is None:
        fit = int(0.5 * available_memory() / (PROCESS_BYTES + JOB_BYTES * n_jobs))
        workers = 1 if alone <= MOMENT_S else max(1, min(cores(), parts, fit))
    at_once = min(workers, parts)
    return LogPlan(n_jobs, mechanisms, mechanisms * parts, workers, at_once, alone / at_once)
