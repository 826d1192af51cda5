"""Every report in tiny markets of `two-offers`, patience included, beside the truth; forced entries; negative controls.

    python benchmarks/offers_brute_force.py [--markets 3000] [--first 0] [--entries 10000]

The markets, and what the counts mean, are in `tests/support/offers_reports.py`: six to nine jobs on four nodes, one
of which reports laws, values and deadlines of a grid, in the entry that it prefers and in one that is drawn; its own
durations are enumerated. A control is a rule with a planted fault, in which the check has to find something:

* runs that are stopped pay for the rounds that they used;
* the mechanism itself sets patience, by the reported deadline.

Patience without a price moves no path, either. It is looked at by what jobs gain on average by half of the patience
that they would choose, with a 95 % interval over markets, beside the same with the price.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from marketsched.results.paired_statistics import spread
from offers_markets import Fixed, Unpriced  # type: ignore[import-not-found]
from offers_reports import CONTROLS, REPORTS, by_half_the_patience, findings, moved  # type: ignore[import-not-found]

CONTROL_MARKETS = 100
COUNTS = ("announced better", "better inside", "not offered", "of them in hindsight")


class WithoutPrice(Unpriced, Fixed):
    """Two offers in which any patience costs the same."""


def counted(seeds: range, made: Any) -> Counter[Any]:
    """Return the counts of many markets."""
    total = Counter[Any]()
    for seed in seeds:
        total.update(findings(seed, made, wider=0))
    return total


def of_all(counts: list[tuple[int, int]]) -> str:
    """Return how many of all reports were counted, as text."""
    return f"{sum(found for _, found in counts)} of {sum(n for n, _ in counts):,}"


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markets", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--entries", type=int, default=10_000, help="reports in entries that are forced")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.markets)
    few, many = seeds[:CONTROL_MARKETS], range(arguments.first, arguments.first + -(-arguments.entries // REPORTS))
    for name, made in CONTROLS.items():
        total, paths = counted(few, made), [moved(seed, made) for seed in few]
        inside = f"{total['reports']:,} reports, {total['better inside']} better inside an entry"
        print(f"control, {name}: {inside}; {of_all(paths)} moved something", flush=True)
    for name, made in (("priced", Fixed), ("without a price", WithoutPrice)):
        gains = [x for seed in seeds if (x := by_half_the_patience(seed, made)) is not None]
        each = spread(100 * np.array(gains), 0.95)
        interval = f"{each.mean:+.2f} ± {each.high - each.mean:.2f} % of the value"
        print(f"half the patience, {name}: {interval} ({len(gains):,} markets)", flush=True)
    print(f"forced entries: {of_all([moved(seed) for seed in many])} reports moved something", flush=True)
    total = counted(seeds, Fixed)
    print(f"{total['reports']:,} reports: " + ", ".join(f"{total[name]:,} {name}" for name in COUNTS))


if __name__ == "__main__":
    main()
