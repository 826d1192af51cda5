"""Paired seeds: what is played where and in what order, what an interruption leaves, and what can be repeated."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import two_kinds
from compared_markets import MAYBE, PERHAPS, three_users
from marketsched.comparisons.comparing import CLUSTER_DEFAULT, DEFAULT, LOG_DEFAULT, compare
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.views import parts_of_view
from refusals import refused

NAMES = ["posted-price", "first-come"]


def stop_at(step):
    """Return a function that interrupts before a step that is named so."""

    def progress(done, total, what):
        if what == step:
            raise KeyboardInterrupt

    return progress


def test_a_comparison_is_repeated_by_its_seeds_and_any_of_them_alone():
    found, again = (compare(MAYBE, NAMES, runs=3, seed=4, optimum_seconds=0) for _ in range(2))
    for name in ("runs", "summary"):
        ours, theirs = (each.to_frame(name).drop(columns="seconds") for each in (found, again))
        pd.testing.assert_frame_equal(ours, theirs)
    one = compare(MAYBE, NAMES[:1], runs=1, seed=5, optimum_seconds=0)
    row = found.runs[(found.runs["seed"] == 5) & (found.runs["mechanism"] == NAMES[0])]
    assert one.runs["welfare"].tolist() == row["welfare"].tolist()
    assert (found.meta["seed"], found.meta["runs"], found.meta["runs_asked_for"], found.complete) == (4, 3, 3, True)


def test_an_interrupted_comparison_keeps_whole_seeds():
    stop = {"runs": 4, "optimum_seconds": 0, "progress": stop_at("seed 1, first-come")}
    with pytest.raises(KeyboardInterrupt):
        compare(MAYBE, NAMES, **stop)
    found = compare(MAYBE, NAMES, **stop, keep_interrupted=True)
    assert not found.complete and found.runs["seed"].tolist() == [0, 0]
    assert found.how_far == "after 1 of 4 seeds"
    with pytest.raises(KeyboardInterrupt):  # nothing is finished yet: nothing to keep
        compare(MAYBE, NAMES, 4, progress=stop_at("seed 0, first-come"), keep_interrupted=True, optimum_seconds=0)


def test_an_interrupted_comparison_keeps_seeds_of_which_all_loads_are_played():
    interrupted = {"runs": 3, "loads": [1, 2], "keep_interrupted": True}
    found = compare(PERHAPS, ["first-come"], **interrupted, progress=stop_at("load 2, seed 1, first-come"))
    assert not found.complete and found.runs[["seed", "load"]].values.tolist() == [[0, 1], [0, 2]]


def test_what_is_kept_is_of_one_question(tmp_path):
    """Another folder of traces, or other seeds, are another question; the same one goes on where it was."""

    def stop(done, total, what):
        if done >= total // 2:
            raise KeyboardInterrupt

    kept = []
    for data, seed in (("a", 0), ("a", 0), ("b", 0), (None, 0), ("a", 1)):
        with pytest.raises(KeyboardInterrupt):
            compare(MAYBE, ["first-come"], 2, seed, data=data, optimum_seconds=0, keep=tmp_path, progress=stop)
        kept.append(len(list(tmp_path.iterdir())))
    assert kept == [1, 1, 2, 3, 4]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_progress_counts_every_step_once_and_names_it(elsewhere):
    """Before each step here; where others play, after each load of a seed."""
    heard, more = [], {"executor": ThreadPoolExecutor(1)} if elsewhere else {}
    found = compare(PERHAPS, ["first-come"], 2, loads=[1, 2], progress=lambda *step: heard.append(step), **more)
    parts = [("seed 0", "load 1"), ("seed 0", "load 2"), ("seed 1", "load 1"), ("seed 1", "load 2")]
    steps = ["first-come", "first-come at flat prices", "best schedule in hindsight"]
    assert found.complete and {total for _, total, _ in heard} == {4 * len(steps)}
    if elsewhere:
        told = [(done, what.split(" is finished, ")[0]) for done, _, what in heard]
        assert told == [(3 * k, ", ".join(part)) for k, part in enumerate(parts, 1)]
    else:
        names = [f"{load}, {seed}, {step}" for seed, load in parts for step in steps]
        assert [(done, what) for done, _, what in heard] == list(enumerate(names))


def test_processes_may_have_their_earlier_name():
    with pytest.warns(DeprecationWarning, match=r"^compare\(\): jobs= is now workers=$"):
        found = compare(MAYBE, ["first-come"], runs=1, jobs=1, optimum_seconds=0)
    assert found.complete
    with pytest.raises(TypeError, match="jobs"):
        compare(MAYBE, ["first-come"], runs=1, jobs=1, workers=1)


def test_without_names_a_market_a_log_and_a_cluster_have_mechanisms_of_their_own(tmp_path, monkeypatch):
    """The contest is looked at, not played. Of a log, and with loads, no exact optimum is asked for."""
    asked = []
    monkeypatch.setattr(
        "marketsched.comparisons.comparing._plays", lambda contest, *_: asked.append(contest) or iter(())
    )
    (tmp_path / "log.csv").write_text(three_users())
    for scenario, more in (
        (MAYBE, {}),
        (MAYBE, {"loads": [2]}),
        (str(tmp_path / "log.csv"), {}),
        (two_kinds.SCENARIO, {}),
    ):
        with pytest.raises(KeyError):  # nothing was played
            compare(scenario, **more)
    assert [tuple(contest.labels) for contest in asked] == [DEFAULT, DEFAULT, LOG_DEFAULT, CLUSTER_DEFAULT]
    assert [contest._seconds for contest in (asked[0], asked[1]._contest, *asked[2:])] == [10.0, 0.0, 0.0, 10.0]
    refused(lambda: compare("cluster-pai", loads=[1]), "loads: expected a market", error=InvalidParameterError)


@pytest.mark.slow
def test_a_built_in_scenario():
    found = compare("synthetic-pipelines", ["exponential", "first-come"], runs=3, optimum_seconds=0)
    assert (found.summary["ratio_high"] < 1.1).all()
    assert (found.summary["interval_low"] >= 1).all() and np.isfinite(found.summary["welfare"]).all()


KNAPSACK = ((98_624, 3), (91_857, 2), (10, 1))  # the first alone, or the others together


def test_runs_in_which_nothing_is_drawn_are_shown_once_and_an_untruthful_rule_is_said_to_be_one():
    law = [{"arrival": 1, "duration": 1, "probability": 1}]
    jobs = [
        {
            "name": f"job {nodes}", "birth": 1, "concurrency": nodes, "requirements": law,
            "value": {"kind": "deadline", "value": value, "deadline": 2},
        }
        for value, nodes in KNAPSACK
    ]  # fmt: skip
    sizes = {"capacity": 3, "horizon": 6, "max_concurrency": 3, "max_duration": 2, "max_value": 1e5, "max_delay": 6}
    market = {"name": "knapsack", "workload": {"kind": "jobs", **sizes, "jobs": jobs}}
    result = compare(market, ["pay-as-bid", "first-come"], runs=10)
    head, _, notes = parts_of_view(result.view())
    assert len(result.runs) == 2 and result.summary["welfare"].tolist() == [91_867.0, 98_624.0]
    assert (
        "delivers 6.9 points of the best possible value less than first come, first served." in head and "±" not in head
    )
    assert (
        "a lie pays under pay-as-bid (a part of its value). Without a known lie first-come leads, 100.0 % of best"
        in head
    )
    assert any("nothing is drawn here: all 10 runs are equal, shown once" in each for each in notes)
    drawn = compare("stochastic-mix", ["first-come", "vcg"], runs=2)
    assert "alike" not in drawn.meta and drawn.meta["runs"] == 2
