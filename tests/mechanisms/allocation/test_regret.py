"""Regret and its fitted growth: worked examples, bad input."""

import numpy as np
import pytest
from scipy import stats

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    fitted_growth,
)

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
