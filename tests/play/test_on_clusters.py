"""Runs and comparisons of jobs with shapes: measured against the bound with pools, with use and prices by pool."""

import io

import numpy as np
import pytest
from rich.console import Console

import marketsched
import marketsched.truthfulness
from marketsched.mechanisms import InvalidParameterError
from marketsched.results.pools_view import pools_view
from marketsched.results.views import parts_of_view
from two_kinds import SCENARIO

pytestmark = pytest.mark.compiled  # whole markets on clusters: too long for plain kernels


def test_a_run_is_measured_against_the_bound_with_pools():
    result = marketsched.run(SCENARIO, seed=1)
    bounds, first_come = result.outcome["bounds"], result.outcome["first_come"]
    assert 0 < result.outcome["welfare"] <= bounds["dual"] + 1e-6
    assert 0 < first_come["welfare_at_zero"] <= bounds["dual"] + 1e-6
    assert result.meta["scenario"] == "two kinds"


def test_the_table_of_pools_holds_what_runs():
    result = marketsched.run(SCENARIO, seed=1, mechanism="cluster-first-come")
    pools, jobs = result.tables["pools"], result.jobs
    assert pools["round"].max() == result.outcome["rounds"] and set(pools["pool"]) == {"a100", "v100"}
    assert (pools["used"] >= 0).all() and (pools["used"] <= pools["size"]).all()
    done = jobs[jobs["outcome"] == "completed"]
    rounds = (done["completion"] - done["start"]).sum()
    assert pools.loc[pools["resource"] == "gpu", "used"].sum() == pytest.approx(rounds)
    assert pools.loc[pools["resource"] == "cpu", "used"].sum() == pytest.approx(2 * rounds)
    assert (pools["price"] == 0).all()
    lost = pools["fragmented"]
    assert lost[pools["resource"] == "cpu"].isna().all()
    assert np.nanmin(lost) >= 0 and np.nanmax(lost) <= 1 + 1e-12
    until = int(jobs["birth"].max()) + 1  # the first round after the last birth
    gpu = (done["completion"].clip(upper=until) - done["start"].clip(upper=until)).sum()
    assert result.outcome["in_use"]["gpu"] == pytest.approx(gpu / (4 * (until - 1)))
    _, tables, _ = parts_of_view(result.view())
    assert "load asked for, of the scarcest resource" in [row[0] for row in tables[0].rows]
    figure = result._look.figures(result)["figure"]
    floor = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert floor.max() == result.rounds["load"].max() <= 3  # nodes: tasks that share one are not stacked


@pytest.mark.slow
def test_load_is_what_jobs_really_need():
    """Ten jobs of one round, each with a long case that does not come true."""
    cluster = {"resources": {"gpu": {}}, "groups": [{"name": "g", "kind": "v", "nodes": 2, "each": {"gpu": 1}}]}
    shape = {"each": {"gpu": 1}, "on": {"v": [1, 10]}, "law": [1 - 1e-9, 1e-9]}
    value = {"kind": "deadline", "value": 1.0, "deadline": 30}
    jobs = [
        {"name": f"j{i}", "birth": i, "arrival": i, "value": value, "revealed": False, "shapes": [shape]}
        for i in range(1, 11)
    ]
    sizes = {"horizon": 40, "max_duration": 10, "max_value": 2.0, "max_delay": 30}
    workload = {"kind": "cluster-jobs", "cluster": cluster, "jobs": jobs, **sizes}
    assert marketsched.run({"name": "ten", "workload": workload}, mechanism="cluster-first-come").outcome["load"] == 0.5


@pytest.mark.slow
def test_contestants_of_a_cluster_are_compared():
    found = marketsched.compare(SCENARIO, runs=2)
    names = found.summary["mechanism"].tolist()
    assert names[:2] == ["cluster-bid-price", "cluster-first-come"] and len(names) == 6
    assert (found.summary["welfare_share"] <= 1 + 1e-9).all()
    runs = found.tables["runs"]
    same = runs[runs["mechanism"] == "cluster-first-come"]
    assert (same["welfare"] == same["first_come"]).all()
    _check_pools(found)


def _check_pools(found):
    """The figures by pool are those of single runs, and what pools earn adds up to the revenue."""
    pools, runs = found.tables["pools"], found.tables["runs"].set_index(["seed", "mechanism"])
    assert len(pools) == 2 * 6 * 4  # seeds, mechanisms, two resources of two pools
    for key, own in pools.groupby(["seed", "mechanism"]):
        assert own.groupby("pool")["income"].first().sum() == pytest.approx(runs.loc[key, "revenue"])
    run = marketsched.run(SCENARIO, seed=1, mechanism="cluster-bid-price")
    alone = run.tables["pools"][run.tables["pools"]["round"] <= run.jobs["birth"].max()]
    mine = pools[(pools["seed"] == 1) & (pools["mechanism"] == "cluster-bid-price")].set_index(["pool", "resource"])
    for key, own in alone.groupby(["pool", "resource"]):
        assert mine.loc[key, "in_use"] == pytest.approx(own["used"].sum() / own["size"].sum())
        assert mine.loc[key, "price"] == pytest.approx(own["price"].mean())
        free = own["size"] - own["used"]
        known = key[1] == "gpu" and free.sum() > 0
        lost = (free @ own["fragmented"].fillna(0)) / free.sum() if known else np.nan
        assert mine.loc[key, "fragmented"] == pytest.approx(lost, nan_ok=True)
    console = Console(file=io.StringIO(), width=120)
    console.print(found.view())
    console.print(*pools_view(found, whole=True))
    shown = console.file.getvalue()
    for words in ("a100: gpu in use", "free gpu in fragments", "v100: income, credits", "price of cpu, credits"):
        assert words in shown


def test_a_mechanism_of_identical_nodes_is_refused_and_bid_price_stands_for_the_one_with_shapes():
    with pytest.raises(InvalidParameterError, match="cluster-bid-price"):
        marketsched.run(SCENARIO, mechanism="vcg")
    short, long = (
        marketsched.run(SCENARIO, mechanism=name).outcome["welfare"] for name in ("bid-price", "cluster-bid-price")
    )
    assert short == long


def test_conduct_beside_reports_is_audited_on_identical_nodes_alone():
    with pytest.raises(InvalidParameterError, match="jobs of identical nodes"):
        marketsched.truthfulness.audit_conduct(SCENARIO, ["cluster-bid-price"])
