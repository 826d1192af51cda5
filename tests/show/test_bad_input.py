"""Bad input, from the outside: one clear line, exit status 2, and nothing half-written."""

import gzip

import pytest
from typer.testing import CliRunner

from marketsched.config.strict_yaml import dump_yaml
from marketsched.show.cli import app

JOB = {
    "name": "A",
    "birth": 2,
    "concurrency": 1,
    "value": {"kind": "table", "values": {5: 8, 6: 6.5}},
    "requirements": [
        {"arrival": 3, "duration": 2, "probability": 0.5},
        {"arrival": 4, "duration": 2, "probability": 0.5},
    ],
}
MARKET = {
    "name": "market",
    "workload": {
        "kind": "jobs",
        "capacity": 3,
        "horizon": 12,
        "max_concurrency": 2,
        "max_duration": 3,
        "max_value": 8,
        "max_delay": 9,
        "jobs": [JOB],
    },
    "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}},
}
CONFIG = {
    "mechanism": "posted-price",
    "capacity": 3,
    "max_concurrency": 2,
    "max_duration": 3,
    "max_value": 8,
    "max_delay": 9,
    "horizon": 12,
    "pricing": {"kind": "posted", "prices": [0.5]},
    "oracle": {"kind": "exact"},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    (tmp_path / "market.yaml").write_text(dump_yaml(MARKET))
    (tmp_path / "config.yaml").write_text(dump_yaml(CONFIG))
    return tmp_path


def refused(here, *arguments):
    """Return the one line that a refused command says; nothing is left in the folder."""
    before = {path.name: path.is_dir() or path.read_bytes() for path in here.iterdir()}
    found = CliRunner().invoke(app, [str(x) for x in arguments], catch_exceptions=False)
    assert found.exit_code == 2, (found.stdout, found.stderr)
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1 and found.stderr.startswith("marketsched: ")
    assert {path.name: path.is_dir() or path.read_bytes() for path in here.iterdir()} == before
    return found.stderr.removeprefix("marketsched: ").rstrip("\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "name: x\ncolour: red\n",
            "bad.yaml: colour: unknown key (did you mean 'cluster'?): known here are name",
        ),
        ("name: x\nname: y\n", "bad.yaml: line 2, column 1: the key 'name' twice: expected a YAML document"),
        ("name: [x\n", "bad.yaml: line 2, column 1: "),
        ("", "bad.yaml: the file is empty: expected a scenario"),
        ("- 1\n", "bad.yaml: the document = [1]: expected a table of keys"),
    ],
)
def test_a_bad_scenario_file(here, text, line):
    (here / "bad.yaml").write_text(text)
    assert refused(here, "run", "bad.yaml", "--out", "out").startswith(line)


def test_unknown_keys_of_a_configuration(here):
    (here / "bad.yaml").write_text(dump_yaml(CONFIG | {"capacities": 3}))
    line = refused(here, "replay", "bad.yaml", "-", "--out", "out")
    assert line.startswith("bad.yaml: capacities: unknown key (did you mean 'capacity'?): known here are epsilon")


@pytest.mark.slow_after(5)
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "nothing.yaml"], "scenario 'nothing.yaml': no such file, and the built-in ones are"),
        (["run", "."], "'.' is a folder: "),
        (["scenarios", "nothing"], "scenario 'nothing' is unknown: expected one of"),
        (["replay", "nothing.yaml", "-"], "nothing.yaml: No such file or directory"),
        (["replay", "config.yaml", "nothing.jsonl"], "nothing.jsonl: No such file or directory"),
        (["replay", "config.yaml", "nothing.jsonl", "--out", "out"], "nothing.jsonl: No such file or directory"),
        (["replay", "config.yaml", "config.yaml", "--out", "nowhere/out"], "nowhere: No such file or directory"),
        (["replay", "config.yaml", "config.yaml", "--out", "."], ".: Is a directory"),
        (["run", "google-recurring"], "no data folder: give the folder of the trace files with --data DIR"),
        (["run", "google-recurring", "--data", "nowhere"], "nowhere: no such folder: give the folder"),
        (["traces", "--data", "nowhere"], "nowhere: no such folder"),
        (["traces", "verify"], "no data folder"),
        (["traces", "verify", "moon", "--data", "."], "trace 'moon' is unknown: expected one of google-jobs"),
    ],
)
def test_a_missing_file_or_folder(here, arguments, line):
    assert line in refused(here, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "market.yaml", "--seed", "-1"],
        ["run", "market.yaml", "--seed", "half"],
        ["run", "market.yaml", "--colour", "red"],
        ["walk"],
        ["replay", "config.yaml"],
    ],
)
def test_bad_usage(here, arguments):
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 2 and found.stdout == "" and "Traceback" not in found.stderr
    assert {path.name for path in here.iterdir()} == {"market.yaml", "config.yaml"}


def zeros(here):
    """Write a gzip file that would fill the memory: a log's first line, and then nothing but zeros."""
    with gzip.open(here / "bomb.swf.gz", "wb", compresslevel=9) as file:
        file.write(b"1 0 10 10 1 10 10 1 10 10 1 1 1 1 1 1 -1 -1\n")
        for _ in range(80):
            file.write(bytes(1024 * 1024))


def results(here):
    (here / "found").mkdir()
    digits = "9" * 5000
    (here / "found" / "meta.json").write_text(f'{{"kind": "run", "versions": {{"marketsched": "1"}}, "n": {digits}}}')


def sweep(here):
    (here / "found").mkdir()
    (here / "found" / "meta.json").write_text('{"kind": "sweep", "format": 1e999, "versions": {}}')
    (here / "sweep.yaml").write_text(dump_yaml({"scenario": "market.yaml", "seeds": [1]}))


def nothing(here):
    pass


HOSTILE = {
    "a gzip bomb for a log": (zeros, ("run", "bomb.swf.gz"), "unpacks to more than 200 times its size"),
    "5,000 digits in meta.json": (results, ("report", "found"), "meta.json is damaged: expected JSON"),
    "an infinite format of a sweep": (sweep, ("sweep", "sweep.yaml", "--out", "found"), "other results"),
    "a signal that is not a number": (
        nothing,
        ("run", "market.yaml", "--set", "workload.jobs.0.requirements.0.signal=.nan"),
        "signal",
    ),
    "a zero byte in the name of a log": (nothing, ("run", "a\0b.swf"), "a"),
}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_made_to_break_a_reader(here, case):
    make, arguments, words = HOSTILE[case]
    make(here)
    assert words in refused(here, *arguments)


def test_nodes_are_given_where_a_workload_has_such_a_number(here):
    groups = [{"name": "a", "kind": "a", "nodes": 2, "each": {"gpu": 8}}]
    cluster = {"resources": {"gpu": {"device": True}}, "groups": groups}
    scenario = {"name": "x", "workload": {"kind": "sacct-shapes", "path": "jobs.txt", "cluster": cluster}}
    (here / "cluster.yaml").write_text(dump_yaml(scenario))
    said = "--nodes 5: the workload sacct-shapes has no such number: expected --set workload.cluster.groups.0.nodes=N"
    assert refused(here, "run", "cluster.yaml", "--nodes", 5) == said
    assert refused(here, "compare", "cluster.yaml", "--nodes", 5) == said
