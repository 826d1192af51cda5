"""The search: it finds what is there, by known amounts, accuses nobody who is clean, and survives what is broken."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from marketsched.mechanisms import (
    DeadlineValue,
    EventKind,
    ExactOracle,
    ExponentialPricing,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.mechanism import Event
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.truthfulness import Family, Situation, score, search
from marketsched.truthfulness.betting import mean_interval
from marketsched.truthfulness.misreports import Combination
from marketsched.truthfulness.outside_model import DelayedSubmission
from marketsched.truthfulness.value_misreports import DeclaredNodes, ScaledValue
from small_mechanisms import HighestBid, OpenMarket, best_shading

ONE_ROUND = {"capacity": 1, "horizon": 3, "max_delay": 3}
BIDDER = StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(1, 1, 1.0)])
UNIFORM = [(k / 4, 1 / 40) for k in range(1, 41)]


def rivals(*laws):
    """Return owners who each bid by a law, for one round of work."""
    return [
        StatementLaw([(StatementOfWork(1, 1, DeadlineValue(bid, 3), [(1, 1, 1.0)]), p) for bid, p in law])
        for law in laws
    ]


def auction(rule, *laws):
    return Situation(lambda rng: HighestBid(rule), BIDDER, rivals(*laws), **ONE_ROUND)


def g1_situation(signals=(None, None)):
    """Gap G1: one node is needed, two are declared; with durations hidden that gains 4 - 2."""

    def market(rng):
        prices, limits = PostedPricing([1.0, 4.0, 100.0]), {"max_concurrency": 2, "max_duration": 2, "max_value": 10.0}
        return PostedPriceMechanism(2, 6, prices, ExactOracle(), max_delay=6, epsilon=-0.5, **limits)

    earlier = StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(2, 1, 1.0)])
    truth = StatementOfWork(1, 1, TableValue({2: 10.0}), [(1, 1, 0.5, signals[0]), (1, 2, 0.5, signals[1])])
    return Situation(market, truth, [earlier], capacity=2, horizon=6, max_delay=6)


def g2_situation():
    """Gap G2: whoever submits in round 3 knows which of rounds 5 and 6 will be free; 5 credits become 10."""

    def market(rng):
        limits = {"max_concurrency": 1, "max_duration": 3, "max_value": 10.0, "max_delay": 8}
        return PostedPriceMechanism(1, 8, PostedPricing([0.0]), ExactOracle(), epsilon=-0.5, **limits)

    blocker = StatementOfWork(1, 1, TableValue({5: 10.0}), [(2, 3, 1.0)])
    earlier = StatementOfWork(1, 1, DeadlineValue(10.0, 7), [(2, 1, 0.5), (6, 1, 0.5)])
    truth = StatementOfWork(1, 1, TableValue({6: 10.0, 7: 10.0}), [(5, 1, 1.0)])
    return Situation(market, truth, [blocker, earlier], capacity=1, horizon=8, max_delay=8)


# --- what is there is found -------------------------------------------------------------------------


def test_g1_is_found_with_its_gain_of_two():
    found = search(g1_situation(), budget_seconds=None, max_plays=3000)
    best = found.best(inside_model=True)
    assert best.words == "declares 2 nodes instead of 1"
    assert (best.gain_low, best.gain_mean, best.gain_high) == (2.0, 2.0, 2.0)
    assert best.exact and found.truthful == 2.0


def test_g1_is_gone_when_durations_are_revealed():
    found = search(g1_situation(signals=(1, 2)), budget_seconds=None, max_plays=3000)
    assert found == [] and found.failures == []
    assert found.truthful == pytest.approx(4.5)


def test_g2_is_found_and_reported_as_outside_the_model():
    found = search(g2_situation(), budget_seconds=None, max_plays=3000)
    assert found.best(inside_model=True) is None
    best = found.best(inside_model=False)
    assert best.words == "submits 2 rounds late"
    assert best.gain_mean == 5.0 and best.confirmed and not best.inside_model


def test_the_best_shading_is_found_within_one_per_cent():
    (bid, gain), situation = best_shading(10.0, [UNIFORM]), auction("first", UNIFORM)
    assert (bid, gain) == (5.0, pytest.approx(2.5))
    found = search(situation, budget_seconds=None, max_plays=20_000)
    best = found.best(inside_model=True)
    assert best.exact  # forty worlds
    assert best.gain_mean == pytest.approx(gain, rel=0.01)
    assert best.misreport.factor * 10 == pytest.approx(bid, rel=0.01)


@pytest.mark.slow
def test_the_best_shading_is_found_where_worlds_have_to_be_drawn():
    """Against two rivals there are 1600 worlds: sampled, not gone through. The found bid is scored in closed form."""
    laws = [UNIFORM, UNIFORM]
    _, gain = best_shading(10.0, laws)
    family = Family("value", (ScaledValue(0.5), ScaledValue(0.25), ScaledValue(0.75), ScaledValue(0.9)))
    for seed in range(3):
        found = search(auction("first", *laws), budget_seconds=None, max_plays=150_000, seed=seed, families=[family])
        bid = 10 * found[0].misreport.factor
        win = np.prod([sum(p for other, p in law if other < bid) for law in laws])
        assert (10 - bid) * win == pytest.approx(gain, rel=0.01)
        assert not found[0].exact
        assert found[0].gain_low <= (10 - bid) * win <= found[0].gain_high


def test_a_lie_that_takes_two_misreports_is_found():
    """The price is 9 but for reports of two nodes and little value, either of which alone is turned away."""

    def price(sow, signal, rounds, place):
        few, low = sow.concurrency < 2, sow.value.highest < 6
        return 4.0 if not few and low else 7.0 if few and not low else 20.0

    situation = Situation(lambda rng: OpenMarket(4, 6, price), BIDDER, capacity=4, horizon=6, max_delay=6)
    found = search(situation, budget_seconds=None, max_plays=3000)
    best = found.best(inside_model=True)
    assert isinstance(best.misreport, Combination)
    assert {part.kind for part in best.misreport.parts} >= {"declare-nodes", "scale-value"}
    assert best.gain_mean == pytest.approx(3.0)


def brute_force_gain(situation):
    """Return the best gain over reports that select any other plan: two values, deadlines, nodes, one case left out."""
    truth = situation.truth
    points, best = truth.requirements, 0.0
    worlds = situation.stage.worlds(5000)

    def mean(report):
        from marketsched.truthfulness.conduct import plain

        conduct = plain(report, truth.concurrency)
        return sum(weight * situation.stage.play(conduct, world).utility for world, weight in worlds)

    base = mean(truth)
    subsets = [s for n in range(1, len(points) + 1) for s in itertools.combinations(points, n)]
    for rows, nodes, last, value in itertools.product(subsets, (1, 2), range(3, 9), (1.0, 3.0, 10.0)):
        best = max(best, mean(StatementOfWork(truth.birth, nodes, DeadlineValue(value, last), rows)) - base)
    return best


def small_market(seed, *, revealed, hidden_prices=None):
    """Return a random market of a few jobs, exact oracle; small enough to go through all its worlds."""
    rng = np.random.default_rng(seed)

    def statement(birth):
        n = int(rng.integers(1, 3))
        arrivals = birth + rng.choice(3, size=n, replace=False)
        rows = [(int(a), int(rng.integers(1, 3)), 1 / n) for a in arrivals]
        rows = [(a, d, p, d if revealed else None) for a, d, p in rows]
        if not revealed and n == 1:
            rows = [(rows[0][0], d, 0.5, None) for d in (1, 3)]
        value = DeadlineValue(float(rng.integers(2, 11)), int(birth + rng.integers(2, 6)))
        return StatementOfWork(birth, int(rng.integers(1, 3)), value, rows)

    others = [statement(int(b)) for b in np.sort(rng.integers(1, 4, 4))]
    truth = statement(int(rng.integers(1, 4)))
    limits = {"max_concurrency": 2, "max_duration": 3, "max_value": 10.0, "max_delay": 7}
    pricing = ExponentialPricing() if hidden_prices is None else PostedPricing(hidden_prices)

    def market(rng):
        return PostedPriceMechanism(4, 12, pricing, ExactOracle(), epsilon=-0.25, **limits)

    return Situation(market, truth, others, capacity=4, horizon=12, max_delay=7)


def test_the_search_finds_what_brute_force_finds_where_durations_are_hidden():
    """Hidden durations and steep prices: lies can pay, and the search is nowhere below the reports gone through."""
    paying = 0
    for seed in range(12):
        situation = small_market(seed, revealed=False, hidden_prices=[1.0, 1.0, 2.0, 9.0, 0.5, 9.0])
        best = brute_force_gain(situation)
        found = search(situation, budget_seconds=None, max_plays=60_000)
        gain = found[0].gain_mean if found and found[0].inside_model else 0.0
        inside = max([d.gain_mean for d in found if d.inside_model], default=0.0)
        assert inside >= best - 1e-9 or gain >= best - 1e-9
        paying += best > 1e-9
    assert paying  # else the comparison shows nothing


# --- the clean are not accused ----------------------------------------------------------------------


@pytest.mark.slow
def test_truthful_mechanisms_are_not_accused_over_two_hundred_seeds():
    """Exact: no false alarm is possible but by a wrong play. Second price: drawn worlds, at most 1 % may be wrong."""
    accused = 0
    for seed in range(200):
        found = search(small_market(seed, revealed=True), budget_seconds=None, max_plays=4000, seed=seed)
        assert not found.failures
        accused += any(d.confirmed and d.inside_model for d in found)
    assert accused == 0
    alarms = 0
    for seed in range(200):
        found = search(auction("second", UNIFORM, UNIFORM), budget_seconds=None, max_plays=1500, seed=seed)
        alarms += any(d.confirmed and d.inside_model for d in found)
    assert binom.sf(alarms - 1, 200, 0.01) > 1e-3  # no more than the stated level explains


def test_truthful_mechanisms_are_not_accused():
    for seed in range(12):
        found = search(small_market(seed, revealed=True), budget_seconds=None, max_plays=2500, seed=seed)
        assert found.best(inside_model=True) is None
    found = search(auction("second", UNIFORM), budget_seconds=None, max_plays=6000)
    assert found.best(inside_model=True) is None and found.exact


def noisy(seed, **budget):
    """Search where the payment is noise that depends on the report, with the same mean under all of them."""
    situation = Situation(lambda rng: HighestBid("noise", rng=rng), BIDDER, **ONE_ROUND)
    return search(situation, seed=seed, budget_seconds=None, confidence=0.9, **budget)


def winners_curse(repetitions):
    picked, fresh, misses, n = [], [], 0, 0
    for seed in range(repetitions):
        found = noisy(seed, max_plays=2500)
        by_words = {tried.words: tried.gain for tried in found.tried}
        misses += any(not d.gain_low <= 0 <= d.gain_high for d in found)
        picked += [by_words[d.words] for d in found]
        fresh += [d.gain_mean for d in found]
        n += 1
    return np.array(picked), np.array(fresh), misses, n


def test_the_best_of_many_looks_good_and_is_scored_as_nothing():
    picked, fresh, misses, n = winners_curse(12)
    assert picked.mean() > 0.1  # all gains are 0: what the search has seen is the winner's curse
    assert abs(fresh.mean()) < 4 * fresh.std() / np.sqrt(fresh.size)
    assert binom.sf(misses - 1, n, 0.1) > 1e-3


@pytest.mark.slow
def test_the_fresh_interval_covers_at_the_stated_rate():
    _, fresh, misses, n = winners_curse(150)
    assert binom.sf(misses - 1, n, 0.1) > 1e-3
    assert abs(fresh.mean()) < 4 * fresh.std() / np.sqrt(fresh.size)


# --- the interval -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: np.where(rng.random(n) < 0.02, -5.0, 0.1),  # mean -0.002: rarely large losses
        lambda rng, n: rng.choice([-1.0, 1.0], size=n),
        lambda rng, n: np.where(rng.random(n) < 0.01, 4.9, -0.05),
    ],
)
def test_the_interval_covers_at_every_stopping_time(draw):
    """Looked at after 10, 20, 40, ... values, and stopped as soon as it seems to exclude the mean."""
    rng = np.random.default_rng(5)
    mean = draw(np.random.default_rng(0), 2_000_000).mean()
    wrong, n = 0, 300
    for _ in range(n):
        x = draw(rng, 1280)
        for k in (10, 20, 40, 80, 160, 320, 640, 1280):
            low, high = mean_interval(x[:k], -5.0, 5.0, 0.9)
            assert low <= x[:k].mean() <= high
            if not low <= mean <= high:
                wrong += 1
                break
    assert binom.sf(wrong - 1, n, 0.1) > 1e-3


def test_students_interval_would_fail_where_this_one_does_not():
    """A loss of 5 in one world of a hundred, not seen in 50: Student excludes the true mean, with width 0."""
    x = np.full(50, 0.04)
    low, _ = mean_interval(x, -5.0, 5.0, 0.99)
    assert x.std() == 0.0 and low < 0.04 - 0.01 * 5.04


def test_the_interval_shrinks_to_the_mean():
    rng = np.random.default_rng(0)
    widths = []
    for n in (100, 10_000):
        x = rng.uniform(-1, 1, n)
        low, high = mean_interval(x, -5.0, 5.0, 0.99)
        widths.append(high - low)
    assert widths[1] < 0.06 < widths[0]  # Student: 0.03 and 0.30
    assert mean_interval([], -5.0, 5.0, 0.99) == (-5.0, 5.0)
    with pytest.raises(InvalidParameterError, match=r"values in \[6.0, 6.0\]: expected them in \[-5.0, 5.0\]"):
        mean_interval([6.0], -5.0, 5.0, 0.99)


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
    found = search(situation, budget_seconds=None, max_plays=15_000)
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

    given = [Nonsense(), Raises(), TooMuch(), ScaledValue(0.51)]
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


def test_the_same_seed_and_plays_give_the_same_result():
    first, again = (search(auction("first", UNIFORM, UNIFORM), budget_seconds=None, max_plays=2000) for _ in range(2))
    assert summary(first) == summary(again)
    other = search(auction("first", UNIFORM, UNIFORM), budget_seconds=None, max_plays=2000, seed=1)
    assert summary(other) != summary(first)


@pytest.mark.parametrize("plays", [1, 10, 200])
def test_budgets_are_kept(plays):
    found = search(auction("first", UNIFORM, UNIFORM), budget_seconds=None, max_plays=plays)
    assert found.plays <= plays and (found.max_plays, found.budget_seconds) == (plays, None)
    assert found.untried + len(found.tried) > 50


def test_the_time_limit_is_kept():
    laws = [UNIFORM] * 3
    found = search(auction("first", *laws), budget_seconds=0.5)
    assert found.seconds < 1.5


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
    found = search(situation, budget_seconds=None, max_plays=2000, families=[ScaledValue(0.5), ScaledValue(0.8)])
    assert found.exact and found[0].n_fresh == 1
    assert found[0].gain_mean > 4.9  # down to nothing, by the optimiser


def test_scoring_one_given_lie():
    given = score(auction("first", UNIFORM, UNIFORM), ScaledValue(0.7), max_plays=20_000, budget_seconds=None)
    assert given.gain_low <= 3.0 * (27 / 40) ** 2 <= given.gain_high and given.confirmed
    exact = score(g2_situation(), DelayedSubmission(2))
    assert (exact.gain_low, exact.exact, exact.inside_model) == (5.0, True, False)
    with pytest.raises(InvalidReportError, match="nobody may report so in this market"):
        score(g2_situation(), DeclaredNodes(1))


def test_wrong_parameters_are_refused():
    situation = auction("first", UNIFORM)
    for keywords, message in (
        ({"budget_seconds": None}, "budget_seconds and max_plays are both None"),
        ({"budget_seconds": 0}, "budget_seconds = 0"),
        ({"max_plays": 0}, "max_plays = 0"),
        ({"confidence": 1.0}, "confidence = 1.0"),
        ({"tolerance": -1}, "tolerance = -1"),
        ({"seed": -1}, "seed = -1"),
        ({"families": [3]}, "expected"),
    ):
        with pytest.raises((InvalidParameterError, TypeError), match=message):
            search(situation, **keywords)
    lies = StatementOfWork(1, 2, DeadlineValue(10.0, 3), [(1, 1, 1.0)])
    with pytest.raises(InvalidReportError, match="concurrency = 2"):
        search(Situation(lambda rng: HighestBid("first"), lies, **ONE_ROUND))
