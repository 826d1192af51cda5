"""Cluster runs: what a run adds up, who meets what, and the best fixed allocation beside it."""

import json

import numpy as np
import pandas as pd
import pytest

from marketsched.comparisons.comparing import compare
from marketsched.config.scenario import Scenario
from marketsched.cores.comparing import growth_table, policies_table
from marketsched.cores.core import OGASCHED
from marketsched.cores.playing import with_ratios
from marketsched.play.running import run as run_scenario
from marketsched.results.paired_statistics import ratio

FAMILY = {"kind": "published", "ports": 4, "instances": 6, "contention": 1, "overhead": [0.1, 0.2]}
SMALL = {"name": "small", "cluster": {"slots": 60, "instance": FAMILY, "policies": ["ogasched", "drf", "fairness"]}}


@pytest.fixture(scope="module")
def small():
    return run_scenario(SMALL, seed=3)


# -- one run -----------------------------------------------------------------------------------------------


def test_a_run_adds_up(small):
    assert small.complete and len(small.slots) == 3 * 60
    assert small.summary["policy"].tolist() == ["ogasched", "drf", "fairness"]
    assert small.summary["observes"].tolist() == ["nothing", "arrivals", "arrivals"]
    for row in small.records():
        table = small.slots[small.slots["policy"] == row["policy"]]
        assert table["slot"].tolist() == list(range(1, 61)) and set(table["observes"]) == {row["observes"]}
        np.testing.assert_allclose(table["reward"], table["gain"] - table["overhead"], rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(table["cumulative_reward"], np.cumsum(table["reward"]))
        np.testing.assert_allclose(table["average_reward"] * table["slot"], table["cumulative_reward"])
        assert row["reward"] == pytest.approx(table["reward"].sum()) == pytest.approx(60 * row["reward_per_slot"])
        assert row["regret"] == pytest.approx(row["reference"] - row["reward"])
        assert row["reference_ratio"] == pytest.approx(row["reference"] / row["reward"])
        assert row["ratio"] == pytest.approx(small.summary["reward"][0] / row["reward"])


def test_all_policies_meet_the_same_arrivals(small):
    jobs = small.slots.pivot(index="slot", columns="policy", values="jobs")
    assert (jobs.nunique(axis=1) == 1).all() and jobs["drf"].sum() == pytest.approx(60 * small.meta["jobs_per_slot"])


def test_the_yardstick_is_the_clusters(small):
    world = Scenario.from_dict(SMALL).cluster.world(3)
    best = world.cluster.best_fixed_allocation(world.arrival_counts(60), tolerance=1e-6)
    row = small.records()[0]
    assert row["reference"] <= best.upper and best.value <= row["reference"] + row["reference_gap"]
    assert row["reference_gap"] <= 1e-4 * row["reference"]
    assert row["regret_bound"] == pytest.approx(world.cluster.regret_bound(60))
    assert np.isnan(small.summary["regret_bound"][1:]).all()  # (14) is about OgaSched alone


def test_no_policy_moves_another(small):
    alone = run_scenario(SMALL, seed=3, policies=["fairness:share_over=all", "fairness", "ogasched"])
    for label in ("fairness", "ogasched"):
        one, other = (each.slots[each.slots["policy"] == label].reset_index(drop=True) for each in (small, alone))
        pd.testing.assert_frame_equal(one, other)
    again = run_scenario(SMALL, seed=3)
    pd.testing.assert_frame_equal(small.summary, again.summary)
    assert run_scenario(SMALL, seed=4).summary["reward"][1] != small.summary["reward"][1]


def test_an_ablation_is_named():
    found = run_scenario(
        SMALL, policies=["ogasched", "ogasched:peek=true", "ogasched:step=2:decay=0.99"], optimum=False
    )
    assert found.summary["observes"].tolist() == ["nothing", "arrivals", "nothing"]
    assert "peek=true" in found.summary["rules"][1] and "step=2.0 decay=0.99" in found.summary["rules"][2]
    assert found.summary["reference"].isna().all() and found.summary["regret"].isna().all()
    json.dumps(found.to_dict(), allow_nan=False)


def test_an_interrupted_run_keeps_whole_policies():
    def stop(done, total, what):
        assert total in (60, 180)
        if what == "fairness":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_scenario(SMALL, progress=stop)
    found = run_scenario(SMALL, progress=stop, keep_interrupted=True)
    assert not found.complete and found.summary["policy"].tolist() == ["ogasched", "drf"]
    with pytest.raises(KeyboardInterrupt):  # nothing is finished yet
        run_scenario(SMALL, policies=["fairness"], progress=stop, keep_interrupted=True)


# -- figures over seeds ------------------------------------------------------------------------------------


def test_ratios_need_two_positive_totals():
    assert ratio(3.0, 2.0) == 1.5
    assert all(np.isnan(ratio(*pair)) for pair in [(1.0, 0.0), (1.0, -2.0), (-1.0, -2.0), (-1.0, 2.0), (np.nan, 1.0)])
    rows = [
        {"policy": p, "reward": r, "reference": 20.0, "regret_bound": 80.0}
        for p, r in [("a", 12.0), ("b", 8.0), ("c", -4.0)]
    ]
    found = pd.DataFrame(with_ratios(rows, "a"))
    assert found["ratio"].tolist()[:2] == [1.0, 1.5] and np.isnan(found["ratio"][2])
    assert found["reference_ratio"].tolist()[:2] == [20 / 12, 2.5]
    assert found["margin"].tolist() == [0.0, 0.2, 0.8] and found["regret_share"].tolist() == [0.4, 0.6, 1.2]
    assert found["regret_over_bound"].tolist() == [0.1, 0.15, 0.3]


def test_the_summary_of_hand_made_runs():
    rows = []
    for seed, (a, b) in enumerate([(10.0, 5.0), (30.0, 20.0), (8.0, -2.0)]):
        about = {"rules": "", "slots": 10, "overhead": 1.0, "reference": 40.0, "reference_gap_share": 0.0}
        about |= {"seed": seed, "regret_bound": np.nan, "seconds": 0.1}
        both = [
            {"policy": p, "observes": "nothing", "reward": r, "gain": r + 1, **about} for p, r in (("a", a), ("b", b))
        ]
        rows += with_ratios(both, "a")
    table = policies_table(pd.DataFrame(rows), ["a", "b"], pd.DataFrame(), OGASCHED.columns).set_index("policy")
    assert table.loc["b", ["ratio", "ratio_least", "ratio_most", "ratio_runs", "runs"]].tolist() == [
        1.75,
        1.5,
        2.0,
        2,
        3,
    ]
    assert table.loc["a", ["reward_per_slot", "gain_per_slot", "overhead_per_slot"]].tolist() == pytest.approx(
        [1.6, 1.7, 0.1]
    )
    assert table.loc["b", "margin"] == pytest.approx((5 + 10 + 10) / 3 / 40)
    assert table.loc["b", "ratio_of_means"] == pytest.approx(48 / 23) and np.isnan(table.loc["b", "ratio_of_means_low"])
    assert table.loc["a", ["ratio_of_means", "ratio_of_means_low", "ratio_of_means_high"]].tolist() == [1.0, 1.0, 1.0]
    assert table["growth"].isna().all()


def test_growth_of_hand_made_regrets():
    rows = [
        {"seed": seed, "policy": policy, "slots": slots, "regret": scale * slots**power}
        for policy, powers in (("root", (0.5, 0.5)), ("mixed", (0.4, 0.8)), ("winner", (0.5, 0.5)))
        for seed, (power, scale) in enumerate(zip(powers, (1.0, -7.0 if policy == "winner" else 7.0), strict=True))
        for slots in (100, 200, 400)
    ]
    table = growth_table(pd.DataFrame(rows), ["root", "mixed", "winner"], 0.95).set_index("policy")
    assert table.loc["root"].tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert table.loc["mixed", "growth"] == pytest.approx(0.6)
    assert table.loc["mixed", "growth_high"] == pytest.approx(0.6 + 12.706204736 * 0.2)  # t with 1 degree of freedom
    assert table.loc["winner"].isna().all()
    one = pd.DataFrame(rows)[lambda x: x["seed"] == 0]
    assert growth_table(one, ["root"], 0.95)["growth"][0] == pytest.approx(0.5)
    assert growth_table(pd.DataFrame(), ["root"], 0.95).empty


# -- comparisons -------------------------------------------------------------------------------------------


@pytest.mark.compiled
def test_a_comparison_is_its_runs():
    found = compare(SMALL, runs=3, seed=2)
    assert found.runs["seed"].tolist() == [2, 2, 2, 3, 3, 3, 4, 4, 4] and found.complete
    one = run_scenario(SMALL, seed=3).summary
    own = found.runs[found.runs["seed"] == 3].reset_index(drop=True)[list(one)]
    pd.testing.assert_frame_equal(own, one)
    lead = found.summary.set_index("policy").loc["fairness"]
    ratios = found.runs.loc[found.runs["policy"] == "fairness", "ratio"]
    assert (lead["ratio"], lead["ratio_least"]) == (pytest.approx(ratios.mean()), ratios.min())
    assert found.summary["observes"].tolist() == ["nothing", "arrivals", "arrivals"]
    assert set(found.curves.groupby(["seed", "policy"]).size()) == {60}
    again = compare(SMALL, runs=3, seed=2)
    for name in ("curves", "regrets"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(again, name))


def test_each_horizon_is_a_run_of_its_own():
    """OgaSched's step depends on the horizon, a baseline's decisions do not."""
    found = compare(SMALL, ["ogasched", "fairness"], runs=1).regrets
    assert found["slots"].tolist() == [30, 60, 30, 60]
    short = run_scenario({**SMALL, "cluster": {**SMALL["cluster"], "slots": 30}}, policies=["ogasched", "fairness"])
    for label in ("ogasched", "fairness"):
        row = found[(found["policy"] == label) & (found["slots"] == 30)].iloc[0]
        expected = short.summary.set_index("policy").loc[label]
        assert (row["reward"], row["regret"]) == (expected["reward"], expected["regret"])


@pytest.mark.compiled
def test_an_interrupted_comparison_keeps_whole_seeds():
    steps = []

    def stop(done, total, what):
        steps.append((done, total))
        if done == 8:
            raise KeyboardInterrupt

    found = compare(SMALL, runs=4, progress=stop, keep_interrupted=True)
    assert not found.complete and found.runs["seed"].tolist() == [0, 0, 0]
    assert steps == [(i, 20) for i in range(9)]  # three policies and two horizons of y* for each seed
    assert found.meta["runs"] == 1 and found.meta["runs_asked_for"] == 4
    with pytest.raises(KeyboardInterrupt):
        compare(SMALL, runs=4, progress=stop)
