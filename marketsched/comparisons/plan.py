"""How long a comparison of mechanisms may take, and how many processes that of a log is worth."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

from marketsched.comparisons.comparing import CLUSTER_DEFAULT, DEFAULT, LOG_DEFAULT, OPTIMUM_SECONDS
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import is_log
from marketsched.mechanisms.memory import available_memory
from marketsched.play.workers import cores


class _Costs(NamedTuple):
    """Of a job, measured, s."""

    play: float  # under a mechanism, a mean of the default ones
    flat: float  # of first come at 0 and at the best flat price
    bound: float  # of the bound on the best schedule


OF_LOG, OF_CLUSTER, OF_MARKET = _Costs(17e-5, 4e-4, 8e-4), _Costs(45e-5, 14e-5, 8e-5), _Costs(1e-4, 1e-4, 6e-4)
EXACT_S = 0.02  # of an exact optimum, for each job of a market, up to its limit of time
BEGIN_S = 6.0  # imports, kernels that are compiled already, and figures
MOMENT_S = 20.0  # what takes longer in one process is shared
PROCESS_BYTES, JOB_BYTES = 3e8, 3e3  # of a process that compares, and more for each job of its log


class Plan(NamedTuple):
    """The sizes of a comparison."""

    jobs: int
    mechanisms: int
    plays: int  # of a mechanism, seeds and loads included
    workers: int  # processes
    at_once: int  # plays: no more than there are seeds and loads
    seconds: float  # expected

    @property
    def is_long(self) -> bool:
        """Whether one process would take more than a moment."""
        return self.seconds * self.at_once > MOMENT_S


def plan_of(
    base: Scenario,
    names: Sequence[str] | None,
    runs: int,
    n_loads: int = 1,
    n_windows: int = 1,
    *,
    data: str | PathLike[str] | None = None,
    optimum_seconds: float | None = None,
    workers: int | None = None,
) -> Plan:
    """Return the sizes of a comparison.

    Parameters
    ----------
    base : Scenario
        Of a market.
    names : sequence of str, optional
        Mechanisms; None: those of `compare`.
    runs, n_loads, n_windows : int
        Seeds of each window, and loads of each; windows.
    data, optimum_seconds : optional
        As of `compare`.
    workers : int, optional
        Processes. None: one; of a log that takes more than a moment one for each processor that has a seed and a load
        of its own, as far as half of the free memory goes.
    """
    log, parts = is_log({"workload": {"kind": base.workload.kind}}), runs * n_loads * n_windows
    if n_windows > 1:
        base = base.model_copy(update={"workload": base.workload.model_copy(update={"windows": n_windows})})
    workload = base.workload_of(0, data)
    n_jobs, cluster = len(workload.jobs), workload.cluster is not None
    costs = OF_LOG if log else OF_CLUSTER if cluster else OF_MARKET
    mechanisms = len(names or (LOG_DEFAULT if log else CLUSTER_DEFAULT if cluster else DEFAULT))
    exact = (0.0 if log or cluster or n_loads > 1 else OPTIMUM_SECONDS) if optimum_seconds is None else optimum_seconds
    exact = 0.0 if cluster else min(exact, EXACT_S * n_jobs)
    alone = parts * (n_jobs * (costs.play * mechanisms + costs.flat + costs.bound) + exact)
    if workers is None:
        fit = int(0.5 * available_memory() / (PROCESS_BYTES + JOB_BYTES * n_jobs)) if log else 1
        workers = 1 if alone <= MOMENT_S else max(1, min(cores(), parts, fit))
    at_once = min(workers, parts)
    return Plan(n_jobs, mechanisms, mechanisms * parts, workers, at_once, BEGIN_S + alone / at_once)
