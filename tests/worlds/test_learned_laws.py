"""Laws learned from the past: what the days before a window of the Google trace tell about it, and nothing else."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched import Scenario
from marketsched.mechanisms import InvalidParameterError
from marketsched.worlds import GoogleParameters, google_recurring
from marketsched.worlds import google as google_workloads
from marketsched.worlds.learned import known_by, learned_laws
from marketsched.worlds.prediction import History
from tiny_trace import tiny_trace

DAY_TWO = GoogleParameters(first_day=1, days=1)


def rewritten(folder, change):
    """Change the tiny trace: ``change`` gets its table and returns another."""
    path = folder / "google2011_jobs_29d.csv"
    table = change(pd.read_csv(path))
    table.sort_values("submit_s", kind="stable").to_csv(path, index=False)


def long_trace(folder):
    """Write a trace of more than two days: hourly job (7, 3) and job (8, 4), 54 runs each."""
    tiny_trace(folder)

    def longer(table):
        first = table[table["user"].isin([7, 8])]
        hourly = first.groupby("user").head(1)
        rows = [hourly.assign(submit_s=hourly["submit_s"] + 3600 * k) for k in range(54)]
        return pd.concat(rows)

    rewritten(folder, longer)
    return folder


def test_laws_of_recorded_runs_by_hand(tmp_path):
    """The second day is expected to repeat the first: (7, 3) at 10 past, (8, 4) at 40 past every hour."""
    laws = learned_laws(long_trace(tmp_path), rng=np.random.default_rng(1), parameters=DAY_TWO)
    past = google_recurring(tmp_path, rng=np.random.default_rng(1), parameters=GoogleParameters(first_day=0, days=1))
    market_now = google_recurring(tmp_path, rng=np.random.default_rng(1), parameters=DAY_TWO)
    assert len(laws) == len(past.jobs) == 38
    for law, job in zip(laws, past.jobs, strict=True):  # the same runs, in the same rounds of the day
        ((sow, p),) = law.cases
        assert p == 1 and sow.mass == 1 and sow.revealed
        assert (sow.birth, sow.concurrency, sow.value) == (job.truth.birth, job.truth.concurrency, job.truth.value)
        assert sow.law.arrivals.tolist() == [job.arrival] and sow.law.durations.tolist() == [job.duration]
    densities = {job.tags["group"]: job.tags["value_density"] for job in past.jobs}
    assert {job.tags["group"]: job.tags["value_density"] for job in market_now.jobs} == densities  # the same draws
    assert laws == learned_laws(tmp_path, rng=np.random.default_rng(1), parameters=DAY_TWO)
    other = learned_laws(tmp_path, rng=np.random.default_rng(2), parameters=DAY_TWO)
    assert laws != other and [law.birth for law in laws] == [law.birth for law in other]


def shake(table, now):
    """Return the trace with all that happens from ``now`` on replaced: submissions, and ends of earlier ones."""
    rng = np.random.default_rng(0)
    table = table.copy()
    later = table["submit_s"] >= now
    running = ~later & ~(table["submit_s"] + table["wait_s"].fillna(0) + table["run_s"] <= now)
    n = int(later.sum())
    table.loc[later, "submit_s"] += rng.uniform(0, 3000, n).round(2)
    table.loc[later, "run_s"] = rng.uniform(1, 9000, n).round(2)
    table.loc[running, "run_s"] = (
        now - table.loc[running, "submit_s"] + rng.uniform(1, 9000, int(running.sum())).round(2)
    )
    return table


def laws_before_and_after(folder, monkeypatch, change):
    """Return the laws of the second day of a trace, and what becomes of them when the trace changes."""
    rewritten(
        long_trace(folder), lambda table: table.assign(run_s=table["run_s"] + 3000 * (table["submit_s"] > 80_000))
    )
    before = learned_laws(folder, rng=np.random.default_rng(1), parameters=DAY_TWO)
    groups = google_workloads.recurring_groups(google_workloads.TRACES["google-jobs"].read(folder), 14_400.0)
    rewritten(folder, change)
    monkeypatch.setattr(google_workloads, "recurring_groups", lambda *_: groups)  # who takes part is known
    return before, learned_laws(folder, rng=np.random.default_rng(1), parameters=DAY_TWO)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: shake(table, 86_400),
        lambda table: table[table["submit_s"] < 86_400],  # nothing comes any more
        lambda table: table.assign(end_event=table["end_event"].where(table["submit_s"] < 86_400, 3)),
    ],
    ids=["altered", "removed", "failed"],
)
def test_laws_do_not_look_into_the_window(tmp_path, monkeypatch, change):
    before, after = laws_before_and_after(tmp_path, monkeypatch, change)
    assert before == after


def test_that_test_sees_a_look_ahead(tmp_path, monkeypatch):
    """A quarter of an hour more is too much: what ends or comes in it moves the laws."""
    before, after = laws_before_and_after(tmp_path, monkeypatch, lambda table: shake(table, 86_400 - 900))
    assert before != after


def test_runs_that_are_not_over_count_with_what_is_likeliest(tmp_path):
    """Job (8, 4) is due every hour for 1,400 s; its run of 85,200 s, announced in round 273, is the last of the day."""

    def case(run, birth, **changes):
        """Return what is expected of the run announced in round ``birth`` after ``changes`` to run number ``run``."""

        def change(table):
            its = (table["user"] == 8) & (table["submit_s"] == 2400 + 3600 * run)
            return table.assign(**{name: table[name].where(~its, value) for name, value in changes.items()})

        rewritten(long_trace(tmp_path), change)
        laws = learned_laws(tmp_path, rng=np.random.default_rng(1), parameters=DAY_TWO)
        found = [law.cases[0][0].law for law in laws if law.birth == birth]
        its = [law for law in found if law.arrivals[0] > birth + 10]  # the other job comes at another time
        return [(int(law.arrivals[0]), int(law.durations[0])) for law in its]

    assert case(23, 273, run_s=1150.0) == [(285, 4)]  # over at 86,350: it really took 4 rounds
    assert case(23, 273, run_s=9000.0) == [(285, 5)]  # still there after 1,200 s: 5 rounds are likeliest
    assert case(22, 261, run_s=9000.0) == [(273, 16)]  # still there after 4,800 s
    assert case(23, 273, submit_s=86_399.0) == [(288, 5)]  # came in the last second of the day
    assert case(23, 273, submit_s=86_401.0) == []  # had not come, and was expected in rounds 284 to 286
    assert case(24, 285, submit_s=90_000.0) == [(297, 5)]  # was expected in round 297; whether it came is not known


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 40), st.integers(1, 9)), max_size=8),
    st.floats(0, 60),
)
def test_what_is_known_hides_the_future(runs, now):
    runs = sorted(runs)
    history = History([s for s, _, _ in runs], [s + r for s, r, _ in runs], [d for *_, d in runs])
    known = known_by(history, now)
    assert known.submits[-1] == known.ends[-1] == math.inf
    assert all(s < now for s in known.submits[:-1]) and len(known.submits) == 1 + sum(s < now for s, *_ in runs)
    for end, duration, (submit, length, real) in zip(known.ends[:-1], known.durations[:-1], runs, strict=False):
        assert (end, duration) == ((submit + length, real) if submit + length <= now else (math.inf, 0))


def test_laws_need_days_before_the_window(tmp_path):
    tiny_trace(tmp_path)
    for first_day, days in ((0, 1), (1, 2)):
        with pytest.raises(InvalidParameterError, match=rf"first_day = {first_day}: expected at least days = {days}: "):
            learned_laws(
                tmp_path, rng=np.random.default_rng(0), parameters=GoogleParameters(first_day=first_day, days=days)
            )
    with pytest.raises(
        InvalidParameterError, match=r"first_day = 20, days = 2: no recurring job is born in the 2 days"
    ):
        learned_laws(tmp_path, rng=np.random.default_rng(0), parameters=GoogleParameters(first_day=20))


def test_a_scenario_learns_its_laws_with_the_stream_of_its_workload(tmp_path):
    long_trace(tmp_path)
    data = {"name": "x", "workload": {"kind": "google-recurring", "first_day": 1, "days": 1}}
    choice = Scenario.from_dict(data).workload
    workload = choice.build(np.random.default_rng(4), tmp_path)
    laws = choice.statement_laws(workload, np.random.default_rng(4), tmp_path)
    assert laws == learned_laws(tmp_path, rng=np.random.default_rng(4), parameters=DAY_TWO)
    no_past = Scenario.from_dict(data | {"workload": data["workload"] | {"first_day": 0}})
    early = Scenario.from_dict(no_past.to_dict() | {"mechanism": {"name": "stochastic"}})
    no_past.setup(np.random.default_rng(4), data=tmp_path)  # nobody asks for laws
    with pytest.raises(InvalidParameterError, match=r"^first_day = 0: expected at least days = 1: laws are learned"):
        early.setup(np.random.default_rng(4), data=tmp_path)
