"""One owner's lies on fresh worlds: they are found by known amounts, nobody else is accused, failures are named."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from draws import many
from faulty_mechanisms import FAULTS, witness_market
from marketsched.agents.conduct import plain
from marketsched.agents.lies import DelaySubmission, InflateConcurrency, ScaleValue, ShiftDeadline
from marketsched.mechanisms import (
    DeadlineValue,
    EventKind,
    ExactOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.mechanism import Event
from marketsched.truthfulness import certify
from marketsched.truthfulness.searches.screening import over_law
from marketsched.truthfulness.situations.streams import stream_of_run
from marketsched.truthfulness.situations.worlds import Worlds
from small_mechanisms import (
    BIDDER,
    ONE_ROUND,
    HighestBid,
    auction,
    best_on_worlds,
    on_worlds,
    owner_in,
    small_market,
)


def g1_owner(signals=(None, None)):
    """Gap G1: one node is needed, two are declared; with durations hidden that gains 4 - 2."""

    def market(rng):
        prices, limits = PostedPricing([1.0, 4.0, 100.0]), {"max_concurrency": 2, "max_duration": 2, "max_value": 10.0}
        return PostedPriceMechanism(2, 6, prices, ExactOracle(), max_delay=6, epsilon=-0.5, **limits)

    earlier = StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(2, 1, 1.0)])
    truth = StatementOfWork(1, 1, TableValue({2: 10.0}), [(1, 1, 0.5, signals[0]), (1, 2, 0.5, signals[1])])
    return owner_in(market, truth, [earlier], capacity=2, horizon=6, max_delay=6)


def g2_owner():
    """Gap G2: whoever submits in round 3 knows which of rounds 5 and 6 will be free; 5 credits become 10."""

    def market(rng):
        limits = {"max_concurrency": 1, "max_duration": 3, "max_value": 10.0, "max_delay": 8}
        return PostedPriceMechanism(1, 8, PostedPricing([0.0]), ExactOracle(), epsilon=-0.5, **limits)

    blocker = StatementOfWork(1, 1, TableValue({5: 10.0}), [(2, 3, 1.0)])
    earlier = StatementOfWork(1, 1, DeadlineValue(10.0, 7), [(2, 1, 0.5), (6, 1, 0.5)])
    truth = StatementOfWork(1, 1, TableValue({6: 10.0, 7: 10.0}), [(5, 1, 1.0)])
    return owner_in(market, truth, [blocker, earlier], capacity=1, horizon=8, max_delay=8)


# --- what is there is found -------------------------------------------------------------------------


def test_g1_is_found_with_its_gain_of_two_and_is_gone_when_durations_are_revealed():
    best = best_on_worlds(g1_owner())
    assert best.words.startswith("declares 2 nodes instead of 1")
    assert 0 < best.gain_low <= 2.0 <= best.gain_high
    found = on_worlds(g1_owner(signals=(1, 2)))
    assert found.confirmed == [] and found.failures == [] and len(found.tried) > 20


def test_g2_is_found_and_reported_as_outside_the_model():
    assert best_on_worlds(g2_owner()) is None
    best = best_on_worlds(g2_owner(), [DelaySubmission(k) for k in (1, 2, 3)])
    assert best.words == "submits 2 rounds late"
    assert 0 < best.gain_low <= 5.0 <= best.gain_high and not best.inside_model


@pytest.mark.slow
def test_the_gain_of_a_lie_in_drawn_worlds_is_that_of_the_closed_form():
    best = best_on_worlds(auction("first", 2), [ScaleValue(0.7)], plays=20_000)
    assert best.gain_low <= 3.0 * (27 / 40) ** 2 <= best.gain_high


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_planted_fault_is_caught_with_the_gain_worked_out_by_hand(fault):
    """Prices that fall need a delay."""
    market = witness_market(fault)
    sizes = {name: market.parameters[name] for name in ("capacity", "horizon", "max_delay")}
    build = lambda rng: FAULTS[fault](rng=rng, **market.parameters)  # noqa: E731
    owner = owner_in(build, market.truth, market.others, **sizes)
    best = best_on_worlds(owner, [DelaySubmission(market.delay)] if market.delay else None)
    assert best.gain_low > 0 and best.gain_high >= market.lying - market.truthful - 1e-9


def hidden_market(seed):
    """Return a market in the manner of G1: two nodes, another job that is certain, durations hidden, uneven prices."""
    rng = np.random.default_rng(seed)
    prices = PostedPricing([float(rng.choice(p)) for p in ([0.5, 1.0, 2.0], [2.0, 4.0, 8.0], [0.5, 4.0])])
    limits = {"max_concurrency": 2, "max_duration": 2, "max_value": 10.0}

    def market(rng):
        return PostedPriceMechanism(2, 8, prices, ExactOracle(), max_delay=6, epsilon=-0.5, **limits)

    arrival = int(rng.choice([1, 1, 2]))
    earlier = StatementOfWork(1, 1, DeadlineValue(10.0, 6), [(arrival + int(rng.choice([1, 1, 2])), 1, 1.0)])
    short = float(rng.choice([0.25, 0.5, 0.75]))
    law = [(arrival, 1, short, None), (arrival, 2, 1 - short, None)]
    truth = StatementOfWork(1, 1, DeadlineValue(float(rng.integers(5, 11)), arrival + 1), law)
    return owner_in(market, truth, [earlier], capacity=2, horizon=8, max_delay=6, seed=seed)


FEW = [InflateConcurrency(1), InflateConcurrency(-1), ScaleValue(0.5), ScaleValue(2.0), ShiftDeadline(-1)]


def brute_force_gain(owner):
    """Return the best gain over all cases reported or not, two numbers of nodes, and several values and deadlines."""
    truth, rows = owner.truth, owner.truth.requirements
    subsets = [chosen for n in range(1, len(rows) + 1) for chosen in itertools.combinations(rows, n)]
    reports = itertools.product(subsets, (1, 2), (2, 3, 4, 6), (2.0, 5.0, 10.0))
    lies = [StatementOfWork(1, nodes, DeadlineValue(v, last), cases) for cases, nodes, last, v in reports]
    return max(over_law(owner, plain(lie, truth.concurrency))[0] for lie in lies)


@pytest.mark.slow
def test_what_brute_force_finds_is_found_where_durations_are_hidden():
    paying = 0
    for seed in range(many(16, least=6)):
        owner = hidden_market(seed)
        best, found = brute_force_gain(owner), best_on_worlds(owner, FEW, seed=seed)
        assert (found is not None) == (best > 1e-9)
        assert found is None or found.gain_low <= best
        paying += found is not None
    assert paying >= many(3, least=1)  # else the comparison shows nothing


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(10, least=3)))
def test_what_is_found_lies_below_the_certificate_at_the_same_history(seed):
    """Both sides of the sandwich, at one history."""
    for market in (hidden_market, small_market):
        owner = market(seed)
        certificate = certify(owner.at_turn().mechanism, owner.truth)
        found = best_on_worlds(owner, FEW, seed=seed)
        assert found is None or found.gain_low <= certificate.regret_upper + 1e-9
        assert (found is not None) == (certificate.regret_lower > 1e-9)


# --- nobody else is accused -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_best_of_many_looks_good_and_is_scored_as_nothing():
    """The payment is noise that depends on the report, with the same mean under all of them."""
    owner = owner_in(lambda rng: HighestBid("noise", rng=rng), BIDDER, **ONE_ROUND)
    picked, fresh, misses, n = [], [], 0, many(100, least=8)
    for seed in range(n):
        found = on_worlds(owner, seed=seed, confidence=0.9, plays=1500, more=0)
        picked.append(max(gain for *_, gain in found.tried))
        fresh += [claim.gain_mean for claim in found.claims]
        misses += any(not c.gain_low <= 0 <= c.gain_high for c in found.claims)
    assert np.mean(picked) > 0.1  # all gains are 0: what the race has seen is the winner's curse
    assert abs(np.mean(fresh)) < 4 * np.std(fresh) / np.sqrt(len(fresh))
    assert binom.sf(misses - 1, n, 0.1) > 1e-3


@pytest.mark.slow
def test_truthful_mechanisms_are_not_accused():
    for seed in range(many(60, least=4)):
        found = on_worlds(small_market(seed), seed=seed)
        assert not found.failures and not any(c.inside_model for c in found.confirmed)
    alarms = sum(bool(on_worlds(auction("second", 2), seed=s).confirmed) for s in range(many(60, least=4)))
    assert binom.sf(alarms - 1, many(60, least=4), 0.01) > 1e-3


@pytest.mark.parametrize(("short", "value"), [(0.1, 3.7), (0.3, 2.9)])
def test_where_gains_and_losses_cancel_the_rounding_is_no_gain(short, value):
    """The owner is indifferent whether it runs: the short run gains what the long one loses."""
    table = TableValue({2: value, 4: 3 - short * (value - 1) / (1 - short)})
    truth = StatementOfWork(1, 1, table, [(1, 1, short, None), (1, 3, 1 - short, None)])

    def market(rng):
        limits = {"max_concurrency": 2, "max_duration": 3, "max_value": 10.0, "max_delay": 8}
        return PostedPriceMechanism(2, 8, PostedPricing([1.0]), ExactOracle(), **limits)

    owner = owner_in(market, truth, capacity=2, horizon=8, max_delay=8)
    assert {over_law(owner, plain(lie.report(truth, owner.public), 1))[0] for lie in FEW[2:]} <= {0.0}


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_a_mechanism_draws_after_the_turn_is_drawn_anew_in_each_play(seed):
    """One stream for all plays would make declaring more nodes pay, or not, by luck, and for certain."""
    owner = owner_in(PriceLottery, BIDDER, seed=seed, **{**ONE_ROUND, "capacity": 4})
    worlds = Worlds(owner)
    assert len({worlds.play(plain(BIDDER, 1), k).utility for k in range(5)}) == 5
    found = on_worlds(owner)
    assert not found.failures and not found.confirmed
    assert found.claims


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
    owner = owner_in(lambda rng: Fines(rng, fine), BIDDER, **ONE_ROUND)
    found = on_worlds(owner, [ScaleValue(0.5)], more=0).claims[0]
    assert found.gain_mean > 3 and found.largest_payment == granted
    assert found.confirmed == (fine <= 20) and (found.gain_low == -np.inf) == (fine > 20)


# --- what is broken is named, and the rest goes on ------------------------------------------------------


class Touchy(HighestBid):
    """A pay-as-bid auction that fails for certain reports of the owner."""

    def __init__(self, fault, rng):
        super().__init__("first", horizon=3, rng=rng, rivals=1)
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


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("raises", "ZeroDivisionError: division by zero"),
        ("loops", "the mechanism is in round 1: expected round 2"),
        ("endless", "has started before: expected one start"),
    ],
)
def test_a_mechanism_that_fails_under_some_reports_is_named_and_the_rest_goes_on(fault, reason):
    owner = owner_in(lambda rng: Touchy(fault, rng), BIDDER, **ONE_ROUND)
    found = on_worlds(owner, [ScaleValue(0.25), ScaleValue(0.5)])
    best = found.confirmed[0]
    assert best.gain_low <= 2.375 <= best.gain_high
    assert any(reason in failure and "ScaleValue" in failure for failure in found.failures)


def test_a_mechanism_that_fails_under_the_truth_leaves_nothing_to_compare():
    class Hopeless(HighestBid):
        def advance(self):
            if self.rng.random() < 0.5:
                raise RuntimeError("out of order")
            return super().advance()

    seed = next(seed for seed in range(20) if stream_of_run(seed).random() >= 0.5)  # it goes well at hand
    owner = owner_in(lambda rng: Hopeless("first", rng=rng), BIDDER, seed=seed, **ONE_ROUND)
    found = on_worlds(owner, [ScaleValue(0.5)])
    assert found.claims == [] and "RuntimeError: out of order" in found.truth_fails["owner"]


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

    found = best_on_worlds(owner_in(Sometimes, BIDDER, **ONE_ROUND), [ScaleValue(0.5), ScaleValue(0.8)])
    assert found is not None


@pytest.mark.parametrize("plays", [1, 10, 200])
def test_budgets_are_kept_and_the_same_seed_gives_the_same_result(plays):
    owner = auction("first", 2)
    first, again, other = (on_worlds(owner, plays=plays, more=0, seed=seed) for seed in (0, 0, 1))
    assert first.plays <= plays and first.tried == again.tried
    assert plays < 200 or first.tried != other.tried


def test_a_lie_that_is_no_legal_report_is_left_out():
    assert on_worlds(auction("first", 1), [InflateConcurrency(1)]).tried == []
