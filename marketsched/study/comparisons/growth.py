"""How regret against the reference grows with the number of slots.

A horizon is a run of its own: the step of OgaSched (26) depends on how many slots there will be, so a
policy that knows its horizon is played anew for each. All horizons share their first slots'
arrivals, and each has a reference of its own (of OgaSched the best fixed allocation y*).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from marketsched.mechanisms.allocation.regret import fitted_growth

if TYPE_CHECKING:
    from marketsched.play.policies import Played
    from marketsched.worlds.clusters.world import Reference, World

HALVINGS = 3  # horizons are T, T/2, T/4, T/8
SHORTEST = 25  # slots; shorter horizons are left out


def horizons_of(slots: int) -> list[int]:
    """Return the horizons at which regret is measured, the shortest first: T/8, T/4, T/2 and T slots.

    Examples
    --------
    >>> horizons_of(2000), horizons_of(60)
    ([250, 500, 1000, 2000], [30, 60])
    """
    found = {slots >> i for i in range(HALVINGS + 1)}
    return sorted(each for each in found if each >= SHORTEST or each == slots)


def regret_rows(
    world: World, seed: int, played: Sequence[Played], references: Mapping[int, Reference]
) -> list[dict[str, Any]]:
    """Return the regret of every policy at every horizon of one world.

    Parameters
    ----------
    world : World
        Where all were played.
    seed : int
        Of the world, for the rows.
    played : sequence of Played
        Over all slots.
    references : mapping of int to Reference
        The reference at every horizon, the whole length among them.
    """
    from marketsched.play.policies import play

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
                    "reward": float(record[world.goal][:slots].sum()),
                    "reference": best.value,
                    "reference_gap": best.gap,
                    "regret": best.value - world.earned(record, slots),
                }
            )
    return rows


def growth_table(regrets: pd.DataFrame, policies: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return ``policy, growth, growth_low, growth_high``: the x of regret ~ T^x, and its interval over seeds.

    All are NaN for a policy whose regret is not positive in some seed and at some horizon (it was no
    worse than y*, which has no logarithm); the interval is NaN for one seed.

    Parameters
    ----------
    regrets : DataFrame
        As `regret_rows` gives them, for all seeds; empty: an empty table comes back.
    policies : sequence of str
        In the order of the rows.
    confidence : float
        Of the interval.
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
