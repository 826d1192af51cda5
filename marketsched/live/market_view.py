"""Public figures of a market: round, clock, limits, prices. Made after each transaction, once for all who ask."""

from __future__ import annotations

from typing import Any

from marketsched.live.clock import Clock
from marketsched.live.machine import LiveMarket
from marketsched.live.principal import Principal
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.promises import printed_promises

PRICED_ROUNDS = 500  # the most whose prices are shown at once
POOL_ROUNDS = 48  # whose prices by pool and resource are shown
SIZES = ("capacity", "max_concurrency", "max_duration", "max_value", "max_delay", "horizon")


EVICTED_PAYS = (
    "a run that is stopped or evicted pays for the rounds it used, which weakens this by at most that price times the "
    "probability of it"
)


def promises_to_owners(market: LiveMarket) -> str:
    """Return what the mechanism of this market promises, in one line, and what a rule of live markets takes from it."""
    printed = printed_promises(market.mechanism)
    asked = getattr(market.mechanism, "inner", market.mechanism)  # of an object that only has the members of one
    may_owe = getattr(type(asked), "owed", Mechanism.owed) is not Mechanism.owed
    may_owe = may_owe and not market.mechanism.free_of_charge
    return f"{printed}; {EVICTED_PAYS}" if may_owe and market.config.evicted_pay != "nothing" else printed


def market_view(market: LiveMarket, last_event: int) -> dict[str, Any]:
    """Return what stands until the market changes; for the thread of the service."""
    config = market.config
    return {
        "name": config.name,
        "mechanism": config.mechanism,
        "promises": promises_to_owners(market),
        "round": market.round,
        "over": market.over,
        "limits": {size: getattr(config, size) for size in SIZES},
        "no_show_fee": config.no_show_fee,
        "no_show_share": config.no_show_share,
        "announced_nodes": config.most_announced,
        "evicted_pay": config.evicted_pay,
        "load": market.load,
        "busy": market.busy,
        "last_rounds": [list(each) for each in market.past],
        "waiting_at_most": market.waiting_at_most,
        "usable_nodes": market.usable,
        "rounds_short_of_nodes": market.short_rounds,
        "prices": market.prices(PRICED_ROUNDS),
        "last_event": last_event,
        **({"classes": ["regular", "free"]} if market.mechanism.has_purses else {}),
        **_cluster_view(market),
    }


def _cluster_view(market: LiveMarket) -> dict[str, Any]:
    """Return the cluster and the prices of its pools; nothing where nodes are identical."""
    if market.config.cluster is None:
        return {}
    return {"cluster": market.config.stored()["cluster"], "pools": pool_prices(market, market.round, POOL_ROUNDS)}


def pool_prices(market: LiveMarket, first: int, count: int) -> dict[str, dict[str, list[float]]] | None:
    """Return the prices of ``count`` rounds from ``first`` on, credits per unit of a resource, by pool and resource.

    None: identical nodes, or a mechanism without such prices.
    """
    cluster = market.mechanism.cluster
    prices = market.mechanism.pool_prices(first, max(0, min(count, market.config.horizon - first + 1)))
    if cluster is None or prices is None or market.config.cluster is None:
        return None
    return {
        pool: {each.name: (prices[g, k] * each.parts).tolist() for k, each in enumerate(cluster.resources)}
        for g, pool in enumerate(cluster.pool_names)
    }


PUBLIC = (  # what needs no token
    "name", "mechanism", "promises", "round", "over", "load", "busy", "last_rounds", "waiting_at_most", "usable_nodes",
    "prices",
)  # fmt: skip


def public_at(view: dict[str, Any], clock: Clock, rounds: int) -> dict[str, Any]:
    """Return what everybody may see now, without a token: the round, the prices, and how many nodes are busy."""
    shown = shown_at(view, clock, rounds, Principal("", "owner"))
    return {**{key: shown[key] for key in PUBLIC}, "clock": shown["clock"], "capacity": view["limits"]["capacity"]}


def shown_at(view: dict[str, Any], clock: Clock, rounds: int, who: Principal) -> dict[str, Any]:
    """Return it as answered now, with the prices of ``rounds`` rounds; any thread may call this.

    Owners do not get the number of the last event, which counts what others do.
    """
    if who.role == "owner":
        view = {key: each for key, each in view.items() if key != "last_event"}
    prices = view["prices"]
    return {**view, "clock": clock_at(clock, view["round"]), "prices": None if prices is None else prices[:rounds]}


def clock_at(clock: Clock, open_round: int) -> dict[str, Any]:
    """Return the clock as plain data, now."""
    end = clock.end_of(open_round)
    return {
        "kind": clock.kind,
        "round_seconds": clock.round_seconds,
        "now": clock.now().isoformat(),
        "round_ends": None if end is None else end.isoformat(),
    }
