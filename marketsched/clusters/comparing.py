"""Compare policies of a cluster scenario over many seeds: ratios with their spread, regret, and its growth.

One instance says little: ratios differ by tens of per cent from seed to seed. So every seed draws a
world of its own, all policies meet the same one, ratios are taken seed by seed, and beside every ratio
stands what the core's yardstick reaches in the same seed: of OgaSched the best fixed allocation y*.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from marketsched.clusters.growth import growth_table, horizons_of, regret_rows
from marketsched.clusters.running import Played, jobs_table, play, summary_rows
from marketsched.clusters.scenario import ClusterScenario
from marketsched.clusters.tables import CONFIDENCE, comparison_summary, curves_table
from marketsched.mechanisms.checks import whole_parameter
from marketsched.play.running import checked_seed, versions
from marketsched.results.summarised import Summarised

if TYPE_CHECKING:
    from marketsched.clusters.world import World
    from marketsched.config.policies import PolicyChoice

Progress = Callable[[int, int, str], None]  # steps finished, steps in all, what is being done


@dataclass(frozen=True, slots=True, eq=False)
class ClusterComparison(Summarised):
    """What came out.

    Attributes
    ----------
    scenario : ClusterScenario
    runs : DataFrame
        One row per seed and policy.
    curves : DataFrame
        Per seed and policy the reward so far, at most 400 slots of it.
    regrets : DataFrame
        ``seed, policy, observes, slots, reward, reference, reference_gap, regret``: one row per
        seed, policy and horizon; empty if growth was not asked for.
    summary : DataFrame
        One row per policy; see `comparison_summary`.
    complete : bool
        False if it was interrupted; it then holds the seeds that were finished.
    meta : dict
        What is needed to do it again, and the sizes of the first seed's world.
    jobs : DataFrame
        One row per seed, policy and job, of a core that tells jobs apart; else empty.
    """

    scenario: ClusterScenario
    runs: pd.DataFrame
    curves: pd.DataFrame
    regrets: pd.DataFrame
    summary: pd.DataFrame
    complete: bool
    meta: dict[str, Any]
    jobs: pd.DataFrame = field(default_factory=pd.DataFrame)


def compare_cluster(
    scenario: ClusterScenario | str | PathLike[str] | Mapping[str, Any],
    policies: Sequence[str] | None = None,
    runs: int = 20,
    seed: int = 0,
    *,
    data: str | PathLike[str] | None = None,
    optimum: bool = True,
    growth: bool = True,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> ClusterComparison:
    """Play every policy on the clusters and arrivals of the same seeds.

    Parameters
    ----------
    scenario : ClusterScenario, name, path or mapping
        Cluster, arrivals and slots.
    policies : sequence of str, optional
        In place of the scenario's, as in ``"ogasched:step=25"``. Totals of the first are divided by the
        others'.
    runs : int
        Seeds ``seed .. seed + runs - 1``.
    seed : int
        The first one, >= 0.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    optimum : bool
        Whether the yardstick of every seed is looked for.
    growth : bool
        Whether regret is measured at shorter horizons, too, to tell how it grows; needs ``optimum``, and a
        core whose regret is a matter of horizons.
    progress : function of (int, int, str), optional
        Called before each step with how many are done, how many there are, and what comes now.
    keep_interrupted : bool
        On Ctrl-C return the finished seeds instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    ClusterComparison
        Tables, and everything needed to do it again.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number, a policy or the scenario is at fault.
    MissingDataError, TraceError
        If the scenario needs a trace that is not there or damaged.
    """
    base = ClusterScenario.of(scenario)
    choices = base.choices(policies)
    n_runs, first = whole_parameter("runs", runs, 1), checked_seed(seed)
    grows = optimum and growth and base.cluster.words.grows
    horizons = horizons_of(base.cluster.slots) if grows else [base.cluster.slots]
    tell = _Tell(progress, n_runs * (len(choices) + optimum * len(horizons)))
    found = _Tables()
    complete, began = True, time.perf_counter()
    try:
        for i in range(n_runs):
            found.add(_seed(base, choices, first + i, data, horizons, optimum, tell))
    except KeyboardInterrupt:
        if not keep_interrupted or not found.runs:
            raise
        complete = False
    labels = [choice.label for choice in choices]
    table, regrets = pd.DataFrame(found.runs), pd.DataFrame(found.regrets)
    meta = {
        "scenario": base.name,
        "core": base.cluster.core,
        "policies": labels,
        "lead": labels[0],
        "seed": first,
        "runs": len(found.runs) // len(labels),
        "runs_asked_for": n_runs,
        "slots": base.cluster.slots,
        "horizons": horizons,
        "confidence": CONFIDENCE,
        **found.sizes,
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    summary = comparison_summary(table, labels, growth_table(regrets, labels, CONFIDENCE), base.cluster.words.columns)
    curves = pd.concat(found.curves, ignore_index=True)
    jobs = pd.concat(found.jobs, ignore_index=True)
    return ClusterComparison(base, table, curves, regrets, summary, complete, meta, jobs)


@dataclass(slots=True)
class _Seed:
    runs: list[dict[str, Any]]
    regrets: list[dict[str, Any]]
    curves: list[pd.DataFrame]
    jobs: pd.DataFrame
    sizes: dict[str, Any]


class _Tables:
    """What the finished seeds have left."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.regrets: list[dict[str, Any]] = []
        self.curves: list[pd.DataFrame] = []
        self.jobs: list[pd.DataFrame] = []
        self.sizes: dict[str, Any] = {}

    def add(self, seed: _Seed) -> None:
        self.runs += seed.runs
        self.regrets += seed.regrets
        self.curves += seed.curves
        self.jobs.append(seed.jobs)
        self.sizes = self.sizes or seed.sizes


class _Tell:
    """Counts steps for the progress of a comparison."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def __call__(self, what: str) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total, what)
        self._done += 1


def _seed(
    base: ClusterScenario,
    choices: Sequence[PolicyChoice],
    seed: int,
    data: str | PathLike[str] | None,
    horizons: Sequence[int],
    optimum: bool,
    tell: _Tell,
) -> _Seed:
    """Play every policy in the world of one seed."""
    world: World = base.cluster.world(seed, data=data)
    played: list[Played] = []
    for choice in choices:
        tell(f"seed {seed}, {choice.label}")
        played.append(play(world, choice, world.slots))
    references = {}
    for slots in horizons if optimum else ():
        tell(f"seed {seed}, {base.cluster.words.reference} of {slots} slots")
        references[slots] = world.reference(slots)
    best = references.get(world.slots)
    value, gap = (np.nan, np.nan) if best is None else (best.value, best.gap)
    about = {"scenario": base.name, "seed": seed}
    summary = zip(summary_rows(world, played, value, gap, baseline=base.cluster.words.baseline), played, strict=True)
    rows = [{**about, **row, "seconds": each.seconds} for row, each in summary]
    regrets = regret_rows(world, seed, played, references) if len(horizons) > 1 else []
    curves = [curves_table(seed, each.choice.label, each.record, world.goal) for each in played]
    jobs = jobs_table(played)
    return _Seed(rows, regrets, curves, jobs if jobs.empty else jobs.assign(seed=seed), world.sizes())
