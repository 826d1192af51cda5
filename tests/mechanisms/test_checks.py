"""Checks of single numbers and of reports: what is legal passes, all else is refused in one line."""

import numpy as np
import pytest

from marketsched.mechanisms import (
    DeadlineValue,
    EventError,
    InvalidParameterError,
    InvalidReportError,
    Menu,
    StatementOfWork,
)
from marketsched.mechanisms.checks import finite_number, finite_parameter, whole_number, whole_parameter
from marketsched.mechanisms.posted.exponential import ExponentialPricing, PostedPricing
from marketsched.mechanisms.posted.oracle import ExactOracle
from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism

NOT_NUMBERS = [True, np.True_, "1", None, [1], float("nan"), float("inf"), 1j]


@pytest.mark.parametrize("x", [1, 1.0, np.int32(1), np.float32(1.0)])
def test_numbers_of_python_and_numpy_are_taken_and_become_plain(x):
    assert (whole_number("n", x, 1), type(whole_number("n", x, 1))) == (1, int)
    assert (finite_number("x", x), type(finite_number("x", x))) == (1.0, float)


@pytest.mark.parametrize("x", NOT_NUMBERS, ids=repr)
def test_what_is_no_finite_number_is_refused(x):
    with pytest.raises(InvalidReportError, match=r"^n = .*: expected a whole number >= 0$"):
        whole_number("n", x, 0)
    with pytest.raises(InvalidParameterError, match=r"^x = .*: expected a finite number >= 0$"):
        finite_parameter("x", x)


@pytest.mark.parametrize(("x", "legal"), [(0, False), (1, True), (3, True), (4, False), (2.5, False)])
def test_whole_numbers_keep_both_ends(x, legal):
    if legal:
        assert whole_parameter("n", x, 1, 3) == x
        return
    with pytest.raises(InvalidParameterError, match=r"expected a whole number in \[1, 3\]$"):
        whole_parameter("n", x, 1, 3)


@pytest.mark.parametrize(
    ("interval", "inside", "outside", "said"),
    [
        ("[0, 1]", [0, 1], [-1e-300, 1.0000001], r"in \[0, 1\]"),
        ("(0, 1)", [1e-300, 0.5], [0, 1], r"in \(0, 1\)"),
        ("(0, inf)", [1e-300, 1e300], [0, -1], "> 0"),
        ("[1, inf)", [1, 1e300], [0.999], ">= 1"),
        ("(-inf, 1)", [-1e300, 0], [1, 2], r"in \(-inf, 1\)"),
    ],
)
def test_intervals_mean_what_they_say(interval, inside, outside, said):
    assert [finite_number("x", x, interval) for x in inside] == inside
    for x in outside:
        with pytest.raises(InvalidReportError, match=f"expected a finite number {said}, please$"):
            finite_number("x", x, interval, hint=", please")


def posted():
    limits = {"max_concurrency": 2, "max_duration": 4, "max_value": 50.0, "max_delay": 9}
    return PostedPriceMechanism(4, 16, PostedPricing([0.5]), ExactOracle(), **limits)


@pytest.mark.parametrize(
    ("report", "error", "message"),
    [
        ({"birth": 1}, InvalidReportError, r"^job 'A': sow = \{'birth': 1\}: expected a StatementOfWork$"),
        (StatementOfWork(2, 1, DeadlineValue(9.0, 9), [(2, 2, 1.0)]), EventError, "birth = 2: expected the current"),
        (StatementOfWork(1, 3, DeadlineValue(9.0, 9), [(2, 2, 1.0)]), InvalidReportError, "concurrency = 3"),
        (StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(2, 5, 1.0)]), InvalidReportError, "duration = 5"),
        (StatementOfWork(1, 1, DeadlineValue(51.0, 9), [(2, 2, 1.0)]), InvalidReportError, r"value = 51\.0"),
    ],
)
def test_the_posted_price_mechanism_refuses_what_it_cannot_take(report, error, message):
    market = posted()
    with pytest.raises(error, match=message):
        market.submit("A", report)
    good = StatementOfWork(1, 2, DeadlineValue(50.0, 9), [(2, 4, 1.0)])
    assert market.submit("A", good).starts == ((2, 4, 2),)  # nothing was changed, the name is free


@pytest.mark.parametrize("wrong", [{"kappa": True}, {"kappa": 0.0}, {"floor": "low"}, {"ceiling": float("inf")}])
def test_prices_out_of_range_are_named(wrong):
    with pytest.raises(InvalidParameterError, match=f"pricing.{next(iter(wrong))} = "):
        ExponentialPricing(**wrong)


def test_columns_of_a_statement_hold_whole_rounds():
    """A fractional round is refused, not cut; NaN gets the same clear line."""
    curve = DeadlineValue(4.0, 9)
    with pytest.raises(InvalidReportError, match=r"durations\[1\] = 2.5: expected a whole number"):
        StatementOfWork.from_arrays(1, 1, curve, [1, 2], [1, 2.5], [0.5, 0.5])
    with pytest.raises(InvalidReportError, match=r"arrivals\[0\] = nan: expected a whole number"):
        StatementOfWork.from_arrays(1, 1, curve, [float("nan"), 2], [1, 2], [0.5, 0.5])
    with pytest.raises(InvalidReportError, match="expected whole numbers"):
        StatementOfWork.from_arrays(1, 1, curve, [True, True], [1, 2], [0.5, 0.5])
    whole = StatementOfWork.from_arrays(1, 1, curve, [1.0, 2.0], np.array([1, 2]), [0.5, 0.5])
    assert whole == StatementOfWork(1, 1, curve, [(1, 1, 0.5), (2, 2, 0.5)])


def test_a_menu_knows_whole_rounds_only():
    menu = Menu(1, 3, np.array([[1.0, 2.0]]), np.array([[0.0, 0.5]]))
    assert menu.price([3, 4], 2).tolist() == [2.0, np.inf]
    for start, duration in ((3.7, 1), (3, 1.5), (float("nan"), 1), (3, float("inf"))):
        with pytest.raises(InvalidParameterError, match="expected whole rounds"):
            menu.price(start, duration)
        with pytest.raises(InvalidParameterError, match="expected whole rounds"):
            menu.failure(start, duration)
