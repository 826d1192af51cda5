"""Compare mechanisms on the same jobs, or policies in the same clusters, over many seeds.

One instance says little: ratios differ by tens of per cent from seed to seed. Runs are paired: every
seed draws a world of its own, everybody meets the same one, and beside what each earned stands the best
there could be in that seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Protocol

import pandas as pd

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.randomness import checked_seed
from marketsched.play.running import Progress, versions
from marketsched.results.paired_statistics import CONFIDENCE
from marketsched.results.result import Result

DEFAULT = ("exponential", "first-come")  # mechanisms, where none are named
Tell = Callable[[str], None]  # told what comes now
Found = dict[str, list[Any]]  # of every table of one seed: data frames, or rows


Comparison = Result  # what `compare` returns


class Contest(Protocol):
    """Who is compared in which scenario: what the harness of paired runs needs of either kind."""

    compared: ClassVar[str]
    labels: list[str]
    steps: int

    def play(self, seed: int, tell: Tell) -> Found:
        """Play everybody in the world of one seed; ``runs`` holds one row each, ``steps`` steps are told."""
        ...

    def summary(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return one row for each that is compared, over all finished seeds."""
        ...

    def about(self) -> dict[str, Any]:
        """Return what belongs into the manifest beside what every comparison says of itself."""
        ...


def compare(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanisms: Sequence[str] | None = None,
    runs: int = 20,
    seed: int = 0,
    *,
    data: str | PathLike[str] | None = None,
    optimum_seconds: float = 10.0,
    growth: bool = True,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Result:
    """Run every mechanism on the jobs, or every policy on the clusters, of the same seeds.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        Jobs, limits and rules; or a cluster, who arrives and slots.
    mechanisms : sequence of str, optional
        Names of the registry, each perhaps with rules of its own, as in
        ``"reduction:eviction=running:epsilon=0.1"``; ``"scenario"`` is the scenario's own mechanism. Of a
        cluster: policies, as in ``"ogasched:step=25"``; totals of the first are divided by the others'.
        None: ``exponential`` and ``first-come``; of a cluster the scenario's policies.
    runs : int
        Seeds ``seed .. seed + runs - 1``.
    seed : int
        The first one.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    optimum_seconds : float
        How long the exact optimum of one seed may take; 0: only the dual bound (29) is computed, and of
        a cluster the best there could be is not looked for at all.
    growth : bool
        Of a cluster: whether regret is measured at shorter horizons, too, to tell how it grows; needs
        ``optimum_seconds`` above 0, and a core whose regret is a matter of horizons.
    progress : function of (int, int, str), optional
        Called before each step with how many are done, how many there are, and what comes now.
    keep_interrupted : bool
        On Ctrl-C return the finished seeds instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Result
        Of kind ``mechanisms``, or ``policies`` of a cluster. ``runs``: one row per seed and mechanism or
        policy; ``summary``: one row for each. Of a cluster ``curves``, per seed and policy the reward so far,
        at most 400 slots of it; ``regrets``, the regret at every horizon, if growth was asked for; ``jobs``,
        one row per seed, policy and job, of a core that tells jobs apart. ``meta`` says what is needed to do
        it again. If it was interrupted it holds the seeds that everybody finished.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number, a mechanism, a policy or the scenario is at fault, or the mechanisms do not meet the
        same jobs.
    MissingDataError, TraceError, SolverError
        If the scenario needs a trace that is not there or damaged, or a solver fails.

    Examples
    --------
    >>> job = {"birth": 1, "concurrency": 1, "value": {"kind": "deadline", "value": 4, "deadline": 2},
    ...     "requirements": [{"arrival": 1, "duration": 1, "probability": 1}]}
    >>> market = {"name": "six for five", "workload": {"kind": "jobs", "capacity": 5, "horizon": 6,
    ...     "max_concurrency": 1, "max_duration": 2, "max_value": 4, "max_delay": 6,
    ...     "jobs": [{"name": str(i), **job} for i in range(6)]}}
    >>> found = compare(market, ["exponential", "first-come"], runs=1).summary
    >>> found[["mechanism", "welfare", "ratio_low", "ratio_high"]].values.tolist()
    [['exponential', 16.0, 1.25, 1.25], ['first-come', 20.0, 1.0, 1.0]]
    """
    base = Scenario.of(scenario)
    n_runs = whole_parameter("runs", runs, 1)
    first, seconds = checked_seed(seed, n_runs), finite_parameter("optimum_seconds", optimum_seconds)
    contest: Contest
    if base.kind == "market":
        from marketsched.study.comparisons.mechanisms import MechanismContest

        contest = MechanismContest(base, DEFAULT if mechanisms is None else mechanisms, data, seconds)
    else:
        from marketsched.study.comparisons.policies import PolicyContest

        contest = PolicyContest(base, mechanisms, data, optimum=seconds > 0, growth=growth)
    began = time.perf_counter()
    found, complete = _played(contest, first, n_runs, progress, keep_interrupted)
    tables = {name: _below_each_other(parts) for name, parts in found.items()}
    meta = {
        "scenario": base.name,
        "core": base.kind,
        contest.compared: contest.labels,
        "seed": first,
        "runs": len(tables["runs"]) // len(contest.labels),
        "runs_asked_for": n_runs,
        "confidence": CONFIDENCE,
        **contest.about(),
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    meta["complete"] = complete
    shown = {name: table for name, table in tables.items() if not table.empty}
    return Result(contest.compared, shown, contest.summary(tables), meta, {"scenario.yaml": base.to_yaml()})


def _played(
    contest: Contest, first: int, n_runs: int, progress: Progress | None, keep_interrupted: bool
) -> tuple[Found, bool]:
    """Return what all finished seeds have left, and whether all were played."""
    done = 0

    def tell(what: str) -> None:
        nonlocal done
        if progress is not None:
            progress(done, n_runs * contest.steps, what)
        done += 1

    found: Found = {}
    try:
        for seed in range(first, first + n_runs):
            for name, parts in contest.play(seed, tell).items():
                found.setdefault(name, []).extend(parts)
    except KeyboardInterrupt:
        if not keep_interrupted or not found:
            raise
        return found, False
    return found, True


def _below_each_other(parts: list[Any]) -> pd.DataFrame:
    """Return one table of many rows, or of many tables."""
    tables = parts and isinstance(parts[0], pd.DataFrame)
    return pd.concat(parts, ignore_index=True) if tables else pd.DataFrame(parts)
