"""When an audit at its default budget finds the first exact gain: plays and seconds, over scenarios, rules and seeds.

    python tests/support/first_gain.py --out first.csv [--scenarios saturated ...] [--seeds 700 ...] [--data FOLDER]

The rules are pay-as-bid and "the rate plus a fifth of the bid". Both promise nothing, so that gains over the owner's
own law make the exit status 3. An audit goes through own laws after its screen; here that of each gain is gone through
at once, and the audit ends with the first that counts. Without one it goes on to its end. Rows that the CSV file has
are not made again. The budget counts plays alone: seconds, which only end what a busy machine delays, are not limited.
Printed are the medians of each scenario and rule.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd

from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.searches.screened import Gain
from marketsched.truthfulness.searches.screening import Screening
from planted_faults import registered

SCENARIOS = ("synthetic-pipelines", "stochastic-mix", "saturated", "google-recurring")
RULES = ("pay-as-bid", "rate plus a fifth of the bid")


class _Found(Exception):
    """A gain that counts is known, and the audit need not go on (control flow)."""


class _Clock:
    """Notes the first gain in the market at hand, and ends the audit at the first that counts."""

    def __init__(self) -> None:
        self.row: dict[str, Any] = {}
        self._wall, self._processor = time.perf_counter(), time.process_time()
        self._try, self._gone_through = Screening.try_lie, Screening._gone_through

    def note(self, screening: Screening, gain: Gain | None, what: str, figure: float) -> None:
        """Write down when a figure was known, if it is the first above 0 of its kind."""
        if gain is None or figure <= 0 or f"{what} gain" in self.row:
            return
        self.row |= {
            f"{what} gain": round(figure, 3),
            f"{what} words": gain.words,
            f"{what} plays": screening.budget.plays,
            f"{what} seconds": round(time.perf_counter() - self._wall, 1),
            f"{what} processor": round(time.process_time() - self._processor, 1),
        }
        if what == "counted":
            raise _Found

    def try_lie(self, screening: Screening, *lie: Any) -> Gain | None:
        """Play a lie, and note what it gains in the market at hand."""
        gain = self._try(screening, *lie)
        self.note(screening, gain, "first", gain.gain if gain else 0.0)
        if gain is not None and gain.gain > 0:
            screening.own_laws([gain])
        return gain

    def gone_through(self, screening: Screening, *gain: Any) -> Gain | None:
        """Go through an own law, and note what was gained over it."""
        found = self._gone_through(screening, *gain)
        self.note(screening, found, "counted", found.counted if found else 0.0)
        return found


FIGURES = ("gain", "words", "plays", "seconds", "processor")
COLUMNS = ("scenario", "rule", "seed", *(f"{what} {figure}" for what in ("first", "counted") for figure in FIGURES))


def row_of(scenario: str, rule: str, seed: int, data: Path | None) -> dict[str, Any]:
    """Return when an audit finds what."""
    name, clock = registered(rule) if " " in rule else rule, _Clock()

    def try_lie(screening: Screening, *lie: Any) -> Gain | None:
        return clock.try_lie(screening, *lie)

    def gone_through(screening: Screening, *gain: Any) -> Gain | None:
        return clock.gone_through(screening, *gain)

    with patch.object(Screening, "try_lie", try_lie), patch.object(Screening, "_gone_through", gone_through):
        try:
            audit(scenario, [name], seed=seed, data=data, budget=None)
        except _Found:
            pass
    return {"scenario": scenario, "rule": rule, "seed": seed, **clock.row}


def main() -> None:
    """Make the rows that are missing, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scenarios", nargs="+", default=SCENARIOS, choices=SCENARIOS)
    parser.add_argument("--rules", nargs="+", default=RULES, choices=RULES)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(700, 710))
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    asked = [(s, r, seed) for seed in given.seeds for s in given.scenarios for r in given.rules]
    table = pd.read_csv(given.out) if given.out.exists() else pd.DataFrame(columns=COLUMNS)
    done = set(table[["scenario", "rule", "seed"]].itertuples(index=False, name=None))
    for one in asked:
        if one in done:
            continue
        row, fresh = row_of(*one, given.data), not given.out.exists()
        with given.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if fresh:
                writer.writeheader()
            writer.writerow(row)
        print({name: row.get(name) for name in COLUMNS}, flush=True)
    table = pd.read_csv(given.out).groupby(["scenario", "rule"])
    figures = [name for name in COLUMNS[3:] if "words" not in name]
    runs = table.agg(runs=("seed", "size"), found=("counted gain", "count"))
    print(runs.join(table[figures].median()).to_string())


if __name__ == "__main__":
    main()
