"""Reporters by name: what Mesa's collector sees in every round is what the tables say afterwards."""

import math

import mesa
import numpy as np
import pytest

from marketsched import Market, Scenario
from marketsched.agents.collected import REPORTERS, reporters
from marketsched.mechanisms import UnknownNameError


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mechanism", ["bid-price", "exponential"])
def test_every_round_is_reported_as_the_tables_have_it(mechanism):
    market = Market(Scenario.load("stochastic-mix").with_mechanism(mechanism), 3)
    assert math.isnan(REPORTERS["price"](market)) and REPORTERS["welfare"](market) == 0.0
    data = mesa.DataCollector(model_reporters=reporters())
    while market.running:
        market.step()
        data.collect(market)
    seen, result = data.get_model_vars_dataframe(), market.result()
    rounds, events = result.rounds, result.events
    for name in ("load", "price", "promised"):
        np.testing.assert_array_equal(seen[name].to_numpy(float), rounds[name].to_numpy(float))
    for name in ("submitted", "arrived", "started", "completed", "dropped", "cancelled", "evicted"):
        np.testing.assert_array_equal(seen[name], rounds[name].cumsum())
    for name, column in (("welfare", "value"), ("revenue", "payment")):
        by_round = events.groupby("round")[column].sum().reindex(rounds["round"], fill_value=0.0).cumsum()
        np.testing.assert_allclose(seen[name], by_round, rtol=1e-12)
    assert seen["utility"].iloc[-1] == pytest.approx(result.outcome["owners_utility"])
    assert seen["utilisation"].iloc[-1] == pytest.approx(result.outcome["utilisation"])


def test_those_asked_for_in_their_order():
    assert list(reporters("welfare", "load")) == ["welfare", "load"]
    with pytest.raises(UnknownNameError, match="reporter 'wellfare' is unknown: expected one of round, load"):
        reporters("wellfare")
