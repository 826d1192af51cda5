"""Figures of cluster runs, comparisons and sweeps: what is drawn is what the tables say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from marketsched.comparisons.comparing import compare
from marketsched.cores.results.over_figure import gain_overhead_figure, sweep_figure, utility_figure
from marketsched.play.running import run as run_scenario
from marketsched.results.panels import look, save_figure

pytestmark = pytest.mark.compiled  # about files and pictures; many runs, too long for plain kernels

FAMILY = {"kind": "published", "ports": 4, "instances": 6, "contention": 1, "overhead": [0.1, 0.2]}
POLICIES = ["ogasched", "drf", "fairness"]
SMALL = {"name": "small", "cluster": {"slots": 60, "instance": FAMILY, "policies": POLICIES}}


@pytest.fixture(scope="module")
def compared():
    return compare(SMALL, runs=3)


def lines(axes, place):
    """Return the lines with dashes or points in the colour of the policy at a place."""
    return [line for line in axes.lines if to_hex(line.get_color()) == look(place)["color"]]


def hand_made(rewards):
    """Return a table of a sweep: two seeds, value -> policy -> reward; gain 10 above, y* 100."""
    rows = [
        {"value": value, "seed": seed, "policy": policy, "slots": 10, "reward": float(x), "gain": x + 10.0,
         "overhead": 10.0, "reference": 100.0}
        for value, by_policy in rewards.items() for policy, pair in by_policy.items() for seed, x in enumerate(pair)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_a_run_is_drawn_slot_by_slot(tmp_path):
    run = run_scenario(SMALL)
    figure = run.plot()
    average, cumulative, ratios = figure.axes
    for place, policy in enumerate(POLICIES):
        table = run.slots[run.slots["policy"] == policy]
        np.testing.assert_array_equal(lines(average, place)[0].get_ydata(), table["average_reward"])
        np.testing.assert_array_equal(lines(cumulative, place)[0].get_ydata(), table["cumulative_reward"])
    assert not lines(ratios, 0)  # the leading policy over itself
    curve, star = lines(ratios, 1)
    assert curve.get_ydata()[-1] == pytest.approx(run.summary["ratio"][1])
    assert star.get_ydata()[0] == run.summary["reference_ratio"][1]
    save_figure(figure, tmp_path / "one.png")
    save_figure(run.plot(), tmp_path / "two.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_comparison_shows_every_seed_and_y_star(compared):
    shares, ratios, growth = compared.plot().axes
    for place, policy in list(enumerate(POLICIES))[1:]:
        row = compared.summary.set_index("policy").loc[policy]
        drawn = [line.get_xdata() for line in lines(ratios, place)]
        seeds = compared.runs.loc[compared.runs["policy"] == policy, "ratio"].dropna()
        assert sorted(drawn[0]) == sorted(seeds)
        assert [row["ratio"]] in [list(x) for x in drawn] and [row["reference_ratio"]] in [list(x) for x in drawn]
    curve = lines(shares, 0)[0].get_ydata()
    expected = (
        compared.runs.query("policy == 'ogasched'")["reward"] / compared.runs.query("policy == 'ogasched'")["reference"]
    ).mean()
    assert curve[-1] == pytest.approx(expected)
    assert lines(growth, 0)[0].get_xdata().tolist() == [30, 60]


def test_the_effect_of_a_parameter():
    table = hand_made({1: {"a": (20, 40), "b": (10, 20)}, 2: {"a": (30, 30), "b": (-5, 1)}})
    left, right = sweep_figure(table, key="contention", title="x").axes
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["1", "2"]
    assert lines(left, 0)[0].get_ydata().tolist() == [30.0, 30.0]
    assert lines(left, 1)[0].get_ydata().tolist() == [15.0, -2.0]
    curve, star = lines(right, 1)
    assert curve.get_ydata()[0] == 2.0 and np.isnan(curve.get_ydata()[1])  # no ratio to a mean below zero
    assert star.get_ydata()[0] == pytest.approx(100 / 15)


def test_gain_and_overhead():
    table = hand_made({1: {"a": (20, 40), "b": (10, 20)}, 2: {"a": (30, 30), "b": (5, 1)}})
    gain, overhead = gain_overhead_figure(table, key="contention", title="x").axes
    heights = [[bar.get_height() for bar in group] for group in gain.containers if hasattr(group, "patches")]
    assert heights == [[4.0, 4.0], [2.5, 1.3]]
    assert {bar.get_height() for group in overhead.containers if hasattr(group, "patches") for bar in group} == {1.0}


@pytest.mark.parametrize(("worst", "scale"), [(5, "log"), (-500, "linear")])
def test_utilities(worst, scale):
    table = hand_made({"linear": {"a": (80, 90), "b": (120, 130)}, "log": {"a": (30, 30), "b": (worst, worst)}})
    left, right = utility_figure(table, title="x").axes
    assert left.get_yscale() == scale
    heights = [[bar.get_height() for bar in group] for group in right.containers if hasattr(group, "patches")]
    assert heights == [pytest.approx([0.85, 0.3]), pytest.approx([1.25, worst / 100])]
    assert right.get_ylim()[0] >= -1.5
