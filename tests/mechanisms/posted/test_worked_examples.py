"""The worked examples W1 to W5 of docs/mathematics.md, to the digits printed there."""

import math

import numpy as np
import pytest

from marketsched.mechanisms import (
    DeadlineValue,
    EventKind,
    ExactOracle,
    ExponentialPricing,
    LinearValue,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
    guarantees,
)

FREE = PostedPricing(prices=[0.0])


def busy_first_slot():
    """One node, whose slot 1 is taken with probability 1/2 by an earlier job."""
    market = PostedPriceMechanism(
        2,
        8,
        PostedPricing(prices=[3.0, 1.0, 1.0, 2.0]),
        ExactOracle(),
        max_concurrency=2,
        max_duration=2,
        max_value=100.0,
        max_delay=7,
        epsilon=-0.5,
    )
    market.submit("earlier", StatementOfWork(1, 2, TableValue({2: 100.0}), [(1, 1, 0.5)]))
    return market


def test_w1_launch_plan_by_estimated_utility():
    market = busy_first_slot()
    menu = market.menu(1)
    assert [menu.failure(s, 1) for s in (1, 2, 3, 4)] == pytest.approx([0.5, 0, 0, 0])
    assert [menu.failure(s, 2) for s in (1, 2, 3)] == pytest.approx([0.5, 0, 0])
    assert [menu.price(s, 1) for s in (1, 2, 3, 4)] == [3.0, 1.0, 1.0, 2.0]
    value = LinearValue(value=6.0, start=2, slope=1.0, deadline=5)
    assert value([2, 3, 4, 5, 6]).tolist() == [6.0, 5.0, 4.0, 3.0, 0.0]
    plan = market.submit("new", StatementOfWork(1, 1, value, [(1, 1, 0.5), (2, 2, 0.5)]))
    assert plan.starts == ((1, 1, 2), (2, 2, 2))
    assert plan.estimated_utility == pytest.approx(3.0, abs=1e-12)


def w3_market():
    oracle = ExactOracle()
    market = PostedPriceMechanism(
        2, 6, FREE, oracle, max_concurrency=2, max_duration=2, max_value=10.0, max_delay=8, epsilon=-0.5
    )
    plan = market.submit("earlier", StatementOfWork(1, 1, DeadlineValue(10.0, 6), [(2, 2, 0.5), (3, 2, 0.5)]))
    assert plan.starts == ((2, 2, 2), (3, 2, 3))
    return market, oracle


def failures(market_and_oracle, concurrency, duration, starts):
    market, oracle = market_and_oracle
    menu = market.menu(concurrency)
    table = oracle.failure_table(concurrency)
    found = [menu.failure(s, duration) for s in starts]
    assert [table[s - market.round, duration - 1] for s in starts] == pytest.approx(found)
    return found


def test_w3_failure_probabilities_at_submission():
    market = w3_market()
    for d in (1, 2):
        assert failures(market, 1, d, range(1, 6)) == pytest.approx([0.0] * 5)
    assert failures(market, 2, 1, range(1, 6)) == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    assert failures(market, 2, 2, range(1, 6)) == pytest.approx([0.5, 1.0, 1.0, 0.5, 0.0])


def w4_market():
    return PostedPriceMechanism(
        5, 6, ExponentialPricing(), ExactOracle(), max_concurrency=1, max_duration=2, max_value=4.0, max_delay=5
    )


def test_w4_price_curve():
    market = w4_market()
    prices = []
    for k in range(5):
        prices.append(market.slot_prices(1, 1)[0])
        market.submit(k, StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)]))
    assert prices == pytest.approx([0.25, 0.5, 1.0, 2.0, 4.0])
    constants = guarantees(
        capacity=5, max_concurrency=1, max_duration=2, max_value=4.0, max_delay=5, epsilon=0.1, oracle="exact"
    )
    assert constants.alpha == pytest.approx(4 * math.log(32))
    assert round(constants.alpha, 3) == 13.863
    assert constants.smallest_supply == pytest.approx(5.0)  # 5 >= 1 + log2 16, with equality


def test_w4a_four_of_six_jobs_fit():
    market = w4_market()
    payments, utilities = [], []
    for k in range(6):
        price = market.menu(1).price(1, 1)
        plan = market.submit(k, StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)]))
        utilities.append(plan.estimated_utility)
        if plan.starts[0][2] is not None:
            payments.append(price)
    assert payments == pytest.approx([0.25, 0.5, 1.0, 2.0])
    assert sum(payments) == pytest.approx(3.75)
    assert utilities == pytest.approx([3.75, 3.5, 3.0, 2.0, 0.0, 0.0])
    assert sum(utilities) + sum(payments) == pytest.approx(16.0)  # Val
    assert market.committed(1, 1)[0] == pytest.approx(4.0)
    certificate = market.certificate()
    assert certificate.bound >= 20.0  # OPTrel: five jobs fit
    # right side of (22): utilities of the six jobs plus C' times the rise of the price of slot 1
    assert certificate.bound == pytest.approx(2 * (12.25 + 5 * (4.0 - 0.25)))
    assert certificate.in_j_prime == 6
    for k in range(6):
        market.arrive(k, 1)
    events = market.advance()
    assert sum(event.kind is EventKind.START for event in events) == 4
    assert [market.complete(k).payment for k in range(4)] == pytest.approx([0.25, 0.5, 1.0, 2.0])


def test_w4b_uncertain_arrivals_share_the_slots():
    market = w4_market()
    value, revenue = 0.0, 0.0
    for k in range(3):
        menu = market.menu(1)
        plan = market.submit(k, StatementOfWork(1, 1, DeadlineValue(2.0, 3), [(1, 1, 0.5), (2, 1, 0.5)]))
        assert plan.starts == ((1, 1, 1), (2, 1, 2))
        revenue += 0.5 * menu.price(1, 1) + 0.5 * menu.price(2, 1)
        value += plan.estimated_utility + 0.5 * menu.price(1, 1) + 0.5 * menu.price(2, 1)
    assert value == pytest.approx(6.0)
    assert revenue == pytest.approx(0.25 + 0.25 * 16 ** (1 / 8) + 0.5)
    assert round(revenue, 5) == 1.10355
    assert market.committed(1, 3).tolist() == pytest.approx([1.5, 1.5, 0.0])
    assert np.round(market.slot_prices(1, 2), 5).tolist() == [0.70711, 0.70711]
