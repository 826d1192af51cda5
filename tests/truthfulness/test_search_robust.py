"""The search when things go wrong: broken mechanisms and strategies, small budgets, interruptions, bad parameters."""

import itertools

import numpy as np
import pytest

from marketsched.agents.lies import ScaleValue
from marketsched.mechanisms import (
    DeadlineValue,
    EventKind,
    ExactOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.mechanism import Event
from marketsched.truthfulness import Situation, score, search
from small_mechanisms import BIDDER, ONE_ROUND, UNIFORM, HighestBid, OpenMarket, auction, rivals

# --- what is broken is named, and the rest goes on ------------------------------------------------------


class Touchy(HighestBid):
    """A pay-as-bid auction that fails for certain reports of the owner."""

    def __init__(self, fault):
        super().__init__("first", horizon=3)
        self.fault, self.touched = fault, False

    def submit(self, job, sow):
        self.touched = job == "owner" and 0 < sow.value.highest < 3
        if self.touched and self.fault == "raises":
            raise ZeroDivisionError("division by zero")
        return super().submit(job, sow)

    def advance(self):
        events = super().advance()
        if self.touched and self.fault == "loops":
            self.round = 1
        if self.touched and self.fault == "endless":
            return itertools.repeat(Event(1, EventKind.START, "owner"))
        return events


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("raises", "ZeroDivisionError: division by zero"),
        ("loops", "the mechanism is in round 1: expected round 2"),
        ("endless", "has started before: expected one start"),
    ],
)
def test_a_mechanism_that_fails_under_some_reports_is_named_and_the_rest_goes_on(fault, reason):
    situation = Situation(lambda rng: Touchy(fault), BIDDER, rivals(UNIFORM), **ONE_ROUND)
    found = search(situation, budget_seconds=None, max_plays=8_000)
    assert found.best(inside_model=True).gain_mean == pytest.approx(2.5, rel=0.01)
    assert found.failures and all(reason in failure.reason for failure in found.failures)
    assert "reports 0.25 of its value" in [failure.words for failure in found.failures]


def test_a_mechanism_that_fails_under_the_truth_leaves_nothing_to_compare():
    class Hopeless(HighestBid):
        def advance(self):
            raise RuntimeError("out of order")

    situation = Situation(lambda rng: Hopeless("first"), BIDDER, **ONE_ROUND)
    found = search(situation, budget_seconds=None, max_plays=500)
    assert found == []
    assert [f.words for f in found.failures] == ["reports the truth"]
    assert "advance in round 1: RuntimeError: out of order" in found.failures[0].reason
    nothing = search(Situation(lambda rng: 1 / 0, BIDDER, **ONE_ROUND), max_plays=500)
    assert "ZeroDivisionError" in nothing.failures[0].reason and nothing == []


def test_strategies_that_return_nonsense_or_raise_are_named_and_the_rest_goes_on():
    class Nonsense:
        def report(self, truth, public):
            return "all my nodes"

    class Raises:
        def report(self, truth, public):
            raise KeyError("nobody home")

    class TooMuch:
        def report(self, truth, public):
            return StatementOfWork(1, 1, DeadlineValue(50.0, 3), [(1, 1, 1.0)])

    given = [Nonsense(), Raises(), TooMuch(), ScaleValue(0.51)]
    found = search(auction("first", UNIFORM), budget_seconds=None, max_plays=5000, families=given)
    reasons = " | ".join(failure.reason for failure in found.failures)
    assert len(found.failures) == 3
    assert "returned 'all my nodes': expected a StatementOfWork" in reasons
    assert "KeyError: 'nobody home'" in reasons and "value = 50.0" in reasons
    assert found.best(inside_model=True).gain_mean > 2.4


def test_a_mechanism_with_a_source_of_its_own_is_noticed():
    source = np.random.default_rng(3)  # not the one it is given

    def market(rng):
        return HighestBid("noise", rng=source)

    found = search(Situation(market, BIDDER, **ONE_ROUND), budget_seconds=None, max_plays=2000)
    assert not found.exact
    assert any("draws from a source of its own" in failure.reason for failure in found.failures)


@pytest.mark.slow
def test_a_mechanism_that_draws_only_under_some_reports_is_not_taken_for_certain():
    class Sometimes(HighestBid):
        def __init__(self, rng):
            super().__init__("first")
            self.rng = rng

        def complete(self, job):
            event = super().complete(job)
            if event.payment >= 6:
                return event
            return Event(event.round, event.kind, event.job, event.completion, event.payment * 2 * self.rng.random())

    found = search(Situation(Sometimes, BIDDER, **ONE_ROUND), budget_seconds=None, max_plays=6000)
    assert not found.exact and found.best(inside_model=True) is not None


# --- budgets, repetition, interruption ------------------------------------------------------------------


def summary(found):
    return [(d.misreport, d.gain_mean, d.gain_low, d.n_fresh) for d in found], found.plays, found.tried


@pytest.mark.slow
def test_the_same_seed_and_plays_give_the_same_result():
    first, again = (search(auction("first", UNIFORM, UNIFORM), budget_seconds=None, max_plays=2000) for _ in range(2))
    assert summary(first) == summary(again)
    other = search(auction("first", UNIFORM, UNIFORM), budget_seconds=None, max_plays=2000, seed=1)
    assert summary(other) != summary(first)


@pytest.mark.parametrize("plays", [1, 10, 200])
def test_budgets_are_kept(plays):
    found = search(auction("first", UNIFORM, UNIFORM), budget_seconds=None, max_plays=plays)
    assert found.plays <= plays and (found.max_plays, found.budget_seconds) == (plays, None)
    assert found.untried + len(found.tried) >= 33  # all that may be reported, and the pairs of the best


def test_the_time_limit_is_kept():
    laws = [UNIFORM] * 3
    found = search(auction("first", *laws), budget_seconds=0.5)
    assert found.seconds < 1.5


@pytest.mark.slow
def test_an_interrupted_search_keeps_what_it_has():
    calls = []

    def stop(phase, plays, share):
        calls.append(phase)
        assert 0 <= share <= 1
        if plays > 1500:
            raise KeyboardInterrupt

    situation = auction("first", UNIFORM, UNIFORM)
    with pytest.raises(KeyboardInterrupt):
        search(situation, budget_seconds=None, max_plays=50_000, progress=stop)
    found = search(situation, budget_seconds=None, max_plays=50_000, progress=stop, keep_interrupted=True)
    assert found.interrupted and found and set(calls) <= {"race", "pairs", "optimise", "final", "score"}
    assert all(not d.confirmed and d.n_fresh == 0 and d.gain_low < 0 < d.gain_high for d in found)


def test_one_world_takes_one_play_a_candidate():
    def price(sow, signal, rounds, place):
        return float(sow.value.highest) / 2

    situation = Situation(lambda rng: OpenMarket(1, 4, price), BIDDER, capacity=1, horizon=4, max_delay=4)
    found = search(situation, budget_seconds=None, max_plays=2000, families=[ScaleValue(0.5), ScaleValue(0.8)])
    assert found.exact and found[0].n_fresh == 1
    assert found[0].gain_mean > 4.9  # down to nothing, by the optimiser


def test_wrong_parameters_are_refused():
    situation = auction("first", UNIFORM)
    for keywords, message in (
        ({"budget_seconds": None}, "budget_seconds and max_plays are both None"),
        ({"budget_seconds": 0}, "budget_seconds = 0"),
        ({"max_plays": 0}, "max_plays = 0"),
        ({"families": [3]}, "misreport 3: expected a Misreport"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            search(situation, **keywords)
    lies = StatementOfWork(1, 2, DeadlineValue(10.0, 3), [(1, 1, 1.0)])
    with pytest.raises(InvalidReportError, match="concurrency = 2"):
        search(Situation(lambda rng: HighestBid("first"), lies, **ONE_ROUND))


# --- nobody is accused by rounding, or by the luck of one stream -------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("short", "value"), [(0.1, 3.7), (0.2, 3.1), (0.3, 2.9)])
def test_where_gains_and_losses_cancel_the_rounding_is_no_gain(short, value):
    """The owner is indifferent whether it runs: the short run gains what the long one loses."""
    table = TableValue({2: value, 4: 3 - short * (value - 1) / (1 - short)})
    truth = StatementOfWork(1, 1, table, [(1, 1, short, None), (1, 3, 1 - short, None)])

    def market(rng):
        limits = {"max_concurrency": 2, "max_duration": 3, "max_value": 10.0, "max_delay": 8}
        return PostedPriceMechanism(2, 8, PostedPricing([1.0]), ExactOracle(), **limits)

    found = search(Situation(market, truth, capacity=2, horizon=8, max_delay=8), budget_seconds=None, max_plays=1500)
    assert found.exact and found.tried
    assert found.best(inside_model=True) is None


class PriceLottery(HighestBid):
    """A price of the same law under every report, but drawn once for each node that is declared."""

    max_concurrency = 4

    def __init__(self, rng):
        super().__init__("price")
        self.rng = rng

    def submit(self, job, sow):
        self.price = self.rng.uniform(0, 10, sow.concurrency)[-1]
        return super().submit(job, sow)

    def complete(self, job):
        event = super().complete(job)
        return Event(event.round, event.kind, job, event.completion, float(self.price))


@pytest.mark.long_after(2)
@pytest.mark.slow
@pytest.mark.parametrize("history", [None, 0, 1, 2, 3])
def test_what_a_mechanism_draws_after_the_turn_is_drawn_anew_in_each_play(history):
    """One stream for all plays would make declaring more nodes pay, or not, by luck, and for certain."""
    sizes = {**ONE_ROUND, "capacity": 4}
    situation = Situation(PriceLottery, BIDDER, history=history, **sizes)
    assert len({situation.utility(BIDDER, seed) for seed in range(5)}) == 5
    found = search(situation, budget_seconds=None, max_plays=3000)
    assert not found.exact and not found.failures
    assert found.best(inside_model=True) is None


class Fines(HighestBid):
    """A flat fee of 6 for the truth; under any other report a fine, now and then, and else nothing."""

    def __init__(self, rng, fine):
        super().__init__("first")
        self.rng, self.fine = rng, fine

    def complete(self, job):
        event = super().complete(job)
        false = self.bids[job].value.highest != BIDDER.value.highest
        paid = (self.fine if self.rng.random() < 0.05 else 0.0) if false else 6.0
        return Event(event.round, event.kind, job, event.completion, paid)


@pytest.mark.parametrize(("fine", "granted"), [(4.0, 5.0), (19.0, 20.0), (40.0, 40.0)])
def test_a_gain_rests_on_the_largest_payment_and_above_every_value_on_none(fine, granted):
    """The lie pays on average; but nothing limits what a rule may still ask for that asks for more than any value."""
    found = score(Situation(lambda rng: Fines(rng, fine), BIDDER, **ONE_ROUND), ScaleValue(0.5), worlds=400)
    assert found.gain_mean > 3 and found.largest_payment == granted
    assert found.confirmed == (fine <= 20) and (found.gain_low == -np.inf) == (fine > 20)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_value": float("nan")}, "max_value = nan: expected a finite number >= 0"),
        ({"max_concurrency": 1.5}, "max_concurrency = 1.5: expected a whole number >= 1"),
        ({"max_duration": -3}, "max_duration = -3: expected a whole number >= 1"),
    ],
)
def test_announced_limits_that_are_none_are_named(limits, message):
    kind = type("Announces", (HighestBid,), limits)
    found = search(Situation(lambda rng: kind("second"), BIDDER, **ONE_ROUND), budget_seconds=None, max_plays=50)
    assert not found and message in found.failures[0].reason


@pytest.mark.parametrize(
    ("kind", "payment"), [(EventKind.DROP, float("nan")), (EventKind.DROP, float("inf")), ("nonsense", 0.0)]
)
def test_an_end_that_is_none_is_a_fault_of_the_mechanism(kind, payment):
    class Ends(HighestBid):
        def advance(self):
            self.round += 1
            return [Event(1, kind, "owner", None, payment)]

    found = search(Situation(lambda rng: Ends("first"), BIDDER, **ONE_ROUND), budget_seconds=None, max_plays=50)
    assert (
        not found
        and "expected one of start, requeue, drop, cancel, evict, with a finite payment" in found.failures[0].reason
    )
