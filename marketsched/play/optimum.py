"""The best schedule in hindsight, enclosed between a schedule and a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from marketsched.mechanisms.auctions.flat_price import best_first_come, first_come_welfare
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.relaxed_lp import hindsight_optimum, realised_bound
from marketsched.relaxed_lp.duality import dual_bound

OptimumKind = Literal["exact", "milp", "lp", "dual"]

MOST_EXACT = 400_000  # node-rounds of all starts together up to which the exact optimum is tried
MOST_LP = 4_000_000  # the same for the linear program


@dataclass(frozen=True, slots=True)
class Bracket:
    """OPT lies in [low, high], credits. ``kind`` says where ``high`` comes from.

    ``exact``: the optimum, proven, and ``low`` the same. ``milp``: the bound of a search that was
    stopped. ``lp``: the linear program (11). ``dual``: the dual bound (29).
    """

    low: float
    high: float
    kind: OptimumKind


def optimum_bracket(jobs: RealisedJobs, capacity: int, *, seconds: float, start_prices: Any = None) -> Bracket:
    """Return an interval that holds the welfare of the best schedule in hindsight.

    Parameters
    ----------
    jobs : RealisedJobs
        What really happened.
    capacity : int
        C, nodes.
    seconds : float
        How long the exact optimum may take, and then the linear program; 0: neither is tried, and
        the dual bound (29) has the word.
    start_prices : array_like of float, shape (horizon,), optional
        Where the dual bound may start, too.
    """
    horizon = jobs.horizon
    low = max(
        best_first_come(jobs, capacity, horizon).welfare, first_come_welfare(jobs, capacity, horizon, 0.0).welfare
    )
    high, kind = dual_bound(jobs, capacity, horizon, start_prices=start_prices).value, "dual"
    size = int((jobs.offsets[1:] - jobs.offsets[:-1]) @ jobs.durations)
    if seconds > 0 and 0 < size <= MOST_EXACT:
        best = hindsight_optimum(jobs, capacity, horizon, time_limit=seconds)
        if best.proven:
            return Bracket(best.value, best.value, "exact")
        low = max(low, best.value)
        if best.bound < high:
            high, kind = best.bound, "milp"
    elif seconds > 0 and 0 < size <= MOST_LP:
        bound = realised_bound(jobs, capacity, horizon, time_limit=seconds)
        if bound.dual_value < high:
            high, kind = bound.dual_value, "lp"
    return Bracket(min(low, high), high, kind)  # type: ignore[arg-type]
