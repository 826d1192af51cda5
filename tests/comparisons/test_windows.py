"""Several windows of a log: what they hold, and that they are the unit of intervals."""

import numpy as np
import pandas as pd
import pytest

from marketsched.comparisons.comparing import compare, windows_for
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import with_whole_log
from marketsched.results.answers import Rival, rival_of
from marketsched.results.paired_statistics import share_of_means
from marketsched.results.windows import windows_words
from refusals import refused


@pytest.fixture
def log(tmp_path):
    rng, n = np.random.default_rng(5), 2400
    submit = np.cumsum(rng.exponential(1500.0, n)).round()  # six weeks
    rows = {"submit_s": submit, "run_s": rng.integers(60, 9000, n), "processors": rng.integers(1, 5, n)}
    pd.DataFrame({**rows, "requested_s": 9000, "user": rng.integers(0, 6, n)}).to_csv(
        tmp_path / "mine.csv", index=False
    )
    return {"name": "mine", "workload": {"kind": "csv", "path": str(tmp_path / "mine.csv"), "capacity": 8}}


def test_windows_are_spread_over_the_log(log):
    submits = []
    for k in range(3):
        part = {**log, "workload": {**log["workload"], "windows": 3, "window": k, "rule": {"round_seconds": 60.0}}}
        workload = Scenario.from_dict(part).workload_of(0)
        assert workload.notes["window"] == f"{k + 1} of 3" and workload.jobs[0].name == f"run-{800 * k}"
        submits.append(len(workload.jobs))
    assert submits == [800, 800, 800]  # a thousand where the part has as many
    beyond = {**log, "workload": {**log["workload"], "windows": 3, "window": 3}}
    refused(lambda: Scenario.from_dict(beyond), "window", legal="below windows = 3")


def test_windows_have_rounds_of_one_length(log):
    """Waits of all windows are in one unit, although the runs of the second half are thirty times longer."""
    path = log["workload"]["path"]
    runs = pd.read_csv(path)
    runs["run_s"] *= np.where(np.arange(len(runs)) < 1200, 1, 30)
    runs.assign(requested_s=300_000).to_csv(path, index=False)
    parts = [{**log, "workload": {**log["workload"], "windows": 2, "window": k}} for k in range(2)]
    first, second = (Scenario.from_dict(each).workload_of(0).round_seconds for each in parts)
    assert first == second


def test_a_log_has_as_many_windows_as_thousands_of_jobs_unless_a_part_is_asked_for(log):
    whole = Scenario.from_dict(with_whole_log(log))
    assert windows_for(whole, None, 0, None) == 2 and windows_for(whole, 5, 0, None) == 5
    for said in ({"days": 9}, {"most_jobs": 2000}, {"first_day": 1.0}):
        one = Scenario.from_dict(with_whole_log({**log, "workload": {**log["workload"], **said}}))
        assert windows_for(one, None, 0, None) == 1
    with pytest.raises(ValueError, match="windows"):
        windows_for(Scenario.load("stochastic-mix"), 2, 0, None)


def test_the_window_is_the_unit_of_the_interval(log):
    result = compare(log, ["first-come", "easy-backfill:order=request"], runs=2, seed=3, windows=3)
    runs = result.runs.assign(window=result.runs["seed"] % 3)
    assert sorted(runs["seed"].unique()) == [3, 4, 5, 6, 7, 8] and result.meta["runs"] == 3
    means = runs.groupby(["mechanism", "window"])[["welfare", "opt_high"]].mean()
    first, second = (means.loc[name] for name in result.meta["mechanisms"])
    wanted = share_of_means(first["welfare"] - second["welfare"], first["opt_high"], 0.95)
    row = result.records()[0]
    assert [row[f"over_rival{end}"] for end in ("", "_low", "_high")] == pytest.approx(list(wanted))
    said = windows_words(result.runs, "first-come", rival_of(result.meta), result.meta)
    assert said.startswith(f"ahead in {int((first['welfare'] > second['welfare']).sum())} of 3 windows; of the ±")


def test_where_the_width_comes_from():
    """Draws that differ by 2 in every window, and windows that are alike: nothing is from weeks."""
    rows = [(m, seed, 10.0 + (2.0 if m == "a" and seed >= 4 else 0.0), 100.0) for m in "ab" for seed in range(8)]
    runs = pd.DataFrame(rows, columns=["mechanism", "seed", "welfare", "opt_high"])
    said = windows_words(runs, "a", Rival("b", "over_rival", ("b",)), {"windows": 4})
    assert said.startswith("ahead in 4 of 4 windows; of the ± 0.0 is from weeks, 1.6 from drawn values.")
    assert said.endswith("expect +1.0 to +1.0 points")  # all windows gain 1


def test_how_much_of_the_width_is_from_users():
    """Draws with the recorded users are alike; with users drawn again they differ by 2: nothing is from values."""
    rows = []
    for seed in range(16):
        again, second = seed // 4 % 2 == 1, seed >= 8
        rows += [("a", seed, 10.0 + 2.0 * (again and second), 100.0), ("b", seed, 10.0, 100.0)]
    runs = pd.DataFrame(rows, columns=["mechanism", "seed", "welfare", "opt_high"])
    said = windows_words(runs, "a", Rival("b", "over_rival", ("b",)), {"windows": 4, "resample": "users"})
    assert "from weeks (2.3 from who submitted), 0.0 from drawn values" in said


def test_users_are_drawn_again_by_whole_weeks(log):
    as_it_was, drawn = (
        Scenario.from_dict({**log, "workload": {**log["workload"], "resample_users": again}}).workload_of(1)
        for again in (False, True)
    )
    weeks = {}
    for workload in (as_it_was, drawn):
        of = weeks.setdefault(workload is drawn, {})
        for job in workload.jobs:
            of.setdefault((job.owner, int(job.tags["submit_s"] // 604_800)), []).append(job.tags["submit_s"])
    was, now = weeks[False], weeks[True]
    assert len(now) == len(was) and set(now) != set(was)
    for (owner, week), times in now.items():
        assert times == was[owner.partition(" (")[0], week]
    assert "recorded_start" not in drawn.jobs[0].tags


def test_a_comparison_whose_users_are_drawn_again(log):
    asked = ["first-come", "easy-backfill:order=request"]
    result = compare(log, asked, runs=4, windows=2, resample="users")
    even, odd = (result.runs[result.runs["seed"] // 2 % 2 == k] for k in (0, 1))
    assert even["jobs"].nunique() == 1 and odd["jobs"].nunique() > 1
    refused(lambda: compare(log, asked, runs=3, windows=2, resample="users"), "runs", legal="4, 6, 8")
    refused(lambda: compare(log, asked, resample="weeks"), "resample", legal="users")
    refused(lambda: compare("stochastic-mix", asked, resample="users"), legal="a log")


def test_what_is_said_of_the_jobs_holds_of_all_windows(log):
    notes = compare(log, ["first-come", "easy-backfill:order=class"], runs=1, windows=2).meta["workload"]
    low, _, high = notes["load"].removesuffix(", by window").partition(" to ")
    assert float(low) < float(high) and "window" not in notes
    assert notes["classes"].startswith("requested wall times, by thirds")
