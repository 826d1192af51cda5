"""All policies of a cluster scenario in the same world, beside the best allocation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from marketsched import cores
from marketsched.config.scenario import Scenario
from marketsched.cores.sections.policies import PolicyChoice
from marketsched.cores.worlds.world import CoreWorld, PolicyOutcome, Reference
from marketsched.mechanisms.allocation.slot_loop import SlotRecord, play_slots
from marketsched.play.running import Progress
from marketsched.results.paired_statistics import ratio
from marketsched.results.result import Result, versions


@dataclass(frozen=True, slots=True)
class PlayedPolicy:
    """One policy's record, what else its core tells of it, and how long it took."""

    choice: PolicyChoice
    record: SlotRecord
    seconds: float
    outcome: PolicyOutcome


def run_policies(
    scenario: Scenario,
    seed: int,
    policies: Sequence[str] | None,
    data: str | PathLike[str] | None,
    optimum: bool,
    model: bool,
    progress: Progress | None,
    keep_interrupted: bool,
) -> Result:
    """Run every policy of a cluster scenario once; see :func:`marketsched.play.running.run`.

    The result is of kind ``cluster``. ``slots``: one row per policy and slot; ``summary``: one row per policy;
    ``jobs``: one row per policy and job, of a core that tells jobs apart; ``owners``, with ``model``: one row per
    policy and owner, as truthful agents of a `CoreMarket`. If it was interrupted it holds the policies that were
    finished, and no reference if that was not found yet.
    """
    core = scenario.cluster
    choices = core.choices(policies)
    began = time.perf_counter()
    world = core.world(seed, data=data)
    for choice in choices if model else ():
        world.payments(choice)  # or its owners cannot report
    total = len(choices) * world.slots
    tell = progress or (lambda done, of, what: None)
    played: list[PlayedPolicy] = []
    best, complete = Reference(), True
    try:
        for choice in choices:
            done = len(played) * world.slots
            played.append(play(world, choice, world.slots, lambda t: tell(done + t, total, choice.label)))  # noqa: B023
        if optimum:
            tell(total, total, core.about.reference)
            best = world.reference(world.slots)
    except KeyboardInterrupt:
        if not keep_interrupted or not played:
            raise
        complete = False
    meta = {
        "scenario": scenario.name,
        "core": core.core,
        "seed": seed,
        "slots": world.slots,
        "goal": world.core.goal,
        "policies": [choice.label for choice in choices],
        "lead": choices[0].label,
        **world.sizes(),
        "policy_seconds": {each.choice.label: round(each.seconds, 6) for each in played},
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    slots = pd.concat(
        [slots_table(each.choice.label, each.record, world.core.goal) for each in played], ignore_index=True
    )
    summary = pd.DataFrame(policy_rows(world, played, best))
    jobs = jobs_table(played)
    tables = {"slots": slots, **({} if jobs.empty else {"jobs": jobs})}
    if model:
        tables["owners"] = owners_table(world, [each.choice for each in played])
    return Result("cluster", tables, summary, {**meta, "complete": complete}, {"scenario.yaml": scenario.to_yaml()})


def play(world: CoreWorld, choice: PolicyChoice, slots: int, tell: Callable[[int], None] | None = None) -> PlayedPolicy:
    """Play one policy for ``slots`` slots from the first; the time is without that of compiling its kernels."""
    play_slots(world.policy(choice, 1), world.environment(), 1)
    began = time.perf_counter()
    policy, environment = world.policy(choice, slots), world.environment()
    record = play_slots(policy, environment, slots, tell)
    seconds = time.perf_counter() - began
    return PlayedPolicy(choice, record, seconds, world.outcome(policy, environment, slots))


def jobs_table(played: Sequence[PlayedPolicy]) -> pd.DataFrame:
    """Return one row per policy and job, of a core that tells jobs apart; else an empty table."""
    return _below_each_other({each.choice.label: each.outcome.jobs for each in played})


def _below_each_other(tables: Mapping[str, pd.DataFrame | None]) -> pd.DataFrame:
    """Return the tables of policies as one, which names them in its first column."""
    there = {label: table for label, table in tables.items() if table is not None}
    return pd.concat(there, names=["policy"]).reset_index("policy").reset_index(drop=True) if there else pd.DataFrame()


def owners_table(world: CoreWorld, choices: Sequence[PolicyChoice]) -> pd.DataFrame:
    """Return what every owner got and paid under every policy, all reports true: a `CoreMarket` for each policy."""
    tables = {}
    for choice in choices:
        market = cores.CoreMarket(world.game(choice))  # imports Mesa where it is used
        while market.running:
            market.step()
        tables[choice.label] = market.table()
    return _below_each_other(tables)


def slots_table(label: str, record: SlotRecord, goal: str) -> pd.DataFrame:
    """Return one row per slot of a policy: what it observes, every measure, and the goal's sum and mean so far.

    Whatever a core calls its goal, the last two are ``cumulative_reward`` and ``average_reward``.
    """
    slots = np.arange(1, record.slots + 1)
    measures = {name: np.asarray(values) for name, values in record.measures.items()}
    total = np.cumsum(measures[goal])
    about = {"policy": label, "observes": record.observes, "slot": slots}
    return pd.DataFrame({**about, **measures, "cumulative_reward": total, "average_reward": total / slots})


def policy_rows(world: CoreWorld, played: Sequence[PlayedPolicy], best: Reference) -> list[dict[str, Any]]:
    """Return one row per policy of one world, over all slots: totals, ratios, and regret; the first policy leads."""
    rows = []
    for each in played:
        record = each.record
        rows.append(
            {
                "policy": each.choice.label,
                "observes": record.observes,
                "rules": each.choice.in_one_line(),
                "slots": record.slots,
                **{name: record.total(name) for name in record.measures},
                "reward": record.total(world.core.goal),
                "reward_per_slot": record.total(world.core.goal) / record.slots,
                "earned": world.earned(record, record.slots),
                **each.outcome.figures,
                "reference": best.value,
                "reference_gap": best.gap,
                "reference_gap_share": best.gap / best.value if best.value > 0 else np.nan,
                "regret_bound": each.outcome.regret_bound,
            }
        )
    return with_ratios(rows, played[0].choice.label, world.core.baseline)


def with_ratios(rows: Sequence[dict[str, Any]], lead: str, baseline: str = "") -> list[dict[str, Any]]:
    """Return the rows of one seed with ``ratio``, ``margin`` and all that compares with the reference.

    A row has ``policy, reward, reference`` (NaN: not known), ``regret_bound`` (NaN: none), and ``earned`` where
    something else than the reward counts against the reference. The total of policy ``lead`` is divided by each one's;
    each one's by that of ``baseline``, if it is among them (``over_baseline``).
    """
    (first,) = [row for row in rows if row["policy"] == lead]
    leading, ahead = first["reward"], first.get("earned", first["reward"])
    below = next((row["reward"] for row in rows if row["policy"] == baseline), np.nan)
    found = []
    for row in rows:
        best, reward, earned = row["reference"], row["reward"], row.get("earned", row["reward"])
        positive = best if best > 0 else np.nan
        compared = {
            "lead_reward": leading,
            "ratio": ratio(leading, reward),
            "over_baseline": ratio(reward, below),
            "reference_ratio": ratio(best, earned),
            "margin": (ahead - earned) / positive,
            "regret": best - earned,
            "regret_share": (best - earned) / positive,
            "regret_over_bound": (best - earned) / row["regret_bound"],
        }
        found.append({**row, **compared})
    return found
