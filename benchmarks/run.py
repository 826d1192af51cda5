"""Run the benchmarks, print them as a table, write them as JSON: ``python benchmarks/run.py --help``."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:  # so that bench files, and processes they start, find the harness by name
    sys.path.insert(0, str(HERE))

from harness import REGISTERED, Benchmark, Row, write_rows  # noqa: E402


def discover(folder: Path) -> list[Benchmark]:
    """Import every ``bench_*.py`` of a folder on ``sys.path``; return what they registered, in order."""
    for path in sorted(folder.glob("bench_*.py")):
        import_module(path.stem)
    return list(REGISTERED)


def run(benchmarks: list[Benchmark], only: str, log: Console) -> tuple[list[Row], list[str]]:
    """Run the benchmarks whose ``file.function`` contains ``only``; return rows and the names that failed."""
    rows: list[Row] = []
    failed: list[str] = []
    for function in benchmarks:
        name = f"{function.__module__}.{function.__name__}"
        if only not in name:
            continue
        begin = time.perf_counter()
        try:
            rows.extend(function())
        except Exception:
            traceback.print_exc()
            failed.append(name)
        log.print(f"{name}: {time.perf_counter() - begin:.1f} s", style="dim", highlight=False)
    return rows, failed


def table_of(rows: list[Row]) -> Table:
    """Return the rows as a table for people."""
    table = Table("benchmark", "value", "unit", "bound", "ok")
    table.columns[1].justify = table.columns[3].justify = "right"
    for row in rows:
        sign = "" if row.bound is None else "<= " if row.at_most is not None else ">= "
        bound = "" if row.bound is None else f"{sign}{row.bound:g}"
        verdict = "[red]no[/red]" if not row.ok else "" if row.bound is None else "[green]yes[/green]"
        table.add_row(row.name, f"{row.value:.4g}", row.unit, bound, verdict)
    return table


def main() -> int:
    """Return 0 if every row is within its bound and no benchmark raised, else 1."""
    parser = argparse.ArgumentParser(description="Run the benchmarks; exit status 1 if one misses its bound.")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"), help="JSON file (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only benchmarks whose file.function contains TEXT")
    parser.add_argument("--folder", type=Path, default=HERE, help="where to look for bench_*.py (default: beside this)")
    chosen = parser.parse_args()
    if chosen.folder.resolve() != HERE:
        sys.path.insert(0, str(chosen.folder.resolve()))

    rows, failed = run(discover(chosen.folder), chosen.only, Console(stderr=True))
    Console().print(table_of(rows))
    write_rows(rows, chosen.out)
    for name in failed:
        print(f"{name} raised an error", file=sys.stderr)
    if not rows and not failed:
        print(f"no benchmark matches {chosen.only!r}", file=sys.stderr)
    return 0 if rows and not failed and all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
