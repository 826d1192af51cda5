"""Sweeps: folders that were tampered with, runs that fail oddly, and interruptions at every single write."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import marketsched
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.registry import _TABLES, get_mechanism, register
from marketsched.show.cli import app
from marketsched.study.sweeps import sweeping
from sweep_tools import ONE_JOB, WHOLE, manifest, names, records, table_bytes, write_spec

SPEC = {"name": "trial", "scenario": ONE_JOB, "grid": {"mechanism.epsilon": [0, 0.1]}, "seeds": 2}


class Killed(BaseException):
    """The end of the process, as far as a sweep can tell."""


def ends_at(write, spec, out, monkeypatch) -> bool:
    """Let a sweep end before or after its files are moved into place for the ``write``-th time; False: it was done."""
    replace, calls = Path.replace, []

    def counting(source, target):
        for when in ("before", "after"):
            calls.append(target)
            if len(calls) == write:
                raise Killed
            if when == "before":
                replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", counting)
        try:
            marketsched.sweep(spec, out)
        except Killed:
            return True
    return False


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="new"),
        pytest.param(1, id="fewer seeds", marks=pytest.mark.slow),
        pytest.param(2, id="the same", marks=pytest.mark.slow),
        pytest.param(3, id="more seeds"),
    ],
)
def test_whenever_it_ends_the_folder_is_marked_or_whole(here, monkeypatch, before):
    """The sweep is new, or its folder holds one with fewer, the same or more seeds."""
    whole = marketsched.sweep(SPEC, here / "whole").out
    for write in range(1, 100):
        out = here / f"out{write}"
        if before is not None:
            marketsched.sweep({**SPEC, "seeds": before}, out)
        ended = ends_at(write, SPEC, out, monkeypatch)
        if not (out / "INCOMPLETE").exists() and (out / "meta.json").exists():
            told = manifest(out)
            assert told["complete"] and pd.read_parquet(out / "results.parquet")["run"].nunique() == told["runs"]
        kept = records(out)
        marketsched.sweep(SPEC, out)
        assert kept.items() <= records(out).items() and names(out) == WHOLE
        assert table_bytes(out) == table_bytes(whole) and manifest(out) == manifest(whole)
        if not ended:
            break
    assert write > 6


DAMAGED = {
    "half": lambda record: json.dumps(record)[:90].encode(),
    "empty": lambda record: b"",
    "without rows": lambda record: json.dumps({**record, "rows": []}).encode(),
    "another status": lambda record: json.dumps({**record, "status": "refused"}).encode(),
    "of another run": lambda record: json.dumps({**record, "run": "0" * 24}).encode(),
}


def test_runs_with_damaged_records_are_made_again(here):
    out = marketsched.sweep({**SPEC, "seeds": 3}, here / "out").out
    table = table_bytes(out)
    for path, damaged in zip(sorted((out / "runs").iterdir()), DAMAGED.values(), strict=False):
        path.write_bytes(damaged(json.loads(path.read_text())))
    assert marketsched.sweep({**SPEC, "seeds": 3}, out).made == len(DAMAGED) and table_bytes(out) == table


@pytest.mark.parametrize("name", ["runs", ".marketsched-partial"])
def test_a_folder_of_runs_is_not_taken_for_that_of_a_sweep(here, name):
    """The folder above all runs: ``runs``, and beside it where one is just being written."""
    (here / "work" / name / "run-1").mkdir(parents=True)
    (here / "work" / name / "run-1" / "events").write_text("precious")
    with pytest.raises(InvalidParameterError, match=rf"work holds {name} and no meta.json: expected a new or empty"):
        marketsched.sweep(SPEC, here / "work")
    assert names(here / "work") == {name} and (here / "work" / name / "run-1" / "events").read_text() == "precious"


def test_odd_ends_of_a_run_are_recorded(here):
    """Also those that would end the worker: a run that raises them is at fault, not the sweep."""
    ends = [SystemExit(5), GeneratorExit(), RecursionError("deep"), OSError("caf\udce9"), MemoryError()]

    @register("odd-ends")
    def odd(end, **parameters):
        if end >= 0:
            raise ends[end]
        return get_mechanism("posted-price", **parameters)

    try:
        places = {
            "mechanism.name": ["odd-ends"],
            "mechanism.parameters": [{"end": end} for end in range(-1, len(ends))],
        }
        found = marketsched.sweep({"scenario": ONE_JOB, "grid": places, "seeds": 1}, here / "out")
    finally:
        del _TABLES["mechanism"]["odd-ends"]
    assert found.complete and found.table["error"].fillna("").tolist() == [
        "",
        "SystemExit: 5",
        "GeneratorExit",
        "RecursionError: deep",
        r"OSError: caf\udce9",
        "MemoryError",
    ]


def test_ctrl_c_while_the_table_is_written(here, monkeypatch):
    def interrupted(rows, about):
        raise KeyboardInterrupt

    spec = write_spec(here / "sweep.yaml", **SPEC)
    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "arrow_table", interrupted)
        found = CliRunner().invoke(app, ["sweep", str(spec), "--out", "out"])
    assert found.exit_code == 130 and found.stdout == ""
    assert found.stderr == "marketsched: interrupted: finished runs are kept; start the sweep again to go on\n"
    assert "INCOMPLETE" in names(here / "out") and marketsched.sweep(SPEC, here / "out").made == 0
    assert names(here / "out") == WHOLE
