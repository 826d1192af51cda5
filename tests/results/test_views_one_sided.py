"""Bounds are rounded outward: what is shown is never more than was found."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.results.views import amount, at_least, at_least_percent, at_most, exact_amount, percent, shown_whole

FIGURES = st.floats(-1e12, 1e12, allow_nan=False)


def test_worked_examples():
    assert (at_least(0.99996), at_most(0.012349), at_least(0.012349)) == ("0.999", "0.0124", "0.0123")
    assert (at_least_percent(0.99996), at_least_percent(0.9999999), at_least_percent(1.0)) == (
        "99.996 %",
        "99.9999 %",
        "100.0 %",
    )
    assert at_least_percent((10 / 6) / (50 / 6)) == at_least_percent(0.2) == "20.0 %"  # a fifth, less its last digit
    assert (at_least_percent(0.1239), at_least(1234.9), at_most(1234.1), at_least(8.0)) == (
        "12.3 %",
        "1,234",
        "1,235",
        "8",
    )
    shown = {
        337_632.4: "337,632",
        999.6: "1,000",
        -999.6: "-1,000",
        999.4: "999",
        11.66: "11.7",
        0.001: "0.001",
        2.0: "2",
    }
    assert {x: amount(x) for x in shown} == shown and percent(0.1234) == "12.3 %"
    assert (at_most(float("nan")), at_most(float("inf")), at_least(0.0), exact_amount(2.0)) == ("-", "-", "0", "2")


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (0.3333333333333333, "0.3333333333"),
        (0.66666666666666663, "0.6666666666"),  # to the nearest it would be more than there is
        (7.99999999999, "7.999999999"),
        (1234.5, "1,234.5"),
        (0.1 + 0.2, "0.3"),  # the rounding of a sum
        (10 - 8.1, "1.9"),
        (12345678901.5, "12,345,678,901"),
    ],
)
def test_exact_figures_that_need_more_digits_are_rounded_down(x, shown):
    assert exact_amount(x) == shown
    assert shown_whole(x) == (x in (1234.5, 0.1 + 0.2, 10 - 8.1))


@given(FIGURES)
def test_an_exact_figure_is_never_shown_as_more(x):
    shown = exact_amount(x).replace(",", "")
    # Ten digits of a subnormal number lie further off than 1e-14 of it, and read back as the number itself.
    assert float(shown) == x or Decimal(shown) <= Decimal(x) + Decimal(abs(x)) * Decimal("1e-14")


@given(FIGURES)
def test_never_inward(x):
    low, high = (Decimal(show(x).replace(",", "")) for show in (at_least, at_most))
    assert low <= Decimal(x) <= high


@given(st.floats(0, 1))
def test_a_share_is_never_rounded_up(share):
    shown = Decimal(at_least_percent(share).removesuffix(" %"))
    assert shown <= 100 * Decimal(share) * (1 + Decimal("1e-14"))  # but for what sums have rounded
    assert (shown == 100) == (share == 1.0) or share > 1 - 1e-14
