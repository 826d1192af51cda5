"""Decisions and charges of bid prices are those of an independent reference, in thousands of rounds."""

import numpy as np
import pytest

from bid_price_markets import loads, market_and_rules, noting_prices, past_log, play, played_by_the_rules, random_market
from marketsched.mechanisms import EventKind

MODES = {
    "one curve": {},
    "buckets": {"buckets": 3, "bucket_seed": 5},
    "hidden, strict": {"hidden": True},
    "hidden, sealed": {"hidden": True, "hidden_order": "sealed"},
    "hidden, sealed, buckets": {"hidden": True, "hidden_order": "sealed", "buckets": 2},
}


def compare(rng, horizon, per_round, *, log=False, hidden=False, **chosen):
    """Play a market and its reference side by side; return how many jobs were given a start."""
    capacity = int(rng.integers(3, 6))
    yesterday = past_log(rng, capacity, hidden=hidden) if log else None
    jobs = random_market(rng, horizon, per_round, hidden, owners=7)
    market, rules = market_and_rules(capacity, horizon, log=yesterday, hidden=hidden, **chosen)
    rules.announced = noting_prices(market)
    starts, payments, events = play(market, jobs, hidden=hidden)
    given, owed = played_by_the_rules(rules, jobs, horizon, hidden)
    assert starts == {name: start for name, (start, _) in given.items()}
    assert payments == pytest.approx(owed, rel=1e-9, abs=1e-9)  # nothing but what was quoted
    assert {e.kind for e in events} <= {EventKind.START, EventKind.DROP}  # nobody is ever evicted
    assert loads(jobs, starts, horizon).max() <= capacity
    assert market.statistics()["slack"] == pytest.approx(rules.slack)
    for (now, b), prices in rules.announced.items():
        assert rules.made[now, b] == pytest.approx(prices, rel=1e-9, abs=1e-9)
    return len(starts)


@pytest.mark.parametrize("log", [False, True], ids=["", "yesterday"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_decisions_are_those_of_the_rules(seed, mode, log):
    assert compare(np.random.default_rng([seed, log]), 24, 2.0, log=log, **MODES[mode]) > 5
