"""The benchmark harness: bounds, fair timing, peak memory, and a file written whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


BENCH = """
from harness import Row, benchmark

@benchmark
def figures():
    yield Row("good", 1.0, "s", at_most=2)
    yield Row("told", 3.5, "MB")
"""


def run(folder: Path, *more: str) -> subprocess.CompletedProcess:
    command = [
        sys.executable,
        str(BENCHMARKS / "run.py"),
        "--folder",
        str(folder),
        "--out",
        str(folder / "new" / "b.json"),
        "--against",
        str(folder / "none-kept.json"),
        *more,
    ]
    # A benchmark rewritten within a second at the same length looks unchanged to the bytecode that Python keeps.
    fresh = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=fresh)


def test_run_writes_the_list(tmp_path):
    (tmp_path / "bench_demo.py").write_text(BENCH)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    once = {"repeats": 5, "ok": True}
    assert json.loads((tmp_path / "new" / "b.json").read_text()) == [
        {**{"name": "good", "value": 1.0, "lowest": 1.0, "highest": 1.0}, **once, "unit": "s", "bound": 2},
        {**{"name": "told", "value": 3.5, "lowest": 3.5, "highest": 3.5}, **once, "unit": "MB", "bound": None},
    ]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["b.json"]
    assert "good" in done.stdout and "told" in done.stdout


@pytest.mark.parametrize("line", ['    yield Row("bad", 3.0, "s", at_most=2)', "    raise RuntimeError('broken')"])
def test_a_missed_bound_or_an_error_fails_the_run(tmp_path, line):
    (tmp_path / "bench_demo.py").write_text(BENCH + line + "\n")
    done = run(tmp_path)
    assert done.returncode == 1
    assert {row["name"] for row in json.loads((tmp_path / "new" / "b.json").read_text())} >= {"good", "told"}


REPEATED = """
from harness import Row, benchmark

calls = []

@benchmark
def varies():
    calls.append(1)
    yield Row("slow", SLOW + len(calls), "s")
    yield Row("same", 2.0, "x")
"""


def test_repeats_give_median_and_spread_and_changes_are_those_whose_spreads_lie_apart(tmp_path):
    (tmp_path / "bench_demo.py").write_text("SLOW = 0\n" + REPEATED)
    kept = ["--against", str(tmp_path / "last.json")]
    assert run(tmp_path, *kept, "--keep").returncode == 0
    slow, _ = json.loads((tmp_path / "last.json").read_text())
    assert (slow["value"], slow["lowest"], slow["highest"], slow["repeats"]) == (3.0, 1.0, 5.0, 5)
    (tmp_path / "bench_demo.py").write_text("SLOW = 9\n" + REPEATED)
    assert run(tmp_path, *kept).returncode == 0
    lines = (tmp_path / "new" / "b.changes.md").read_text().splitlines()
    assert lines[4] == "| slow | 3 (1 to 5) | 12 (10 to 14) | 4 | changed |"
    assert lines[5] == "| same | 2 (2 to 2) | 2 (2 to 2) | 1 |  |"


TIMED = """
from harness import Row, benchmark

@benchmark
def times():
    for i in range(12):
        yield Row.of_values(f"time {i}", [SPEED * (i + 1), SPEED * (i + 1.01)], "s")
    yield Row.of_values("slower", [SPEED * SLOWER, SPEED * SLOWER], "s")
"""


def test_a_slower_machine_is_no_change(tmp_path):
    kept = ["--against", str(tmp_path / "last.json")]
    (tmp_path / "bench_demo.py").write_text("SPEED, SLOWER = 1, 1\n" + TIMED)
    assert run(tmp_path, *kept, "--keep").returncode == 0
    (tmp_path / "bench_demo.py").write_text("SPEED, SLOWER = 3, 2\n" + TIMED)
    assert run(tmp_path, *kept).returncode == 0
    text = (tmp_path / "new" / "b.changes.md").read_text()
    assert "are divided by 3," in text
    assert [line.split(" | ")[0] for line in text.splitlines() if "changed" in line] == ["| slower"]
