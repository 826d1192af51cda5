"""Compare mechanisms on the same jobs: welfare, revenue, and E[OPT] / E[welfare] with intervals.

Runs are paired: with one seed every mechanism meets the same jobs. For each seed the best schedule in
hindsight is known exactly where it can be found in time, and otherwise enclosed (`Bracket`); the
ratio of means is enclosed accordingly, and its interval covers the sampling of the runs on top.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from marketsched.config.contestants import Contestant, contestants
from marketsched.config.promised_ratio import Promise
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.play.running import checked_seed, versions
from marketsched.play.yardsticks import Bracket, optimum_bracket
from marketsched.results.summarised import Summarised
from marketsched.study.comparisons.tables import promises_table, summary_table

if TYPE_CHECKING:
    from marketsched.agents.setup import MarketSetup
    from marketsched.mechanisms.realised import RealisedJobs

CONFIDENCE = 0.95

Progress = Callable[[int, int, str], None]  # runs finished, runs in all, what is being done


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Summarised):
    """What came out. ``runs``: one row per seed and mechanism; ``summary``: one row per mechanism.

    ``complete`` is False if it was interrupted; it then holds the seeds that every mechanism finished.
    """

    compared: ClassVar[str] = "mechanisms"

    scenario: Scenario
    runs: pd.DataFrame
    summary: pd.DataFrame
    complete: bool
    meta: dict[str, Any]


def compare(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    mechanisms: Sequence[str],
    runs: int = 20,
    seed: int = 0,
    *,
    data: str | PathLike[str] | None = None,
    optimum_seconds: float = 10.0,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Comparison:
    """Run every mechanism on the jobs of the same seeds.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        Jobs, limits and rules.
    mechanisms : sequence of str
        Names of the registry, each perhaps with rules of its own, as in
        ``"posted-price:eviction=running:epsilon=0.1"``; ``"scenario"`` is the scenario's own mechanism.
    runs : int
        Seeds ``seed .. seed + runs - 1``.
    seed : int
        The first one, >= 0.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    optimum_seconds : float
        How long the exact optimum of one seed may take; 0: only the dual bound (29) is computed.
    progress : function of (int, int, str), optional
        Called before each run with how many are done, how many there are, and what comes now.
    keep_interrupted : bool
        On Ctrl-C return what is finished instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Comparison
        Tables, and everything needed to do it again.

    Raises
    ------
    InvalidParameterError
        If a number, a mechanism or the scenario is at fault, or the mechanisms do not meet the same
        jobs.
    MissingDataError, TraceError, SolverError
        If the scenario needs a trace that is not there, or a solver fails.

    Examples
    --------
    >>> from marketsched.config.scenario import Scenario
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
    entrants = contestants(base, mechanisms)
    n_runs, first = whole_parameter("runs", runs, 1), checked_seed(seed)
    seconds = finite_parameter("optimum_seconds", optimum_seconds)
    rows: list[dict[str, Any]] = []
    promises: dict[str, Promise] = {}
    complete, started = True, time.perf_counter()
    try:
        for i in range(n_runs):
            tell = None if progress is None else _Tell(progress, i * (len(entrants) + 1), n_runs * (len(entrants) + 1))
            rows += _paired(base, entrants, first + i, data, seconds, promises, tell)
    except KeyboardInterrupt:
        if not keep_interrupted or not rows:
            raise
        complete = False
    table = pd.DataFrame(rows)
    meta = {
        "scenario": base.name,
        "mechanisms": [entrant.label for entrant in entrants],
        "seed": first,
        "runs": len(table) // len(entrants),
        "runs_asked_for": n_runs,
        "confidence": CONFIDENCE,
        "optimum_seconds": seconds,
        "versions": versions(),
        "seconds": round(time.perf_counter() - started, 3),
    }
    summary = summary_table(table, [entrant.label for entrant in entrants], CONFIDENCE)
    return Comparison(base, table, summary.merge(promises_table(promises), on="mechanism"), complete, meta)


class _Tell:
    """Counts runs for the progress of a comparison."""

    def __init__(self, progress: Progress, done: int, total: int) -> None:
        self._progress, self._done, self._total = progress, done, total

    def __call__(self, what: str) -> None:
        self._progress(self._done, self._total, what)
        self._done += 1


def _paired(
    base: Scenario,
    entrants: Sequence[Contestant],
    seed: int,
    data: str | PathLike[str] | None,
    seconds: float,
    promises: dict[str, Promise],
    tell: Callable[[str], None] | None,
) -> list[dict[str, Any]]:
    """Return one row per mechanism for the jobs of one seed."""
    found, jobs, capacity = [], None, 0
    for entrant in entrants:
        if tell is not None:
            tell(f"seed {seed}, {entrant.label}")
        row, setup = _played(entrant, seed, data, promises)
        found.append(row)
        met = _realised(setup)
        if jobs is not None and not _same(jobs, met):
            raise InvalidParameterError(
                f"mechanisms {entrants[0].label!r} and {entrant.label!r} meet different jobs with seed {seed}: "
                "expected a workload that does not depend on the mechanism"
            )
        jobs, capacity = met, setup.capacity
    assert jobs is not None
    if tell is not None:
        tell(f"seed {seed}, best schedule in hindsight")
    bracket = optimum_bracket(jobs, capacity, seconds=seconds)
    best = max(row["welfare"] for row in found)
    bracket = Bracket(max(bracket.low, best), max(bracket.high, best), bracket.kind)  # sums differ in the last digit
    about = {"scenario": base.name, "seed": seed}
    optimum = {"opt_low": bracket.low, "opt_high": bracket.high, "opt_kind": bracket.kind}
    return [{**about, **row, **optimum} for row in found]


def _played(
    entrant: Contestant, seed: int, data: str | PathLike[str] | None, promises: dict[str, Promise]
) -> tuple[dict[str, Any], MarketSetup]:
    """Return the figures of one run, and its setup; note what is promised, once per mechanism."""
    from marketsched.agents.market import Market

    began = time.perf_counter()
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    setup = entrant.scenario.setup(rng, data=data)
    if entrant.label not in promises:
        promises[entrant.label] = entrant.promise(setup)
    summary = Market(setup, rng, lookahead=0).run().summary
    names = ("welfare", "revenue", "owners_utility", "jobs", "completed", "dropped", "cancelled", "evicted")
    row = {"mechanism": entrant.label, **{name: summary[name] for name in names}}
    return {**row, "utilisation": summary["utilisation"], "seconds": time.perf_counter() - began}, setup


def _realised(setup: MarketSetup) -> RealisedJobs:
    from marketsched.mechanisms.realised import RealisedJobs

    return RealisedJobs.build(
        ((job.truth, job.arrival, job.duration) for job in setup.jobs),
        horizon=setup.horizon,
        max_delay=setup.max_delay,
        max_duration=getattr(setup.mechanism, "max_duration", None),
    )


def _same(jobs: RealisedJobs, others: RealisedJobs) -> bool:
    names = ("births", "arrivals", "durations", "concurrency", "values")
    return all(np.array_equal(getattr(jobs, name), getattr(others, name)) for name in names)
