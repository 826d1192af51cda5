"""The papers' tables and figures: the rule of the verdicts, and every experiment at a tiny size."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.papers import mechanism
from marketsched.papers.claims import VERDICTS, Claim, exact_row, mean_row, ratio_row, verdict
from marketsched.papers.experiments import EXPERIMENTS
from marketsched.papers.markets import best_reservations, sampling_error, toy_values
from marketsched.papers.reproducing import reproduce, reproduce_all
from marketsched.papers.runs import Bench, Found, beside, uncounted
from marketsched.show.cli import app
from refusals import refused

CLUSTER = [name for name in EXPERIMENTS if not name.startswith("mechanism")]
COLUMNS = (
    "experiment quantity source claim paper value low high least most seeds neutral rounding verdict reason why setting"
).split()


# --- the rule, with numbers made by hand ------------------------------------------------------------


@pytest.mark.parametrize(
    ("paper", "low", "high", "wanted"),
    [
        (1.10, 1.05, 1.15, "reproduced"),
        (1.10, 1.10, 1.15, "reproduced"),  # the end belongs to the interval
        (1.10, 1.05, 1.09, "same direction"),
        (1.10, 1.049, 1.09, "direction only"),  # less than half the effect is not excluded
        (1.10, 1.12, 1.21, "direction only"),
        (1.10, 1.20, 4.00, "direction only"),  # far too much is not the paper's number either
        (1.10, 0.98, 1.08, "not reproduced"),  # no effect is not excluded
        (1.10, 1.00, 1.08, "not reproduced"),
        (1.10, 0.80, 0.90, "not reproduced"),  # the opposite
        (0.90, 0.81, 0.85, "same direction"),
        (0.90, 0.70, 0.80, "direction only"),
        (0.90, 1.01, 1.20, "not reproduced"),
        (1.10, math.nan, math.nan, "not decided"),  # a single seed has no interval
        (1.11, 0.2, 5.0, "not decided"),  # an interval that says nothing
        (0.90, 0.85, 1.01, "not decided"),
        (1.00, 0.98, 1.02, "reproduced"),  # the paper itself found no effect
    ],
)
def test_a_number(paper, low, high, wanted):
    assert verdict("number", paper, low, high) == wanted


def test_a_level_has_no_direction():
    """A share of machines cannot be on the right side of no effect: it is met or it is not."""
    assert verdict("number", 0.2, 0.9, 0.95, neutral=math.nan) == "not reproduced"
    assert verdict("number", 0.2, 0.1, 0.3, neutral=math.nan) == "reproduced"
    assert verdict("number", 0.2, -1.0, 3.0, neutral=math.nan) == "not decided"
    row = mean_row(Claim("q", "s", "number", 0.2, math.nan), [0.9, 0.91, 0.92])
    assert row.reason == "higher here; the paper's number is outside the range of single seeds"


@pytest.mark.parametrize(
    ("kind", "low", "high", "wanted"),
    [
        ("above", 1.01, 1.2, "reproduced"),
        ("above", 1.0, 1.2, "not decided"),
        ("above", 0.9, 1.0, "not reproduced"),
        ("below", 0.8, 0.99, "reproduced"),
        ("below", 0.8, 1.01, "not decided"),
        ("below", 1.01, 1.02, "not reproduced"),
        ("at most", 0.0, 1.0, "reproduced"),
        ("at most", 0.0, 1.01, "not decided"),
        ("at most", 1.01, 1.02, "not reproduced"),
        ("at least", 1.0, 1.0, "reproduced"),
        ("at least", 0.99, 2.0, "not decided"),
        ("at least", 0.98, 0.99, "not reproduced"),
        ("above", math.nan, math.nan, "not decided"),
    ],
)
def test_a_side(kind, low, high, wanted):
    assert verdict(kind, 1.0, low, high) == wanted


def test_a_claim_of_an_effect_is_not_reproduced_by_seeds_without_one():
    """Negative control: twenty seeds of noise around no effect, and a paper that found ten per cent."""
    claim = Claim("noise", "nowhere", "number", 1.10, 1.0)
    rng = np.random.default_rng(0)
    own, other = rng.normal(1.0, 0.05, size=(2, 20))
    row = ratio_row(claim, own, other)
    assert row.measured.low < 1 < row.measured.high
    assert row.verdict == "not reproduced"
    assert "no effect" in row.reason
    assert ratio_row(claim, 1.1 * other + rng.normal(0.0, 0.01, 20), other).verdict == "reproduced"
    assert "opposite" in ratio_row(claim, 0.7 * own, other).reason


def test_totals_that_are_not_positive_have_no_ratio():
    row = ratio_row(Claim("q", "s", "above", 1.0, 1.0), [1.0, 2.0, 3.0], [1.0, -1.0, 2.0])
    assert math.isnan(row.measured.low)
    assert row.verdict == "not decided"


def test_a_reason_says_what_the_interval_shows():
    larger = mean_row(Claim("q", "s", "number", 0.1, 0.0, why="known"), [0.30, 0.31, 0.29])
    assert larger.verdict == "direction only"
    assert larger.reason == "the effect is larger here; the paper's number is outside the range of single seeds; known"
    assert exact_row(Claim("q", "s", "at most", 0.0, 0.0, why="known"), 0.0).reason == ""
    with pytest.raises(InvalidParameterError, match="finite"):
        mean_row(Claim("q", "s", "number", 0.1, 0.0), [math.nan, 1.0])


def test_a_claim_that_is_counted_elsewhere_says_so_beside_any_other_setting():
    row = mean_row(Claim("q", "s", "number", 0.1, 0.0, setting="the same row as in Table 2"), [0.10, 0.11, 0.09])
    assert uncounted(row, "step (26)").claim.setting == "step (26); the same row as in Table 2"
    own, other = (
        Found([mean_row(Claim("q", "s", "above", 0.0, 0.0), [1.0, 2.0])], [], "", pd.DataFrame()) for _ in "12"
    )
    assert [each.claim.setting for each in beside(own, {"step (26)": other}).rows] == ["", "step (26)"]


# --- the markets of the mechanism paper -------------------------------------------------------------


def test_reservations_of_two_rounds_by_hand():
    """Ready in round 1 with probability 1/2, in round 2 otherwise; worth 4 and 2: one block gives 2, both 3."""
    assert toy_values(2)[0].tolist() == [0.5, 0.5]
    assert best_reservations(np.array([0.5, 0.5]), np.array([4.0, 2.0])) == [2.0, 3.0]


def test_too_few_samples_are_seen_to_err():
    """Negative control: a tenth of the samples of (28) misses the error that it is for."""
    assert np.mean([sampling_error(seed, 10) > 0.1 for seed in range(20)]) > 0.5


# --- experiments ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["ogasched-fig2", "ogasched-fig4", "esdp-fig2", "opm-table1", "opm-fig1"], id="some"),
        pytest.param(CLUSTER, id="all", marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def test_cluster_experiments_at_a_tiny_size(names):
    bench = Bench(full=False, runs=2, slots=16)
    for name in names:
        found = reproduce(name, runs=2, bench=bench)
        assert list(found.table) == COLUMNS
        assert set(found.table["verdict"]) <= set(VERDICTS)
        assert sum(found.outcome.values()) == (found.table["setting"] == "").sum() > 0
        assert not found.table.duplicated(["quantity", "setting"]).any()
        assert ((found.table["reason"] == "") == (found.table["verdict"] == "reproduced")).all()
        assert not found.runs.empty
        json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "name",
    ["mechanism-toy", *(pytest.param(f"mechanism-{x}", marks=pytest.mark.slow) for x in ("sampling", "lemma43"))],
)
def test_experiments_of_the_mechanism_paper(name):
    found = reproduce(name, runs=2)
    assert set(found.table["verdict"]) <= set(VERDICTS)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["mechanism-truthfulness", "mechanism-ratio"])
def test_experiments_that_play_whole_markets(name, monkeypatch):
    monkeypatch.setattr(mechanism, "PLAYS", 200)
    monkeypatch.setattr(mechanism, "OWNERS", 3)
    found = reproduce(name, runs=2)
    assert found.table["verdict"].iloc[0] == "reproduced"


# --- time -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.compiled
def test_times_are_marked_as_those_of_a_machine():
    """Everything but time is the same for the same seeds."""
    one, two = (reproduce("esdp-fig5", runs=2, slots=16) for _ in range(2))
    assert one.meta["depends_on_machine"] and not reproduce("esdp-fig8", runs=2, slots=16).meta["depends_on_machine"]
    assert {name for name, each in EXPERIMENTS.items() if each.timed} == {"esdp-fig5"}
    pd.testing.assert_frame_equal(one.runs.drop(columns="microseconds"), two.runs.drop(columns="microseconds"))
    assert (one.runs["microseconds"] > 0).all()
    assert len(one.table) == 8 and set(one.table["verdict"]) <= set(VERDICTS)


def test_bad_input_is_named():
    refused(lambda: reproduce("figure 8"), "esdp-fig8", error=UnknownNameError)
    refused(lambda: reproduce("ogasched-fig22"), "did you mean ogasched-fig2", error=UnknownNameError)
    refused(lambda: reproduce("esdp-fig8", runs=1), "runs", error=InvalidParameterError)
    refused(lambda: reproduce_all(["esdp-fig8", "nothing"], runs=2), "nothing", error=UnknownNameError)


# --- the command ------------------------------------------------------------------------------------


def test_the_command_lists_what_there_is():
    found = CliRunner().invoke(app, ["reproduce", "--list"])
    assert found.exit_code == 0
    assert [line.split()[0] for line in found.output.splitlines()] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["esdp-fig8", "--all"],
        ["esdp-fig8", "--runs", "1"],
        ["esdp-fig8", "--slots", "2"],
        ["--all", "--seed", "-1"],
        ["--all", "--workers", "0"],
    ],
)
def test_the_command_refuses_in_one_line(arguments):
    found = CliRunner().invoke(app, ["reproduce", *arguments])
    assert found.exit_code == 2
    assert len(found.output.splitlines()) == 1
