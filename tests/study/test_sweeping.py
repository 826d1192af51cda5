"""Sweeps: the table is that of the runs, finished runs are kept, and what is wrong is one clear line."""

import errno
import json
import os

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest

import marketsched
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.errors import SweepError
from marketsched.play.kept_results import difference, fingerprint, source_digest
from marketsched.results import output
from marketsched.results.views import flat
from marketsched.study.sweeps.folder import open_folder
from marketsched.study.sweeps.records import arrow_table, perform, sweep_rows
from marketsched.study.sweeps.runs import runs_from
from sweep_tools import ONE_JOB, WHOLE, manifest, names, records, start, sweep, table_bytes, write_spec

SPEC = {"name": "trial", "scenario": ONE_JOB, "grid": {"mechanism.epsilon": [0, 0.1]}, "seeds": 3}


def test_the_table_holds_what_each_run_alone_gives(here):
    found = marketsched.sweep(SPEC, here / "out")
    assert (found.runs, found.finished, found.made, found.failed, found.complete) == (6, 6, 6, {}, True)
    table = found.table
    assert table[["case", "scenario", "mechanism.epsilon", "seed", "status"]].values.tolist() == [
        [case, "one job", epsilon, seed, "done"] for case, epsilon in enumerate((0.0, 0.1)) for seed in range(3)
    ]
    for row in table.to_dict(orient="records"):
        alone = marketsched.run(
            {**ONE_JOB, "mechanism": {**ONE_JOB["mechanism"], "epsilon": row["mechanism.epsilon"]}}, row["seed"]
        )
        expected = {name: value for name, value in alone.outcome.items() if name not in ("name", "meta")}
        figures = {name: None if pd.isna(row[name]) else row[name] for name in dict(flat(expected))}
        assert figures == dict(flat(expected))
    assert names(here / "out") == WHOLE


def test_the_table_reads_in_duckdb_and_says_where_it_comes_from(here):
    marketsched.sweep(SPEC, here / "out")
    query = "select \"mechanism.epsilon\", count(*), avg(welfare) from '{}' group by 1 order by 1"
    (first, second) = duckdb.sql(query.format(here / "out" / "*.parquet")).fetchall()
    assert first[:2] == (0.0, 3) and second[:2] == (0.1, 3)
    about = json.loads(pq.read_schema(here / "out" / "results.parquet").metadata[b"marketsched"])
    assert about == {"sweep": "trial", "versions": dict(fingerprint())}
    told = manifest(here / "out")
    assert told["seeds"] == [0, 1, 2] and (told["done"], told["failed"], told["complete"]) == (6, 0, True)
    assert [case["scenario"]["mechanism"]["epsilon"] for case in told["cases"]] == [0.0, 0.1]
    assert [run["run"] for run in told["durations"]] == pd.read_parquet(here / "out" / "results.parquet")[
        "run"
    ].tolist()


@pytest.mark.slow
def test_finished_runs_are_not_made_again_and_more_may_be_asked_for(here):
    marketsched.sweep(SPEC, here / "out")
    before, table = records(here / "out"), table_bytes(here / "out")
    again = marketsched.sweep(SPEC, here / "out")
    assert again.made == 0 and records(here / "out") == before and table_bytes(here / "out") == table
    more = marketsched.sweep({**SPEC, "seeds": 5}, here / "out")
    assert (more.runs, more.made) == (10, 4)
    assert before.items() <= records(here / "out").items()
    fresh = marketsched.sweep({**SPEC, "seeds": 5}, here / "fresh")
    assert fresh.made == 10 and table_bytes(here / "out") == table_bytes(here / "fresh")


def test_cases_that_come_to_the_same_are_run_once(here):
    found = marketsched.sweep({**SPEC, "grid": {}, "overrides": [{}, {"mechanism.epsilon": 0}]}, here / "out")
    assert (found.runs, len(found.table), found.table["run"].nunique()) == (3, 6, 3)


def test_an_interrupted_sweep_keeps_what_is_finished(here, monkeypatch):
    whole = marketsched.sweep(SPEC, here / "whole")

    def interrupted(tasks, workers, client=None):
        for i, task in enumerate(tasks):
            if i == 2:
                raise KeyboardInterrupt
            yield task, perform(task)

    with monkeypatch.context() as patch:
        patch.setattr("marketsched.study.sweeps.sweeping._stream", interrupted)
        part = marketsched.sweep(SPEC, here / "out", keep_interrupted=True)
        assert (part.finished, part.complete, len(part.table)) == (2, False, 2)
        assert names(here / "out") == {*WHOLE, "INCOMPLETE"} and manifest(here / "out")["complete"] is False
        with pytest.raises(KeyboardInterrupt):
            marketsched.sweep(SPEC, here / "out")
        assert len(records(here / "out")) == 4
    rest = marketsched.sweep(SPEC, here / "out")
    assert rest.made == 2 and rest.complete
    assert table_bytes(here / "out") == table_bytes(whole.out) and manifest(here / "out") == manifest(whole.out)
    assert names(here / "out") == WHOLE


def test_a_full_disk_stops_the_sweep_and_keeps_what_is_finished(here, monkeypatch):
    flush, calls = output.to_disk, []

    def full(path):
        calls.append(path)
        if len(calls) > 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        flush(path)

    with monkeypatch.context() as patch:
        patch.setattr(output, "to_disk", full)
        with pytest.raises(SweepError, match=r"json: No space left on device: finished runs are kept"):
            marketsched.sweep(SPEC, here / "out")
    kept = records(here / "out")
    assert 0 < len(kept) < 6
    rest = marketsched.sweep(SPEC, here / "out")
    assert rest.made == 6 - len(kept) and kept.items() <= records(here / "out").items()
    assert names(here / "out") == WHOLE


@pytest.mark.skipif(not os.path.exists("/sys/kernel"), reason="no folder that even root cannot write")
def test_a_read_only_folder_is_one_line(here):
    with pytest.raises(SweepError, match=r"/sys/kernel/sweep cannot be written: .*: expected a folder that can"):
        marketsched.sweep(SPEC, "/sys/kernel/sweep")


def test_a_second_sweep_on_one_folder_is_refused(here):
    with open_folder(here / "out"):
        with pytest.raises(SweepError, match=rf"out is in use by another sweep \(process {os.getpid()} on .*\)"):
            marketsched.sweep(SPEC, here / "out")
    assert marketsched.sweep(SPEC, here / "out").complete


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"versions": {**fingerprint(), "numpy": "1.0"}}, r"made with numpy 1.0 \(here "),
        ({"versions": {**fingerprint(), "code": "0"}}, r"made with other sources of marketsched, digest 0 \(here "),
        ({"format": 99}, r"made with format 99 \(here 1\)"),
        ({"kind": "audit"}, "holds other results than a sweep's"),
    ],
)
def test_a_folder_of_another_version_is_refused(here, change, message):
    marketsched.sweep({**SPEC, "seeds": 1}, here / "out")
    path = here / "out" / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    before = {path: path.read_bytes() for path in (here / "out").rglob("*") if path.is_file()}
    with pytest.raises(InvalidParameterError, match=message):
        marketsched.sweep(SPEC, here / "out")
    assert {path: path.read_bytes() for path in (here / "out").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("kind", ["other files", "file", "run", "rubbish"])
def test_what_is_not_a_sweep_is_left_alone(here, kind):
    target = here / "out"
    if kind == "file":
        target.write_text("years")
    else:
        target.mkdir()
        (target / ("thesis.tex" if kind == "other files" else "meta.json")).write_text(
            '{"scenario": "x"}' if kind == "run" else "years"
        )
    before = target.read_text() if kind == "file" else names(target)
    with pytest.raises(InvalidParameterError, match=r"out (is not|holds)"):
        marketsched.sweep(SPEC, target)
    assert (target.read_text() if kind == "file" else names(target)) == before


def interrupted_retry(out, spec, monkeypatch):
    """Ask for failed runs again, and interrupt it before the first; say what is there then."""

    def at_once(tasks, workers, client=None):
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch:
        patch.setattr("marketsched.study.sweeps.sweeping._stream", at_once)
        found = marketsched.sweep(spec, out, retry_failed=True, keep_interrupted=True)
    return found.finished, found.made, len(found.failed), found.complete


def test_a_failed_run_is_recorded_and_stops_nothing(here, monkeypatch):
    from marketsched.mechanisms.registry import _TABLES, get_mechanism, register

    broken = [True]

    @register("faulty-at-first")
    def faulty(**parameters):
        if broken and parameters["epsilon"]:
            raise RuntimeError("it is\nbroken")
        return get_mechanism("posted-price", **parameters)

    try:
        spec = {**SPEC, "overrides": [{"mechanism.name": "faulty-at-first"}]}
        found = marketsched.sweep(spec, here / "out")
        assert (found.finished, len(found.failed), found.complete) == (6, 3, True)
        assert set(found.failed.values()) == {"RuntimeError: it is broken"}
        assert found.table["status"].tolist() == ["done"] * 3 + ["failed"] * 3
        assert found.table["welfare"].isna().tolist() == [False] * 3 + [True] * 3
        record = json.loads((here / "out" / "runs" / f"{found.table['run'].iloc[-1]}.json").read_text())
        assert "in faulty" in record["traceback"]
        assert interrupted_retry(here / "out", spec, monkeypatch) == (6, 0, 3, False)
        broken.clear()
        kept = marketsched.sweep(spec, here / "out")
        assert kept.made == 0 and len(kept.failed) == 3
        mended = marketsched.sweep(spec, here / "out", retry_failed=True)
        assert (mended.made, mended.failed) == (3, {})
        assert table_bytes(here / "out") == table_bytes(marketsched.sweep(spec, here / "fresh").out)
    finally:
        del _TABLES["mechanism"]["faulty-at-first"]


def test_columns_have_one_kind_and_no_nan():
    rows = [
        {"whole": 1, "mixed": 1, "truth": True, "any": [1, 2], "none": None, "number": float("nan"), "large": 2**70},
        {"whole": None, "mixed": 0.5, "truth": False, "any": "x", "none": None, "number": float("inf"), "large": 1},
    ]
    table = arrow_table(rows, {})
    assert [str(field.type) for field in table.schema] == [
        "int64",
        "double",
        "bool",
        "string",
        "string",
        "double",
        "double",
    ]
    assert table.column("number").to_pylist() == [None, float("inf")]
    assert table.column("any").to_pylist() == ["[1, 2]", "x"]
    assert table.column("mixed").to_pylist() == [1.0, 0.5]


def test_figures_and_labels_never_share_a_column():
    run = runs_from([(ONE_JOB, 0, {"welfare": "label", "seed": "label"})])[0]
    (row,) = sweep_rows([run], {run.key: {"status": "done", "rows": [{"welfare": 4.0, "run": 1}]}}.get)
    assert row == {
        "case": 0, "scenario": "one job", "welfare": "label", "label.seed": "label", "seed": 0, "run": run.key,
        "status": "done", "error": None, "result.welfare": 4.0, "result.run": 1,
    }  # fmt: skip


def test_other_sources_have_another_digest(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text("x = 1\n")
    monkeypatch.setattr("marketsched.play.kept_results._sources", lambda: {"a": tmp_path / "a.py"})
    before = source_digest()
    (tmp_path / "a.py").write_text("x = 2\n")
    assert source_digest() != before
    assert difference(fingerprint(), fingerprint()) is None


@pytest.mark.slow
@pytest.mark.long
def test_the_command_with_worker_processes_gives_the_same_bytes(here):
    """Three spawned processes find two runs to make."""
    spec = write_spec(here / "sweep.yaml", **{**SPEC, "seeds": 1})
    assert "2 of 2 runs finished" in sweep(spec, here / "out", "--workers", 3)
    assert table_bytes(here / "out") == table_bytes(marketsched.sweep(spec, here / "alone").out)
    assert manifest(here / "out") == manifest(here / "alone")


@pytest.mark.slow
def test_an_unknown_address_is_one_line(tmp_path):
    spec = write_spec(tmp_path / "sweep.yaml", scenario=ONE_JOB, seeds=1)
    process = start("sweep", spec, "--out", tmp_path / "out", "--scheduler", "nonsense")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == "marketsched: scheduler = 'nonsense': expected an address as in tcp://10.0.0.1:8786\n"
