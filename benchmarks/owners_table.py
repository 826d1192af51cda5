"""What each owner gets of its own value on logs, under mechanisms with and without money; a CSV and the means.

Windows of 1,500 jobs at loads .7, 1 and 1.5, arrivals closer together in time: the 17 cells of docs/credits.md,
without Philly at 1.5. Where a log names no users, 20 are drawn, sizes as 1 / rank. Every owner of a window has an equal
part. Values are true: it is what owners get that is compared, not what they would gain by lies.

    python benchmarks/owners_table.py --out owners.csv --seeds 960
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from logs_table import LOGS, bound_of, log_of, made
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms.mechanism import EventKind
from marketsched.results.owners import FEWEST
from marketsched.results.paired_statistics import spread
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.workload import Workload

JOBS, DRAWN = 1500, 20
CELLS = [(name, load) for name in LOGS for load in (0.7, 1.0, 1.5)]
LEFT_OUT = (("philly", 1.5),)  # of the last window
CONTESTANTS = (
    "credits",
    "fair-turns",
    "two-offers",
    "easy-backfill",
    "easy-backfill:kill=false",
    "easy-backfill:order=class:kill=false",
    "easy-backfill:order=request:kill=false",
    "fair-share",
    "fair-share:rule=fair-tree",
    "quota",
    "first-come",
    "largest-value-first",
)
FIGURES = ("W", "own", "q10", "worst")
COLUMNS = (
    "log",
    "window",
    "load",
    "seed",
    "mechanism",
    *FIGURES,
    "owners",
    "wait",
    "seconds",
    "upgrades",
    "late",
    "lost",
)


def with_users(log: JobLog) -> JobLog:
    """Return the log with users: drawn, where it names none."""
    if "user" in log.table and log.table["user"].nunique() > 1:
        return log
    rng, weights = np.random.default_rng(4711), 1 / np.arange(1, DRAWN + 1)
    drawn = rng.choice(DRAWN, len(log.table), p=weights / weights.sum())
    return JobLog(log.table.assign(user=[f"u{each:02d}" for each in drawn]), log.source, log.nodes)


@lru_cache(maxsize=1)
def users_log(name: str) -> JobLog:
    """Return a log with users."""
    return with_users(log_of(name, 0))


def market_at(name: str, load: float, seed: int, window: int) -> Workload:
    """Return the market of the last jobs of a log, or of those ``window`` windows earlier."""
    log, nodes = users_log(name), LOGS[name][1]
    log = JobLog(log.table.iloc[: len(log.table) - window * JOBS], log.source, log.nodes)
    whole = Window(most_jobs=JOBS, capacity=nodes)
    stretch = market_of(log, whole, LogRule(), rng=seed).load / load
    return market_of(log, replace(whole, stretch=stretch), LogRule(), rng=seed)


def figures_of(label: str, workload: Workload, bound: float, told: Workload | None = None) -> dict[str, Any]:
    """Play a market; return its figures, in %. ``told`` has what owners report, where that is not the truth."""
    reported = workload if told is None else told
    mechanism, began = made(label, reported), time.process_time()
    events = play(MarketLoop(mechanism), TruthfulOwners(reported.jobs), workload.horizon)
    seconds = time.process_time() - began
    jobs: dict[Any, Any] = {job.name: job for job in workload.jobs}
    got = dict.fromkeys(jobs, 0.0)
    waits = []
    for event in events:
        if event.kind is EventKind.COMPLETE:
            job = jobs[event.job]
            got[event.job] = float(job.truth.value(event.completion or 0))
            waits.append((event.completion or 0) - job.duration - (job.arrival or 0))
    owners = pd.Series([job.owner for job in jobs.values()])
    table = pd.DataFrame({"got": list(got.values()), "all": [job.truth.value.highest for job in jobs.values()]})
    sums = table.groupby(owners.to_numpy()).sum()
    own = (sums["got"] / sums["all"])[owners.value_counts() >= FEWEST].to_numpy()
    late = [each for each in getattr(mechanism, "upgrades", ()) if waited_beyond(each, mechanism.round)]
    figures = mechanism.statistics()
    return {
        "W": 100 * sum(got.values()) / bound,
        "own": 100 * own.mean(),
        "q10": 100 * np.quantile(own, 0.1),
        "worst": 100 * own.min(),
        "owners": own.size,
        "wait": np.mean(waits),
        "seconds": round(seconds, 3),
        "upgrades": figures.get("upgrades", 0),
        "late": len(late),
        "lost": figures.get("node_rounds_lost", 0),
    }


def waited_beyond(upgrade: Any, now: int) -> bool:
    """Tell whether a regular job waited longer than its bound."""
    end = upgrade.started or upgrade.left or now
    return bool(end - upgrade.round - upgrade.unpaid > upgrade.bound)


def rows_of(arguments: argparse.Namespace, known: set[tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Play what is not known yet, seed by seed."""
    for seed in arguments.seeds:
        for name, load in CELLS:
            if name not in arguments.logs or load not in arguments.loads:
                continue
            if not arguments.window and (name, load) in LEFT_OUT:
                continue
            cell = {"log": name, "window": arguments.window, "load": load, "seed": seed}
            asked = [m for m in arguments.mechanisms if (*map(str, cell.values()), m) not in known]
            if not asked:
                continue
            workload = market_at(name, load, seed, arguments.window)
            bound = bound_of(workload)
            for label in asked:
                yield {**cell, "mechanism": label, **figures_of(label, workload, bound)}


def shown(rows: pd.DataFrame, first: str) -> str:
    """Return means over cells, and what the first mechanism has more than the others, cell by cell."""
    cells = rows.groupby(["log", "load", "mechanism"])[[*FIGURES, "wait", "seconds"]].mean()
    lines = [f"means of {rows.groupby(['log', 'load']).ngroups} cells"]
    lines.append(cells.groupby(level="mechanism").mean().round(1).to_string())
    for figure in FIGURES:
        told = []
        for name, part in rows.groupby("mechanism"):
            over_seeds = spread(part.groupby("seed")[figure].mean().to_numpy(), 0.95)
            told.append(f"{name} {over_seeds.mean:.1f} ± {over_seeds.high - over_seeds.mean:.1f}")
        lines.append(f"{figure}, over seeds: {', '.join(told)}")
    for figure in FIGURES[:3]:
        lines.append(cells[figure].unstack(["log", "load"]).round(1).to_string())
        paired = rows.pivot_table(index=["log", "load", "seed"], columns="mechanism", values=figure)
        lines += [beside(paired, first, str(other), figure) for other in paired if other != first]
    own = rows[rows["mechanism"] == first]
    lines.append(f"{first}: {int(own['upgrades'].sum()):,} regular jobs, {int(own['late'].sum())} beyond their bound")
    return "\n".join(lines)


def beside(paired: pd.DataFrame, first: str, other: str, figure: str) -> str:
    """Return in how many cells one mechanism is above another, and the cells in which it is clearly behind."""
    gaps, behind, means = (paired[first] - paired[other]).dropna(), [], []
    clear = 0
    for key, part in gaps.groupby(level=[0, 1]):
        log, load = cast("tuple[str, float]", key)
        each = spread(part.to_numpy(), 0.95)
        means.append(each.mean)
        clear += each.low > 0
        if each.high < 0:
            behind.append(f"{log} {load:g} {each.mean:+.1f} ± {each.high - each.mean:.1f}")
    return (
        f"{figure}: {first} less {other} {np.mean(means):+.1f}; above in {sum(x > 0 for x in means)} of {len(means)}, "
        f"clearly in {clear}; clearly behind: {', '.join(behind) or 'none'}"
    )


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--logs", nargs="+", default=list(LOGS), choices=list(LOGS))
    parser.add_argument("--loads", nargs="+", type=float, default=[0.7, 1.0, 1.5])
    parser.add_argument("--seeds", nargs="+", type=int, default=[960, 961, 962, 963])
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--mechanisms", nargs="+", default=list(CONTESTANTS))
    arguments = parser.parse_args()
    known = set()
    if arguments.out.exists():
        known = {tuple(row[name] for name in COLUMNS[:5]) for row in csv.DictReader(arguments.out.open())}
    with arguments.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not known:
            writer.writeheader()
        for row in rows_of(arguments, known):
            writer.writerow(row)
            file.flush()
    rows = pd.read_csv(arguments.out)
    rows = rows[(rows["window"] == arguments.window) & rows["mechanism"].isin(arguments.mechanisms)]
    print(shown(rows, arguments.mechanisms[0]))


if __name__ == "__main__":
    main()
