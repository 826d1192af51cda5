"""Run the benchmarks, print them as a table, write them as JSON: ``python benchmarks/run.py --help``."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:  # so that bench files, and processes they start, find the harness by name
    sys.path.insert(0, str(HERE))

from harness import ON_REQUEST, ONCE, REGISTERED, Benchmark, Row, write_rows  # noqa: E402

AGAIN = 2  # more repeats of a benchmark that misses a bound
TIMES, RATES = {"s", "ms", "us", "ns", "ms a run"}, {"/s", "1/s"}
CHANGED = 1.1  # a smaller change than by this factor is none


def discover(folder: Path) -> list[Benchmark]:
    """Import every ``bench_*.py`` of a folder on ``sys.path``; return what they registered, in order."""
    for path in sorted(folder.glob("bench_*.py")):
        import_module(path.stem)
    return list(REGISTERED)


def run(
    benchmarks: list[Benchmark], only: str, log: Console, seconds: float = 285.0, repeats: int = 5
) -> tuple[list[Row], list[str]]:
    """Run the benchmarks whose ``file.function`` contains ``only``; return rows and the names that failed.

    All run once, then all once more, and so on, as long as what each took before fits into ``seconds``: the repeats
    of a figure lie apart, so that their spread shows what the hour does to it. Those marked `once` are not repeated.
    A benchmark that misses a bound runs ``AGAIN`` more times at the end, whatever that takes, so that an hour in which
    the machine was busy fails no bound alone.
    """
    named = {f"{each.__module__}.{each.__name__}": each for each in benchmarks}
    chosen = {name: each for name, each in named.items() if only == name or (only in name and each not in ON_REQUEST)}
    found: dict[str, list[Row]] = {}
    took: dict[str, float] = {}
    failed: list[str] = []
    makers: dict[str, str] = {}
    begin = time.perf_counter()

    def measure(name: str) -> None:
        started = time.perf_counter()
        try:
            for row in chosen[name]():
                found.setdefault(row.name, []).append(row)
                makers[row.name] = name
        except Exception:
            traceback.print_exc()
            failed.append(name)
        took[name] = time.perf_counter() - started
        log.print(f"{name}: {took[name]:.1f} s", style="dim", highlight=False)

    for number in range(repeats):
        for name, function in chosen.items():
            late = number and (function in ONCE or time.perf_counter() - begin + took[name] > seconds)
            if name not in failed and not late:
                measure(name)
    for _ in range(AGAIN):
        missed = {makers[row] for row, several in found.items() if not Row.of_repeats(several).ok}
        for name in sorted(missed - set(failed)):
            measure(name)
    return [Row.of_repeats(rows) for rows in found.values()], failed


def table_of(rows: list[Row]) -> Table:
    """Return the rows as a table for people: medians, and the least and the largest of the repeats."""
    table = Table("benchmark", "value", "least", "largest", "unit", "bound", "ok")
    for column in (1, 2, 3, 5):
        table.columns[column].justify = "right"
    for row in rows:
        sign = "" if row.bound is None else "<= " if row.at_most is not None else ">= "
        bound = "" if row.bound is None else f"{sign}{row.bound:g}"
        verdict = "[red]no[/red]" if not row.ok else "" if row.bound is None else "[green]yes[/green]"
        spread = [f"{x:.4g}" if len(row.values) > 1 else "" for x in row.spread]
        table.add_row(row.name, f"{row.value:.4g}", *spread, row.unit, bound, verdict)
    return table


def changes(rows: list[Row], kept: list[dict[str, Any]]) -> str:
    """Return how figures changed against those of a kept file, as a table in Markdown, the largest changes first.

    The median ratio of all times is what the machine and the hour do to them, and is divided out of times. A
    figure counts as changed where the repeats of then and now do not overlap after that; of one measured once in
    either, nothing can be said.
    """
    then = {row["name"]: row for row in kept if row["value"] is not None}
    both = [(row, then[row.name]) for row in rows if row.name in then and math.isfinite(row.value)]
    machine = _machine_factor(both)
    lines = []
    for row, old in both:
        factor = machine if row.unit in TIMES else 1 / machine if row.unit in RATES else 1.0
        (low, high), ratio = row.spread, row.value / factor / old["value"] if old["value"] else math.nan
        apart = low / factor > old["highest"] or high / factor < old["lowest"]
        size = abs(math.log(ratio)) if ratio > 0 else math.inf
        known = len(row.values) > 1 and old["repeats"] > 1
        verdict = "measured once" if not known else "changed" if apart and size > math.log(CHANGED) else ""
        cells = (
            f"{old['value']:.4g} ({old['lowest']:.4g} to {old['highest']:.4g})",
            f"{row.value:.4g} ({low:.4g} to {high:.4g})",
        )
        lines.append((verdict != "changed", -size, f"| {row.name} | {' | '.join(cells)} | {ratio:.3g} | {verdict} |"))
    why = "the median of now over kept: this machine and hour"
    about = f"Times (and rates the other way) are divided by {machine:.3g}, {why}.\n\n"
    head = "| benchmark | kept | now | now over kept | |\n|---|---|---|---|---|\n"
    new = sorted({row.name for row in rows} - set(then))
    return (
        about
        + head
        + "".join(f"{line}\n" for *_, line in sorted(lines))
        + (f"\nNew: {', '.join(new)}\n" if new else "")
    )


def _machine_factor(both: list[tuple[Row, dict[str, Any]]]) -> float:
    """Return the median of now over kept among times; 1 where there are fewer than ten, which say little."""
    ratios = [row.value / old["value"] for row, old in both if row.unit in TIMES and old["value"] and row.value > 0]
    return statistics.median(ratios) if len(ratios) >= 10 else 1.0


def main() -> int:
    """Return 0 if every row is within its bound and no benchmark raised, else 1."""
    parser = argparse.ArgumentParser(description="Run the benchmarks; exit status 1 if one misses its bound.")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"), help="JSON file (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only benchmarks whose file.function contains TEXT")
    parser.add_argument("--folder", type=Path, default=HERE, help="where to look for bench_*.py (default: beside this)")
    parser.add_argument("--seconds", type=float, default=285.0, help="no repeat that ends later (default: %(default)s)")
    parser.add_argument("--against", type=Path, default=HERE / "last.json", help="kept figures (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep these figures there, for the next comparison")
    chosen = parser.parse_args()
    if chosen.folder.resolve() != HERE:
        sys.path.insert(0, str(chosen.folder.resolve()))

    rows, failed = run(discover(chosen.folder), chosen.only, Console(stderr=True), chosen.seconds)
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 140)  # names are whole in a file and behind a pipe
    console.print(table_of(rows))
    write_rows(rows, chosen.out)
    if chosen.against.is_file():
        changed = chosen.out.with_suffix(".changes.md")
        changed.write_text(changes(rows, json.loads(chosen.against.read_text())))
        print(f"against {chosen.against.name}: {changed}", file=sys.stderr)
    if chosen.keep:
        write_rows(rows, chosen.against)
    for name in failed:
        print(f"{name} raised an error", file=sys.stderr)
    if not rows and not failed:
        print(f"no benchmark matches {chosen.only!r}", file=sys.stderr)
    return 0 if rows and not failed and all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
