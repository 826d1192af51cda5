"""Prices that depend on the report get no certificate; ends that cross are an error."""

import numpy as np
import pytest

from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    ExponentialPricing,
    InvalidParameterError,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
)
from marketsched.truthfulness import CertificateError, certify
from marketsched.truthfulness.certificates import fixed_prices
from marketsched.truthfulness.certificates import owner_certificate as module

LIMITS = {"max_concurrency": 2, "max_duration": 3, "max_value": 10.0, "max_delay": 8}


class BySize:
    """Prices of 9 a node-round for those who ask for many starts, of .5 for the hurried."""

    def open(self, supply, limits):
        inner = PostedPricing([9.0]).open(supply, limits)
        cheap = PostedPricing([0.5]).open(supply, limits)
        plain = inner.price_table

        def price_table(concurrency, first_start, n_starts, n_durations):
            table = plain if n_starts > self.most else cheap.price_table
            return table(concurrency, first_start, n_starts, n_durations)

        inner.price_table = price_table
        return inner

    def __init__(self, most):
        self.most = most


def truth(deadline=7, durations=(1, 2)):
    return StatementOfWork(1, 1, DeadlineValue(9.5, deadline), [(1, d, 1 / len(durations)) for d in durations])


def market(pricing):
    return PostedPriceMechanism(4, 12, pricing, ExactOracle(), **LIMITS)


@pytest.mark.parametrize("most", [1, 2, 4, 5, 6])
def test_prices_that_depend_on_the_deadline_reported_are_refused(most):
    with pytest.raises(InvalidParameterError, match="its prices depend on the report"):
        certify(market(BySize(most)), truth())


@pytest.mark.parametrize("pricing", [ExponentialPricing(), PostedPricing([2.0, 1.0, 3.0])])
@pytest.mark.parametrize("deadline", [2, 3, 5, 8])
@pytest.mark.parametrize("looked_at", [True, False])
def test_prices_that_do_not_are_certified(pricing, deadline, looked_at, monkeypatch):
    """Slot prices are taken on trust; they would also pass."""
    assert fixed_prices._are_slot_prices(market(pricing)._planner.relaxed)
    if looked_at:
        monkeypatch.setattr(fixed_prices, "_are_slot_prices", lambda relaxed: False)
    mechanism = market(pricing)
    mechanism.submit("earlier", truth(4, (3,)))
    assert certify(mechanism, truth(deadline)).regret_upper <= 1e-9


def test_ends_that_cross_are_an_error(monkeypatch):
    monkeypatch.setattr(module, "_surest_report", lambda *given: (5.0, truth()))
    with pytest.raises(CertificateError, match="a report gains at least 5 credits, and none more than 0"):
        certify(market(PostedPricing([1.0])), truth(), rng=np.random.default_rng(0))
