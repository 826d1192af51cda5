"""Policies on the clusters and arrivals of the same seeds: ratios with their spread, regret, and its growth.

Ratios are ratios of totals, seed by seed: what the leading policy (the first that is named) earned over all slots,
divided by what another one earned on the same arrivals. Where a total is not positive there is no ratio; the margin, in
shares of the best there could be, is always there.

Regret is measured at several horizons. A policy that knows its horizon is played anew for each; all horizons share
their first slots' arrivals, and each has a reference of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from marketsched.comparisons.contest import WHOLE_SEED, Found, Tell
from marketsched.config.scenario import Scenario
from marketsched.cores.core import FigureColumn
from marketsched.cores.playing import PlayedPolicy, jobs_table, play, policy_rows, slots_table
from marketsched.cores.worlds.world import CoreWorld, Reference
from marketsched.mechanisms.allocation.regret import fitted_growth
from marketsched.mechanisms.allocation.slot_loop import SlotRecord
from marketsched.results.paired_statistics import CONFIDENCE, Spread, ratio_of_means, spread

_OF_MEANS = ("ratio_of_means", "ratio_of_means_low", "ratio_of_means_high")
MOST_POINTS = 400  # of a curve over seeds; a run's own table has every slot


class PolicyContest:
    """Policies of one cluster scenario; see `marketsched.comparisons.contest.Contest`."""

    compared: ClassVar[str] = "policies"
    kind: ClassVar[str] = "policies"
    summed_only: ClassVar[tuple[str, ...]] = ("sizes",)
    parts: tuple[str, ...] = WHOLE_SEED

    def __init__(
        self,
        base: Scenario,
        policies: Sequence[str] | None,
        data: str | PathLike[str] | None,
        *,
        optimum: bool,
        growth: bool,
    ) -> None:
        self._base, self._core, self._data = base, base.cluster, data
        self._choices = self._core.choices(policies)
        grows = optimum and growth and self._core.about.grows
        self._horizons = horizons_of(self._core.slots) if grows else [self._core.slots]
        self._measured = self._horizons if optimum else []
        self.labels = [choice.label for choice in self._choices]
        self.steps = len(self.labels) + len(self._measured)

    def play(self, seed: int, part: int, tell: Tell) -> Found:
        """Play every policy in the world of one seed."""
        world = self._core.world(seed, data=self._data)
        played = []
        for choice in self._choices:
            tell(f"seed {seed}, {choice.label}")
            played.append(play(world, choice, world.slots))
        references = {}
        for slots in self._measured:
            tell(f"seed {seed}, {world.core.reference} of {slots} slots")
            references[slots] = world.reference(slots)
        rows = policy_rows(world, played, references.get(world.slots, Reference()))
        about = {"scenario": self._base.name, "seed": seed}
        jobs = jobs_table(played)
        return {
            "sizes": [world.sizes()],
            "runs": [{**about, **row, "seconds": each.seconds} for row, each in zip(rows, played, strict=True)],
            "regrets": _regret_rows(world, seed, played, references) if len(self._horizons) > 1 else [],
            "curves": [_curves_table(seed, each.choice.label, each.record, world.core.goal) for each in played],
            "jobs": [jobs if jobs.empty else jobs.assign(seed=seed)],
        }

    def summary(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return one row per policy; see `policies_table`."""
        growth = growth_table(tables["regrets"], self.labels, CONFIDENCE)
        return policies_table(tables["runs"], self.labels, growth, self._core.about.columns)

    def about(self, found: Found) -> dict[str, Any]:
        """Return who leads, slots and horizons, and the sizes of the first seed's world."""
        anew = any(choice.knows_horizon for choice in self._choices)
        about = {"lead": self.labels[0], "slots": self._core.slots, "horizons": self._horizons, "knows_horizon": anew}
        return {**about, **found["sizes"][0]}


def policies_table(
    runs: pd.DataFrame, policies: Sequence[str], exponents: pd.DataFrame, columns: Sequence[FigureColumn]
) -> pd.DataFrame:
    """Return one row per policy over all seeds, from the rows of single seeds (`with_ratios`) and `growth_table`.

    ``policy, observes, rules, runs``; means of the reward per slot and of the columns; of ``ratio``, ``over_baseline``,
    ``reference_ratio``, ``margin`` and ``regret_share`` mean, deviation, range (``_least``, ``_most``) and interval
    (``_low``, ``_high``); ``ratio_of_means``, of the mean totals, with an interval where there is one; ``growth`` with
    its interval.
    """
    rows = [_row(runs[runs["policy"] == policy], columns, policies[0]) for policy in policies]
    table = pd.DataFrame(rows)
    if exponents.empty:
        return table.assign(growth=np.nan, growth_low=np.nan, growth_high=np.nan)
    return table.merge(exponents, on="policy", how="left")


def _row(runs: pd.DataFrame, columns: Sequence[FigureColumn], leading: str) -> dict[str, Any]:
    first = runs.iloc[0]
    row: dict[str, Any] = {name: first[name] for name in ("policy", "observes", "rules")}
    row["runs"] = len(runs)
    per_slot = runs["reward"] / runs["slots"]
    row |= _named("reward_per_slot", spread(per_slot))
    for column in columns:
        own = runs[column.name] / runs["slots"] if column.kind == "slot" else runs[column.name]
        row |= _named(column.shown, spread(own))
    for name in ("ratio", "over_baseline", "reference_ratio", "margin", "regret_share"):
        row |= _named(name, spread(runs[name]))
    row["ratio_runs"] = int(runs["ratio"].notna().sum())
    row |= _ratio_of_means(runs, leading)
    for name in ("regret", "regret_bound", "seconds"):
        row[name] = float(runs[name].mean())
    for name in ("regret_over_bound", "reference_gap_share"):  # the notes on them must hold in every seed
        row[name] = float(runs[name].max())
    return row


def _ratio_of_means(runs: pd.DataFrame, leading: str) -> dict[str, float]:
    """Return the ratio of mean totals with its interval; NaN unless both means are positive."""
    own, lead = runs["reward"].to_numpy(), runs["lead_reward"].to_numpy()
    if own.mean() > 0 and lead.mean() > 0:
        if runs["policy"].iloc[0] == leading:
            return dict.fromkeys(_OF_MEANS, 1.0)
        return dict(zip(_OF_MEANS, ratio_of_means(lead, own, confidence=CONFIDENCE), strict=True))
    return dict.fromkeys(_OF_MEANS, np.nan)


def _named(name: str, found: Spread) -> dict[str, float]:
    return {name if part == "mean" else f"{name}_{part}": value for part, value in found._asdict().items()}


def curve_points(slots: int, most: int = MOST_POINTS) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return at most ``most`` slots, numbered from 1, evenly spread, first and last included."""
    return np.unique(np.linspace(1, slots, min(slots, most)).round().astype(np.int64))


def _curves_table(seed: int, label: str, record: SlotRecord, goal: str) -> pd.DataFrame:
    """Return `slots_table` of one seed at `curve_points` alone."""
    table = slots_table(label, record, goal).iloc[curve_points(record.slots) - 1]
    return table.assign(seed=seed)[["seed", "policy", "observes", "slot", "cumulative_reward", "average_reward"]]


HALVINGS = 3  # horizons are T, T/2, T/4, T/8
SHORTEST = 25  # slots; shorter horizons are left out


def horizons_of(slots: int) -> list[int]:
    """Return the horizons at which regret is measured, the shortest first: T/8, T/4, T/2 and T slots."""
    found = {slots >> i for i in range(HALVINGS + 1)}
    return sorted(each for each in found if each >= SHORTEST or each == slots)


def _regret_rows(
    world: CoreWorld, seed: int, played: Sequence[PlayedPolicy], references: Mapping[int, Reference]
) -> list[dict[str, Any]]:
    """Return the regret of every policy at every horizon of one world, the whole length among them."""
    rows = []
    for each in played:
        for slots, best in references.items():
            again = each.choice.knows_horizon and slots < each.record.slots
            record = play(world, each.choice, slots).record if again else each.record
            rows.append(
                {
                    "seed": seed,
                    "policy": each.choice.label,
                    "observes": record.observes,
                    "slots": slots,
                    "reward": float(record[world.core.goal][:slots].sum()),
                    "reference": best.value,
                    "reference_gap": best.gap,
                    "regret": best.value - world.earned(record, slots),
                }
            )
    return rows


def growth_table(regrets: pd.DataFrame, policies: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return ``policy, growth, growth_low, growth_high``: the x of regret ~ T^x, and its interval over seeds.

    All are NaN for a policy whose regret is not positive in some seed and at some horizon (it was no
    worse than y*, which has no logarithm); the interval is NaN for one seed. Empty if ``regrets`` (`_regret_rows`) is.
    """
    rows = []
    for policy in policies if not regrets.empty else ():
        own = regrets[regrets["policy"] == policy].pivot(index="seed", columns="slots", values="regret")
        horizons, values = own.columns.to_numpy(dtype=np.float64), own.to_numpy(dtype=np.float64)
        growth = low = high = np.nan
        if horizons.size > 1 and (values > 0).all():
            if len(values) > 1:
                fit = fitted_growth(horizons, values, confidence=confidence)
                growth, low, high = fit.exponent, fit.low, fit.high
            else:
                growth = float(np.polyfit(np.log(horizons), np.log(values[0]), 1)[0])
        rows.append({"policy": policy, "growth": growth, "growth_low": low, "growth_high": high})
    return pd.DataFrame(rows)
