"""Bounded slowdown, waits and utilisation of a comparison, against what the events table of a run says."""

import numpy as np
import pandas as pd
import pytest

from marketsched import compare
from marketsched.config.scenario import Scenario
from marketsched.play.running import run
from marketsched.results.waits import waits_table

NAMES = ["first-come", "easy-backfill", "fair-share", "conservative-backfill"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rng, path = np.random.default_rng(8), tmp_path_factory.mktemp("log") / "mine.csv"
    runs = {"submit_s": np.cumsum(rng.integers(1, 300, 150)), "run_s": rng.integers(1, 4000, 150)}
    pd.DataFrame({**runs, "processors": rng.integers(1, 6, 150), "user": rng.integers(0, 5, 150)}).to_csv(path)
    text = path.read_text().split("\n", 1)  # the column of row numbers has no name in a log
    path.write_text("row" + text[0] + "\n" + text[1])
    return {"name": "mine", "workload": {"kind": "csv", "path": str(path), "load": 1.5}}


def of_events(result, scenario):
    """Return waits, slowdowns and the utilisation from the events alone; a job's nodes are from the workload."""
    events, jobs = result.events, scenario.workload_of(0).jobs
    rounds = {kind: own.set_index("job")["round"] for kind, own in events.groupby("event")}
    frame = pd.DataFrame(index=[job.name for job in jobs])
    frame["class"], frame["owner"] = [str(job.tags["class"]) for job in jobs], [job.owner for job in jobs]
    frame["wait"] = rounds["start"] - rounds["arrive"]
    frame["run"] = events[events["event"] == "complete"].set_index("job")["completion"] - rounds["start"]
    seconds = result.meta["round_seconds"]
    wait_s, run_s = frame["wait"] * seconds, frame["run"] * seconds
    frame["slowdown"] = ((wait_s + run_s) / run_s.clip(lower=10.0)).clip(lower=1.0)
    gone = rounds.get("evict", pd.Series(dtype=float))
    ended = events[events["event"] == "complete"].set_index("job")["completion"].reindex(frame.index).fillna(gone)
    nodes = pd.Series([job.truth.concurrency for job in jobs], index=frame.index)
    busy = float(((ended - rounds["start"]) * nodes).sum())
    return frame, busy / (result.outcome["capacity"] * result.outcome["rounds"])


@pytest.mark.slow
def test_compare_says_what_the_events_say(log):
    found = compare(log, NAMES, runs=1)
    waits = found.tables["waits"]
    assert set(waits["mechanism"]) == set(NAMES)
    for name in NAMES:
        scenario = Scenario.from_dict({**log, "mechanism": {"name": name}})
        frame, used = of_events(run(scenario), scenario)
        own = waits[waits["mechanism"] == name].set_index(["by", "name"])
        assert own.loc[("all", "all"), "jobs"] == 150 and own.loc[("all", "all"), "started"] == frame["wait"].count()
        assert own.loc[("all", "all"), "bounded_slowdown"] == pytest.approx(float(frame["slowdown"].mean()))
        assert own.loc[("all", "all"), "wait_rounds"] == pytest.approx(float(frame["wait"].mean()))
        for by in ("class", "owner"):
            for each, part in frame.groupby(by):
                assert own.loc[(by, each), "wait_rounds"] == pytest.approx(float(part["wait"].mean()), nan_ok=True)
                assert own.loc[(by, each), "completed"] == part["run"].count()
        assert found.runs.set_index("mechanism").loc[name, "utilisation"] == pytest.approx(used)
    by_load = compare(log, ["easy-backfill"], runs=1, loads=[0.5, 1.5]).tables["waits"]
    means = by_load[by_load["by"] == "all"].set_index("load")["wait_rounds"]
    assert means[0.5] < means[1.5]


def test_the_bound_by_hand():
    """Rounds of 2 s: A waits 3 and runs 1, so 8 s over 10 s, below 1; B waits 3 rounds and runs 6: 18 s over 12 s."""
    jobs = pd.DataFrame({"owner": ["a", "b", "b"], "start": [4, 4, None], "arrival": [1, 1, 1]})
    jobs["completion"] = [5, 10, None]
    table = waits_table(jobs, 2.0).set_index(["by", "name"])
    assert table.loc[("owner", "a"), "bounded_slowdown"] == 1.0
    assert table.loc[("owner", "b"), "bounded_slowdown"] == 1.5
    assert table.loc[("all", "all")].tolist() == [3, 2, 2, 3.0, 1.25, 0.0, 0.0]
