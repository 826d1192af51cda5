"""Limits of the published statements, and of this mechanism: each with the numbers of docs/mathematics.md."""

import numpy as np
import pytest

from marketsched.mechanisms import (
    DeadlineValue,
    EventKind,
    ExactOracle,
    ExponentialPricing,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from marketsched.papers.hidden import g1_market, g1_report

FREE = PostedPricing(prices=[0.0])


def expected_utility(market, sow, plan, concurrency):
    """Return u(L; c') of Section 4: true law and value, exact failures, the market's menu."""
    menu = market.menu(concurrency)
    total = 0.0
    for row in sow.requirements:
        s = plan.start(row.arrival, row.signal)
        if s is not None:
            net = sow.value(s + row.duration) - menu.price(s, row.duration)
            total += row.probability * (1 - menu.failure(s, row.duration)) * net
    return total


# --- G1: over-declaring the concurrency when durations are hidden ---------------------------------


def test_g1_declaring_two_nodes_pays_when_durations_are_hidden():
    truth = g1_report(1)
    utilities = {}
    for declared in (1, 2):
        market = g1_market()
        before = g1_market()  # the menu at submission
        plan = market.submit("new", g1_report(declared))
        assert plan.starts == ((1, None, 1),)
        utilities[declared] = expected_utility(before, truth, plan, declared)
    assert utilities == {1: pytest.approx(2.0), 2: pytest.approx(4.0)}


def test_g1_does_not_pay_when_durations_are_revealed():
    truth = g1_report(1, signals=(1, 2))
    utilities = {}
    for declared in (1, 2):
        market, before = g1_market(), g1_market()
        plan = market.submit("new", g1_report(declared, signals=(1, 2)))
        utilities[declared] = expected_utility(before, truth, plan, declared)
    assert utilities[1] == pytest.approx(4.5)  # the long case is not run: V - price = -5
    assert utilities[2] <= utilities[1]


# --- G2: delaying the submission; reporting the arrival ---------------------------------------------


def g2_market():
    """One node, free. It is busy in rounds 2 to 4; then ``earlier`` runs in round 5 or in round 6."""
    market = PostedPriceMechanism(
        1, 8, FREE, ExactOracle(), max_concurrency=1, max_duration=3, max_value=10.0, max_delay=8, epsilon=-0.5
    )
    market.submit("blocker", StatementOfWork(1, 1, TableValue({5: 10.0}), [(2, 3, 1.0)]))
    plan = market.submit("earlier", StatementOfWork(1, 1, DeadlineValue(10.0, 7), [(2, 1, 0.5), (6, 1, 0.5)]))
    assert plan.starts == ((2, 1, 5), (6, 1, 6))
    return market


def g2_play(market, earlier_arrives, *, birth, requirements, arrives):
    """Play the market with a new job that wants round 5 or 6; return its realised utility."""
    new = StatementOfWork(birth, 1, TableValue({6: 10.0, 7: 10.0}), requirements)
    utility = 0.0
    for t in range(1, 7):
        if t == birth:
            market.submit("new", new)
        if t == 2:
            market.arrive("blocker", 3)
        if t == earlier_arrives:
            market.arrive("earlier", 1)
        if t == arrives:
            market.arrive("new", 1)
        started = {event.job for event in market.advance() if event.kind is EventKind.START}
        if t == 4:
            market.complete("blocker")
        for job in started - {"blocker"}:  # one round each
            event = market.complete(job)
            if job == "new":
                utility = new.value(event.completion) - event.payment
    return utility


def test_g2_submitting_later_doubles_the_utility():
    def mean(birth):
        certain = [(5, 1, 1.0)]
        outcomes = [g2_play(g2_market(), a, birth=birth, requirements=certain, arrives=5) for a in (2, 6)]
        return sum(outcomes) / 2

    assert (mean(1), mean(3)) == (5.0, 10.0)


def test_g2_an_arrival_that_is_reported_instead_of_observed_doubles_the_utility():
    def mean(arrival_told):
        outcomes = []
        for earlier, told in zip((2, 6), arrival_told, strict=True):
            law = [(5, 1, 0.5), (6, 1, 0.5)]
            outcomes.append(g2_play(g2_market(), earlier, birth=1, requirements=law, arrives=told))
        return sum(outcomes) / 2

    assert mean((5, 5)) == 5.0  # ready in round 5, and seen to be
    assert mean((6, 5)) == 10.0  # claims the start that turned out to be free


# --- G4: the price curve does not keep the supply when durations are hidden -------------------------


def g4_market(kappa=1.0):
    """Sixty nodes; slot 2 as full as certain jobs of the highest value make it."""
    market = PostedPriceMechanism(
        60,
        4,
        ExponentialPricing(kappa=kappa),
        MonteCarloOracle(samples=8, rng=np.random.default_rng(0)),
        max_concurrency=1,
        max_duration=2,
        max_value=10.0,
        max_delay=4,
        threshold=1.0,
    )
    for k in range(62):
        market.submit(("certain", k), StatementOfWork(1, 1, TableValue({3: 10.0}), [(2, 1, 1.0)]))
    return market


def g4_job(rows):
    return StatementOfWork(1, 1, TableValue({2: 10.0, 3: 10.0}), rows)


RARELY_LONG = [(1, 1, 0.95, None), (1, 2, 0.05, None)]


def test_g4_the_hard_cap_keeps_the_supply():
    market = g4_market()
    assert market.committed(1, 2).tolist() == pytest.approx([0.0, 59.0])
    for k in range(62):
        market.submit(k, g4_job(RARELY_LONG))
    assert market.committed(1, 2).tolist() == pytest.approx([1.0, 59.05])  # the second one is refused


def test_g4_the_hard_cap_rewards_leaving_out_a_rare_duration():
    market = g4_market()
    market.submit("first", g4_job(RARELY_LONG))
    assert market.submit("honest", g4_job(RARELY_LONG)).starts == ((1, None, None),)
    assert market.submit("leaves out", g4_job([(1, 1, 0.95, None)])).starts == ((1, None, 1),)


def test_g4_the_kappa_form_keeps_the_supply_without_the_cap():
    market = g4_market(kappa=0.05)
    assert market.committed(1, 2).tolist() == pytest.approx([0.0, 41.0])
    for k in range(62):
        market.submit(k, g4_job(RARELY_LONG))
        assert market.menu(1).price(1, 2) < np.inf  # the cap never binds
    assert market.committed(1, 2).tolist() == pytest.approx([41.0, 43.05])


# --- Section 4: the others must report truly --------------------------------------------------------


@pytest.mark.parametrize(("told", "utility"), [({3: 10.0, 4: 6.0}, 6.0), ({3: 10.0}, 10.0)])
def test_a_lie_pays_if_an_earlier_report_was_false(told, utility):
    truth = TableValue({3: 10.0, 4: 6.0})
    market = PostedPriceMechanism(
        1, 6, FREE, ExactOracle(), max_concurrency=1, max_duration=1, max_value=10.0, max_delay=6, epsilon=-0.5
    )
    market.submit("never comes", StatementOfWork(1, 1, TableValue({3: 10.0}), [(2, 1, 0.5)]))
    market.submit("new", StatementOfWork(1, 1, TableValue(told), [(2, 1, 1.0)]))
    gained = 0.0
    for t in range(1, 5):
        if t == 2:
            market.arrive("new", 1)
        for event in market.advance():
            if event.kind is EventKind.START:
                done = market.complete("new")
                gained += truth(done.completion) - done.payment
    assert gained == utility
