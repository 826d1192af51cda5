"""Folders of results: whole or not at all, never over something that is not ours."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from marketsched.mechanisms import InvalidParameterError
from marketsched.results.output import (
    INCOMPLETE,
    META,
    PARTIAL,
    check_target,
    file_name,
    plain,
    whole_file,
    whole_folder,
    write_json,
    write_parts,
    write_table,
)
from refusals import refused


def fill(folder: Path, text: str) -> None:
    (folder / META).write_text("{}")
    (folder / "data.txt").write_text(text)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_folder_appears_whole_and_nothing_is_left_beside_it(tmp_path):
    target = tmp_path / "deep" / "run"
    with whole_folder(target) as partial:
        fill(partial, "one")
        assert not target.exists()
        # Patterns such as runs/*/data.txt must not meet the half-written file.
        assert list(target.parent.glob("*/data.txt")) == []
    assert names(target) == {META, "data.txt"}
    assert names(target.parent) == {"run"}


def test_a_folder_gets_the_permissions_of_any_other(tmp_path):
    (tmp_path / "usual").mkdir()
    with whole_folder(tmp_path / "run") as partial:
        fill(partial, "one")
    assert (tmp_path / "run").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("force", [False, True])
def test_an_error_leaves_everything_as_it_was(tmp_path, error, force):
    target = tmp_path / "run"
    if force:
        with whole_folder(target) as partial:
            fill(partial, "one")
    before = names(tmp_path)
    with pytest.raises(error), whole_folder(target, force=force) as partial:
        fill(partial, "two")
        raise error
    assert names(tmp_path) == before
    assert not force or (target / "data.txt").read_text() == "one"


def test_force_replaces_an_earlier_run_whole(tmp_path):
    target = tmp_path / "run"
    with whole_folder(target) as partial:
        fill(partial, "one")
        (partial / "old.txt").write_text("gone with the rest")
    with pytest.raises(InvalidParameterError, match=r"run holds an earlier run: expected a new folder, or --force"):
        check_target(target)
    (target / INCOMPLETE).write_text("")
    with pytest.raises(InvalidParameterError, match=r"run holds an interrupted run: .* to go on from what it"):
        check_target(target)
    (target / INCOMPLETE).unlink()
    with whole_folder(target, force=True) as partial:
        fill(partial, "two")
    assert names(target) == {META, "data.txt"}
    assert (target / "data.txt").read_text() == "two"
    assert names(tmp_path) == {"run"}


def test_an_empty_folder_is_as_good_as_none(tmp_path):
    (tmp_path / "run").mkdir()
    with whole_folder(tmp_path / "run") as partial:
        fill(partial, "one")
    assert (tmp_path / "run" / "data.txt").read_text() == "one"


@pytest.mark.parametrize("kind", ["other files", "file", "link"])
def test_force_never_replaces_what_is_not_a_run(tmp_path, kind):
    target, mine = tmp_path / "target", tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years")
    if kind == "other files":
        mine.rename(target)
    elif kind == "file":
        target.write_text("years")
    else:
        target.symlink_to(mine)
    with pytest.raises(InvalidParameterError, match="expected a new or empty folder"), whole_folder(target, force=True):
        pytest.fail("the folder was opened")
    left = target if kind == "file" else target / "thesis.tex"
    assert left.read_text() == "years"
    assert PARTIAL not in names(tmp_path)


def test_force_removes_only_what_the_manifest_lists(tmp_path):
    target = tmp_path / "run"
    with whole_folder(target) as partial:
        fill(partial, "one")
    assert json.loads((target / META).read_text()) == {"files": ["data.txt"]}
    (target / "thesis.tex").write_text("years")
    with pytest.raises(InvalidParameterError, match=r"holds thesis.tex, which no run has written"):
        check_target(target, force=True)
    with pytest.raises(InvalidParameterError), whole_folder(target, force=True) as partial:
        pytest.fail("the folder was opened")
    assert (target / "thesis.tex").read_text() == "years" and (target / "data.txt").read_text() == "one"


@pytest.mark.parametrize("meta", ["{}", "[]", "{", '{"files": 7}', '{"files": ["../thesis.tex", null]}'])
def test_a_folder_that_lists_no_files_is_never_replaced(tmp_path, meta):
    target = tmp_path / "mine"
    target.mkdir()
    (target / META).write_text(meta)
    (target / "data.txt").write_text("years")
    (tmp_path / "thesis.tex").write_text("years")
    refused(lambda: check_target(target, force=True), "expected a new folder", error=InvalidParameterError)
    assert (target / "data.txt").exists() and (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("what", ["a folder", "somebody's page"])
def test_a_name_alone_makes_nothing_ours(tmp_path, what):
    with whole_folder(tmp_path / "run") as partial:
        fill(partial, "one")
    if what == "a folder":
        (tmp_path / "run" / "data.txt").unlink()
        (tmp_path / "run" / "data.txt").mkdir()
    else:
        (tmp_path / "run" / "report.html").write_text("<!doctype html>")
    refused(lambda: check_target(tmp_path / "run", force=True), "which no run has written", error=InvalidParameterError)


def test_what_is_put_there_while_the_run_goes_on_stays(tmp_path):
    with whole_folder(tmp_path / "run") as partial:
        fill(partial, "one")
    target = tmp_path / "run"
    with pytest.raises(InvalidParameterError, match=r"thesis.tex"), whole_folder(target, force=True) as partial:
        fill(partial, "two")
        (tmp_path / "run" / "thesis.tex").write_text("years")
    assert names(tmp_path / "run") == {META, "data.txt", "thesis.tex"} and names(tmp_path) == {"run"}
    assert (tmp_path / "run" / "data.txt").read_text() == "one"


@pytest.mark.parametrize("name", ["n" * 300, "n" * 2**20, "\u00fc" * 128, "/".join(["n" * 200] * 25)])
def test_names_too_long_for_a_disk_are_refused_in_a_short_line(tmp_path, name):
    with pytest.raises(InvalidParameterError, match=r"bytes: expected at most") as error:
        check_target(tmp_path / name)
    assert len(str(error.value)) < 200


def test_the_longest_legal_name_is_taken(tmp_path):
    target = tmp_path / ("n" * 255)
    with whole_folder(target) as partial:
        fill(partial, "one")
    assert names(target) == {META, "data.txt"}
    deep = str(tmp_path) + ("/" + "n" * 99) * 39
    deep += "/" + "n" * (3999 - len(deep))
    check_target(Path(deep))
    with pytest.raises(InvalidParameterError, match="has 4,001 bytes: expected at most 4,000"):
        check_target(Path(deep + "n"))


def test_a_name_becomes_part_of_a_file_name():
    assert file_name("a b/c.d_e-f:\u00fc") == "a-b-c.d_e-f-\u00fc" and file_name(".x.") == "x"
    assert file_name("") == file_name("..") == "scenario"
    longest, longer, other = "n" * 150, "n" * 151, "n" * 150 + "m"
    assert file_name(longest) == longest and len({file_name(each) for each in (longest, longer, other)}) == 3
    assert all(len(file_name(each).encode()) == 150 for each in (longer, other, "n" * 9999))
    assert len(file_name("\u00fc" * 99).encode()) <= 150


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), "open"])
def test_a_full_disk_is_reported_with_the_path_that_was_asked_for(tmp_path, error):
    with pytest.raises(OSError, match=r"(No space|No such file).*run'$"), whole_folder(tmp_path / "run") as partial:
        fill(partial, "one")
        if error == "open":
            (partial / "no" / "file").write_text("")
        raise error
    assert names(tmp_path) == set()
    with pytest.raises(OSError, match=r"No space left on device: '.*page.html'"), whole_file(tmp_path / "page.html"):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    tmp_path.chmod(0o500)
    try:
        refused(lambda: check_target(tmp_path / "run"), "cannot be written", error=InvalidParameterError)
    finally:
        tmp_path.chmod(0o700)


def test_a_path_through_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    refused(lambda: check_target(tmp_path / "file" / "run"), "cannot be written", error=InvalidParameterError)


def test_a_killed_process_leaves_no_target(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from marketsched.results.output import whole_folder\n"
        "with whole_folder(Path(sys.argv[1])) as partial:\n"
        "    (partial / 'meta.json').write_text('{}')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert names(tmp_path) == {PARTIAL}
    # What it left does not disturb the next one, and goes once it is old.
    with whole_folder(tmp_path / "run") as partial:
        fill(partial, "one")
    (left,) = (tmp_path / PARTIAL).iterdir()
    os.utime(left, (0, 0))
    with whole_folder(tmp_path / "run", force=True) as partial:
        fill(partial, "two")
    assert names(tmp_path) == {"run"}


def test_two_runs_side_by_side(tmp_path):
    with whole_folder(tmp_path / "a") as first, whole_folder(tmp_path / "b") as second:
        fill(first, "a")
        fill(second, "b")
    assert [(tmp_path / x / "data.txt").read_text() for x in "ab"] == ["a", "b"]
    assert names(tmp_path) == {"a", "b"}


def open_files() -> int:
    """Return how many files this process has open; 0 where the system does not tell."""
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    target, before = tmp_path / "out.jsonl", open_files()
    target.write_text("before")
    with pytest.raises(KeyboardInterrupt), whole_file(target) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "before"
    with whole_file(target) as partial:
        partial.write_text("after")
    assert target.read_text() == "after"
    assert names(tmp_path) == {"out.jsonl"}
    assert open_files() == before


def test_tables_read_back_equal_and_say_where_they_come_from(tmp_path):
    table = pd.DataFrame(
        {
            "round": np.arange(1, 4),
            "job": pd.array(["A", "B", "A"], dtype="str"),
            "start": pd.array([1, None, 3], dtype="Int64"),
            "payment": [0.1, 0.0, 2.5],
        }
    )
    path = tmp_path / "events.parquet"
    write_table(table, path, {"seed": 3, "scenario": "x"})
    pd.testing.assert_frame_equal(pd.read_parquet(path), table)
    assert json.loads(pq.read_schema(path).metadata[b"marketsched"]) == {"seed": 3, "scenario": "x"}
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    found = duckdb.sql(f"select job, sum(payment) from '{path}' group by job order by job").fetchall()
    assert found == [("A", 2.6), ("B", 0.0)]


def test_equal_tables_give_equal_bytes(tmp_path):
    table = pd.DataFrame({"x": np.arange(1000.0)})
    for name in ("a", "b"):
        write_table(table, tmp_path / name, {"seed": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_summaries_are_plain_json(tmp_path):
    summary = {
        "share": np.float64(0.5),
        "count": np.int64(3),
        "ok": np.bool_(True),
        "nothing": float("nan"),
        "never": [np.inf, 1],
        "prices": np.array([1.0, 2.0]),
        "names": ("a", "b"),
        7: None,
    }
    write_json(summary, tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text()) == {
        "share": 0.5,
        "count": 3,
        "ok": True,
        "nothing": None,
        "never": [None, 1],
        "prices": [1.0, 2.0],
        "names": ["a", "b"],
        "7": None,
    }
    assert type(plain(np.int64(3))) is int


def test_a_table_in_parts_is_the_same_table(tmp_path):
    """Parts with and without missing values; the types are those of the first."""
    table = pd.DataFrame({"round": [1, 2, 3, 4], "job": pd.array(["a", "b", None, "d"], dtype="str")})
    table["completion"] = pd.array([None, None, 7, 8], dtype="Int64")
    write_table(table, tmp_path / "whole.parquet", {"seed": 1})
    write_parts((table[i : i + 2] for i in (0, 2)), tmp_path / "parts.parquet", {"seed": 1})
    whole, parts = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    assert whole.schema.equals(parts.schema, check_metadata=True) and whole.equals(parts)
