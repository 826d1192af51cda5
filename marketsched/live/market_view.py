"""Public figures of a market: round, clock, limits, prices. Made after each transaction, once for all who ask."""

from __future__ import annotations

from typing import Any

from marketsched.live.clock import Clock
from marketsched.live.machine import LiveMarket

PRICED_ROUNDS = 500  # the most whose prices are shown at once
SIZES = ("capacity", "max_concurrency", "max_duration", "max_value", "max_delay", "horizon")


def market_view(market: LiveMarket, last_event: int) -> dict[str, Any]:
    """Return what stands until the market changes; for the thread of the service."""
    config = market.config
    return {
        "name": config.name,
        "mechanism": config.mechanism,
        "round": market.round,
        "over": market.over,
        "limits": {size: getattr(config, size) for size in SIZES},
        "no_show_fee": config.no_show_fee,
        "announced_nodes": config.announced_nodes,
        "load": market.load,
        "usable_nodes": market.usable,
        "rounds_short_of_nodes": market.short_rounds,
        "prices": market.prices(PRICED_ROUNDS),
        "last_event": last_event,
    }


def shown_at(view: dict[str, Any], clock: Clock, rounds: int) -> dict[str, Any]:
    """Return it as it is answered now, with the prices of so many rounds; any thread may ask."""
    end = clock.end_of(view["round"])
    now = {
        "kind": clock.kind,
        "round_seconds": clock.round_seconds,
        "now": clock.now().isoformat(),
        "round_ends": None if end is None else end.isoformat(),
    }
    prices = view["prices"]
    return {**view, "clock": now, "prices": None if prices is None else prices[:rounds]}
