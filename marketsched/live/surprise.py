"""Whether jobs come as often in unlikely cases as their owner announces: a test of announced probabilities.

Failure probabilities that the market announces rest on those that owners announce. An owner that announces a case as
unlikely and then always comes in it evicts others more often than they were told. Each statement is a forecast: its
outcomes are its cases (arrival and signal), and that the job does not come. Let the outcome have the probability m,
together with all that are equally likely, and let less likely ones have b together. The record of the owner's group is
multiplied by

    (sqrt(b + m) - sqrt(b)) / m,

the mean of the density 1 / (2 sqrt(u)) over (b, b + m). If the announced probabilities are right, the mean of this
factor is 1, given all that came before, so the record is a martingale that begins at 1, and by Ville's inequality it
ever reaches a limit L with probability at most 1 / L (20: at most 5 % of honest owners, ever). A job that comes in a
case that would bring the record to the limit is not let in: it pays the fee, and the record stays. That a job does not
come never raises the record, as the fee is for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SAME = 1e-9  # probabilities that differ by less are equal


def factor(odds: Sequence[float], case: int | None) -> float:
    """Return the factor of a record for one outcome; infinite for a case that was announced as impossible.

    ``odds`` of the cases add up to at most 1; ``case`` None: none came.
    """
    never = max(0.0, 1.0 - sum(odds))
    came = never if case is None else odds[case]
    outcomes = [*odds, never]
    below = sum(p for p in outcomes if p < came - SAME)
    mass = sum(p for p in outcomes if abs(p - came) <= SAME)
    if mass <= SAME:
        return 1.0 if case is None else math.inf
    found = (math.sqrt(below + mass) - math.sqrt(below)) / mass
    return min(found, 1.0) if case is None else found


class Records:
    """The records of all groups of owners, as logarithms."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}

    def add(self, group: str, odds: Sequence[float], case: int | None) -> None:
        """Add what became of an announcement; ``odds`` and ``case`` as of `factor`."""
        self._known[group] = self._known.get(group, 0.0) + math.log(factor(odds, case))

    def refuse(self, group: str, odds: Sequence[float], case: int, limit: float, before: float = 0.0) -> bool:
        """Tell whether a case would bring a group's record to the limit (of the product; 0: there is none).

        ``before`` is the logarithm of what will be added before it.
        """
        if not odds or not limit:
            return False
        found = factor(odds, case)
        return found > 1.0 and (
            found == math.inf or self._known.get(group, 0.0) + before + math.log(found) >= math.log(limit)
        )
