"""The command line: what it prints where, what it writes, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from marketsched import Scenario
from marketsched.config.strict_yaml import dump_yaml
from marketsched.results.output import INCOMPLETE, PARTIAL
from marketsched.show.cli import app

GOLDEN = Path(__file__).parents[1] / "golden" / "replay"
FILES = {
    "events.parquet",
    "jobs.parquet",
    "owners.parquet",
    "rounds.parquet",
    "scenario.yaml",
    "summary.json",
    "figure.png",
    "meta.json",
    "prices.parquet",
}
SMALL = {
    "name": "small market",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 20, "birth_rounds": 40},
    "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 50}, "threshold": 0.05},
    "expected": {"share_of_best": [0.5, 0.25]},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return an empty working folder that holds small.yaml alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    (tmp_path / "small.yaml").write_text(dump_yaml(SMALL))
    return tmp_path


def call(*arguments, **options):
    return CliRunner().invoke(app, [str(x) for x in arguments], catch_exceptions=False, **options)


def process(*arguments, code=None, **options):
    """Start the command (or ``code``) in a process of its own."""
    start = ["-m", "marketsched"] if code is None else ["-c", code]
    command = [sys.executable, *start, *[str(x) for x in arguments]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_alone_it_shows_help_and_a_next_step():
    alone = call()
    assert alone.exit_code == 0 and alone.stderr == ""
    for words in ("run", "replay", "scenarios", "traces", "Start here: marketsched run synthetic-pipelines"):
        assert words in alone.stdout
    assert call("--help").stdout == alone.stdout
    assert call("--version").stdout.startswith("marketsched 0.")


def test_a_run_writes_everything_and_prints_its_summary(here):
    found = call("run", "small.yaml", "--seed", 3, "--out", "out/deep")
    assert found.exit_code == 0 and found.stderr == ""
    assert "welfare is at least" in found.stdout and found.stdout.endswith("written to out/deep\n")
    folder = here / "out" / "deep"
    assert {path.name for path in folder.iterdir()} == FILES
    assert {path.name for path in folder.parent.iterdir()} == {"deep"}

    summary = json.loads((folder / "summary.json").read_text())
    jobs = pd.read_parquet(folder / "jobs.parquet")
    assert summary["jobs"] == len(jobs) and summary["welfare"] == pytest.approx(jobs["value"].sum())
    rounds = pd.read_parquet(folder / "rounds.parquet")
    assert len(rounds) == summary["horizon"] and rounds["load"].max() <= summary["capacity"]
    events = pd.read_parquet(folder / "events.parquet")
    assert (events["event"] == "complete").sum() == summary["completed"]
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")

    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["scenario"], meta["seed"], meta["complete"]) == ("small market", 3, True)
    assert {"python", "marketsched", "numpy", "numba"} <= set(meta["versions"])
    about = json.loads(pq.read_schema(folder / "events.parquet").metadata[b"marketsched"])
    assert (about["scenario"], about["seed"], about["versions"]) == ("small market", 3, meta["versions"])

    # The resolved scenario runs again, to the same bytes.
    again = call("run", folder / "scenario.yaml", "--seed", 3, "--out", "again")
    assert again.exit_code == 0
    for name in ("events.parquet", "jobs.parquet", "rounds.parquet", "summary.json", "scenario.yaml"):
        assert (here / "again" / name).read_bytes() == (folder / name).read_bytes(), name


def test_json_is_all_there_is_on_standard_output(here):
    found = call("run", "small.yaml", "--json", "--out", "out")
    assert json.loads(found.stdout)["name"] == "small market"
    assert found.stderr == "written to out\n"


def test_changes_reach_the_run_and_its_record(here):
    found = call("run", "small.yaml", "--out", "out", "--set", "workload.capacity=7", "--set", "mechanism.epsilon=1e-1")
    assert found.exit_code == 0 and " 7 nodes" in found.stdout
    kept = Scenario.load(here / "out" / "scenario.yaml")
    assert (kept.workload.capacity, kept.mechanism.epsilon) == (7, 0.1)


@pytest.mark.slow
def test_without_out_every_run_gets_a_new_folder(here):
    for folder in ("small-market-seed0", "small-market-seed0-2", "small-market-seed0-3"):
        assert call("run", "small.yaml").stdout.endswith(f"written to runs/{folder}\n")
        assert {path.name for path in (here / "runs" / folder).iterdir()} == FILES


@pytest.mark.slow
def test_an_earlier_run_is_replaced_only_on_demand(here):
    assert call("run", "small.yaml", "--out", "out").exit_code == 0
    before = (here / "out" / "meta.json").read_text()
    refused = call("run", "small.yaml", "--out", "out", "--seed", 1)
    assert refused.exit_code == 2 and refused.stdout == "" and refused.stderr.count("\n") == 1
    assert (here / "out" / "meta.json").read_text() == before
    assert call("run", "small.yaml", "--out", "out", "--seed", 1, "--force").exit_code == 0
    assert json.loads((here / "out" / "meta.json").read_text())["seed"] == 1


def test_scenarios_are_listed_and_shown(here):
    listed = call("scenarios").stdout.splitlines()
    names = [line.split()[0] for line in listed]
    assert [name for name in names if not name.startswith(("cluster-", "esdp-", "opm-"))] == [
        "google-recurring",
        "saturated",
        "stochastic-mix",
        "synthetic-pipelines",
    ]
    (here / "saturated").write_text("a file that does not hide the scenario of its name")
    assert json.loads(call("scenarios", "--schema").stdout)["required"] == ["name"]
    shown = call("scenarios", "saturated")
    assert shown.stdout.startswith("# ") and "capacity: 66" in shown.stdout
    unknown = call("scenarios", "saturation")
    assert unknown.exit_code == 2 and "expected one of cluster-default" in unknown.stderr


def test_traces_are_listed_and_verified(here, data_folder):
    alone = call("traces")
    assert alone.exit_code == 0 and "google-jobs" in alone.stdout
    missing = {
        line.split()[0] for line in call("traces", "--data", data_folder).stdout.splitlines() if "missing" in line
    }
    assert missing <= {"spot-gpu-nodes", "spot-gpu-jobs", "spot-series"}  # read from files of the user's own
    (here / "empty").mkdir()
    assert call("traces", "list", "--data", "empty").stdout.count("missing") == alone.stdout.count("\n")
    verified = call("traces", "verify", "openb-nodes", "--data", data_folder)
    assert verified.exit_code == 0 and "as published" in verified.stdout


def test_a_trace_that_differs_is_reported(here, data_folder):
    lines = (data_folder / "openb2023_nodes.csv").read_text().splitlines(keepends=True)
    (here / "data").mkdir()
    (here / "data" / "openb2023_nodes.csv").write_text("".join(lines[:-1]))
    found = call("traces", "verify", "--data", "data")
    assert found.exit_code == 1 and "openb-nodes      differs from the published file" in found.stdout
    assert "google-jobs      not there" in found.stdout
    assert call("traces", "verify", "google-jobs", "--data", "data").exit_code == 2


# -- replay -------------------------------------------------------------------------------------


def test_replay_prints_the_decisions(here):
    config, events = GOLDEN / "04.config.yaml", GOLDEN / "04.events.jsonl"
    wanted = [json.loads(line) for line in (GOLDEN / "04.decisions.jsonl").read_text().splitlines()]
    printed = call("replay", config, events)
    assert printed.exit_code == 0 and printed.stderr == ""
    found = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [(d["round"], d["event"], d["job"]) for d in found] == [(d["round"], d["event"], d["job"]) for d in wanted]
    assert call("replay", config, events, "--out", "out.jsonl").stdout == ""
    assert (here / "out.jsonl").read_text() == printed.stdout
    assert call("replay", config, "-", input=events.read_text()).stdout == printed.stdout
    assert call("replay", config, "-", "--out", "live.jsonl", input=events.read_text()).exit_code == 0
    assert (here / "live.jsonl").read_text() == printed.stdout
    assert {path.name for path in here.iterdir()} == {"small.yaml", "out.jsonl", "live.jsonl"}


def test_replay_reports_faulty_lines_and_goes_on(here):
    lines = (GOLDEN / "04.events.jsonl").read_text().splitlines(keepends=True)
    good = call("replay", GOLDEN / "04.config.yaml", "-", input="".join(lines)).stdout.splitlines()
    spoilt = call(
        "replay", GOLDEN / "04.config.yaml", "-", input="".join([*lines[:3], '{"round": 2, "ev\n', *lines[3:]])
    )
    assert spoilt.exit_code == 1
    found = spoilt.stdout.splitlines()
    assert json.loads(found[3])["line"] == 4 and [*found[:3], *found[4:]] == good
    strict = call("replay", GOLDEN / "04.config.yaml", "-", "--strict", input="oops\n" + "".join(lines))
    assert strict.exit_code == 1 and len(strict.stdout.splitlines()) == 1


def test_replay_replaces_no_file_unless_it_is_told_to(here):
    config = GOLDEN / "04.config.yaml"
    events = here / "events.jsonl"
    events.write_text((GOLDEN / "04.events.jsonl").read_text())
    before = events.read_bytes()
    refused = call("replay", config, events, "--out", events)  # its own input
    assert (refused.exit_code, events.read_bytes()) == (2, before)
    assert "exists: expected a new file, or --force" in refused.stderr
    other = here / "mine.txt"
    other.write_text("mine")
    assert call("replay", config, "-", "--out", other, input=before.decode()).exit_code == 2
    assert other.read_text() == "mine"
    assert call("replay", config, events, "--out", other, "--force").exit_code == 0
    assert other.read_text() == call("replay", config, events).stdout


@pytest.mark.slow
def test_replay_answers_a_live_log_line_by_line():
    lines = (GOLDEN / "04.events.jsonl").read_text().splitlines(keepends=True)
    live = process("replay", GOLDEN / "04.config.yaml", "-", stdin=subprocess.PIPE)
    for line in lines[:5]:  # five submissions: five plans, each before the next line is written
        live.stdin.write(line)
        live.stdin.flush()
        assert json.loads(live.stdout.readline())["event"] == "plan"
    out, err = live.communicate("".join(lines[5:]), timeout=60)
    assert live.returncode == 0 and err == ""
    assert len(out.splitlines()) == len((GOLDEN / "04.decisions.jsonl").read_text().splitlines()) - 5


@pytest.mark.slow
def test_replay_ends_quietly_when_its_reader_has_gone():
    lines = (GOLDEN / "04.events.jsonl").read_text().splitlines(keepends=True)
    live = process("replay", GOLDEN / "04.config.yaml", "-", stdin=subprocess.PIPE)
    live.stdin.write(lines[0])
    live.stdin.flush()
    live.stdout.readline()
    live.stdout.close()
    live.stdin.write("".join(lines[1:]))
    live.stdin.close()
    assert live.stderr.read() == ""
    live.stderr.close()
    assert live.wait(timeout=60) == 1


# -- interruption -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where", ["config.scenario.Scenario.setup", "agents.market_run.MarketRun.play", "results.panels.save_figure"]
)
def test_an_interruption_elsewhere_leaves_nothing(here, monkeypatch, where):
    """Before the market, in its first round, and while the results are being written."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"marketsched.{where}", interrupted)
    found = call("run", "small.yaml", "--out", "out/run")
    assert found.exit_code == 130 and found.stdout == ""
    assert found.stderr.startswith("marketsched: interrupted") and found.stderr.count("\n") == 1
    assert not (here / "out" / "run").exists() and not (here / "out" / PARTIAL).exists()


@pytest.mark.slow
def test_an_interruption_at_any_moment_leaves_nothing_or_a_marked_folder(here):
    """The real thing: a signal from outside, whenever it comes."""
    slow = SMALL | {"workload": {"kind": "synthetic-pipelines", "recurring_jobs": 400, "birth_rounds": 3000}}
    (here / "slow.yaml").write_text(dump_yaml(slow))
    run = process("run", "slow.yaml", "--out", "out", cwd=here)
    time.sleep(2.5)
    os.kill(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=120)
    assert run.returncode in (130, -signal.SIGINT)  # CPython 3.11 may end by the signal itself: 130 to a shell
    assert "Traceback" not in err
    if (here / "out").exists():
        meta = json.loads((here / "out" / "meta.json").read_text())
        assert meta["complete"] is False and (here / "out" / INCOMPLETE).is_file()
        assert len(pd.read_parquet(here / "out" / "rounds.parquet")) == meta["rounds"] > 0
    assert not (here / PARTIAL).exists()
