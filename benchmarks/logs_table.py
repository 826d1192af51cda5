"""Mechanisms on logs at several loads: arrivals compressed in time, nodes those of the machine.

    python benchmarks/logs_table.py --out table.csv [--logs hpc2n KTH-SP2-1996-2.1-cln.swf.gz LOG.swf:8192]
                                    [--loads 0.7 1 1.5] [--seeds 400 401] [--window 1] [--jobs 1500]
                                    [--mechanisms two-offers easy-backfill:kill=false]

``--logs`` takes the six logs known here by name, and any file of a log by its path, in a form that ``compare`` reads
(the Parallel Workloads Archive's .swf and .swf.gz); the size of the machine is the log's own, or stands after a colon.

Every row of the CSV file is a log, load, seed and mechanism: its welfare as a share of the dual bound (29), which knows
durations. Rows that the file has are not played again. The table that is printed holds means over seeds, and the
differences between the first mechanism and the others, paired, with Student's 95 % interval; the cells in which another
leads by more than half a point; and, of the first, the node time that evictions destroyed, and announced odds beside
what happened, of jobs and weighted by their values. ``--window 1`` takes
the jobs before the last ones (of ``lublin``: another draw). Logs are read from the folder MARKETSCHED_DATA names;
``lublin`` is drawn by the model of U. Lublin and D. Feitelson, JPDC 63 (2003), batch jobs, without its daily cycle.
"""

from __future__ import annotations

import argparse
import ast
import csv
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import yaml

from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.comparisons.comparing import LOG_DEFAULT
from marketsched.mechanisms import get_mechanism
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.registry import get
from marketsched.mechanisms.signatures import parameters_of
from marketsched.relaxed_lp.duality import dual_bound
from marketsched.results.paired_statistics import spread
from marketsched.worlds.logs.formats import find_log, format_of, read_log
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.workload import Workload

LOGS = {  # file, nodes, jobs
    "hpc2n": ("hpc2n_2002_excerpt.swf", 240, 3145),
    "nasa": ("nasa_ipsc_1993.swf.gz", 128, 4000),
    "philly": ("philly2017_jobs.csv.gz", 256, 4000),
    "openb": ("openb2023_pods.csv", 16, 4000),
    "lublin": ("", 256, 3000),
    "google29": ("google2011_jobs_29d.csv.gz", 133, 4000),
}
MOST_JOBS = 1500  # of a log that is given by its path
CELL = ("log", "jobs", "window", "load", "seed")
COLUMNS = (*CELL, "mechanism", "share", "completed", "lost", "busy", "seconds", "statistics")
CLEAR = 0.5  # points by which a rule has to lead in a cell to be named


def lublin(seed: int, n: int = 6000, nodes: int = 256) -> JobLog:
    """Draw a log of the model of Lublin and Feitelson."""
    rng = np.random.default_rng(seed)
    high = math.log2(nodes)
    serial = rng.random(n) < 0.244
    u = np.where(rng.random(n) < 0.86, rng.uniform(0.8, high - 2.5, n), rng.uniform(high - 2.5, high, n))
    powers = np.where(rng.random(n) < 0.576, 2.0 ** np.rint(u), np.rint(2.0**u))
    size = np.where(serial, 1, powers).clip(1, nodes).astype(int)
    short = rng.random(n) < (-0.0054 * size + 0.78).clip(0, 1)
    run = np.exp(np.where(short, rng.gamma(4.2, 0.94, n), rng.gamma(312, 0.03, n)))
    submit = np.cumsum(2.0 ** rng.gamma(10.23, 0.4871, n))
    return JobLog.of(
        pd.DataFrame({"submit_s": submit, "run_s": np.ceil(run).clip(1, 3e5), "processors": size}), "lublin", nodes
    )


def known_log(text: str) -> str:
    """Return the name of a log; one that is given as ``PATH`` or ``PATH:NODES`` is read and known from then on."""
    if text in LOGS:
        return text
    file, colon, nodes = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "")
    path = Path(file)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text} is no file, and none of {', '.join(LOGS)}")
    log = read_log(path, format_of(path))
    if not colon and log.nodes is None:
        raise argparse.ArgumentTypeError(f"{file} does not say how many nodes its machine has: write {file}:NODES")
    name = path.name.removesuffix(".gz").removesuffix(".swf")
    LOGS[name] = (str(path), int(nodes) if colon else int(log.nodes or 0), MOST_JOBS)
    return name


def log_of(name: str, window: int) -> JobLog:
    """Return a log without the jobs of ``window`` later windows."""
    file, nodes, n_jobs = LOGS[name]
    if not file:
        return lublin(11 + window)
    path = find_log(file)
    log = read_log(path, format_of(path))
    if window and len(log.table) < (window + 1) * n_jobs:
        raise SystemExit(f"{name} has {len(log.table):,} runs: no window {window} of {n_jobs:,}")
    table = log.table[log.table["processors"] <= nodes]
    return JobLog(table.iloc[: len(table) - window * n_jobs], log.source, log.nodes)


def market_at(log: JobLog, name: str, load: float, seed: int, rule: LogRule | None = None) -> Workload:
    """Return the market of a log at a load."""
    rule = rule or LogRule()
    _, nodes, n_jobs = LOGS[name]
    window = Window(most_jobs=n_jobs, capacity=nodes)
    stretch = market_of(log, window, rule, rng=seed).load / load
    return market_of(log, replace(window, stretch=stretch), rule, rng=seed)


def bound_of(workload: Workload) -> float:
    """Return the dual bound, credits."""
    rows = [(job.truth, job.arrival, job.duration) for job in workload.jobs]
    jobs = RealisedJobs.build(rows, horizon=workload.horizon, max_delay=workload.max_delay)
    return float(dual_bound(jobs, workload.capacity, workload.horizon, steps=300).value)


def made(label: str, workload: Workload) -> Any:
    """Return the mechanism that ``name:parameter=value:...`` stands for."""
    name, *rules = label.split(":")
    given: dict[str, Any] = {}
    for rule in rules:
        key, value = rule.split("=")
        given[key] = yaml.safe_load(value)
    sizes = ("capacity", "horizon", "max_concurrency", "max_duration", "max_value", "max_delay")
    given |= {size: getattr(workload, size) for size in sizes}
    if "round_seconds" in parameters_of(get("mechanism", name)):
        given["round_seconds"] = workload.round_seconds
    if given.get("order") == "class":
        given["classes"] = workload.classes
    if getattr(get("mechanism", name), "wants_owners", lambda **_: False)(**given):
        given["owners"] = workload.owners
    return get_mechanism(name, **given)


def played(label: str, workload: Workload) -> dict[str, Any]:
    """Play a market; return welfare, credits, and what else a row holds."""
    sizes = {name: getattr(workload, name) for name in ("capacity", "horizon", "max_delay")}
    setup, began = MarketSetup(label, workload.table, made(label, workload), **sizes), time.process_time()
    result = MarketRun(setup, lookahead=0).run()
    seconds, found = time.process_time() - began, result.outcome
    return {
        "welfare": found["welfare"],
        "seconds": seconds,
        "completed": found["completed"],
        "lost": setup.mechanism.statistics().get("node_rounds_lost", 0.0),
        "busy": int(result.rounds["load"].sum()),
        "statistics": {key: round(float(x), 4) for key, x in setup.mechanism.statistics().items()},
    }


def rows_of(arguments: argparse.Namespace, known: set[tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Play what is not known yet."""
    for name in arguments.logs:
        log = log_of(name, arguments.window)
        for load in arguments.loads:
            for seed in arguments.seeds:
                cell = dict(zip(CELL, (name, LOGS[name][2], arguments.window, load, seed), strict=True))
                asked = [m for m in arguments.mechanisms if (*map(str, cell.values()), m) not in known]
                if not asked:
                    continue
                workload = market_at(log, name, load, seed)
                bound = bound_of(workload)
                for label in asked:
                    found = played(label, workload)
                    yield {**cell, "mechanism": label, "share": 100 * found.pop("welfare") / bound, **found}


def shown(rows: pd.DataFrame, first: str) -> str:
    """Return means and paired differences as text."""
    lines = []
    cells = rows.groupby(["log", "load", "mechanism"])["share"].mean().unstack(["log", "load"])
    means = cells.mean(axis=1)
    lines.append(cells.round(1).to_string())
    lines.append(f"mean of {cells.shape[1]} cells: " + ", ".join(f"{name} {x:.1f}" for name, x in means.items()))
    lines += leads(cells, first)
    own = rows[rows["mechanism"] == first]
    for cell, runs in own.groupby(["log", "load"]):
        log, load = cast("tuple[str, float]", cell)
        wasted = f"{log} {load:g}: {100 * runs['lost'].sum() / runs['busy'].sum():.1f} % of busy node time lost"
        told = pd.DataFrame([ast.literal_eval(each) for each in runs["statistics"]]).mean()
        kinds = [kind + of for kind in ("regular", "spare") for of in ("", "_by_value")]
        odds = [odds_text(told, kind) for kind in kinds if f"{kind.split('_')[0]}_announced" in told]
        lines.append("; ".join([wasted, *odds]))
    paired = rows.pivot_table(index=["log", "load", "seed"], columns="mechanism", values="share")
    for other in (name for name in paired if name != first):
        lines.append(f"{first} less {other}")
        for key, part in (paired[first] - paired[other]).dropna().groupby(level=[0, 1]):
            log, load = cast("tuple[str, float]", key)
            each = spread(part.to_numpy(), 0.95)
            lines.append(f"  {log} {load:g}: {each.mean:+.1f} ± {each.high - each.mean:.1f} ({len(part)} seeds)")
    return "\n".join(lines)


def odds_text(told: pd.Series, kind: str) -> str:
    """Return announced odds and what happened."""
    name, _, rest = kind.partition("_")
    announced, happened = (told[f"{name}_{what}{'_' + rest if rest else ''}"] for what in ("announced", "happened"))
    return f"{kind.replace('_', ' ')} {announced:.2f}, {happened:.2f}"


def leads(cells: pd.DataFrame, first: str) -> list[str]:
    """Return, for each other rule, the cells in which it leads the first one clearly."""
    found = []
    for other in (name for name in cells.index if name != first):
        lead = cells.loc[other] - cells.loc[first]
        named = [f"{log} {load:g} {x:+.1f}" for (log, load), x in lead[lead > CLEAR].items()]
        found.append(f"{other} leads {first} in {len(named)} of {lead.size}: {', '.join(named) or 'none'}")
    return found


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--logs", nargs="+", default=list(LOGS), type=known_log, metavar="LOG")
    parser.add_argument("--loads", nargs="+", type=float, default=[0.7, 1.0, 1.5])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(400, 405)))
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--jobs", type=int, help=f"of each log (default: as listed, {MOST_JOBS} of a file)")
    parser.add_argument("--mechanisms", nargs="+", default=list(LOG_DEFAULT))
    arguments = parser.parse_args()
    if arguments.jobs:
        LOGS.update({name: (*LOGS[name][:2], arguments.jobs) for name in arguments.logs})
    known = set()
    if arguments.out.exists():
        known = {tuple(row[name] for name in (*CELL, "mechanism")) for row in csv.DictReader(arguments.out.open())}
    with arguments.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not known:
            writer.writeheader()
        for row in rows_of(arguments, known):
            writer.writerow(row)
            file.flush()
    rows = pd.read_csv(arguments.out)
    asked = {name: LOGS[name][2] for name in arguments.logs}
    rows = rows[(rows["window"] == arguments.window) & rows["mechanism"].isin(arguments.mechanisms)]
    rows = rows[rows["log"].map(asked).eq(rows["jobs"])]
    print(shown(rows, arguments.mechanisms[0]))


if __name__ == "__main__":
    main()
