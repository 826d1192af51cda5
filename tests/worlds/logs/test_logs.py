"""A market of any log: what is drawn, what is announced, what is left out, and what is refused."""

import gzip
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.agents.lies.base import restated
from marketsched.comparisons.comparing import LOG_DEFAULT, compare
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError, TraceError
from marketsched.mechanisms.registry import get
from marketsched.mechanisms.values import DeadlineValue
from marketsched.play.running import run
from marketsched.worlds.logs import FORMATS
from marketsched.worlds.logs.formats import format_of
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.past import laws_of_histories
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.logs.swf_logs import swf_log
from marketsched.worlds.logs.text_logs import csv_log, sacct_log
from marketsched.worlds.prediction import IntegerLaw, PredictionRule, duration_law
from refusals import refused


def swf_line(job, submit, run_s, width=1, requested=-1, user=-1, executable=-1, status=1, queue=-1):
    return (
        f"{job} {submit} -1 {run_s} {width} -1 -1 -1 {requested} -1 {status} {user} 1 {executable} {queue} -1 -1 -1\n"
    )


@pytest.fixture
def swf(tmp_path):
    def write(lines, name="log.swf", head="; MaxNodes: 4\n; MaxProcs: 16\n; Acknowledge: Ann\n"):
        text = (head + "".join(lines)).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return tmp_path / name

    return write


def drawn(n=200, seed=3, **columns):
    rng = np.random.default_rng(seed)
    runs = {"submit_s": np.cumsum(rng.integers(1, 400, n)), "run_s": rng.integers(1, 5000, n)}
    return pd.DataFrame({**runs, "processors": rng.integers(1, 9, n), **columns})


def test_a_log_is_read_and_what_is_dropped_is_counted(swf):
    lines = [
        swf_line(1, 100, 60), swf_line(2, 50, 60, status=0), swf_line(3, 200, 0), swf_line(4, 210, -1),
        swf_line(5, 220, 30, width=-1), swf_line(6, 230, 30, width=32), swf_line(7, 240, 30, status=5),
    ]  # fmt: skip
    for name in ("log.swf", "log.swf.gz"):
        log = swf_log(swf(lines, name))
        assert (log.nodes, len(log.table), "Ann" in log.source) == (16, 4, True)
        assert log.table["submit_s"].tolist() == [50, 100, 230, 240]
        assert dict(log.counted) == {
            "rows left out: no run time": 1,
            "rows left out: a run of 0 s": 1,
            "rows left out: no processors": 1,
            "runs that failed, kept: they took their nodes": 1,
            "runs that were cancelled, kept: they took their nodes": 1,
            "rows before an earlier submission, sorted": 1,
        }
    market = market_of(log, Window(capacity=16), LogRule(), rng=0)
    assert market.notes["runs left out: wider than 16 nodes"] == 1 and len(market.jobs) == 3


def test_parts_of_a_run_count_once(swf):
    """Where a job has a line of its own beside those of its parts; parts alone are all that is known of theirs."""
    lines = [
        swf_line(1, 0, 900), swf_line(1, 0, 300, status=2), swf_line(1, 400, 600, status=3),
        swf_line(2, 50, 80, status=2), swf_line(2, 300, 90, status=4),
    ]  # fmt: skip
    log = swf_log(swf(lines))
    assert log.table["run_s"].tolist() == [900, 80, 90]
    assert log.counted["rows left out: parts of a run that has a line of its own"] == 2


def test_numbers_that_no_machine_has_are_left_out_and_counted():
    table = {"submit_s": [0, 60, 1e300, 90], "run_s": [60, 60, 60, 1e12], "processors": [1, 1e9, 1, 1]}
    log = JobLog.of(pd.DataFrame({**table, "requested_s": [1e300, 1, 1, 1], "deadline_s": [1e300, 1, 1, 1]}))
    assert len(log.table) == 1 and log.table[["requested_s", "deadline_s"]].isna().all(axis=None)
    left_out = {"rows left out: more than 1,000,000 processors": 1, "rows left out: a time of more than 3,000 years": 2}
    assert log.counted == left_out


def test_a_job_wider_than_the_machine_of_the_log_is_said_above_all(swf):
    """One slip in a row would make the machine as wide, and every load none."""
    log = swf_log(swf([swf_line(i, 60 * i, 600, width=99 if i == 5 else 2) for i in range(1, 31)]))
    market = market_of(log, Window(), LogRule(), rng=0)
    said = "the log says that there are 16 nodes, and a job has 99: there are as many here"
    assert market.capacity == 99 and said in market.notes["warnings"]
    without = market_of(log, Window(max_concurrency=16), LogRule(), rng=0)
    assert without.capacity == 16 and said not in without.notes["warnings"]


DAY_S = 86_400.0
WINDOWS = [  # days, first day, most jobs; the runs in it, those beyond most jobs, the day on which it begins
    (None, None, 99, range(21), 0, 0.0),
    (None, None, 4, range(17, 21), 17, 4.25),
    (1.0, None, 99, range(16, 21), 0, 4.0),
    (1.1, None, 99, range(16, 21), 0, 3.9),
    (1.1, None, 3, range(18, 21), 2, 4.5),
    (9.0, None, 99, range(21), 0, 0.0),  # of a log of 5 days it begins with the first submission, not before
    (1.0, 1.0, 99, range(4, 8), 0, 1.0),  # that of its last moment is not in it
    (1.0, 1.1, 99, range(5, 9), 0, 1.1),
    (1.0, 1.1, 3, range(5, 8), 1, 1.25),
    (None, 5.0, 99, [20], 0, 5.0),
]


@pytest.mark.parametrize("stretch", [1.0, 2.5])
@pytest.mark.parametrize(("days", "first_day", "most_jobs", "runs", "beyond", "begins"), WINDOWS)
def test_a_window_has_its_runs_and_counts_others(days, first_day, most_jobs, runs, beyond, begins, stretch):
    """Two runs come every quarter of a day, from day 0 to 5; one of them is too wide. A deadline is 2 h after both."""
    days_in, each = np.repeat(np.arange(21) / 4, 2), np.arange(42) // 2
    table = {"submit_s": 25_200 + DAY_S * days_in, "run_s": 900 + each, "processors": [2, 9] * 21, "user": "a"}
    log = JobLog.of(pd.DataFrame(table).assign(deadline_s=table["submit_s"] + 7200))
    rule = LogRule(round_seconds=70, durations="revealed")
    window = Window(days, first_day, most_jobs, capacity=8, stretch=stretch)
    market = market_of(log, window, rule, rng=0)
    since = [stretch * DAY_S * (i / 4 - begins) for i in runs]
    assert [job.tags["run_s"] for job in market.jobs] == [900 + i for i in runs]
    assert [job.tags["submit_s"] for job in market.jobs] == pytest.approx(since)
    assert [job.truth.birth for job in market.jobs] == [s // 70 + 1 for s in since]
    assert [job.truth.value.deadline for job in market.jobs] == [(s + 7200) // 70 + 1 for s in since]
    assert market.notes["runs left out: wider than 8 nodes"] == len(runs)
    assert market.notes.get(f"runs of the window beyond most_jobs = {most_jobs}", 0) == beyond
    with pytest.raises(InvalidParameterError, match="no run is in the window: the log has 21 usable runs"):
        market_of(log, Window(days, 5.1, most_jobs, capacity=8, stretch=stretch), rule, rng=0)


def test_requested_times_are_announced_and_real_ones_happen(swf):
    lines = [swf_line(i, 600 * i, 100 * i, requested=1200 if i % 3 else -1) for i in range(1, 31)]
    log = swf_log(swf(lines))
    market = market_of(log, Window(), LogRule(round_seconds=60), rng=0)
    for i, job in enumerate(market.jobs, 1):
        assert job.duration in (100 * i // 60, -(-100 * i // 60)) and job.signal is None
        assert job.truth.birth == job.arrival == 10 * (i - 1) + 1
        if i % 3:
            assert job.truth.law.durations.tolist() == [20] and job.tags["requested"] == 20
    assert market.notes["runs without a requested time, announced by the past"] == 10
    assert market.notes["runs longer than announced"] > 0 and "requested" in market.notes["what owners announce"]
    known = market_of(log, Window(), LogRule(round_seconds=60, durations="revealed"), rng=0)
    assert all(job.truth.law.durations.tolist() == [job.duration] == [job.signal] for job in known.jobs)


def test_every_job_of_a_log_may_save_its_work(swf):
    log = swf_log(swf([swf_line(i, 600 * i, 100 * i, requested=1200) for i in range(1, 31)]))
    plain, saving = (market_of(log, Window(), LogRule(checkpoint_every=every), rng=0) for every in (None, 4))
    assert (
        {job.truth.checkpoint for job in saving.jobs} == {4} == set(pickle.loads(pickle.dumps(saving)).jobs.checkpoints)
    )
    assert saving.jobs.columns(99).checkpoints.tolist() == [4] * 30 and not plain.jobs.columns(99).checkpoints.any()
    assert [restated(job.truth, checkpoint=0) for job in saving.jobs] == [job.truth for job in plain.jobs]
    assert "work is saved every 4 rounds" in saving.notes["rule"]
    with pytest.raises(InvalidParameterError, match=r"rule\.checkpoint_every = 4: expected None where the law is rec"):
        market_of(log, Window(), LogRule(checkpoint_every=4, law="recurring"), rng=0)
    with pytest.raises(InvalidParameterError, match="checkpoint_every"):
        LogRule(checkpoint_every=0)


def test_who_is_unknown_is_no_recurring_job():
    nobody = drawn(user=-1, executable=-1)
    market = market_of(JobLog.of(nobody), Window(), LogRule(), rng=0)
    assert len({job.owner for job in market.jobs}) == len(market.jobs) == 200
    with pytest.raises(InvalidParameterError, match=r"law: past or requested makes a job of every run"):
        market_of(JobLog.of(nobody), Window(), LogRule(law="recurring"), rng=0)
    with pytest.raises(InvalidParameterError, match=r"rule\.law = 'requested': expected past or recurring"):
        market_of(JobLog.of(nobody), Window(), LogRule(law="requested"), rng=0)
    regular = pd.DataFrame({"submit_s": 3600 * np.arange(60), "run_s": 900, "processors": 2, "user": 1})
    half = regular.assign(executable=[1, -1] * 30)
    found = market_of(JobLog.of(half), Window(days=1), LogRule(law="recurring"), rng=0)
    assert found.notes["runs left out: user or executable unknown, not one recurring job"] in (12, 13)
    assert all(job.truth.birth < job.arrival for job in found.jobs)


def test_the_past_is_what_had_ended_by_then():
    """Every announced duration is that of a run of the same program, width or log that was over; none lies ahead."""
    log = JobLog.of(drawn(user=np.arange(200) % 5, executable=np.arange(200) % 3))
    market = market_of(log, Window(), LogRule(law="past", round_seconds=1.0, max_hours=9999 / 3600, history=1), rng=0)
    table = log.table
    ends = table["submit_s"] + table["run_s"]
    for i, job in enumerate(market.jobs):
        ended = ends <= table["submit_s"].iat[i]
        same = (table["user"] == table["user"].iat[i]) & (table["executable"] == table["executable"].iat[i])
        likeliest = job.truth.law.durations[np.argmax(job.truth.law.probabilities)]
        if (ended & same).any():
            assert likeliest == int(table["run_s"][ended & same].iloc[-1])
        elif not ended.any():
            assert likeliest == 9999


def test_draws_are_paired():
    """Classes, densities and slacks have streams of their own: another slack moves no value, and so on."""
    log = JobLog.of(drawn())
    base, slower, same = (market_of(log, Window(), LogRule(slack=k), rng=5) for k in (1, 3, 1))
    assert base.jobs == same.jobs
    assert [job.truth.value.highest for job in base.jobs] == [job.truth.value.highest for job in slower.jobs]
    assert all(a.truth.value.last <= b.truth.value.last for a, b in zip(base.jobs, slower.jobs, strict=True))
    requested = JobLog.of(drawn(requested_s=np.linspace(60, 6000, 200)))
    tags = [job.tags for job in market_of(requested, Window(), LogRule(), rng=5).jobs]
    assert all(a["class"] >= b["class"] for a, b in pairwise(tags))  # the longer the request the more patient
    queued = JobLog.of(drawn(queue=np.arange(200) % 2, requested_s=60.0))
    assert "queues" in market_of(queued, Window(), LogRule(), rng=5).notes["classes"]


def test_without_deadlines_values_fall_by_the_hour():
    runs = drawn(150, requested_s=6000.0, deadline_s=np.where(np.arange(150) % 5, np.nan, 9e5))
    market = market_of(JobLog.of(runs), Window(capacity=10), LogRule(round_seconds=300.0), rng=3)
    columns = market.table.columns(market.max_delay)
    for row in range(20):
        job = market.jobs[row]
        curve, steps = job.truth.value, slice(*columns.begins[row : row + 2])
        if row % 5 == 0:  # the log's own
            assert isinstance(curve, DeadlineValue) and curve.last == int((9e5 - runs["submit_s"][0]) // 300) + 1
            continue
        times = np.arange(job.truth.birth + 1, market.horizon + 2)
        values = curve(times)
        assert values.tolist() == columns.values[steps][np.searchsorted(columns.lasts[steps], times)].tolist()
        hyperbola = curve.value * curve.half / (curve.half + np.maximum(times - curve.start, 0.0))
        assert (np.abs(np.log2(values / np.maximum(hyperbola, curve.value / 32))) < 0.25).all()
        hours, requested = curve.half / 12, 20 / 12
        assert 0.49 < hours / np.dot(((96, 2), (24, 1), (4, 0.25))[job.tags["class"]], (1, requested)) < 1.51
        assert curve.start == job.truth.birth + 20


@pytest.mark.parametrize("load", [0.7, 1.5])
def test_without_deadlines_every_job_is_run(tmp_path, load):
    drawn(150, requested_s=6000.0).to_csv(tmp_path / "mine.csv", index=False)
    workload = {"kind": "csv", "path": str(tmp_path / "mine.csv"), "load": load}
    found = compare({"name": "mine", "workload": workload}, runs=2, seed=5).runs.set_index("mechanism")
    assert set(found.index) == set(LOG_DEFAULT) and (found["completed"] == 150).all()


@pytest.mark.compiled
@pytest.mark.parametrize("durations", ["hidden", "revealed"])
def test_a_log_is_a_scenario(tmp_path, durations):
    drawn(60).to_csv(tmp_path / "mine.csv", index=False)
    scenario = Scenario.load(tmp_path / "mine.csv")
    assert scenario.workload.kind == "csv" == format_of(tmp_path / "mine.csv")
    data = {**scenario.to_dict(), "mechanism": {"name": "first-come"}}
    data["workload"] |= {"days": 1, "rule": {"durations": durations}}
    scenario = Scenario.from_dict(data)
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    result = run(scenario)
    assert "lognormal-classes" in result.meta["workload"]["rule"] and result.outcome["jobs"] == 60
    for key, message in (
        ("slack", r"slack = -1: expected a finite number >= 0"),
        ("slak", "keys of name"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            Scenario.from_dict({**data, "workload": {**data["workload"], "rule": {key: -1}}})
    with pytest.raises(MissingDataError):
        Scenario.from_dict({**data, "workload": {"kind": "csv", "path": "no.csv"}}).workload_of(0, tmp_path / "no")
    with pytest.raises(MissingDataError, match=r"no\.csv: No such file"):
        Scenario.from_dict({**data, "workload": {"kind": "csv", "path": "no.csv"}}).workload_of(0, tmp_path)


def test_every_format_is_a_kind_and_stands_on_the_page():
    page = (Path(__file__).resolve().parents[3] / "docs/logs.csv").read_text(encoding="utf-8")
    for kind in FORMATS:
        assert get("workload", kind).kind == kind and f"\n`{kind}`," in page


GOOD = "submit_s,run_s,processors,user\n1,2,3,a\n"
ROWS = {  # a row that cannot be read, and what is said of it
    "negative": ("-5,2,3,a\n", "line 3: submit_s = '-5'"),
    "very negative run": ("5,-7,3,a\n", "line 3: run_s = '-7'"),
    "infinite": ("5,inf,3,a\n", "line 3: run_s = 'inf'"),
}
RAGGED = {  # rows, and what is said of the first that has more or fewer fields than the header
    "missing field": ("5,2,3\n", "3: 3 fields, not 4"),
    "a field too many": ("5,2,3,a,b\n", "3: 5 fields, not 4"),
    "cut short": ("5,2", "3: 2 fields, not 4"),
    "several": ("6,2,3,a\n1,2\n6,2,3,a\n,2,3\n1\n", "4: 2 fields, not 4 (and 2 more such rows)"),
}
BAD_CSV = {
    "no column": ("submit_s,run_s\n1,2\n", r"bad.csv: no column is known to be processors: expected --columns"),
    "twice": ("submit_s,run_s,processors,run_s\n1,2,3,4\n", "the column 'run_s' occurs twice"),
    "no rows": (GOOD.splitlines()[0] + "\n", "has a header and no rows"),
    "no good row": (GOOD.splitlines()[0] + "\nx,2,3,a\n", r"no row can be read \(line 2: submit_s = 'x'\)"),
    "a long line": (GOOD + "1," * 5_000_000 + "\n", "a line of more than 4,000,000 bytes"),
    "a long header": ("x," * 5_000_000, "a first line of more than 100,000 bytes"),
}


@pytest.mark.parametrize("fault", ROWS)
def test_a_row_that_cannot_be_read_is_counted_and_shown_or_refused(tmp_path, fault):
    text, said = ROWS[fault]
    (tmp_path / "bad.csv").write_text(GOOD + text)
    log = csv_log(tmp_path / "bad.csv")
    assert len(log.table) == 1 and log.counted == {f"rows left out: not understood ({said})": 1}
    with pytest.raises(TraceError, match="bad.csv:3: " + said.partition(": ")[2]):
        csv_log(tmp_path / "bad.csv", strict=True)


@pytest.mark.parametrize("fault", RAGGED)
def test_a_ragged_table_is_refused_and_its_row_named(tmp_path, fault):
    text, said = RAGGED[fault]
    (tmp_path / "bad.csv").write_text(GOOD + text)
    with pytest.raises(TraceError) as error:
        csv_log(tmp_path / "bad.csv")
    assert str(error.value) == f"{tmp_path}/bad.csv:{said}: expected as many fields in each row as the header names"


def test_of_many_bad_rows_the_first_three_are_shown(tmp_path):
    (tmp_path / "bad.csv").write_text(GOOD + "x,2,3,a\n\n1,-2,3,a\n" + "y,2,3,a\n" * 5 + ",2,3,a\n")
    (what, count), (unknown, one) = csv_log(tmp_path / "bad.csv").counted.items()
    assert count == 7
    assert what.removeprefix("rows left out: not understood ") == (
        "(line 3: submit_s = 'x'; line 5: run_s = '-2'; line 6: submit_s = 'y', ...)"
    )
    assert (unknown, one) == ("rows left out: no submission time", 1)


@pytest.mark.parametrize("fault", BAD_CSV)
def test_a_bad_csv_is_one_line(tmp_path, fault):
    text, message = BAD_CSV[fault]
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(TraceError, match=message) as error:
        csv_log(tmp_path / "bad.csv")
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le"])
def test_other_encodings_are_refused(tmp_path, encoding):
    (tmp_path / "bad.csv").write_bytes(GOOD.encode(encoding))
    (tmp_path / "bad.swf").write_bytes(swf_line(1, 2, 3).encode(encoding))
    refused(lambda: csv_log(tmp_path / "bad.csv"), "bad.csv:1", " UTF-8 text", error=TraceError)
    refused(lambda: swf_log(tmp_path / "bad.swf"), "bad.swf", "no row can be read (line 1: ", error=TraceError)


@pytest.mark.filterwarnings("error")
def test_a_row_that_is_no_text_is_named_whatever_else_it_has(tmp_path):
    header, row = "JobID|User|Submit|ElapsedRaw|NNodes|State\n", "7|ann|2026-03-01T10:00:00|60|1|COMPLETED\n"
    (tmp_path / "jobs.txt").write_bytes((header + 40_000 * row).encode() + b"8|\xe9nn|more|" + row.encode())
    refused(lambda: sacct_log(tmp_path / "jobs.txt"), "jobs.txt:40002", "byte 0xe9", " UTF-8 text", error=TraceError)


BAD_SWF = {
    "truncated": ("2 5 -1 60 1 -1", "6 fields: expected 18 numbers"),
    "negative": (swf_line(1, -5, 3), "submit_s = '-5': expected a number >= 0, or -1"),
    "a negative run": (swf_line(1, 5, -3), "run_s = '-3': expected a number >= 0, or -1"),
    "text": (swf_line(1, 2, "long"), "run_s = 'long': expected a number >= 0, or -1"),
    "half a processor": (swf_line(1, 2, 3, width=1.5), "processors = '1.5': expected a whole number >= 0, or -1"),
    "a header of names": ("job submit " * 9, "job = 'job': expected a whole number >= 0, or -1"),
    "a long line": ("1 " * 17 + "1" * 5_000_000 + "x", f"think_s = '{'1' * 80}': expected a number >= 0, or -1"),
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("fault", BAD_SWF)
def test_a_bad_row_of_swf_is_counted_or_refused(tmp_path, fault):
    """It is counted among others, an error where rows are refused, and one where there is no other row."""
    text, message = BAD_SWF[fault]
    path = tmp_path / "bad.swf"
    path.write_text(f"{swf_line(1, 2, 3)}{text.strip()}\n{swf_line(3, 9, 9)}")
    log = swf_log(path)
    assert len(log.table) == 2 and log.counted == {f"rows left out: not understood (line 2: {message})": 1}
    refused(lambda: swf_log(path, strict=True), f"bad.swf:2: {message}", error=TraceError)
    path.write_text(text)
    with pytest.raises(TraceError, match="no row can be read") as error:
        swf_log(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


def test_a_cut_gzip_is_refused_and_a_second_header_of_swf_is_a_comment(swf):
    path = swf([swf_line(1, 2, 3), "; MaxProcs: 99\n", swf_line(2, 4, 5)], "two.swf.gz")
    assert (swf_log(path).nodes, len(swf_log(path).table)) == (16, 2)
    path.write_bytes(path.read_bytes()[:-12])
    refused(lambda: swf_log(path), "the gzip file is cut short", error=TraceError)


@given(st.lists(st.lists(st.integers(1, 40), max_size=6), min_size=1, max_size=5))
def test_laws_of_many_histories_are_those_of_each(histories):
    """To the last bit: the compiled rule adds in the order of the one that the predictions of single runs use."""
    table = np.array([[*row, *[0] * (6 - len(row))] for row in histories])
    rule = PredictionRule(max_duration=40, filling=0.0)
    for law, row in zip(laws_of_histories(table, 40), histories, strict=True):
        expected = duration_law(row, rule) if row else IntegerLaw(np.array([40]), np.array([1.0]))
        assert law.values.tolist() == expected.values.tolist()
        assert law.probabilities.tolist() == expected.probabilities.tolist()
