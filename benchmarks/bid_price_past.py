"""`bid-price` from its own past, with one parameter changed at a time: what each change is worth, with intervals.

    python benchmarks/bid_price_past.py --out table.csv [--markets stochastic-mix openb] [--loads 1 1.6]
                                        [--seeds 600 601] [--variants now eight]

Every row of the CSV file is a market, load, seed and variant: its welfare as a share of the dual bound (29). Rows that
the file has are not played again. Printed are means over seeds, and the paired differences between each variant and the
first, with Student's 95 % interval. Markets are the scenarios of the package (nodes make the load; ``:hidden`` hides
durations), and the logs of `logs_table` with durations revealed (``log:openb``: arrivals make the load). ``flat`` is
first come, first served at the flat price that is best in hindsight.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from logs_table import LOGS, bound_of, log_of, played, shown
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.auctions.flat_price import best_first_come_served
from marketsched.mechanisms.limits import SIZES, MarketLimits
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.workload import Workload

EIGHT = "lags=[12,24,36,48,72,96,120,144]"
FOUR = "lags=[48,72,96,120]"
VARIANTS = {
    "four": f"bid-price:{FOUR}:tail=false:hidden_order=strict",
    "four-tail": f"bid-price:{FOUR}:tail=true:hidden_order=strict",
    "eight": f"bid-price:{EIGHT}:tail=false:hidden_order=strict",
    "eight-tail": f"bid-price:{EIGHT}:tail=true:hidden_order=strict",
    "sealed-four": f"bid-price:{FOUR}:tail=false:hidden_order=sealed",
    "sealed-eight": f"bid-price:{EIGHT}:tail=false:hidden_order=sealed",
    "sealed-eight-tail": f"bid-price:{EIGHT}:tail=true:hidden_order=sealed",
    "recurring": f"bid-price:{FOUR}:recurring=true",
    "first-come": "first-come",
    "flat": "",
}
COLUMNS = ("log", "load", "seed", "mechanism", "share", "seconds")


def workload_of(market: str, load: float, seed: int) -> Workload:
    """Return a market at a load."""
    name, _, hidden = market.partition(":")
    if name == "log":
        window, rule = Window(most_jobs=2500, capacity=LOGS[hidden][1]), LogRule(durations="revealed")
        log = log_of(hidden, 0)
        stretch = market_of(log, window, rule, rng=seed).load / load
        return market_of(log, replace(window, stretch=stretch), rule, rng=seed)
    scenario = Scenario.load(name)
    if hidden:
        scenario = scenario.with_changes("workload.durations=hidden")
    workload = scenario.workload_of(seed, None)
    return replace(workload, capacity=workload.capacity_at(load))


def best_flat(workload: Workload) -> dict[str, Any]:
    """Return what the best flat price earns."""
    limits = MarketLimits(**{size: getattr(workload, size) for size in SIZES})
    columns = workload.table.columns(workload.max_delay)
    assert columns is not None  # no shapes
    return {"welfare": best_first_come_served(columns, limits).welfare}


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--markets", nargs="+", required=True)
    parser.add_argument("--loads", nargs="+", type=float, default=[0.8, 1.0, 1.25, 1.6, 2.0, 3.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(600, 610)))
    parser.add_argument("--variants", nargs="+", default=["four", "eight", "four-tail", "eight-tail"], choices=VARIANTS)
    arguments = parser.parse_args()
    known = set()
    if arguments.out.exists():
        known = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(arguments.out.open())}
    with arguments.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        if not known:
            writer.writeheader()
        for market in arguments.markets:
            for load in arguments.loads:
                for seed in arguments.seeds:
                    cell = {"log": market, "load": load, "seed": seed}
                    asked = [x for x in arguments.variants if (*map(str, cell.values()), x) not in known]
                    if not asked:
                        continue
                    workload = workload_of(market, load, seed)
                    bound = bound_of(workload)
                    for name in asked:
                        found = best_flat(workload) if name == "flat" else played(VARIANTS[name], workload)
                        writer.writerow({**cell, "mechanism": name, "share": 100 * found["welfare"] / bound, **found})
                        file.flush()
    rows = pd.read_csv(arguments.out)
    rows = rows[rows["log"].isin(arguments.markets) & rows["mechanism"].isin(arguments.variants)]
    print(shown(rows, arguments.variants[0]))


if __name__ == "__main__":
    main()
