"""Commands as a person waits for them: processor seconds of fresh processes, imports included."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import Row, benchmark

FAULTY = "name: x\nworkload: {kind: synthetic-pipelines, nodes: 3}\n"


def _seconds(*arguments: str, status: int = 0, cache: Path | None = None) -> float:
    """Return the processor seconds of one command; ``cache`` is where its compiled kernels are kept.

    The process may keep bytecode, as an installed package has it.
    """
    own = {"PYTHONDONTWRITEBYTECODE": ""} | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "marketsched", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | own,
    )
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != status:
        raise RuntimeError(f"marketsched {' '.join(arguments)}: {done.stderr}")
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


@benchmark
def commands_that_read() -> Iterator[Row]:
    """What needs no engine; a process each."""
    with tempfile.TemporaryDirectory() as folder:
        faulty = Path(folder) / "faulty.yaml"
        faulty.write_text(FAULTY)
        for name, arguments, status in (
            ("help", ["--help"], 0),
            ("report_help", ["report", "--help"], 0),
            ("scenarios", ["scenarios"], 0),
            ("no_such_scenario", ["run", "none-of-ours"], 2),
            ("faulty_scenario", ["run", str(faulty)], 2),
        ):
            _seconds(*arguments, status=status)  # writes the bytecode
            yield Row(f"start.{name}_s", _seconds(*arguments, status=status), "s")


@benchmark
def first_run_and_later_ones() -> Iterator[Row]:
    """The demo's run with no kernel compiled before, and again with all of them kept."""
    with tempfile.TemporaryDirectory() as folder:
        out, cache = Path(folder) / "run", Path(folder) / "kernels"
        run = ["run", "synthetic-pipelines", "--out", str(out), "--force"]
        first = _seconds(*run, cache=cache)
        later = _seconds(*run, cache=cache)
    yield Row("start.first_run_s", first, "s")
    yield Row("start.later_run_s", later, "s")
    yield Row("start.first_over_later", first / later, "x", at_most=3.5)
