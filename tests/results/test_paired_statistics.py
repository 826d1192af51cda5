"""Means and ratios of means over paired runs: where their intervals end, and how often they hold the truth."""

import numpy as np
import pytest
from scipy import optimize, stats

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.paired_statistics import (
    losses_seen,
    ratio,
    ratio_of_means,
    share_of_means,
    spread,
    what_may_be_missed,
)
from refusals import refused


def test_the_ratio_is_that_of_the_means():
    found = ratio_of_means([30.0, 90.0, 100.0, 80.0], [30.0, 50.0, 50.0, 45.0])
    assert found.value == 300 / 175  # the mean of the ratios would be 1.64
    assert found.low < found.value < found.high


def test_fiellers_ends_are_where_students_interval_begins_to_hold_0():
    above, below = np.array([3.0, 5.0, 4.0, 6.0]), np.array([2.0, 3.0, 3.0, 4.0])
    assert abs(stats.skew(above - above.mean() / below.mean() * below)) < 1e-12
    found = ratio_of_means(above, below)
    for end in found[1:]:
        rest = above - end * below
        assert abs(rest.mean()) / stats.sem(rest) == pytest.approx(stats.t.ppf(0.975, 3))


def test_a_long_tail_moves_the_end_on_its_side_and_that_one_alone():
    """By how much, is Hall's transformation, solved here by search."""
    losses = np.array([1.0, 2.0, 2.0, 3.0, 12.0])
    above, below = np.full(5, 100.0), 100.0 - losses
    value, low, high = ratio_of_means(above, below)
    skew, t = stats.skew(above - value * below, bias=False) / np.sqrt(5), stats.t.ppf(0.975, 4)
    moved = optimize.brentq(lambda x: x + skew * x**2 / 3 + skew**2 * x**3 / 27 + skew / 6 + t, -50, 0)
    for end, factor in ((low, 1.0), (high, -moved / t)):
        fieller = value + (end - value) / factor
        rest = above - fieller * below
        assert abs(rest.mean()) / stats.sem(rest) == pytest.approx(t)
    assert -moved / t > 1.5
    alike = ratio_of_means([0.1 + 0.2] * 9 + [0.3], np.ones(10))  # they differ by rounding alone
    assert alike.low < 0.3 < alike.high
    mirrored = ratio_of_means(above, 100.0 + losses)
    assert mirrored.value - mirrored.low > 1.5 * (mirrored.high - mirrored.value)


def test_one_run_has_no_interval_and_equal_runs_no_point():
    assert np.isnan(ratio_of_means([3.0], [2.0])[1:]).all()
    value, low, high = ratio_of_means([3.0] * 5, [2.0] * 5)
    rest = 0.025 ** (1 / 5)  # what is seen in none of 5 runs has a probability of at most 1 - rest
    assert (value, low, high) == (1.5, pytest.approx(1.5 * rest), pytest.approx(1.5 / rest))
    assert ratio_of_means([3.0, 1.0], [0.0, 0.0]).value == np.inf
    assert np.isnan(ratio_of_means([3.0, 1.0], [9.0, -8.0])[1:]).all()  # the mean below may be 0
    assert ratio_of_means([9.0, 9.0], [9.0, 0.0], least=1.0)[1:] == (1.0, np.inf)
    refused(lambda: ratio_of_means([], []), "expected the same number, at least 1", error=InvalidParameterError)
    with pytest.raises(InvalidParameterError, match="expected the same number, at least 1"):
        ratio_of_means([1.0, 2.0], [1.0])


def test_a_loss_that_was_never_seen_is_in_the_interval():
    best = np.full(8, 11.0)
    assert losses_seen(best, best) == 0
    assert ratio_of_means(best, best, least=1.0)[1:] == (1.0, pytest.approx(1 / 0.05 ** (1 / 8)))
    once = best - [0, 0, 0, 5.0, 0, 0, 0, 0]
    probability = stats.binomtest(1, 8).proportion_ci(0.9).high  # both ends at .9 is one at .95
    assert losses_seen(best, once) == 1
    assert ratio_of_means(best, once, least=1.0).high >= 11 / (11 - 5 * probability) - 1e-12
    assert losses_seen([10.0 + 1e-15], [10.0]) == 0  # rounding is no loss
    three = best - [5.0, 10.0, 5.0, 0, 0, 0, 0, 0]  # half of the largest is large: three tell what a loss can be
    assert ratio_of_means(best, three, least=1.0).high == ratio_of_means(best, three).high
    both = ratio_of_means([10.0, 10.0], [4.0, 4.01], least=1.0)  # alike in each of two runs: no end is infinite
    assert both.high == pytest.approx(both.value / 0.05 ** (1 / 2))


LOSSES = ["uniform", "normal", "exponential", "exponential share", "half", "fifth", "tenth", "hundredth"]
LOSSES += ["everything", "uneven", "little and much", "lognormal", "Pareto"]


def blocks(name, n_runs, rng):
    """Return optimum and welfare, shape (2000, n_runs), and the true ratio of their means."""
    shape = 2000, n_runs

    def rare(optimum, lost, probability):
        losses = lost * (rng.random(shape) < probability)
        return np.full(shape, optimum), optimum - losses, optimum / (optimum - lost * probability)

    if name == "uniform":
        best = rng.uniform(50, 150, shape)
        return best, best * rng.uniform(0.8, 1.0, shape), 1 / 0.9
    if name == "normal":
        best = rng.normal(100, 15, shape)
        return best, best - np.abs(rng.normal(20, 5, shape)), 1.25
    if name == "exponential":
        return np.full(shape, 100.0), 100.0 - rng.exponential(5, shape), 100 / 95
    if name == "exponential share":
        best = rng.uniform(50, 150, shape)
        return best, best * (1 - np.minimum(rng.exponential(0.05, shape), 1.0)), 1 / (1 - 0.05 * (1 - np.exp(-20)))
    if name == "half":
        best, mean = np.full(shape, 100.0), 5.0
        return best, best - 10.0 * (rng.random(shape) < 0.5) * rng.uniform(0.5, 1.5, shape), 100 / (100 - mean)
    if name == "little and much":
        return np.full(shape, 10.0), 9.9 - 8.0 * (rng.random(shape) < 0.05), 10 / 9.5
    if name in ("lognormal", "Pareto"):
        draw = {
            "lognormal": lambda: 0.05 * np.exp(rng.normal(size=shape)),
            "Pareto": lambda: 0.04 + 0.04 * rng.pareto(2.1, shape),
        }
        share = np.minimum(draw[name](), 1.0)
        return np.full(shape, 10.0), 10.0 - 10.0 * share, 1 / (1 - share.mean())
    if name == "uneven":
        best = rng.uniform(5, 15, shape)
        return best, best * (1 - rng.uniform(0, 1, shape) * (rng.random(shape) < 0.05)), 1 / 0.975
    return {"fifth": rare(100.0, 20.0, 0.2), "tenth": rare(100.0, 50.0, 0.1), "hundredth": rare(10.0, 6.5, 0.01),
            "everything": rare(10.0, 10.0, 0.02)}[name]  # fmt: skip


@pytest.mark.long_after(6)
@pytest.mark.slow
@pytest.mark.parametrize("n_runs", [5, 8, 20])
@pytest.mark.parametrize("name", LOSSES)
def test_intervals_cover_ordinary_and_rare_losses(name, n_runs):
    best, welfare, true = blocks(name, n_runs, np.random.default_rng(12))
    found = [ratio_of_means(*pair, least=1.0) for pair in zip(best, welfare, strict=True)]
    assert sum(x.low <= true * (1 + 1e-12) and true <= x.high for x in found) >= 0.93 * len(found)


def test_it_says_what_may_be_in_none_of_the_runs():
    assert what_may_be_missed(5) == "what 1 run in 3 does may be in none of 5"  # (2 / 3)^5 = .13, (1 / 2)^5 = .03


def test_a_spread_is_that_of_student():
    """Of one figure over seeds; seeds without it are left out, and one alone has no interval."""
    values = [3.0, 5.0, 4.0, 8.0]
    low, high = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    assert spread([*values, np.nan], 0.9) == pytest.approx((5.0, np.std(values, ddof=1), 3.0, 8.0, low, high))
    assert spread([2.0])[:1] == (2.0,) and np.isnan(spread([2.0])[1]) and np.isnan(spread([])).all()


def test_a_share_weighs_runs_by_what_could_be_earned():
    """Of equal wholes its interval is Student's of the runs' shares; runs without anything to share do not count."""
    found = share_of_means([1.0, 3.0, 2.0], [10.0, 10.0, 10.0], 0.9)
    low, high = stats.t.interval(0.9, 2, 0.2, stats.sem([0.1, 0.3, 0.2]))
    assert found == pytest.approx((0.2, low, high))
    assert share_of_means([1.0, 3.0, 2.0, 5.0, np.nan], [10.0, 10.0, 10.0, 0.0, 7.0], 0.9) == pytest.approx(found)
    rest = np.array([1.0, 3.0]) - 0.1 * np.array([10.0, 30.0])  # of unequal ones, what each adds to the share
    assert share_of_means([1.0, 3.0], [10.0, 30.0]) == pytest.approx((0.1, 0.1, 0.1)) and not rest.any()
    assert np.isnan(share_of_means([1.0], [0.0])).all()
    assert (ratio(3.0, 2.0), [np.isnan(ratio(*pair)) for pair in ((3.0, 0.0), (0.0, 2.0))]) == (1.5, [True, True])


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_credits_changes_no_share_and_no_ratio(unit):
    """Also where some runs are worth nothing."""
    above, below = np.array([3.0, 5.0, 4.0, 9.0, 0.0]), np.array([2.0, 5.0, 3.0, 4.0, 0.0])
    assert share_of_means(unit * below, unit * above) == pytest.approx(share_of_means(below, above))
    for least in (None, 1.0):
        found, same = (ratio_of_means(x * above, x * below, least=least) for x in (unit, 1.0))
        assert found == pytest.approx(same)
    assert losses_seen(unit * above, unit * below) == losses_seen(above, below) == 3
