"""Pictures and intervals of a comparison on a log, against the tables of single runs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from marketsched.comparisons.comparing import compare
from marketsched.config.scenario import Scenario
from marketsched.play.running import run
from marketsched.results.schedules import busiest_window, busy_nodes, node_rows, own_rows
from marketsched.results.views import parts_of_view
from marketsched.results.waits_view import waits_summary

NAMES = ["easy-backfill", "spot"]  # the latter evicts


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rng, path = np.random.default_rng(4), tmp_path_factory.mktemp("log") / "mine.csv"
    runs = {"submit_s": np.cumsum(rng.integers(1, 300, 120)), "run_s": rng.integers(1, 4000, 120)}
    own = {"processors": rng.integers(1, 6, 120), "user": rng.integers(0, 5, 120)}
    pd.DataFrame({**runs, **own}).to_csv(path, index=False)
    rule = {"deadlines": "drawn"}  # so that runs are evicted, and some jobs are not done
    return {"name": "mine", "workload": {"kind": "csv", "path": str(path), "load": 1.5, "rule": rule}}


@pytest.fixture(scope="module")
def found(log):
    return compare(log, NAMES, runs=3, seed=2)


@pytest.mark.slow
def test_schedules_are_those_of_the_first_seed(log, found):
    about = found.meta["schedules"]
    for name in NAMES:
        alone = run(Scenario.from_dict({**log, "mechanism": {"name": name}}), seed=2)
        own = found.schedules[found.schedules["mechanism"] == name]
        assert about["seed"] == 2 and about["capacity"] == alone.outcome["capacity"] and len(own) == 120
        assert busy_nodes(own, about["rounds"]).tolist() == alone.rounds["load"].tolist()
        assert own["completed"].sum() == alone.outcome["completed"]
        assert own["bounded_slowdown"].notna().tolist() == own["completed"].tolist()
    assert (found.schedules["start"] > 0).sum() > found.schedules["completed"].sum()  # somebody was evicted


@pytest.mark.slow
def test_every_job_has_its_nodes_for_its_rounds_in_the_chart(found):
    about = found.meta["schedules"]
    own = found.schedules[found.schedules["mechanism"] == NAMES[1]]
    whole = node_rows(own, about["capacity"], 1, about["rounds"])
    counted = np.bincount(whole[whole >= 0], minlength=len(own))
    assert counted.tolist() == ((own["end"] - own["start"]) * own["nodes"]).tolist()
    assert (whole >= 0).sum(axis=0).tolist() == busy_nodes(own, about["rounds"]).tolist()
    part = node_rows(own, about["capacity"], 20, 10)
    assert ((part >= 0).sum(axis=0) == (whole[:, 19:29] >= 0).sum(axis=0)).all()
    first = busiest_window(found.schedules, 10, about["rounds"])
    came, gone = found.schedules["arrival"], found.schedules["start"].where(found.schedules["start"] > 0)
    waiting = [
        (((came <= t) & (t < gone.fillna(came + 1))) * found.schedules["nodes"]).sum()
        for t in range(1, about["rounds"] + 1)
    ]
    assert sum(waiting[first - 1 : first + 9]) == max(sum(waiting[i : i + 10]) for i in range(len(waiting) - 9))


def test_runs_that_are_taken_back_are_in_the_pictures(log):
    found = compare(log, ["two-offers", "first-come"], runs=1, seed=2)
    about, name = found.meta["schedules"], "two-offers"
    alone = run(Scenario.from_dict({**log, "mechanism": {"name": name}}), seed=2)
    own = found.schedules[found.schedules["mechanism"] == name]
    assert alone.outcome["requeues"] == own["taken_back"].sum() > 0 and len(own_rows(own)) == 120
    assert busy_nodes(own, about["rounds"]).tolist() == alone.rounds["load"].tolist()
    whole = node_rows(own, about["capacity"], 1, about["rounds"])
    assert (whole >= 0).sum(axis=0).tolist() == alone.rounds["load"].tolist()
    waiting = np.zeros(about["rounds"] + 1, dtype=np.int64)  # as arrivals, starts and requeues say
    for _, runs in own[(own["arrival"] > 0) & (own["start"] > 0)].groupby("job"):
        since = runs["arrival"].iloc[0]
        for _, each in runs.sort_values("start").iterrows():
            waiting[since : each["start"]] += each["nodes"]
            since = each["end"]
    never = own[(own["arrival"] > 0) & (own["start"] == 0)]
    np.add.at(waiting, never["arrival"].to_numpy(), never["nodes"].to_numpy())
    sums = np.convolve(waiting[1:], np.ones(10, dtype=np.int64), mode="valid")
    assert sums[busiest_window(own, 10, about["rounds"]) - 1] == sums.max()


def test_intervals_are_students_over_seeds(found):
    summary = waits_summary(found).set_index(["mechanism", "figure"])
    waits, runs = found.waits, found.runs
    for name in NAMES:
        own = waits[waits["mechanism"] == name]
        owners = own[own["by"] == "owner"].groupby("seed")["wait_rounds"].quantile(0.9)
        for figure, values in (
            ("utilisation_open", runs.loc[runs["mechanism"] == name, "utilisation_open"]),
            ("bounded_slowdown", own.loc[own["by"] == "all", "bounded_slowdown"]),
            ("wait_rounds, class 2", own.loc[(own["by"] == "class") & (own["name"] == "2"), "wait_rounds"]),
            ("wait_rounds, owners 0.9", owners),
        ):
            low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
            assert summary.loc[(name, figure)].tolist() == pytest.approx([values.mean(), low, high])
    _, tables, _ = parts_of_view(found.view(), details=True)
    assert sum("±" in cell for table in tables[1:] for row in table.rows for cell in row) >= 12
