"""Bounds of one instance, by hand: six equal jobs of value 4 for five nodes."""

import pytest

from compared_markets import SIX_FOR_FIVE
from marketsched import FirstCome, instance_bounds
from marketsched.mechanisms.errors import InvalidParameterError
from two_kinds import SCENARIO


def test_bounds_of_an_instance_and_the_ratio_of_a_class():
    class Dear(FirstCome):
        def __init__(self, capacity, horizon, **sizes):
            super().__init__(capacity, horizon, 9.0, **sizes)

    bounds = instance_bounds(SIX_FOR_FIVE)
    assert (bounds.low, bounds.high, bounds.kind, bounds.first_come, bounds.best_flat) == (
        20.0,
        20.0,
        "exact",
        20.0,
        20.0,
    )
    assert bounds.relaxed == pytest.approx(20.0) and bounds.ratio("first-come") == (1.0, 1.0)
    assert bounds.ratio("exponential") == (1.25, 1.25) and bounds.ratio(Dear) == (float("inf"), float("inf"))
    assert len(repr(bounds).splitlines()) == 2 and len(bounds.figure(Dear).axes[0].patches) == 6
    with pytest.raises(InvalidParameterError, match="expected a market on identical nodes"):
        instance_bounds(SCENARIO)
