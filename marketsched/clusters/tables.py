"""The tables of cluster runs: per slot, per policy, and per policy over many seeds.

Ratios are ratios of totals, seed by seed: what the leading policy (the first that is named) earned
over all slots, divided by what another one earned on the same arrivals. Where a total is not
positive there is no ratio; the margin, in shares of the yardstick, is always there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from marketsched.clusters.words import OGASCHED, Column
from marketsched.mechanisms.allocation.slot_loop import SlotRecord
from marketsched.results.paired_statistics import ratio_of_means

CONFIDENCE = 0.95
BOOTSTRAP = 20_223  # seed of the resamples: a table drawn twice is the same table
_OF_MEANS = ("ratio_of_means", "ratio_of_means_low", "ratio_of_means_high")
MOST_POINTS = 400  # of a curve over seeds; a run's own table has every slot


class Spread(NamedTuple):
    """Mean, standard deviation, range and t interval of the mean over seeds; NaN where there is none."""

    mean: float
    deviation: float
    least: float
    most: float
    low: float
    high: float


def spread(values: ArrayLike, confidence: float = CONFIDENCE) -> Spread:
    """Return the spread of one figure over seeds.

    Parameters
    ----------
    values : array_like of float, shape (n_seeds,)
        NaN where a seed has no such figure: left out.
    confidence : float
        Of the interval of the mean (Student's t), in (0, 1).

    Examples
    --------
    >>> [round(x, 3) for x in spread([1.0, 1.2, 1.1])]
    [1.1, 0.1, 1.0, 1.2, 0.852, 1.348]
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if x.size == 0:
        return Spread(*[np.nan] * 6)
    mean, least, most = float(x.mean()), float(x.min()), float(x.max())
    if x.size == 1:
        return Spread(mean, np.nan, least, most, np.nan, np.nan)
    deviation = float(x.std(ddof=1))
    half = float(stats.t.ppf((1 + confidence) / 2, x.size - 1) * deviation / np.sqrt(x.size))
    return Spread(mean, deviation, least, most, mean - half, mean + half)


def slots_table(label: str, record: SlotRecord, goal: str) -> pd.DataFrame:
    """Return one row per slot of a policy: what it observes, every measure, and the goal's sum and mean so far.

    Whatever a core calls its goal, the last two are ``cumulative_reward`` and ``average_reward``.
    """
    slots = np.arange(1, record.slots + 1)
    measures = {name: np.asarray(values) for name, values in record.measures.items()}
    total = np.cumsum(measures[goal])
    about = {"policy": label, "observes": record.observes, "slot": slots}
    return pd.DataFrame({**about, **measures, "cumulative_reward": total, "average_reward": total / slots})


def ratio(above: float, below: float) -> float:
    """Return ``above / below`` if both are positive, else NaN."""
    return above / below if above > 0 and below > 0 else np.nan


def with_ratios(rows: Sequence[dict[str, Any]], lead: str, baseline: str = "") -> list[dict[str, Any]]:
    """Return the rows of one seed with ``ratio``, ``margin`` and all that compares with the yardstick.

    Parameters
    ----------
    rows : sequence of dict
        One per policy: ``policy, reward, reference`` (NaN: not known), ``regret_bound`` (NaN: none), and
        ``earned`` where something else than the reward counts against the yardstick.
    lead : str
        Label of the policy whose total is divided by the others'.
    baseline : str
        Label of the policy that all totals are divided by, too, if it is among them (``over_baseline``).
    """
    (leading,) = [row["reward"] for row in rows if row["policy"] == lead]
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
            "margin": (leading - reward) / positive,
            "regret": best - earned,
            "regret_share": (best - earned) / positive,
            "regret_over_bound": (best - earned) / row["regret_bound"],
        }
        found.append({**row, **compared})
    return found


def comparison_summary(
    runs: pd.DataFrame, policies: Sequence[str], exponents: pd.DataFrame, columns: Sequence[Column] = OGASCHED.columns
) -> pd.DataFrame:
    """Return one row per policy over all seeds.

    Parameters
    ----------
    runs : DataFrame
        One row per seed and policy, as `with_ratios` leaves them.
    policies : sequence of str
        In the order of the rows.
    exponents : DataFrame
        ``policy, growth, growth_low, growth_high``; may be empty.
    columns : sequence of Column
        The core's figures beside the goal; default: OgaSched's.

    Returns
    -------
    DataFrame
        ``policy, observes, rules, runs``; means of the reward per slot and of the columns; of ``ratio``,
        ``over_baseline``, ``reference_ratio``, ``margin`` and ``regret_share`` mean, deviation, range
        (``_least``, ``_most``) and interval (``_low``, ``_high``); ``ratio_of_means``, of the mean totals, with a
        bootstrap interval where all totals are positive; ``growth`` with its interval.
    """
    rows = [_row(runs[runs["policy"] == policy], columns) for policy in policies]
    table = pd.DataFrame(rows)
    if exponents.empty:
        return table.assign(growth=np.nan, growth_low=np.nan, growth_high=np.nan)
    return table.merge(exponents, on="policy", how="left")


def _row(runs: pd.DataFrame, columns: Sequence[Column]) -> dict[str, Any]:
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
    row |= _ratio_of_means(runs)
    for name in ("regret", "regret_bound", "seconds"):
        row[name] = float(runs[name].mean())
    for name in ("regret_over_bound", "reference_gap_share"):  # what is said of them must hold in every seed
        row[name] = float(runs[name].max())
    return row


def _ratio_of_means(runs: pd.DataFrame) -> dict[str, float]:
    """Return the ratio of mean totals with its bootstrap interval; NaN unless both means are positive."""
    own, lead = runs["reward"].to_numpy(), runs["lead_reward"].to_numpy()
    if own.mean() > 0 and lead.mean() > 0:
        found = ratio_of_means(lead, own, confidence=CONFIDENCE, rng=BOOTSTRAP)
        ends = (found.low, found.high) if own.min() > 0 else (np.nan, np.nan)  # resamples might have no ratio
        return dict(zip(_OF_MEANS, (found.value, *ends), strict=True))
    return dict.fromkeys(_OF_MEANS, np.nan)


def _named(name: str, found: Spread) -> dict[str, float]:
    return {name if part == "mean" else f"{name}_{part}": value for part, value in found._asdict().items()}


def curve_points(slots: int, most: int = MOST_POINTS) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return at most ``most`` slots, numbered from 1, evenly spread, first and last included."""
    return np.unique(np.linspace(1, slots, min(slots, most)).round().astype(np.int64))


def curves_table(seed: int, label: str, record: SlotRecord, goal: str) -> pd.DataFrame:
    """Return `slots_table` of one seed at `curve_points` alone."""
    table = slots_table(label, record, goal).iloc[curve_points(record.slots) - 1]
    return table.assign(seed=seed)[["seed", "policy", "observes", "slot", "cumulative_reward", "average_reward"]]
