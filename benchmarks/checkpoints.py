"""What checkpoints bring to `two-offers` and `credits` on logs, and what a job gains by what it says of them.

    python benchmarks/checkpoints.py gain --out gain.csv [--logs hpc2n LOG.swf:8192] [--loads 0.7 1 1.5] [--every 4]
    python benchmarks/checkpoints.py gain --out gain.csv --mechanism credits
    python benchmarks/checkpoints.py lies --out lies.csv [--logs hpc2n nasa] [--loads 1] [--jobs-each 60] [--every 4]

``gain`` plays each market of `logs_table` without checkpoints, with those of every job each ``--every`` rounds, and
with them where nobody's statement of them moves another job (``counts_saved=false``). Printed are paired differences of
points of the dual bound (29), and of the share of busy node time that was lost, in each cell and over logs as units.
`credits` has one rule.

``lies`` lets one job at a time say something else, the others true: that it saves its work while it does not (in a
market where nobody does, and in one where all others do), and that it does not while it does. Its work keeps what its
true checkpoints save in any case. Those that lie are drawn from the jobs that run for more than ``--every`` rounds:
to others it makes no difference. With ``--mechanism credits`` all jobs of one owner lie, its utility is their value.
Printed are mean gains as a share of the mean utility of truth.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from logs_table import LOGS, bound_of, known_log, log_of, made, market_at, played
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import EventKind
from marketsched.results.paired_statistics import spread
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.workload import Workload

NONE, KEPT, UNCOUNTED = "none", "checkpoints", "not counted"
RULES = {
    "two-offers": {NONE: "two-offers", KEPT: "two-offers:counts_saved=true", UNCOUNTED: "two-offers"},
    "credits": {NONE: "credits", KEPT: "credits"},
}
CELL = ("log", "load", "seed")
SAYS = {  # the lie: whether it has checkpoints, whether all others have
    "states those it does not have, nobody has any": (False, False),
    "states those it does not have, all others have them": (False, True),
    "hides those it has, all others have them": (True, True),
    "hides those it has, nobody else has any": (True, False),
}


def rule_of(every: int | None) -> LogRule:
    """Return the rule for values and announcements of a log, with checkpoints."""
    return LogRule(checkpoint_every=every)


def gains(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Play each market with and without checkpoints."""
    for name in arguments.logs:
        log = log_of(name, arguments.window)
        for load in arguments.loads:
            for seed in arguments.seeds:
                markets = {every: market_at(log, name, load, seed, rule_of(every)) for every in (None, arguments.every)}
                bound = bound_of(markets[None])
                for label, rule in RULES[arguments.mechanism.partition(":")[0]].items():
                    found = played(rule, markets[None if label == NONE else arguments.every])
                    row = {"share": 100 * found["welfare"] / bound, "waste": 100 * found["lost"] / found["busy"]}
                    told = {key: found["statistics"][key] for key in ODDS if key in found["statistics"]}
                    yield dict(zip(CELL, (name, load, seed), strict=True)) | {"rule": label} | row | told


ODDS = [
    f"{kind}_{what}{of}"
    for kind in ("regular", "spare")
    for of in ("", "_by_value")
    for what in ("announced", "happened")
]


def interval(x: Any) -> str:
    """Return a mean with Student's 95 % interval."""
    each = spread(np.asarray(x, dtype=float), 0.95)
    return f"{each.mean:+.2f} ± {each.high - each.mean:.2f}"


def shown_gains(rows: pd.DataFrame) -> str:
    """Return the differences as text."""
    lines = []
    for what in ("share", "waste"):
        paired = rows.pivot_table(index=list(CELL), columns="rule", values=what)
        means = ", ".join(f"{rule} {x:.2f}" for rule, x in paired.mean().items())
        lines.append(f"{what}, mean of {len(paired)} markets: {means}")
        for one, other in ((KEPT, NONE), (UNCOUNTED, NONE), (KEPT, UNCOUNTED)):
            if not {one, other} <= set(paired):
                continue
            difference = paired[one] - paired[other]
            by_log = difference.groupby(level="log").mean()
            lines.append(f"{what}, {one} less {other}: {interval(by_log)} over {len(by_log)} logs")
            for cell, part in difference.groupby(level=["log", "load"]):
                name, load = cast("tuple[str, float]", cell)
                level = paired.loc[part.index, [other, one]].mean()
                lines.append(f"  {name} {load:g}: {interval(part)} ({level[other]:.1f} to {level[one]:.1f})")
    if set(ODDS) <= set(rows):
        lines.append(rows.groupby("rule")[ODDS].mean().round(3).T.to_string())
    return "\n".join(lines)


def utility(rule: str, workload: Workload, jobs: list[Job], said: Mapping[str, Any]) -> float:
    """Return the utility of the jobs that report what is ``said``, by name, the others true."""
    market = MarketLoop(made(rule, workload))
    done = [
        e
        for e in play(market, _SomeLie(jobs, said), workload.horizon)
        if e.job in said and e.kind is EventKind.COMPLETE
    ]
    truth = {job.name: job.truth for job in jobs if job.name in said}
    return sum(float(truth[str(e.job)].value(e.completion or 0)) - e.payment for e in done)


class _SomeLie(TruthfulOwners):
    """Some jobs report something else; the market is left once they have gone."""

    def __init__(self, jobs: list[Job], said: Mapping[str, Any]) -> None:
        super().__init__(jobs)
        self._said, self._here = said, set(said)

    def submit(self, job: Job, market: MarketLoop) -> None:
        """Submit the report of one job."""
        report = self._said.get(job.name, job.truth)
        market.submit(job.name, report, job, job.truth.concurrency, owner=job.owner)

    def hear(self, events: Any, market: MarketLoop) -> None:
        """Stop once they have left."""
        self._here -= {e.job for e in events if e.kind.leaves}
        self.over = self.over or not self._here


def with_checkpoint(job: Job, every: int | None) -> Job:
    """Return a job that saves its work, and says so."""
    truth = job.truth
    law = [(a, d, p, o) for a, d, p, o in truth.law.points()]
    made_so = type(truth).of_points(truth.birth, truth.concurrency, truth.value, law, checkpoint=every)
    return replace(job, truth=made_so)


def lies(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Let one job at a time lie about its checkpoints."""
    for name in arguments.logs:
        log = log_of(name, arguments.window)
        for load in arguments.loads:
            for seed in arguments.seeds:
                workload = market_at(log, name, load, seed)
                plain = list(workload.jobs)
                saving = [with_checkpoint(job, arguments.every) for job in plain]
                long = [i for i, job in enumerate(plain) if job.duration > arguments.every]
                chosen = liars(long, plain, arguments, seed)
                for lie, (has, others) in ((each, SAYS[each]) for each in SAYS if arguments.lie in each):
                    for places in chosen:
                        jobs = list(saving if others else plain)
                        for i in places:
                            jobs[i] = (saving if has else plain)[i]
                        honest = {jobs[i].name: jobs[i].truth for i in places}
                        lied = {jobs[i].name: (plain if has else saving)[i].truth for i in places}
                        truth, told = (utility(arguments.mechanism, workload, jobs, each) for each in (honest, lied))
                        cell = dict(zip(CELL, (name, load, seed), strict=True))
                        yield cell | {"lie": lie, "job": plain[places[0]].name, "truth": truth, "told": told}


def liars(long: list[int], jobs: list[Job], arguments: argparse.Namespace, seed: int) -> list[list[int]]:
    """Return the places of the jobs that lie together: one job of those ``long`` ones, or all of an owner of some."""
    rng = np.random.default_rng(seed)
    if arguments.mechanism.partition(":")[0] != "credits":
        return [[i] for i in sorted(rng.choice(long, min(len(long), arguments.jobs_each), replace=False).tolist())]
    owners = sorted({str(jobs[i].owner) for i in long})
    chosen = rng.choice(owners, min(len(owners), arguments.jobs_each), replace=False).tolist()
    return [[i for i, job in enumerate(jobs) if str(job.owner) == owner] for owner in chosen]


def shown_lies(rows: pd.DataFrame) -> str:
    """Return mean gains as text."""
    lines = []
    for cell, part in rows.groupby(["log", "lie"]):
        name, lie = cast("tuple[str, str]", cell)
        gain, mean = part["told"] - part["truth"], part["truth"].mean()
        up, down = int((gain > 1e-9).sum()), int((gain < -1e-9).sum())
        lines.append(f"{name}, {lie}: {interval(100 * gain / mean)} % ({up} up, {down} down of {len(part)})")
    return "\n".join(lines)


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["gain", "lies"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--logs", nargs="+", default=list(LOGS), type=known_log, metavar="LOG")
    parser.add_argument("--loads", nargs="+", type=float, default=[0.7, 1.0, 1.5])
    parser.add_argument("--seeds", nargs="+", type=int, default=[790, 791, 792])
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1500, help="of each log")
    parser.add_argument("--every", type=int, default=4, help="rounds between checkpoints")
    parser.add_argument("--mechanism", default="two-offers:counts_saved=true", help="such as two-offers, or credits")
    parser.add_argument("--lie", default="", help="part of the words of those that are played")
    parser.add_argument("--jobs-each", type=int, default=60, help="jobs (of credits: owners) that lie, of each market")
    arguments = parser.parse_args()
    LOGS.update({name: (*LOGS[name][:2], arguments.jobs) for name in arguments.logs})
    rows: list[Mapping[str, Any]] = []
    with arguments.out.open("w", newline="") as file:
        for row in (gains if arguments.what == "gain" else lies)(arguments):
            if not rows:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            rows.append(row)
    print((shown_gains if arguments.what == "gain" else shown_lies)(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
