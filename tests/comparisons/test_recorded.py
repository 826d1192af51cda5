"""The schedule that a log records, as a row of a comparison, against figures made by hand."""

import numpy as np
import pandas as pd
import pytest

from marketsched.comparisons.comparing import compare
from marketsched.comparisons.recorded import RECORDED, fidelity
from marketsched.config.scenario import Scenario
from marketsched.play.running import run
from marketsched.results.answers import answer_of
from marketsched.results.recorded_view import recorded_sentences
from marketsched.results.views import parts_of_view

HOUR = 3600.0


def scenario(path, nodes=10, **rule):
    workload = {"kind": "csv", "path": str(path), "capacity": nodes, "rule": {"round_seconds": 300.0, **rule}}
    return {"name": "mine", "workload": workload}


@pytest.fixture
def runs():
    rng = np.random.default_rng(8)
    submit = np.cumsum(rng.integers(1, 900, 200)).astype(float)
    own = {"run_s": rng.integers(200, 9000, 200), "processors": rng.integers(1, 6, 200), "requested_s": 9000.0}
    return pd.DataFrame({"submit_s": submit, **own, "user": rng.integers(0, 5, 200)})


def test_the_recorded_row_is_what_a_spreadsheet_says(runs, tmp_path):
    rng = np.random.default_rng(2)
    runs["start"] = runs["submit_s"] + rng.integers(0, 30_000, 200)
    runs.to_csv(tmp_path / "mine.csv", index=False)
    result = compare(scenario(tmp_path / "mine.csv"), ["first-come", "easy-backfill"], runs=3, seed=4, against=RECORDED)
    row = result.runs[result.runs["mechanism"] == RECORDED].iloc[0]
    workload = Scenario.from_dict(scenario(tmp_path / "mine.csv")).workload_of(4)
    origin, value, waits, busy = runs["submit_s"][0], 0.0, [], 0
    for job, start in zip(workload.jobs, runs["start"], strict=True):
        begin = int((start - origin) // 300) + 1
        value += job.truth.value(begin + job.duration)
        waits.append((begin - job.arrival) / 12)
        busy += job.duration * job.truth.concurrency
    assert row["welfare"] == pytest.approx(value, rel=1e-12) and row["completed"] == 200
    found = [row[f"{name}_hours"] for name in ("median_wait", "q90_wait", "longest_wait")]
    assert found == pytest.approx([*np.quantile(waits, [0.5, 0.9]), max(waits)])
    assert row["utilisation"] == pytest.approx(busy / (10 * workload.horizon))
    mean = result.waits[(result.waits["mechanism"] == RECORDED) & (result.waits["by"] == "all")]["wait_rounds"] / 12
    assert mean.tolist() == pytest.approx([np.mean(waits)] * 3)
    assert "than the schedule that was recorded" in answer_of(result.records(), result.meta)
    assert f"waited {np.mean(waits):.1f} h on average" in parts_of_view(result.view())[0]


def test_the_schedule_of_a_simulated_queue_is_found_again(runs, tmp_path):
    """A log that EASY made is EASY's: no other rule is as near, and nobody waits with nodes free but for the head."""
    runs.to_csv(tmp_path / "mine.csv", index=False)
    own = run(Scenario.from_dict({**scenario(tmp_path / "mine.csv"), "mechanism": {"name": "easy-backfill"}}), seed=1)
    origin = runs["submit_s"][0]
    runs["start"] = np.maximum(origin + 300.0 * (own.jobs["start"].to_numpy(float) - 1), runs["submit_s"])
    runs.to_csv(tmp_path / "made.csv", index=False)
    result = compare(scenario(tmp_path / "made.csv"), ["easy-backfill", "first-come"], runs=1)
    rows = {row["mechanism"]: row for row in result.records()}
    figures = [rows["easy-backfill"][f"fidelity_{name}"] for name in ("ratio", "factor", "near", "ranks")]
    assert figures == pytest.approx([1.0] * 4)
    assert rows["first-come"]["fidelity_near"] < 1 and rows["first-come"]["fidelity_factor"] > 1
    assert "gives 1 of the recorded mean wait, typical factor 1.0, 100% of jobs" in recorded_sentences(result)[2]


def test_a_window_begins_with_what_ran_and_waited(runs, tmp_path):
    """A log that EASY made is EASY's in its second half, too, which begins with the record's jobs."""
    runs["submit_s"] = (runs["submit_s"] - runs["submit_s"][0]) * 4
    runs.to_csv(tmp_path / "mine.csv", index=False)
    made = scenario(tmp_path / "mine.csv")
    own = run(Scenario.from_dict({**made, "mechanism": {"name": "easy-backfill"}}), seed=1)
    runs["start"] = np.maximum(300.0 * (own.jobs["start"].to_numpy(float) - 1), runs["submit_s"])
    runs.to_csv(tmp_path / "made.csv", index=False)
    half = scenario(tmp_path / "made.csv")
    half["workload"] = {**half["workload"], "windows": 2, "window": 1}
    jobs = Scenario.from_dict(half).workload_of(0).jobs
    begin = runs["submit_s"][100]
    there = (runs["submit_s"][:100] < begin) & (runs["start"] + runs["run_s"])[:100].gt(begin)
    assert len(jobs) == 100 + there.sum() and there.sum() > 3
    rows = {row["mechanism"]: row for row in compare(half, ["easy-backfill"], runs=1).records()}
    assert rows["easy-backfill"]["fidelity_near"] == 1


def test_a_record_beyond_the_machine_has_no_share_of_a_bound(runs, tmp_path):
    runs["start"] = runs["submit_s"]
    runs.to_csv(tmp_path / "mine.csv", index=False)
    result = compare(scenario(tmp_path / "mine.csv", nodes=8), ["easy-backfill"], runs=1)
    row = next(each for each in result.records() if each["mechanism"] == RECORDED)
    assert row["beyond"] > 0.1 and np.isnan(row["welfare_share"])
    assert "has no share of the best possible value" in recorded_sentences(result)[-1]


def test_without_starts_there_is_no_record(runs, tmp_path):
    runs["start"] = np.where(np.arange(200) < 150, runs["submit_s"], np.nan)
    runs.to_csv(tmp_path / "mine.csv", index=False)
    result = compare(scenario(tmp_path / "mine.csv"), ["easy-backfill"], runs=1)
    assert RECORDED not in set(result.summary["mechanism"]) and recorded_sentences(result) == []


def test_figures_of_fidelity():
    arrival = pd.Series(np.ones(16), dtype="Int64")
    recorded = pd.DataFrame({"arrival": arrival, "start": arrival + pd.Series(np.arange(16), dtype="Int64")})
    doubled = recorded.assign(start=recorded["start"] + np.arange(16))
    found = fidelity(recorded, doubled, HOUR)
    assert found == pytest.approx(
        {"fidelity_ratio": 2.0, "fidelity_factor": 2.0, "fidelity_near": 1 / 16, "fidelity_ranks": 1.0}
    )
