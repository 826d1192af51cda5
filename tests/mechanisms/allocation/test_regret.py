"""Regret and its fitted growth: worked examples, both directions of the comparison, bad input."""

import numpy as np
import pytest
from scipy import stats

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    BernoulliArrivals,
    ClusterEnvironment,
    Fairness,
    best_fixed_allocation,
    fitted_growth,
    play_slots,
    published_instance,
)


def played(policy_of, seed, slots, **options):
    """Play a policy on a random instance; return the cluster, what was earned, arrival counts per slot."""
    cluster = published_instance(np.random.default_rng([seed, 0]), **options)
    arrivals = BernoulliArrivals(0.7, np.random.default_rng([seed, 1]), cluster.n_ports)
    record = play_slots(policy_of(cluster), ClusterEnvironment(cluster, arrivals), slots)
    arrivals.begin()
    return cluster, record["reward"], np.array([arrivals.draw() for _ in range(slots)])


# -- worked by hand ----------------------------------------------------------------------------------------


def test_the_exponent_of_a_power_is_found():
    horizons = np.array([250, 500, 1000, 2000])
    fit = fitted_growth(horizons, [3.0 * horizons**0.5, 7.0 * horizons**0.75])
    assert fit.exponents == pytest.approx([0.5, 0.75], abs=1e-12)
    assert fit.exponent == pytest.approx(0.625, abs=1e-12)


def test_the_interval_is_students():
    rng = np.random.default_rng(0)
    horizons = np.array([100, 200, 400])
    regrets = horizons**0.6 * np.exp(rng.normal(0.0, 0.2, (12, 3)))
    fit = fitted_growth(horizons, regrets, confidence=0.9)
    slopes = [stats.linregress(np.log(horizons), np.log(row)).slope for row in regrets]
    assert fit.exponents == pytest.approx(slopes, abs=1e-12)
    expected = stats.ttest_1samp(slopes, 0.0).confidence_interval(0.9)
    assert (fit.low, fit.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


# -- played ------------------------------------------------------------------------------------------------


class Fixed:
    """Plays one allocation in every slot."""

    name, observes = "fixed", "nothing"

    def __init__(self, allocation):
        self.allocation = allocation

    def allocate(self):
        return self.allocation

    def update(self, arrivals):
        pass


def test_the_best_fixed_allocation_has_no_regret():
    small = {"n_ports": 3, "n_instances": 5}
    _, _, arrivals = played(Fairness, 1, 40, **small)
    cluster, earned, again = played(
        lambda c: Fixed(best_fixed_allocation(c, arrivals.sum(axis=0), tolerance=1e-6).allocation), 1, 40, **small
    )
    assert np.array_equal(arrivals, again)
    best = best_fixed_allocation(cluster, arrivals.sum(axis=0), tolerance=1e-6)
    assert abs(best.value - earned.sum()) <= 1e-6 * best.value and best.upper >= earned.sum()


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: fitted_growth([10, 10], [[1.0, 2.0]] * 2), "expected at least two different ones"),
        (lambda: fitted_growth([0, 10], [[1.0, 2.0]] * 2), "all > 0"),
        (lambda: fitted_growth([10, 20], [[1.0, 2.0]]), "expected at least two runs"),
        (lambda: fitted_growth([10, 20], [[1.0, 2.0], [1.0, -2.0]]), "regrets[1, 1] = -2.0: expected > 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InvalidParameterError) as caught:
        call()
    assert message in str(caught.value)
