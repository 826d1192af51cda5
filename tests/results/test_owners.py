"""Owners' figures: by hand, in results of runs and comparisons, and printed with intervals."""

import numpy as np
import pandas as pd
import pytest

from credit_markets import drawn_jobs
from marketsched import compare, run
from marketsched.agents.job_table import ListedJobs
from marketsched.config.sow_codec import sow_to_json
from marketsched.results.owners import owners_figures, owners_table
from marketsched.results.owners_view import owners_figure


def test_a_table_by_hand():
    jobs = pd.DataFrame(
        {
            "owner": ["ann", "bob", "ann", "ann", "eve"],
            "arrival": pd.array([1, 1, 2, None, 3], dtype="Int64"),
            "start": pd.array([1, 3, None, None, None], dtype="Int64"),
            "outcome": ["completed", "completed", "dropped", "never_arrived", "evicted"],
            "value": [4.0, 1.0, 0.0, 0.0, 0.0],
            "payment": [0.5, 0.0, 0.0, 0.0, 0.0],
        }
    )
    table = owners_table(jobs, np.array([4.0, 2.0, 4.0, 100.0, 0.0])).set_index("owner")
    assert table["jobs"].to_dict() == {"ann": 2, "bob": 1, "eve": 1}  # who never arrived came for nothing
    assert table["own"].fillna(-1).to_dict() == {"ann": 0.5, "bob": 0.5, "eve": -1.0}
    assert table.loc["bob", "wait_rounds"] == 2 and table.loc["ann", "paid"] == 0.5


def test_an_owner_stands_at_the_middle_of_its_place():
    owners = pd.DataFrame({"mechanism": ["a", "a", "b"], "owner": ["x", "y", "x"], "jobs": 9, "own": [0.5, 0.2, 0.7]})
    lines = owners_figure(owners, "two", "", ["a", "b"]).axes[0].lines
    assert [np.column_stack(line.get_data()).tolist() for line in lines[:2]] == [[[25, 20], [75, 50]], [[50, 70]]]


def test_figures_count_owners_with_five_jobs_or_more():
    owners = pd.DataFrame({"jobs": [5, 9, 4, 7], "own": [0.5, 1.0, 0.0, np.nan]})
    assert owners_figures(owners) == {"own": 0.75, "own_q10": pytest.approx(0.55), "own_worst": 0.5}
    assert np.isnan(owners_figures(owners[:0])["own"])


def market():
    jobs = [
        {"name": j.name, "owner": j.owner, "birth": j.truth.birth, "arrival": j.arrival, "duration": j.duration}
        | sow_to_json(j.truth)
        for j in drawn_jobs(11)
    ]
    sizes = {"capacity": 8, "horizon": 90, "max_concurrency": 8, "max_duration": 12, "max_value": 9, "max_delay": 110}
    return {"name": "crowd", "workload": {"kind": "jobs", **sizes, "jobs": jobs}}


@pytest.mark.slow
def test_runs_and_comparisons_say_what_owners_get():
    found = compare(market(), ["credits", "fair-turns", "first-come"], runs=2, optimum_seconds=0)
    summary = found.summary.set_index("mechanism")
    assert set(found.owners["mechanism"]) == set(summary.index)
    one = run(market(), mechanism="credits")
    jobs = drawn_jobs(11)
    got = (
        one.jobs.groupby("owner")["value"].sum()
        / pd.Series([j.truth.value.value for j in jobs]).groupby([j.owner for j in jobs]).sum()
    )
    assert one.owners.set_index("owner")["own"].to_dict() == pytest.approx(got.to_dict())
    assert one.outcome["own"] == pytest.approx(summary.loc["credits", "own"]) == pytest.approx(got.mean())
    assert {"purses", "upgrades"} <= set(one.tables) and one.purses["part"].sum() == pytest.approx(1.0)
    printed = str([part.shown() if hasattr(part, "shown") else part.plain for part in found.view().renderables])
    assert "worst owner" in printed and "what owners get" in printed


def test_offered_values_are_equal_by_columns_and_by_jobs():
    table = ListedJobs(drawn_jobs(3))
    assert table.offered(110).tolist() == [job.truth.value.highest for job in table]
