"""Certificates from fresh paths: they hold as often as they say, and are as narrow as pairing allows."""

import numpy as np
import pytest
from scipy.stats import binom

from draws import many
from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from marketsched.truthfulness import certify
from marketsched.truthfulness.certificates.bands import lower_means, upper_means


class Blind(ExactOracle):
    """Sees no failure ahead: its plans are wrong wherever there is one."""

    def _fractions(self, concurrency, n_starts, n_durations):
        return np.zeros((n_starts, n_durations))


def revealed_market():
    """Rounds 2, 3 and 4 are taken with probabilities 0.3, 0.15 and 0.1; the truth goes to round 2."""
    market = PostedPriceMechanism(
        1, 8, PostedPricing([0.0]), Blind(), max_concurrency=1, max_duration=2, max_value=10.0, max_delay=6
    )
    for name, (start, probability) in enumerate([(2, 0.3), (3, 0.15), (4, 0.1)]):
        market.submit(name, StatementOfWork(1, 1, TableValue({start + 1: 10.0}), [(start, 1, probability)]))
    return market, StatementOfWork(1, 1, TableValue({3: 10.0, 4: 9.0, 5: 8.8}), [(2, 1, 1.0)])


def hidden_market():
    """G1 with an earlier job that comes with probability 0.6: two nodes gain 4.5 * 1 - ... by failing more often."""
    market = PostedPriceMechanism(
        2,
        6,
        PostedPricing([1.0, 4.0, 100.0]),
        ExactOracle(),
        max_concurrency=2,
        max_duration=2,
        max_value=10.0,
        max_delay=6,
        epsilon=-0.5,
    )
    market.submit("earlier", StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(2, 1, 0.95)]))
    return market, StatementOfWork(1, 1, TableValue({2: 10.0}), [(1, 1, 0.5, None), (1, 2, 0.5, None)])


def test_the_two_markets_have_a_regret():
    """Revealed: 9 * 0.85 - 10 * 0.7. Hidden: from 2 to 0.5 * 8 - 0.5 * 0.05 * 10."""
    assert certify(*revealed_market()).regret_upper == pytest.approx(0.92)  # round 4: 8.8 * 0.9
    assert certify(*hidden_market()).regret_upper == pytest.approx(1.75)


REPETITIONS = many(600)


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.parametrize("make", [revealed_market, hidden_market])
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_sandwich_holds_as_often_as_it_says(make, confidence):
    """The number of misses is binomial at most; a correct certificate fails this test with probability 1e-6."""
    market, truth = make()
    regret = certify(market, truth).regret_upper
    above = below = naive = 0
    for seed in range(REPETITIONS):
        found = certify(market, truth, confidence=confidence, exact=False, samples=150, rng=seed)
        above += regret > found.regret_upper
        below += regret < found.regret_lower
        naive += regret > found.regret_estimate
    allowed = binom.isf(1e-6, REPETITIONS, 1 - confidence)
    assert above + below <= allowed
    # Without the band, the estimate is too small about every second time.
    assert naive > binom.isf(1e-6, REPETITIONS, 0.1)


@pytest.mark.compiled
def test_both_ends_meet_a_known_regret():
    """With many paths the sandwich is narrow, and its lie is one that pays when submitted."""
    market, truth = revealed_market()
    certificate = certify(market, truth, exact=False, samples=200_000, rng=1)
    assert certificate.regret_lower <= 0.92 <= certificate.regret_upper
    assert certificate.width < 0.2
    assert market.inspect().plan(certificate.report).starts.tolist() == [4]
    assert certificate.samples == 200_000 and certificate.confidence == 0.99


def overloaded_market():
    """One job takes rounds 2 and 3 together, or none: launches there fail on the same paths."""
    market = PostedPriceMechanism(
        1, 8, PostedPricing([0.0]), ExactOracle(), max_concurrency=1, max_duration=2, max_value=10.0, max_delay=6
    )
    market.submit("earlier", StatementOfWork(1, 1, TableValue({4: 10.0}), [(2, 2, 0.4)]))
    return market, StatementOfWork(1, 1, TableValue({3: 10.0, 4: 9.9}), [(2, 1, 1.0)])


def test_pairing_is_narrower_than_two_bands():
    """The truth (round 2) and the alternative (round 3) share their failures: what is left is 0.1 certain credits."""
    market, truth = overloaded_market()
    paired = certify(market, truth, exact=False, samples=4000, rng=3)
    alone = 10 * float(upper_means(0.4, 4000, 0.005) - lower_means(0.4, 4000, 0.005))  # a band for one of the two
    assert alone > 0.3
    assert paired.regret_upper < 0.1 * alone
    assert certify(market, truth).regret_upper == 0.0


@pytest.mark.parametrize("make", [revealed_market, hidden_market])
def test_equal_seeds_give_equal_certificates(make):
    market, truth = make()
    first = certify(market, truth, exact=False, samples=300, rng=7)
    assert first == certify(market, truth, exact=False, samples=300, rng=7)
    assert first == certify(market, truth, exact=False, samples=300, rng=np.random.default_rng(7))
    assert first.regret_upper != certify(market, truth, exact=False, samples=300, rng=8).regret_upper


def test_many_paths_are_drawn_in_parts(monkeypatch):
    """The memory taken does not grow with the number of paths; every path counts once."""
    market, truth = revealed_market()
    monkeypatch.setattr("marketsched.truthfulness.certificates.paired.AT_ONCE", 100)
    certificate = certify(market, truth, exact=False, samples=350, rng=7)
    share = certificate.truthful_utility / 10 * 350  # completing paths
    assert share == pytest.approx(round(share), abs=1e-6)
    assert certificate.regret_lower <= 0.92 <= certificate.regret_upper


def test_a_case_that_stays_as_it_is_costs_the_lower_end_nothing():
    """Half of the mass arrives in round 2, where it could gain; the other half keeps its start, surely."""
    market, _ = revealed_market()
    values = TableValue({3: 10.0, 4: 9.0, 5: 8.8, 7: 8.8})
    alone = StatementOfWork(1, 1, values, [(2, 1, 0.5)])
    both = StatementOfWork(1, 1, values, [(2, 1, 0.5), (6, 1, 0.5)])
    lower, upper = [], []
    for truth in (alone, both):
        certificate = certify(market, truth, exact=False, samples=50_000, rng=4)
        lower.append(certificate.regret_lower)
        upper.append(certificate.regret_upper)
    assert lower[1] == pytest.approx(lower[0], abs=0.005)  # the logarithm of a few starts more
    assert 0.3 < lower[1] <= 0.46 <= upper[1]
