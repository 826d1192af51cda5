"""Run a cluster scenario: every policy in the same world, and the core's yardstick beside them.

What a policy saw before it decided is declared by the policy, enforced by the slot loop, and stands
in every row: policies that see the arrivals and one that does not play different games.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from marketsched.clusters.scenario import ClusterScenario
from marketsched.clusters.tables import slots_table, with_ratios
from marketsched.config.policies import PolicyChoice
from marketsched.mechanisms.allocation.slot_loop import SlotRecord, play_slots
from marketsched.play.running import checked_seed, versions
from marketsched.results.summarised import Summarised

if TYPE_CHECKING:
    from marketsched.clusters.world import Outcome, World

Progress = Callable[[int, int, str], None]  # slots done, slots in all, what is being done


@dataclass(frozen=True, slots=True, eq=False)
class ClusterRun(Summarised):
    """What came out. ``slots``: one row per policy and slot; ``summary``: one row per policy.

    ``jobs``: one row per policy and job, of a core that tells jobs apart; else empty. ``complete`` is
    False if it was interrupted; it then holds the policies that were finished, and no yardstick if it
    was not found yet.
    """

    scenario: ClusterScenario
    slots: pd.DataFrame
    summary: pd.DataFrame
    complete: bool
    meta: dict[str, Any]
    jobs: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True, slots=True)
class Played:
    """One policy's record, what else its core tells of it, and how long it took."""

    choice: PolicyChoice
    record: SlotRecord
    seconds: float
    outcome: Outcome


def run_cluster(
    scenario: ClusterScenario | str | PathLike[str] | Mapping[str, Any],
    seed: int = 0,
    *,
    policies: Sequence[str] | None = None,
    data: str | PathLike[str] | None = None,
    optimum: bool = True,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> ClusterRun:
    """Run every policy of a cluster scenario once.

    Parameters
    ----------
    scenario : ClusterScenario, name, path or mapping
        What to run.
    seed : int
        Root of all randomness, >= 0: equal seeds give equal results.
    policies : sequence of str, optional
        In place of the scenario's, as in ``"ogasched:step=25"``. Totals of the first are divided by the
        others'.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    optimum : bool
        Whether the yardstick (of OgaSched: the best fixed allocation) is looked for.
    progress : function of (int, int, str), optional
        Told how many slots of all policies are done, how many there are, and what comes now.
    keep_interrupted : bool
        On Ctrl-C return what is finished instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    ClusterRun
        Tables, and everything needed to do it again.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If the scenario, a policy or the seed is at fault.
    MissingDataError, TraceError
        If the scenario needs a trace that is not there or damaged.

    Examples
    --------
    >>> small = {"name": "small", "cluster": {"slots": 50, "policies": ["ogasched", "fairness"],
    ...     "instance": {"kind": "small-integer"}}}
    >>> found = run_cluster(small)
    >>> found.summary[["policy", "observes", "slots"]].values.tolist()
    [['ogasched', 'nothing', 50], ['fairness', 'arrivals', 50]]
    """
    base = ClusterScenario.of(scenario)
    choices = base.choices(policies)
    began = time.perf_counter()
    world = base.cluster.world(checked_seed(seed), data=data)
    total = len(choices) * world.slots
    tell = progress or (lambda done, of, what: None)
    played: list[Played] = []
    reference, complete = (np.nan, np.nan), True
    try:
        for choice in choices:
            done = len(played) * world.slots
            played.append(play(world, choice, world.slots, lambda t: tell(done + t, total, choice.label)))  # noqa: B023
        if optimum:
            tell(total, total, base.cluster.words.reference)
            best = world.reference(world.slots)
            reference = best.value, best.gap
    except KeyboardInterrupt:
        if not keep_interrupted or not played:
            raise
        complete = False
    meta = {
        "scenario": base.name,
        "core": base.cluster.core,
        "seed": seed,
        "slots": world.slots,
        "goal": world.goal,
        "policies": [choice.label for choice in choices],
        "lead": choices[0].label,
        **world.sizes(),
        "policy_seconds": {each.choice.label: round(each.seconds, 6) for each in played},
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    slots = pd.concat([slots_table(each.choice.label, each.record, world.goal) for each in played], ignore_index=True)
    summary = pd.DataFrame(summary_rows(world, played, *reference, baseline=base.cluster.words.baseline))
    return ClusterRun(base, slots, summary, complete, meta, jobs_table(played))


def play(world: World, choice: PolicyChoice, slots: int, tell: Callable[[int], None] | None = None) -> Played:
    """Play one policy for ``slots`` slots from the first; the time is without that of compiling its kernels."""
    play_slots(world.policy(choice, 1), world.environment(), 1)
    began = time.perf_counter()
    policy, environment = world.policy(choice, slots), world.environment()
    record = play_slots(policy, environment, slots, tell)
    seconds = time.perf_counter() - began
    return Played(choice, record, seconds, world.outcome(policy, environment))


def jobs_table(played: Sequence[Played]) -> pd.DataFrame:
    """Return one row per policy and job, of a core that tells jobs apart; else an empty table."""
    tables = [each.outcome.jobs.assign(policy=each.choice.label) for each in played if each.outcome.jobs is not None]
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, ignore_index=True)
    return table[["policy", *[name for name in table if name != "policy"]]]


def summary_rows(
    world: World, played: Sequence[Played], best: float, gap: float, *, baseline: str = ""
) -> list[dict[str, Any]]:
    """Return one row per policy of one world: totals, ratios, and regret against the yardstick.

    Parameters
    ----------
    world : World
        Where all were played, over all slots.
    played : sequence of Played
        The first is the one whose total is divided by the others'.
    best, gap : float
        As in `Reference`; NaN: not known.
    baseline : str
        See `with_ratios`.
    """
    rows = []
    for each in played:
        record = each.record
        rows.append(
            {
                "policy": each.choice.label,
                "observes": record.observes,
                "rules": each.choice.said(),
                "slots": record.slots,
                **{name: record.total(name) for name in record.measures},
                "reward": record.total(world.goal),
                "reward_per_slot": record.total(world.goal) / record.slots,
                "earned": world.earned(record, record.slots),
                **each.outcome.figures,
                "reference": best,
                "reference_gap": gap,
                "reference_gap_share": gap / best if best > 0 else np.nan,
                "regret_bound": world.regret_bound(each.choice, record.slots),
            }
        )
    return with_ratios(rows, played[0].choice.label, baseline)
