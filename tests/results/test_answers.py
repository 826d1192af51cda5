"""The first line of a comparison: its answer, at one load or several, and what is said where nothing can be told."""

import pytest

from marketsched.results.answers import answer_of


def row(mechanism, difference, half, load=None):
    found = {"mechanism": mechanism, "over_first_come": difference}
    found |= {"over_first_come_low": difference - half, "over_first_come_high": difference + half}
    return found if load is None else {**found, "load": load}


@pytest.mark.parametrize(
    ("difference", "half", "said"),
    [
        (0.3718, 0.066, "delivers 37.2 ± 6.6 points of the best possible value more than first come, first served."),
        (-0.029, 0.024, "delivers 2.9 ± 2.4 points of the best possible value less than first come, first served."),
        (0.01, 0.02, "and first come, first served cannot be told apart (+1.0 ± 2.0 points of the best possible"),
        (0.0, 0.0, "delivers as much as first come, first served."),
        (0.05, float("nan"), "and first come, first served cannot be told apart (+5.0 points"),
    ],
)
def test_a_claim_needs_an_interval_without_0(difference, half, said):
    rows = [row("first-come", 0.0, 0.0), row("bid-price", difference, half), row("vcg", 0.5, 0.1)]
    assert f"Here bid-price {said}" in answer_of(rows, {"runs": 3})


@pytest.mark.parametrize(("runs", "said"), [(1, "one run"), (2, "2 runs")])
def test_fewer_than_three_seeds_make_no_claim(runs, said):
    answer = answer_of([row("reserve-second", 0.159, 0.01)], {"runs": runs})
    assert answer.startswith(f"Here reserve-second and first come, first served cannot be ranked by {said}, too few")
    assert "delivers" not in answer_of([row("bid-price", 0.159, 0.01, 0.8)], {"runs": runs})


def test_runs_in_which_nothing_could_be_earned_do_not_count():
    rows = [{**row("vcg", 0.8, 0.0), "bounded_runs": 2}]
    assert answer_of(rows, {"runs": 6}).startswith(
        "Here vcg and first come, first served cannot be ranked by 2 runs of 6 in which anything could be earned, too"
    )


def test_several_loads_and_a_log():
    rows = [row("bid-price", -0.0002, 0.0001, 0.8), row("bid-price", 0.05, 0.01, 1.2), row("bid-price", 0.0, 0.02, 2)]
    assert answer_of(rows, {"workload": {"rule": "x"}, "runs": 3}) == (
        "On this log bid-price delivers at load 0.8: 0.020 ± 0.010 points of the best possible value less than first "
        "come, first served; at load 1.2: 5.0 ± 1.0 points more; at load 2: not to be told apart (+0.0 ± 2.0 points)."
    )


def test_first_come_alone_has_no_answer():
    assert answer_of([row("first-come", 0.0, 0.0)], {}) == ""
