"""Does the verdict on one half of a log hold in the other? Intervals over windows, and over draws of one window.

    python benchmarks/verdict_coverage.py --out coverage.csv LOG[:NODES] ... [--windows 8] [--draws 3] [--values]

Of each half of a log so many windows are compared (`marketsched compare --windows`). The verdict of the first half is
the interval of the mean difference between two mechanisms, in points of the bound; it holds if the mean of the second
half lies in it, and the expectation of further weeks (sqrt(2) times as wide) if it lies in that. Beside them stands the
interval of the last window of the first half alone, over draws of values. With ``--values`` the same under each rule of
value. A row of the file is a log, rule, and pair; logs that the file has are not played again.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from marketsched.comparisons.comparing import compare
from marketsched.comparisons.value_rules import VALUE_RULES
from marketsched.results.paired_statistics import CONFIDENCE, share_of_means
from marketsched.worlds.logs.formats import find_log, format_of

NAMES = ("two-offers", "credits", "easy-backfill", "easy-backfill:order=class", "fair-share")


def verdicts(runs: pd.DataFrame, windows: int) -> Iterator[dict[str, Any]]:
    """Yield the verdicts of each pair: runs of 2 ``windows`` windows, which seeds take in turn."""
    of_window = runs.assign(window=runs["seed"] % (2 * windows))
    for first, second in combinations(NAMES, 2):
        both = [of_window[of_window["mechanism"] == name].set_index(["window", "seed"]) for name in (first, second)]
        gain, bound = both[0]["welfare"] - both[1]["welfare"], both[0]["opt_high"]
        means = gain.groupby("window").mean(), bound.groupby("window").mean()
        early, late = (mean[mean.index < windows] for mean in means), (mean[mean.index >= windows] for mean in means)
        (gain_early, bound_early), (gain_late, bound_late) = early, late
        mean, low, high = share_of_means(gain_early, bound_early, CONFIDENCE)
        then = gain_late.sum() / bound_late.sum()
        one, one_low, one_high = share_of_means(gain[windows - 1], bound[windows - 1], CONFIDENCE)
        yield {
            "pair": f"{first} - {second}",
            "mean": 100 * mean,
            "low": 100 * low,
            "high": 100 * high,
            "later": 100 * then,
            "holds": low <= then <= high,
            "expected_holds": abs(then - mean) <= math.sqrt(2) * (high - mean),
            "one_window": 100 * one,
            "one_low": 100 * one_low,
            "one_high": 100 * one_high,
            "one_holds": one_low <= then <= one_high,
        }


def main() -> None:
    """Play what the file does not have, and print how often verdicts hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1000, help="at most, of a window")
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    table = pd.read_csv(given.out) if given.out.exists() else pd.DataFrame({"log": [], "rule": []})
    for text in given.logs:
        file, _, nodes = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "")
        path = find_log(file)
        for rule, keys in VALUE_RULES.items() if given.values else [next(iter(VALUE_RULES.items()))]:
            if ((table["log"] == path.name) & (table["rule"] == rule)).any():
                continue
            workload = {"kind": format_of(path), "path": str(path), "rule": dict(keys), "most_jobs": given.jobs}
            workload |= {"capacity": int(nodes)} if nodes else {}
            found = compare(
                {"name": path.name, "workload": workload},
                list(NAMES),
                given.draws,
                windows=2 * given.windows,
                workers=given.workers,
            )
            rows = pd.DataFrame(list(verdicts(found.runs, given.windows))).assign(log=path.name, rule=rule)
            table = pd.concat([table, rows], ignore_index=True)
            table.to_csv(given.out, index=False)
    print(table.groupby("rule")[["holds", "expected_holds", "one_holds"]].mean().round(3).to_string())
    print(table.groupby(["log", "rule"])[["holds", "expected_holds", "one_holds"]].mean().round(2).to_string())


if __name__ == "__main__":
    main()
