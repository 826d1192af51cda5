"""Auctions of every round: who wins and what they pay, by hand and against enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms import (
    DeadlineValue,
    EventError,
    EventKind,
    InvalidParameterError,
    PayAsBid,
    RoundAuction,
    Settlement,
    Spot,
    StatementOfWork,
    Vcg,
    vcg_outcome,
)
from refusals import refused

LIMITS = {"max_concurrency": 3, "max_duration": 4, "max_value": 50.0, "max_delay": 20}
AUCTIONS = [PayAsBid, Spot, Vcg]
every_auction = pytest.mark.parametrize("auction", AUCTIONS)


def certain(value, nodes=1, rounds=1, deadline=None):
    """Return a job of round 1 that is worth ``value`` if it starts at once (or by the deadline)."""
    return StatementOfWork(1, nodes, DeadlineValue(value, deadline or 1 + rounds), [(1, rounds, 1.0)])


def opened(auction, capacity, horizon):
    return auction(capacity, horizon, **{**LIMITS, "max_concurrency": min(3, capacity)})


def first_round(auction, capacity, jobs):
    """Submit jobs, all ready in round 1; return the market, and what the winners pay by name."""
    market = opened(auction, capacity, 12)
    for name, sow in jobs.items():
        market.submit(name, sow)
    for name, sow in jobs.items():
        market.arrive(name, int(sow.law.durations[0]))
    winners = [event.job for event in market.advance() if event.kind is EventKind.START]
    paid = {}
    for now in range(2, 8):
        for name in winners:
            if 1 + jobs[name].law.durations[0] == now:
                paid[name] = market.complete(name).payment
        market.advance()
    return paid


@pytest.mark.parametrize("answer", [[], [None, None], [0.5], "x", None, [(1.0, 0.0, 0.0)]])
def test_an_auction_of_ones_own_with_another_answer_is_refused(answer):
    class Careless(Spot):
        def settle(self, bids, free):
            return answer

    with pytest.raises(InvalidParameterError, match=r"Careless.settle.* a list of 1 answers, one for each bid"):
        first_round(Careless, 2, {"A": certain(3.0)})


# -- by hand -----------------------------------------------------------------------------------------------


def test_k_equal_items_cost_the_next_highest_bid():
    """Two free nodes, four bidders of one node and one round: the third highest value is the price."""
    jobs = {name: certain(value) for name, value in zip("ABCD", (3.0, 9.0, 7.0, 5.0), strict=True)}
    assert first_round(Vcg, 2, jobs) == {"B": 5.0, "C": 5.0}
    assert first_round(Spot, 2, jobs) == {"B": 5.0, "C": 5.0}
    assert first_round(PayAsBid, 2, jobs) == {"B": 9.0, "C": 7.0}


def test_a_spot_price_is_per_node_and_round():
    """Densities 2, 1.5 and 1 on four nodes: A and B win, C's bid of 1 is the price."""
    jobs = {"A": certain(12.0, 2, 3), "B": certain(3.0, 1, 2), "C": certain(4.0, 2, 2)}
    assert first_round(Spot, 4, jobs) == {"A": 6.0, "B": 2.0}


def test_a_small_job_below_the_losing_bid_pays_its_own():
    """Three nodes: A takes two; B (density 2, two nodes) does not fit; C (density 1) does, and pays 1."""
    jobs = {"A": certain(8.0, 2), "B": certain(4.0, 2), "C": certain(1.0, 1)}
    assert first_round(Spot, 3, jobs) == {"A": 4.0, "C": 1.0}


@every_auction
def test_losers_wait_and_bid_again(auction):
    market = opened(auction, 1, 12)
    for name, value in (("A", 5.0), ("B", 3.0), ("C", 2.0)):
        market.submit(name, certain(value, deadline=2 if name == "C" else 4))
    for name in "ABC":
        market.arrive(name, 1)
    said = []
    for _ in range(3):
        said.append([(event.kind.value, event.job) for event in market.advance()])
        for kind, name in said[-1]:
            if kind == "start":
                market.complete(name)
    assert said == [[("start", "A")], [("drop", "C"), ("start", "B")], []]


@every_auction
def test_running_jobs_keep_their_nodes(auction):
    market = opened(auction, 1, 12)
    market.submit("cheap", certain(1.0, rounds=3))
    market.arrive("cheap", 3)
    market.advance()
    market.submit("dear", StatementOfWork(2, 1, DeadlineValue(50.0, 9), [(2, 1, 1.0)]))
    market.arrive("dear", 1)
    assert [market.advance(), market.advance(), market.load] == [[], [], 1]
    market.complete("cheap")
    assert [event.job for event in market.advance()] == ["dear"]


@every_auction
def test_hidden_durations_bid_what_they_expect(auction):
    """Worth 10 by time 3: one round or three, even odds, is expected to be worth 5; a certain 6 wins."""
    market = opened(auction, 1, 12)
    market.submit("perhaps", StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(1, 1, 0.5, None), (1, 3, 0.5, None)]))
    market.submit("sure", certain(6.0))
    market.arrive("perhaps", None)
    market.arrive("sure", 1)
    assert [event.job for event in market.advance()] == ["sure"]


@every_auction
def test_who_outlives_its_report_is_evicted(auction):
    market = opened(auction, 1, 12)
    market.submit("A", certain(5.0, rounds=2, deadline=9))
    market.arrive("A", 2)
    market.advance()
    market.advance()
    assert [(event.kind.value, event.job) for event in market.advance()] == [("evict", "A")]
    refused(lambda: market.complete("A"), "complete of 'A'", error=EventError)


@every_auction
def test_what_a_report_excludes_is_dropped(auction):
    market = opened(auction, 1, 12)
    market.submit("A", certain(5.0, rounds=2, deadline=9))
    market.arrive("A", 3)
    assert [event.kind.value for event in market.advance()] == ["drop"]


# -- against enumeration -----------------------------------------------------------------------------------


def enumerated(worth, nodes, free, left_out=None):
    """Return the value of the best set of bids that fits, over all sets."""
    items = [i for i in range(len(worth)) if i != left_out]
    sets = itertools.chain.from_iterable(itertools.combinations(items, k) for k in range(len(items) + 1))
    return max(sum(worth[i] for i in chosen) for chosen in sets if sum(nodes[i] for i in chosen) <= free)


bids = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 4)), min_size=1, max_size=7)


@given(bids, st.integers(0, 9))
def test_vcg_is_optimal_and_charges_the_externality(given_bids, free):
    worth, nodes = ([float(b[i]) for b in given_bids] for i in (0, 1))
    winners, payments = vcg_outcome(worth, [int(n) for n in nodes], free)
    best = enumerated(worth, nodes, free)
    assert sum(w for w, won in zip(worth, winners, strict=True) if won) == best
    assert sum(n for n, won in zip(nodes, winners, strict=True) if won) <= free
    for i, won in enumerate(winners):
        expected = enumerated(worth, nodes, free, i) - (best - worth[i]) if won else 0.0
        assert payments[i] == pytest.approx(expected)
        assert 0 <= payments[i] <= worth[i]


@pytest.mark.parametrize(
    ("worth", "nodes", "free"),
    [([1.0], [1, 1], 3), ([0.0], [1], 3), ([np.nan], [1], 3), ([1.0], [0], 3), ([1.0], [1], -1)],
)
def test_malformed_bids(worth, nodes, free):
    with pytest.raises(InvalidParameterError):
        vcg_outcome(worth, nodes, free)


# -- incentives --------------------------------------------------------------------------------------------


def test_a_bid_says_the_mean_of_its_report_also_where_its_duration_is_seen():
    """A signal of 2 is a duration; a report may say that such jobs run for other durations."""
    met = []

    class Looks(RoundAuction):
        def settle(self, bids, free):
            met.append(bids.rounds.tolist())
            return [Settlement() for _ in bids.worth]

    market = Looks(1, 9, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    market.submit("A", StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(1, 1, 0.1, 2), (1, 3, 0.9, 2)]))
    market.arrive("A", 2)
    market.advance()
    assert met == [[pytest.approx(2.8)]]
