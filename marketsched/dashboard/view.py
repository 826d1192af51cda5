"""The view of the dashboard at one moment: plain arrays and figures from a market and its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.market import Market
from marketsched.agents.result import RunResult

TRUTHFUL = "truthful"
RECENT = 40  # jobs offered for an explanation
OUTCOME_WORDS = {
    "submit": "submitted",
    "arrive": "ready",
    "drop": "dropped",
    "cancel": "cancelled",
    "evict": "evicted",
    "start": "started",
    "requeue": "requeued",
    "complete": "completed",
    "close": "left over",
}


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """How the owners of one strategy did so far, in credits."""

    name: str
    owners: int
    jobs: int
    completed: int
    mean: float  # realised utility per owner
    half_width: float  # half of its 95 % interval over owners; nan for a single owner
    by_round: NDArray[np.float64]  # the mean at the end of each round, shape (n_rounds,)


@dataclass(frozen=True, slots=True, eq=False)
class MarketView:
    """A market at the end of a round. Arrays over rounds have shape (n_rounds,), round 1 first."""

    mechanism: str
    round: int
    horizon: int
    capacity: int
    jobs: int  # of the workload
    asked: float  # node-rounds the jobs really need, as a share of those there are until the last birth
    complete: bool  # all rounds are played
    load: NDArray[np.int64]  # busy nodes
    cancelled: NDArray[np.int64]  # jobs removed before their first round
    evicted: NDArray[np.int64]  # and after it
    promised: NDArray[np.float64]  # expected nodes committed; nan without such a notion
    coming: NDArray[np.float64]  # the same for the rounds to come, shape (n_ahead,)
    welfare: NDArray[np.float64]  # credits earned so far
    revenue: NDArray[np.float64]  # and paid
    bound: NDArray[np.float64] | None  # no schedule is worth more by then, shape (horizon,); None: not computed yet
    surface: NDArray[np.float64] | None  # prices of slots ahead at the start of each round; None: no prices
    price: float  # of a node in the round to come; nan without prices, inf: sold out
    groups: tuple[Group, ...]
    counts: dict[str, int]  # events by kind, so far; of submissions each job's first
    recent: tuple[tuple[str, str], ...]  # jobs that something just happened to, the newest first, and what

    @property
    def share_of_bound(self) -> float | None:
        """Welfare so far over the bound by now; None without a bound, or before anything could be done."""
        if self.bound is None or not self.round or self.bound[self.round - 1] <= 0:
            return None
        return float(self.welfare[-1] / self.bound[self.round - 1])


def view_of(
    market: Market,
    result: RunResult,
    *,
    mechanism: str,
    asked: float,
    strategies: Mapping[str, str],
    bound: NDArray[np.float64] | None,
) -> MarketView:
    """Return what there is to see of ``market`` between two rounds; ``result`` holds its tables up to the same round.

    ``strategies`` names the strategy of each owner; the others are fields of `MarketView`.
    """
    rounds, now = result.rounds, market.round
    money = _money_by_round(result.events, now)
    return MarketView(
        mechanism=mechanism,
        round=now,
        horizon=market.setup.horizon,
        capacity=market.setup.capacity,
        jobs=len(market.setup.jobs),
        asked=asked,
        complete=market.round == market.setup.horizon,
        load=rounds["load"].to_numpy(),
        cancelled=rounds["cancelled"].to_numpy(),
        evicted=rounds["evicted"].to_numpy(),
        promised=rounds["promised"].to_numpy(),
        coming=_coming(market),
        welfare=np.cumsum(money["value"]),
        revenue=np.cumsum(money["payment"]),
        bound=bound,
        surface=None if result.price_surface is None else result.price_surface.astype(np.float64),
        price=_price(market),
        groups=_groups(result, strategies, now),
        counts=_counts(result.events) | {"submit": int(result.jobs["submitted"].notna().sum())},
        recent=_recent(result.events),
    )


def _money_by_round(events: pd.DataFrame, now: int) -> dict[str, NDArray[np.float64]]:
    """Sum values and payments by round of completion."""
    place = events["round"].to_numpy()
    sums: dict[str, NDArray[np.float64]] = {}
    for what in ("value", "payment"):
        by_round: NDArray[np.float64] = np.bincount(place, weights=events[what].to_numpy(), minlength=now + 1)  # type: ignore[assignment]
        sums[what] = by_round[1:]
    return sums


def _coming(market: Market) -> NDArray[np.float64]:
    """Return the nodes committed to the rounds to come, none without such a notion."""
    ahead = min(market.setup.horizon - market.round, market.setup.max_delay)
    committed = market.mechanism.committed(market.round + 1, ahead) if ahead > 0 else None
    return np.zeros(0) if committed is None else np.asarray(committed, dtype=np.float64)


def _price(market: Market) -> float:
    """Return the price of a node in the round to come, nan without one."""
    prices = market.mechanism.slot_prices(market.round + 1, 1) if market.running else None
    return float("nan") if prices is None else float(np.asarray(prices)[0])


def _groups(result: RunResult, strategies: Mapping[str, str], now: int) -> tuple[Group, ...]:
    """Return how each strategy did, the truthful first."""
    jobs = result.jobs
    owners = pd.Series(strategies, dtype=object)
    utility = jobs.groupby("owner")["utility"].sum().reindex(owners.index, fill_value=0.0)
    done = result.events[result.events["event"] == "complete"]
    gains = (done["value"] - done["payment"]).to_numpy()
    of_event, of_job = done["owner"].map(strategies).to_numpy(), jobs["owner"].map(strategies).to_numpy()
    found = []
    for name in sorted(set(strategies.values()), key=lambda x: (x != TRUTHFUL, x)):
        own = utility[owners == name].to_numpy(dtype=np.float64)
        mine = of_event == name
        by_round = np.bincount(done["round"].to_numpy()[mine], weights=gains[mine], minlength=now + 1)[1:]
        spread = 1.96 * own.std(ddof=1) / np.sqrt(own.size) if own.size > 1 else np.nan
        found.append(
            Group(
                name=name,
                owners=own.size,
                jobs=int((of_job == name).sum()),
                completed=int(mine.sum()),
                mean=float(own.mean()),
                half_width=float(spread),
                by_round=np.cumsum(by_round) / own.size,
            )
        )
    return tuple(found)


def _counts(events: pd.DataFrame) -> dict[str, int]:
    """Count events by kind."""
    seen = events["event"].value_counts()
    return {kind: int(seen.get(kind, 0)) for kind in OUTCOME_WORDS}


def _recent(events: pd.DataFrame) -> tuple[tuple[str, str], ...]:
    """Return jobs that something happened to, newest first: removals before all else."""
    removals = events[events["event"].isin(("evict", "cancel", "drop"))].tail(RECENT // 4)
    latest = events.tail(20 * RECENT)
    found: dict[str, str] = {}
    for table in (removals, latest):
        for row in table.iloc[::-1].itertuples():
            if len(found) >= RECENT:
                break
            found.setdefault(str(row.statement), f"{OUTCOME_WORDS[str(row.event)]} in round {row.round}")
    return tuple(found.items())
