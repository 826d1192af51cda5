"""Logs as tables of text: sacct's output with what is odd in it, and CSV files under foreign names."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from marketsched import compare
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError, TraceError
from marketsched.show.cli import app
from marketsched.worlds.logs.delimited import REPEATED
from marketsched.worlds.logs.formats import format_of, read_log
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.reruns import PARTS, RUNS_LOST
from marketsched.worlds.logs.rule import LogRule

SACCT = """JobID|User|JobName|Partition|Submit|Start|End|Elapsed|Timelimit|AllocTRES|State
10|ann|train|gpu|2026-03-02T00:00:00|2026-03-02T00:10:00|2026-03-02T01:10:00|01:00:00|08:00:00|cpu=16,gres/gpu=4,node=2|COMPLETED
10.batch||batch||2026-03-02T00:00:00|2026-03-02T00:10:00|2026-03-02T01:10:00|01:00:00||cpu=16,node=1|COMPLETED
10.0||train||2026-03-02T00:00:00|2026-03-02T00:10:00|2026-03-02T01:10:00|01:00:00||cpu=16,node=2|COMPLETED
11_[1-9]|bob|sweep|cpu|2026-03-02T00:05:00|Unknown|Unknown|00:00:00|1-00:00:00||PENDING
12|bob|sweep|cpu|2026-03-02T00:06:00|2026-03-02T00:06:30|Unknown|02:00:00|1-00:00:00|node=1|RUNNING
13|bob|sweep|cpu|2026-03-02T00:07:00|Unknown|2026-03-02T00:08:00|00:00:00|UNLIMITED||CANCELLED by 1001
14|bob|build|cpu|2026-03-02T00:08:00|2026-03-02T00:09:00|2026-03-03T01:09:05|1-01:00:05|UNLIMITED|cpu=8,node=1|TIMEOUT
15|cat|build|cpu|yesterday|2026-03-02T00:09:00|2026-03-02T00:10:00|00:01:00|01:00:00|node=1|FAILED
16|cat|a|b|cpu|2026-03-02T00:09:00|2026-03-02T00:09:00|2026-03-02T00:10:00|00:01:00|01:00:00|node=1|FAILED
"""


def test_the_jobs_of_sacct_that_have_ended(tmp_path):
    (tmp_path / "sacct.txt").write_text(SACCT)
    assert format_of(tmp_path / "sacct.txt") == "sacct"
    log = read_log(tmp_path / "sacct.txt", "sacct")
    assert log.table["run_s"].tolist() == [3600.0, 90_005.0]
    assert log.table["processors"].tolist() == [2, 1] and log.table["user"].tolist() == ["ann", "bob"]
    assert log.table["requested_s"].tolist()[0] == 8 * 3600 and log.table["requested_s"].isna().tolist() == [
        False,
        True,
    ]
    assert log.table["submit_s"].diff().tolist()[1] == 480
    assert dict(log.counted) == {
        "rows left out: steps of jobs": 2,
        "rows left out: jobs that had not ended": 2,
        "rows left out: not understood (line 9: Submit = 'yesterday'; line 10: 12 fields, not 11)": 2,
        "rows left out: a run of 0 s": 1,
        "runs that failed, kept: they took their nodes": 1,
    }


AGAIN = """JobID|User|Account|JobName|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|NNodes|ReqTRES|State
1|ann|phys|a|gpu|high|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T00:00:00|2026-03-01T01:05:00|3900|1|node=1|REQUEUED
1|ann|phys|a|gpu|high|2026-03-01T01:05:01|2026-03-01T01:07:01|2026-03-01T01:10:00|2026-03-01T02:10:00|3600|1|node=1|PREEMPTED
1|ann|phys|a|gpu|high|2026-03-01T02:10:01|2026-03-01T02:10:01|2026-03-01T03:00:00|2026-03-01T03:30:00|1800|1|node=1|COMPLETED
2|bob|bio|b|cpu|low|2026-03-01T00:20:00|2026-03-01T01:00:00|2026-03-01T01:00:00|2026-03-01T02:00:00|3600|2|node=2|COMPLETED
2|bob|bio|b|cpu|low|2026-04-01T00:20:00|2026-04-01T00:20:00|2026-04-01T01:00:00|2026-04-01T02:00:00|3600|2|node=2|COMPLETED
3+0|eve|bio|c|cpu|low|2026-03-01T00:30:00|2026-03-01T00:30:00|2026-03-01T00:31:00|2026-03-01T02:31:00|7200|1|node=1|COMPLETED
3+1|eve|bio|c|gpu|low|2026-03-01T00:30:00|2026-03-01T00:30:00|2026-03-01T00:31:00|2026-03-01T02:30:00|7140|2|node=2|COMPLETED
"""


def test_rows_of_one_job_are_one_job_and_queries_that_overlap_count_once(tmp_path):
    """`sacct -D` has a row for each run, with a submission of its own, and one for each part; numbers come again."""
    (tmp_path / "sacct.txt").write_text(AGAIN + AGAIN)
    log = read_log(tmp_path / "sacct.txt", "sacct")
    table = log.table.assign(wait=log.table["start_s"] - log.table["submit_s"])
    assert table[["user", "processors", "run_s", "lost_s", "wait"]].values.tolist() == [
        ["ann", 1, 1800.0, 7500.0, 10_800.0], ["bob", 2, 3600.0, 0.0, 2400.0], ["eve", 3, 7200.0, 0.0, 60.0],
        ["bob", 2, 3600.0, 0.0, 2400.0],
    ]  # fmt: skip
    assert {REPEATED: 8, RUNS_LOST: 2, PARTS: 1}.items() <= log.counted.items()  # the second header, too
    assert table[["account", "qos", "queue", "requests"]].values.tolist()[1] == ["bio", "low", "cpu", "node=2"]
    assert (table["eligible_s"] - table["submit_s"]).tolist() == [0.0, 2400.0, 0.0, 0.0]
    (tmp_path / "sacct.txt").write_text(AGAIN.replace("JobName", "Comment"))
    assert read_log(tmp_path / "sacct.txt", "sacct").source.endswith("; not read: Comment")
    scenario = Scenario.load(tmp_path / "sacct.txt").with_mechanism("fair-share")
    tree = scenario.setup(np.random.default_rng(0)).mechanism.tree
    assert tree.portions() == {"ann": 0.5, "bob": 0.25, "eve": 0.25}  # accounts are the upper level


CLOCK = """JobID|User|Submit|Start|End|ElapsedRaw|NNodes|State
1|ann|2025-10-26T02:50:00|2025-10-26T02:17:00|2025-10-26T03:17:00|3600|1|COMPLETED
2|bob|2025-10-26T01:50:00|2025-10-26T01:50:00|2025-10-26T02:20:00|5400|1|COMPLETED
"""


def test_a_change_of_clocks_is_read_in_its_zone_and_said(tmp_path):
    (tmp_path / "jobs.txt").write_text(CLOCK)
    assert "2 of 2 rows start before their submission" in read_log(tmp_path / "jobs.txt", "sacct").warnings[0]
    workload = {"kind": "sacct", "path": str(tmp_path / "jobs.txt"), "zone": "Europe/Berlin"}
    assert "hour that Europe/Berlin has twice" in log_of_kind(**workload).notes["warnings"]
    table = read_log(tmp_path / "jobs.txt", "sacct", zone="Europe/Berlin").table
    assert (table["start_s"] - table["submit_s"]).tolist() == [0.0, 1620.0]
    with pytest.raises(InvalidParameterError, match="zone = 'Berlin': expected a time zone, as Europe/Berlin"):
        log_of_kind(**{**workload, "zone": "Berlin"})


@pytest.mark.parametrize(
    ("printed", "what"),
    [
        ("JobID           User     Submit    State \n------ ", "sacct's fixed widths.* sacct -a -P"),
        ("   JOBID PARTITION     NAME     USER ST       TIME  NODES\n", "squeue's list.* sacct -a -P"),
        ("-" * 80 + "\nCluster/Account/User Utilization 2026", "a report of sreport.* sacct -a -P"),
        ("JobId=101 JobName=train\n", "scontrol's list.* sacct -a -P"),
        ("Summary of time in seconds spent:\nJOBID USER\n1 ann", "no times of submission.* bjobs -a -o"),
        ("JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST\n", "a list of LSF.* bjobs -a -o"),
        ("Job id            Name             User\n", "qstat's list.* accounting files of PBS"),
        ("NAME    READY   STATUS      RESTARTS   AGE\n", "kubectl's list.* CSV with namespace"),
        ("nothing in particular\n", "first line 'nothing in particular': expected a scenario in YAML"),
    ],
)  # fmt: skip
def test_what_is_printed_for_people_is_refused_with_what_can_be_read(printed, what, tmp_path):
    (tmp_path / "notes.txt").write_text(printed)
    with pytest.raises(InvalidParameterError, match=what):
        Scenario.load(tmp_path / "notes.txt")


def test_a_log_that_is_not_there_is_named_first(monkeypatch):
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    for kind in ("swf", "csv"):
        with pytest.raises(MissingDataError, match=r"^nope: no such file"):
            Scenario.from_dict({"name": "x", "workload": {"kind": kind, "path": "nope"}}).workload_of(0)


def test_lengths_of_sacct_come_from_any_of_its_columns(tmp_path):
    rows = "User|Submit|{}|NNodes\nann|2026-03-02 00:00:00|{}|3\n"
    for names, values in (
        ("ElapsedRaw|TimelimitRaw", "3600|480"),
        ("Elapsed|Timelimit", "01:00:00|08:00:00"),
        ("Start|End|Timelimit", "2026-03-02T00:01:00|2026-03-02T01:01:00|08:00:00"),
        ("Elapsed|Timelimit", "60:00|08:00:00"),
    ):
        (tmp_path / "sacct.out").write_text(rows.format(names, values))
        log = read_log(tmp_path / "sacct.out", format_of(tmp_path / "sacct.out"))
        row = log.table.iloc[0]
        assert (row["run_s"], row["requested_s"], row["processors"]) == (3600.0, 8 * 3600.0, 3)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_foreign_names_zones_and_separators(tmp_path, separator):
    lines = ["Who,When,Took,Boxes", "ann,2026-03-02T01:00:00+01:00,600,2", '"b, c",2026-03-02T00:30:00Z,0:20:00,1']
    if separator == ",":
        lines[2] = '"b c",2026-03-02T00:30:00Z,0:20:00,1'
    (tmp_path / "own.csv").write_text("\n".join(line.replace(",", separator) for line in lines) + "\n")
    names = {"user": "Who", "submit_s": "When", "run_s": "Took", "processors": "Boxes"}
    table = read_log(tmp_path / "own.csv", "csv", names).table
    assert table["submit_s"].diff().tolist()[1] == 1800 and table["run_s"].tolist() == [600, 1200]
    for given, message in (
        ({}, "no column is known to be submit_s, run_s, processors: expected --columns submit_s=COLUMN"),
        ({**names, "user": "Whom"}, "columns.user: no column 'Whom': expected one of Who, When, Took, Boxes"),
    ):
        with pytest.raises(TraceError, match=message):
            read_log(tmp_path / "own.csv", "csv", given)


def test_what_a_log_says_of_values_and_deadlines_is_used(tmp_path):
    (tmp_path / "own.csv").write_text(
        "submit_s,run_s,processors,value,deadline\n0,600,2,40,3600\n60,600,1,,\n120,600,1,7.5,100\n"
    )
    log = read_log(tmp_path / "own.csv", "csv")
    market = market_of(log, Window(), LogRule(round_seconds=60.0, durations="revealed"), rng=0)
    first, drawn, late = (job.truth.value for job in market.jobs)
    assert (first.value, first.deadline) == (40.0, 61)  # a run that ends at 3600 s has s + d = 61
    assert late.value == 7.5 and late.deadline == 4  # lies before it could end: worth nothing
    assert drawn.value not in (40.0, 7.5) and drawn.deadline > 11
    assert market.notes["values"] == "the log's own, of 2 of 3 jobs"
    assert market.notes["deadlines"] == "the log's own, of 2 of 3 jobs"


@pytest.mark.slow
def test_a_log_comes_in_with_one_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").write_text(SACCT)
    rows = "".join(f"{i % 3};{600 * i};{900 + i};{1 + i % 2}\n" for i in range(40))
    (tmp_path / "own.csv").write_text("Who;When;Took;Boxes\n" + rows + "9;y;1;1\n")
    columns = "user=Who,submit_s=When,run_s=Took,processors=Boxes"
    for call in (["run", "jobs"], ["run", "own.csv", "--columns", columns]):
        found = CliRunner().invoke(app, [*call, "-m", "first-come", "--json", "--out", call[1] + "-out"])
        assert found.exit_code == 0 and json.loads(found.stdout)["jobs"] in (2, 40)
    refused = CliRunner().invoke(app, ["run", "own.csv", "--columns", columns, "--strict", "--out", "no"])
    assert refused.exit_code == 2 and "own.csv:42: When = 'y'" in refused.stderr
    wrong = CliRunner().invoke(app, ["run", "own.csv", "--columns", "owner=Who", "--out", "no"])
    assert wrong.exit_code == 2 and "keys of submit_s, run_s" in wrong.stderr
    assert "(not 'owner'; did you mean 'user'?)" in wrong.stderr
    with pytest.raises(InvalidParameterError, match="swf has columns of its own"):
        log_of_kind("swf", columns={"user": "Who"})
    with pytest.raises(InvalidParameterError, match="strict = True: expected nothing: philly is always read so"):
        log_of_kind("philly", strict=True)


def log_of_kind(kind, **keys):
    return Scenario.from_dict({"name": "x", "workload": {"kind": kind, "path": "jobs", **keys}}).workload_of(0)


def test_the_machine_is_the_one_the_log_names(tmp_path):
    head = "; MaxProcs: 128\n"
    lines = [f"{i} {60 * i} -1 600 {w} -1 -1 -1 -1 -1 1 1 1 1 1 -1 -1 -1\n" for i, w in enumerate((128, 1, 64), 1)]
    (tmp_path / "own.swf").write_text(head + "".join(lines))
    assert Scenario.load(tmp_path / "own.swf").workload_of(0).capacity == 128


# -- what is not honoured is said ----------------------------------------------------------------------------

MESSY = """JobID|User|Submit|Start|End|Timelimit|NNodes|NCPUS|ReqTRES|State
1|ann|2026-03-02T00:00:00|2026-03-02T00:10:00|2026-03-02T01:10:00|UNLIMITED|1|64|cpu=64,gres/gpu:a100=4,gres/gpu=4,node=1|COMPLETED
2|bob|2026-03-02T02:00:00|2026-03-02T02:10:00|2026-03-02T03:10:00|08:00:00|1|8|cpu=8,gres/gpu:v100=1,gres/gpu=1,node=1|COMPLETED
3|bob|2026-03-02T03:00:00|2026-03-02T03:10:00|2026-03-02T03:40:00|08:00:00|2|128|cpu=128,node=2|REQUEUED
3|bob|2026-03-02T03:00:00|2026-03-02T05:10:00|2026-03-02T06:10:00|08:00:00|2|128|cpu=128,node=2|COMPLETED
4|cat|2026-03-02T04:00:00|Unknown|Unknown|08:00:00|1|4|cpu=4,node=1|REQUEUED
"""


def test_what_equal_nodes_do_not_know_is_said(tmp_path):
    (tmp_path / "messy.txt").write_text(MESSY)
    log = read_log(tmp_path / "messy.txt", "sacct")
    assert log.warnings == (
        "2 of 4 jobs use less than whole nodes (of 64 cores) and count as whole ones: --columns processors=NCPUS "
        "counts cores, also in --nodes",
        "2 of 4 jobs ask for GPUs (a100, v100), which equal nodes do not know: marketsched scenarios FILE proposes "
        "a cluster with them",
    )
    assert log.table["run_s"].tolist() == [3600.0] * 3 and log.table["lost_s"].tolist() == [0.0, 0.0, 1800.0]
    cores = read_log(tmp_path / "messy.txt", "sacct", columns={"processors": "NCPUS"})
    assert len(cores.warnings) == 1 and cores.table["processors"].tolist() == [64, 8, 128]


@pytest.mark.slow
def test_a_table_without_users_or_nodes_says_so_above_the_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{600 * i},{600 * (1 + i % 3)},{1 + i % 2}" for i in range(30)]
    (tmp_path / "jobs.csv").write_text("\n".join(["submit_s,run_s,gpus", *rows]) + "\n")
    call = ["compare", "jobs.csv", "-m", "fair-share", "--runs", "1", "--out", "out"]
    first, second, *_ = CliRunner().invoke(app, call).stdout.splitlines()
    assert first.startswith("NOTE: no column says whose a job is") and second.startswith("NOTE: the log does not say")
    named = CliRunner().invoke(app, [*call, "--force", "--nodes", "3"])
    assert "how many nodes" not in named.stdout and "nodes: 3, as configured" in named.stdout


KUBERNETES = """namespace,name,creationTimestamp,startTime,completionTime,cpu,nvidia.com/gpu,status
a,x,2026-03-02T00:00:00Z,2026-03-02T00:01:00Z,2026-03-02T00:11:00Z,500m,0,Succeeded
b,y,2026-03-02T00:05:00Z,2026-03-02T00:05:00Z,2026-03-02T01:05:00Z,16,4,Failed
b,z,2026-03-02T00:06:00Z,,,2,0,Pending
"""


def test_jobs_of_kubernetes(tmp_path):
    (tmp_path / "jobs.csv").write_text(KUBERNETES)
    log = read_log(tmp_path / "jobs.csv", "csv")
    assert log.table["processors"].tolist() == [1, 16] and log.table["run_s"].tolist() == [600.0, 3600.0]
    assert log.table["user"].tolist() == ["a", "b"]
    assert log.warnings == (
        "1 of 2 jobs ask for a part of one (cpu) and count as whole ones",
        "1 of 2 jobs ask for GPUs, which equal nodes do not know: marketsched scenarios FILE proposes a cluster with "
        "them",
    )
    assert log.counted == {
        "rows left out: jobs that had not ended": 1,
        "runs that failed, kept: they took their nodes": 1,
    }


# -- LSF and PBS ---------------------------------------------------------------------------------------------

BJOBS = """USER|STAT|SUBMIT_TIME|START_TIME|FINISH_TIME|SLOTS|RUNTIMELIMIT
ann|DONE|Mar  2 00:10:00 2026|Mar  2 00:20:00 2026|Mar  2 01:20:00 2026 L|16|480.0
bob|RUN|Mar  2 00:11:00 2026|Mar  2 00:21:00 2026|Mar  2 08:21:00 2026 E|16|480.0
cat|EXIT|Mar 12 00:10:00 2026|Mar 12 00:20:00 2026|Mar 12 00:21:00 2026|1|60.0
"""
_ENDED = (
    "user={} group=g jobname=sim queue=q ctime=1772410200 qtime=1772410200 etime=1772410200 start=1772410800 "
    "exec_host=n1/0*16 Resource_List.ncpus={} Resource_List.nodect=2 Resource_List.select=2:ncpus=16 "
    'Resource_List.walltime=08:00:00 account="a = b" end=1772414400 Exit_status={} resources_used.walltime=01:00:00'
)
ACCOUNTING = "\n".join(
    (
        "03/02/2026 00:10:00;Q;1.pbs;queue=q",
        "03/02/2026 01:20:00;E;1.pbs;" + _ENDED.format("ann", 32, 0),
        "03/02/2026 01:20:00;R;2.pbs;" + _ENDED.format("bob", 3, -11),
        "03/02/2026 01:20:00;E;2.pbs;" + _ENDED.format("bob", 3, 271),
        "03/02/2026 01:20:00;E;3[].pbs;" + _ENDED.format("cat", 32, 0),
        "03/02/2026 01:20:00;E",
        "",
    )
)


def test_jobs_of_lsf(tmp_path):
    (tmp_path / "bjobs.txt").write_text(BJOBS)
    table = read_log(tmp_path / "bjobs.txt", format_of(tmp_path / "bjobs.txt")).table
    assert table["user"].tolist() == ["ann", "cat"] and table["run_s"].tolist() == [3600.0, 60.0]
    assert table["submit_s"].tolist() == [1772410200.0, 1772410200.0 + 10 * 86_400]
    assert table["requested_s"].tolist() == [8 * 3600.0, 3600.0]  # its limits are in minutes


def test_the_accounting_of_pbs(tmp_path):
    (tmp_path / "20260302").write_text(ACCOUNTING)
    assert format_of(tmp_path / "20260302") == "pbs"
    log = read_log(tmp_path / "20260302", "pbs")
    assert log.table["user"].tolist() == ["ann", "bob"] and log.table["processors"].tolist() == [2, 2]
    assert log.table["submit_s"].tolist() == [1772410200.0] * 2 and log.table["run_s"].tolist() == [3600.0] * 2
    assert log.table["requested_s"].tolist() == [8 * 3600.0] * 2 and log.table["queue"].tolist() == ["q"] * 2
    assert log.table["lost_s"].tolist() == [0.0, 3600.0] and log.table["account"].tolist() == ["a = b"] * 2
    assert dict(log.counted) == {
        "rows left out: not understood (line 6: 2 parts between ';', not 4)": 1,
        RUNS_LOST: 1,
        "runs that were cancelled, kept: they took their nodes": 1,
    }
    assert len(log.warnings) == 1 and "1 of 2 jobs use less than whole nodes (of 16 cores)" in log.warnings[0]
    cores = read_log(tmp_path / "20260302", "pbs", columns={"processors": "Resource_List.ncpus"})
    assert cores.table["processors"].tolist() == [32, 3]
    (tmp_path / "begun").write_text(ACCOUNTING.splitlines()[0] + "\n")
    with pytest.raises(TraceError, match="no record of a run that ended: expected records of type E"):
        read_log(tmp_path / "begun", "pbs")


@pytest.mark.parametrize(
    ("dates", "seconds"),
    [
        (("03/02/2026 00:10:00", "03/31/2026 00:10:00"), 1772410200.0),
        (("02/03/2026 00:10", "31/03/2026 00:10"), 1772410200.0),
        (("03/02/2026 00:10:00", "03/03/2026 00:10:00"), None),  # of March, or of February and March
        (("03/31/2026 00:10:00", "31/03/2026 00:10:00"), None),
    ],
)
def test_an_order_of_day_and_month_is_read_if_only_one_is_possible(dates, seconds, tmp_path):
    (tmp_path / "jobs.csv").write_text("submit,run,nodes,user\n" + "".join(f"{date},60,1,a\n" for date in dates))
    if seconds is None:
        with pytest.raises(TraceError, match=r"no row can be read .*2026-03-31T10:00:02 is always read"):
            read_log(tmp_path / "jobs.csv", "csv")
    else:
        assert read_log(tmp_path / "jobs.csv", "csv").table["submit_s"].tolist()[0] == seconds


@pytest.mark.parametrize(
    "date", ["Mon Mar 02 00:10:00 2026", "Mar  2 00:10:00 2026", "2026/03/02 00:10:00", "2026-03-02T00:10:00Z"]
)
def test_dates_of_other_systems(date, tmp_path):
    (tmp_path / "bhist.csv").write_text(f"created,duration,slots,project\n{date},60,2,p\n{date},60,2,q\n")
    log = read_log(tmp_path / "bhist.csv", "csv")
    assert log.table["submit_s"].tolist() == [1772410200.0] * 2 and log.table["user"].tolist() == ["p", "q"]


def test_jobs_that_come_at_once_have_no_load(tmp_path):
    (tmp_path / "burst.csv").write_text("submit_s,run_s,processors,user\n" + "1,9000,1,a\n" * 20)
    notes = market_of(read_log(tmp_path / "burst.csv", "csv"), Window(), LogRule(), rng=0).notes
    assert "less than a typical run (9,000 s): no load to speak of" in notes["warnings"]


def test_what_is_left_out_drawn_or_rounded_stands_above_the_tables(tmp_path):
    rows = "".join(f"{900 * i},{1 + 15 * (i % 4 == 0)},1000,{5 if i % 2 else ''}\n" for i in range(40))
    (tmp_path / "log.csv").write_text("submit_s,processors,run_s,value\n" + rows)
    window = Window(capacity=10, first_day=0.0, days=0.2)
    notes = market_of(read_log(tmp_path / "log.csv", "csv"), window, LogRule(round_seconds=900), rng=0).notes
    assert notes["runs left out: wider than 10 nodes"] == 5  # of the twenty in the window, not of the ten in the log
    assert "5 of 20 runs are wider than 10 nodes, and are left out" in notes["warnings"]
    assert "5 of 15 runs have no value in the log" in notes["warnings"]
    assert notes["load"] == "0.09"  # carry: as many node-rounds as the log has
    assert notes["round"] == "15 min, as configured: whole rounds add 2.0% of the node time"


def test_an_urgency_that_there_is_not_is_a_row_that_is_not_understood(tmp_path):
    (tmp_path / "log.csv").write_text("submit_s,processors,run_s,urgency\n0,1,60,2\n5,1,60,7\n9,1,60,1.5\n12,1,60,-1\n")
    log = read_log(tmp_path / "log.csv", "csv")
    assert log.table["urgency"].tolist() == [2, -1]
    assert log.counted == {"rows left out: not understood (line 3: urgency = '7'; line 4: urgency = '1.5')": 2}
    with pytest.raises(InvalidParameterError, match="urgency holds 7: expected 0, 1, 2"):
        JobLog.of(log.table.assign(urgency=7))


def test_shares_of_users_whom_the_log_does_not_have_are_named(tmp_path):
    rows = "".join(f"{900 * i},1,1000,u{i % 2}\n" for i in range(8))
    (tmp_path / "log.csv").write_text("submit_s,processors,run_s,user\n" + rows)
    shares = {"lab/": 1, "guests/": 1, "lab/u0": 1, "lab/uO": 2, "u1": 1}
    workload = {"kind": "csv", "path": str(tmp_path / "log.csv"), "capacity": 4}
    mechanism = {"name": "fair-share", "parameters": {"shares": shares, "newcomers": "guests/"}}
    scenario = Scenario.from_dict({"name": "slip", "workload": workload, "mechanism": mechanism})
    said = "shares are given to lab/uO, of whom the log has no job"
    assert said in scenario.workload_of(0).notes["warnings"]
    others = ["fair-share", "credits:shares={u0: 2, u7: 1, guests/: 1}"]  # what only one of those compared is given
    warned = compare(scenario, others, runs=1).meta["workload"]["warnings"].splitlines()
    assert warned == [said, "shares are given to u7, of whom the log has no job"]
    del shares["lab/uO"]
    assert "shares are given" not in scenario.with_mechanism("first-come").workload_of(0).notes.get("warnings", "")
