"""Mechanisms at several loads: nodes or gaps between arrivals make the load, and figures of a load are of its runs."""

import pickle

import numpy as np
import pandas as pd
import pytest

import two_kinds
from compared_markets import PERHAPS, market, one
from marketsched.comparisons.comparing import compare
from marketsched.comparisons.loads import LoadContest, load_table
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.play.hindsight import load_asked
from refusals import refused

NAMES = ["exponential", "first-come"]


@pytest.fixture(scope="module")
def by_load():
    return compare(PERHAPS, NAMES, runs=3, seed=3, loads=[2, 0.5, 1])


def test_nodes_make_the_load(by_load):
    base = Scenario.from_dict(PERHAPS)
    assert by_load.runs["load"].unique().tolist() == [0.5, 1.0, 2.0] == by_load.meta["loads"]
    for seed, load, nodes in by_load.runs[["seed", "load", "capacity"]].drop_duplicates().values.tolist():
        workload = base.workload_of(int(seed))
        work = sum(job.truth.concurrency * job.duration for job in workload.jobs if job.arrival is not None)
        exact = work / 2 / load  # the last two are born in round 2
        assert nodes == max(1, round(exact))
        setup = base.with_capacity(int(nodes)).setup(np.random.default_rng(np.random.SeedSequence(int(seed))))
        assert setup.capacity == setup.mechanism.capacity == nodes
        assert load_asked(setup) == work / (nodes * 2)


def test_a_row_at_a_load_is_the_run_on_so_many_nodes(by_load):
    row = by_load.runs[(by_load.runs["load"] == 1) & (by_load.runs["seed"] == 4)].iloc[0]
    more = {"mechanism": {"capacity": int(row["capacity"])}}
    alone = compare({**PERHAPS, **more}, NAMES[:1], runs=1, seed=4, optimum_seconds=0)
    names = ["welfare", "revenue", "completed", "first_come", "best_flat", "best_flat_price", "opt_high"]
    assert alone.runs.loc[0, names].tolist() == row[names].tolist()


def test_the_workload_of_a_seed_is_built_once(monkeypatch):
    base, built = Scenario.from_dict(PERHAPS), []
    build = type(base.workload).build
    monkeypatch.setattr(type(base.workload), "build", lambda self, *rest: built.append(1) or build(self, *rest))
    compare(base, ["first-come"], runs=2, loads=[1, 2])
    assert len(built) == 2


def test_a_contest_goes_to_another_process_and_plays_the_same():
    contest = LoadContest(Scenario.from_dict(PERHAPS), ["bid-price", "first-come"], [1, 2], None, 0.0)
    here, there = (each.play(3, 1, lambda what: None) for each in (contest, pickle.loads(pickle.dumps(contest))))
    for row in [*here["runs"], *there["runs"]]:
        row.pop("seconds")
    pd.testing.assert_frame_equal(pd.DataFrame(here["runs"]), pd.DataFrame(there["runs"]))


def test_arrivals_of_a_log_come_closer_and_its_nodes_stay(tmp_path):
    rng = np.random.default_rng(5)
    rows = {"submit_s": np.cumsum(rng.exponential(400.0, 40)), "run_s": rng.uniform(60, 4000, 40)}
    log = tmp_path / "runs.csv"
    pd.DataFrame({**rows, "processors": rng.choice([1, 2, 8], 40)}).to_csv(log, index=False)
    scenario = {"name": "log", "workload": {"kind": "csv", "path": str(log), "capacity": 8, "rule": {"slack": 2.0}}}
    found, base = compare(scenario, ["first-come"], runs=1, loads=[0.6, 1.8]), Scenario.from_dict(scenario)
    assert (found.runs["capacity"] == 8).all() and (found.runs["jobs"] == 40).all()
    share = found.summary.set_index("load")["share"]
    assert share[0.6] > share[1.8]
    contest = LoadContest(base, ["first-come"], [0.6, 1.8], None, 0.0)
    births, drawn = {}, base.workload_of(0)
    for load in (0.6, 1.8):
        at_load, nodes = contest._at_load(drawn, load, 0)
        assert nodes == 8 and at_load.load_at(8) == pytest.approx(load, rel=0.1)  # rounds are whole
        births[load] = [job.truth.birth for job in at_load.jobs][-1]
    assert births[0.6] == pytest.approx(3 * births[1.8], rel=0.01)


# -- the summary -------------------------------------------------------------------------------------------


def test_figures_of_a_load_are_those_of_its_runs(by_load):
    assert by_load.summary[["load", "mechanism"]].values.tolist() == [[x, m] for x in (0.5, 1.0, 2.0) for m in NAMES]
    assert set(by_load.runs["opt_kind"]) == {"dual"}
    mixed = by_load.runs.assign(opt_kind=np.where(by_load.runs["seed"] == 4, "exact", "dual"))
    for row in load_table(mixed, NAMES, 0.95, "first-come").to_dict("records"):
        at_load = mixed[mixed["load"] == row["load"]].set_index("mechanism")
        own, bound = at_load.loc[row["mechanism"]], at_load.loc[row["mechanism"], "opt_high"].sum()
        assert (row["runs"], row["refused"], row["exact_optima"], row["bounded_runs"]) == (3, 0, 1, 3)
        assert row["why"] == "" and row["nodes"] == own["capacity"].mean()
        assert row["completed_share"] == own["completed"].sum() / own["jobs"].sum()
        assert row["share"] == pytest.approx(own["welfare"].sum() / bound)
        assert row["revenue_share"] == pytest.approx(own["revenue"].sum() / bound)
        for name in ("first_come", "best_flat"):
            assert row[f"{name}_share"] == pytest.approx(own[name].sum() / bound)
            assert row[f"over_{name}"] == pytest.approx((own["welfare"] - own[name]).sum() / bound)
        rival = at_load.loc["first-come", "welfare"].sum()
        assert row["over_rival"] == pytest.approx((own["welfare"].sum() - rival) / bound)
        means = ["utilisation", "utilisation_open", "evicted", "seconds", "best_flat_price"]
        assert [row[name] for name in means] == pytest.approx(own[means].mean().tolist())


def test_a_row_without_runs_has_no_figures():
    own = {"load": [1.0], "mechanism": ["a"], "seed": [0], "welfare": [np.nan], "capacity": [2], "refused": ["few"]}
    row = load_table(pd.DataFrame(own), ["a"], 0.95).iloc[0]
    assert (row["runs"], row["refused"], row["nodes"], row["why"]) == (0, 1, 2.0, "few")


# -- loads that cannot be --------------------------------------------------------------------------------


def test_too_few_nodes_for_the_widest_job_are_named():
    wide = market([one("wide", 9, nodes=3, deadline=6), *(one(f"job {i}", 3) for i in range(6))], 4, max_concurrency=3)
    found = compare(wide, ["first-come"], runs=2, loads=[1, 4, 9])
    at_four = found.runs[found.runs["load"] == 4]
    assert at_four["capacity"].tolist() == [2, 2] and at_four["welfare"].isna().all()
    rows = found.summary.set_index("load")
    assert rows["refused"].tolist() == [0, 2, 2] and rows.loc[1.0, "share"] == pytest.approx(1.0)
    assert rows.loc[4.0, "why"] == "2 nodes, and jobs may be 3 wide (loads up to 3 leave enough)"
    assert rows.loc[9.0, "why"] == "1 node, and jobs may be 3 wide (loads up to 3 leave enough)"
    assert compare(wide, ["first-come"], runs=1, loads=[3]).runs["welfare"].notna().all()
    words = (
        "loads = 4, 9: at 4, first-come: 2 nodes, and jobs may be 3 wide (loads up to 3 leave enough): expected lower"
    )
    refused(lambda: compare(wide, ["first-come"], runs=1, loads=[9, 4]), words, error=InvalidParameterError)


def test_a_mechanism_that_does_not_take_so_few_nodes_is_named_and_the_others_go_on():
    found = compare(PERHAPS, NAMES, runs=2, loads=[6])  # Algorithm 3 wants two nodes at least
    rows = found.summary.set_index("mechanism")
    assert rows["runs"].tolist() == [0, 2] and "expected C'" in rows.loc["exponential", "why"]


@pytest.mark.parametrize("loads", [[], [1, 1], [0], [-1], ["many"], [float("nan")]])
def test_wrong_loads(loads):
    refused(lambda: compare(PERHAPS, ["first-come"], runs=1, loads=loads), "loads", error=InvalidParameterError)


def test_the_nodes_of_a_cluster_with_pools_are_given():
    base, words = two_kinds.SCENARIO, "loads = 2: the nodes of a cluster with pools are given"
    refused(lambda: compare(base, ["cluster-queue"], 1, loads=[2]), words, error=InvalidParameterError)
