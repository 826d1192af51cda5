"""What a user gains under a real Slurm with fair share: the same jobs with and without the lie, on a fast clock.

    python benchmarks/slurm_lies.py --out lies.csv [--rules fair-tree classic] [--lies account split] [--repetitions 10]

Ann has used the machine; then Bob and Eve queue up, and so does she, with one job. Each lie changes that job alone:
``account`` submits it from an account that has not been used; ``wall time`` asks for the time that it will take, where
she asks for twice as much; ``split`` makes two jobs of half its nodes of it, which count when both have started. The
jobs are drawn from seeds that are the hash of a public string. Every repetition is played through slurmctld, whose
clock runs fast, and through the mechanism ``fair-share`` with the same accounts and weights. A row of the CSV file is a
repetition with what Ann waited, in rounds of ten minutes, on both; rows that the file has are not played again.

It takes Debian's slurmctld, slurmd, slurm-client, slurmdbd, mariadb-server and faketime.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop, TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, EventKind, StatementOfWork
from marketsched.mechanisms.schedulers.fair_share import FairShare
from marketsched.results.paired_statistics import spread
from marketsched.slurm.accounts import FAIR_SHARE, AccountingCluster
from marketsched.slurm.beside import SCHEDULING
from marketsched.slurm.gate import ROUND_S, play_in_slurm

PUBLIC = "marketsched slurm lies 1"
NODES, HORIZON, QUEUE_AT = 4, 60, 5
ACCOUNTS = ("ann", "bob", "eve", "fresh")
LIES = ("account", "wall time", "split")
COLUMNS = ("rule", "lie", "repetition", "slurm_truth", "slurm_lie", "port_truth", "port_lie", "equal", "jobs")
FLAGS = {"fair-tree": {}, "classic": {"PriorityFlags": "NO_FAIR_TREE"}}


def job(name: str, owner: str, arrival: int, nodes: int, rounds: int, asked: int) -> Job:
    """Return a job that takes so many rounds and asks for ``asked``."""
    law = [arrival], [asked], [1.0]
    truth = StatementOfWork.from_arrays(arrival, nodes, DeadlineValue(1.0, HORIZON - 1), *law, revealed=False)
    return Job(name, owner, truth, arrival, rounds, None)


def drawn(repetition: int) -> list[Job]:
    """Return the jobs of a repetition; the last one is that of Ann which is looked at."""
    digest = hashlib.sha256(f"{PUBLIC}/{repetition}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:4], "big"))
    jobs = [job(f"used{i}", "ann", 1, 2, QUEUE_AT, QUEUE_AT) for i in range(2)]
    for i in range(8):
        rounds = int(rng.integers(1, 3))
        jobs.append(job(f"other{i}", ("bob", "eve")[i % 2], QUEUE_AT, int(rng.integers(1, 4)), rounds, rounds))
    return [*jobs, job("looked", "ann", QUEUE_AT, 2, 1, 2)]


def told(jobs: Sequence[Job], lie: str) -> list[Job]:
    """Return the jobs as they are submitted under a lie."""
    *others, own = jobs
    if lie == "account":
        return [*others, replace(own, owner="fresh")]
    if lie == "wall time":
        return [*others, job(own.name, own.owner, QUEUE_AT, 2, 1, 1)]
    if lie == "split":
        return [*others, *(job(f"looked{part}", own.owner, QUEUE_AT, 1, 1, 2) for part in "ab")]
    return list(jobs)


def waited(starts: dict[str, int]) -> int:
    """Return how many rounds Ann waited until all of the job had started."""
    return max(start for name, start in starts.items() if name.startswith("looked")) - QUEUE_AT


def on_the_port(jobs: Sequence[Job], rule: str) -> dict[str, int]:
    """Return the round in which each job starts under the mechanism ``fair-share``."""
    sizes: dict[str, Any] = {"max_concurrency": NODES, "max_duration": HORIZON, "max_value": 1.0, "max_delay": HORIZON}
    shares = {"root": 1, **dict.fromkeys(ACCOUNTS, 1)}  # the user root has a share of its own
    market = FairShare(
        NODES, HORIZON, rule=rule, shares=shares, round_seconds=float(ROUND_S), drop_hopeless=False, **sizes
    )
    events = play(MarketLoop(market), TruthfulOwners(jobs), HORIZON)
    return {str(event.job): event.round for event in events if event.kind is EventKind.START}


def on_slurm(jobs: Sequence[Job], rule: str, rate: float) -> dict[str, int]:
    """Return the same, and the same rounds, of a real slurmctld."""
    planned = {"SchedulerParameters": f"{SCHEDULING},bf_job_part_count_reserve=1"}
    settings = {**FAIR_SHARE, **planned, **FLAGS[rule]}
    accounts = {f"{name}/": 1 for name in ACCOUNTS}
    with (
        tempfile.TemporaryDirectory(prefix="lie-") as folder,
        AccountingCluster(Path(folder), NODES, accounts=accounts, rate=rate, settings=settings) as cluster,
    ):
        frame = play_in_slurm(jobs, cluster, accounts=True).frame
    first = int(frame["start"].min()) - 1  # rounds begin with the first job
    return {str(name): int(start) - first for name, start in zip(frame["job"], frame["start"], strict=True)}


def row(
    rule: str, lie: str, repetition: int, truths: dict[tuple[str, int], dict[str, int]], rate: float
) -> list[object]:
    """Play one lie; the truth of a repetition is played once."""
    jobs = drawn(repetition)
    if (rule, repetition) not in truths:
        truths[rule, repetition] = on_slurm(jobs, rule, rate)
    truth, port = truths[rule, repetition], on_the_port(jobs, rule)
    lying = told(jobs, lie)
    found, port_lie = on_slurm(lying, rule, rate), on_the_port(lying, rule)
    equal = sum(port_lie[name] == start for name, start in found.items())
    return [rule, lie, repetition, waited(truth), waited(found), waited(port), waited(port_lie), equal, len(lying)]


def shown(rows: pd.DataFrame) -> str:
    """Return gains in rounds with Student's intervals over repetitions."""
    lines = []
    for (rule, lie), each in rows.groupby(["rule", "lie"]):
        text = []
        for where in ("slurm", "port"):
            gain = spread((each[f"{where}_truth"] - each[f"{where}_lie"]).to_numpy(float))
            text.append(f"{where} {gain.mean:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})")
        same = f"{each['equal'].sum()} of {each['jobs'].sum()} jobs start in the same round on both"
        lines.append(f"{rule:10} {lie:10} rounds earlier: {', '.join(text)}; {len(each)} repetitions; {same}")
    return "\n".join(lines)


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rules", nargs="+", default=list(FLAGS), choices=list(FLAGS))
    parser.add_argument("--lies", nargs="+", default=list(LIES), choices=list(LIES))
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--rate", type=float, default=200.0, help="how fast Slurm's clock runs")
    arguments = parser.parse_args()
    known: set[tuple[str, ...]] = set()
    if arguments.out.exists():
        known = {tuple(each[name] for name in COLUMNS[:3]) for each in csv.DictReader(arguments.out.open())}
    truths: dict[tuple[str, int], dict[str, int]] = {}
    with arguments.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if not file.tell():
            writer.writerow(COLUMNS)
        for repetition in range(arguments.repetitions):
            for rule in arguments.rules:
                for lie in arguments.lies:
                    if (rule, lie, str(repetition)) not in known:
                        writer.writerow(row(rule, lie, repetition, truths, arguments.rate))
                        file.flush()
    print(shown(pd.read_csv(arguments.out)))


if __name__ == "__main__":
    main()
