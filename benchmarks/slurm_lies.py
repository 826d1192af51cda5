"""What a user gains under a real Slurm with fair share: the same jobs with and without the lie, on a fast clock.

    python benchmarks/slurm_lies.py --out lies.csv [--rules fair-tree classic] [--lies account split] [--repetitions 10]
        [--reserving head]

Ann has used the machine; then Bob and Eve queue up, and so does she, with one job. Each lie of
`marketsched.slurm.lies` changes that job alone. The jobs are drawn from seeds that are the hash of a public string.
Every repetition is played through slurmctld, whose clock runs fast; ``qos`` with a weight of QOS of 5000. A row of the
CSV file is a play with the round in which each job started; rows that the file has are not played again. What is
printed compares the rounds in which Ann's work was done, on slurmctld and under the mechanism ``fair-share`` with the
same accounts and weights, which plays all rows anew.

It takes Debian's slurmctld, slurmd, slurm-client, slurmdbd, mariadb-server and faketime.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

from marketsched.mechanisms.schedulers.fair_share import RULES
from marketsched.results.paired_statistics import spread
from marketsched.slurm.beside import RESERVING
from marketsched.slurm.fair_share import FairShareCluster, Situation
from marketsched.slurm.lies import FRESH, LIES, LOOKED, QUICK, done, submitted_as
from marketsched.slurm.port import simple_job

PUBLIC = "marketsched slurm lies 1"
NODES, QUEUE_AT = 4, 5
TRUTH = "truth"
WEIGHT_QOS = 5000.0
COLUMNS = ("reserving", "rule", "weight_qos", "lie", "repetition", "rate", "starts")


def drawn(repetition: int) -> Situation:
    """Return the jobs of a repetition; the last one is that of Ann which is looked at."""
    digest = hashlib.sha256(f"{PUBLIC}/{repetition}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:4], "big"))
    jobs = [simple_job(f"used{i}", "ann", 1, 2, QUEUE_AT) for i in range(2)]
    for i in range(8):
        rounds = int(rng.integers(1, 3))
        jobs.append(simple_job(f"other{i}", ("bob", "eve")[i % 2], QUEUE_AT, int(rng.integers(1, 4)), rounds))
    return Situation((*jobs, simple_job(LOOKED, "ann", QUEUE_AT, 2, 1, 2)))


def cluster_of(reserving: str, rule: str, weight_qos: float) -> FairShareCluster:
    """Return the cluster: an account for each user, and a fresh one."""
    accounts = dict.fromkeys(("ann", "bob", "eve", FRESH), 1)
    return FairShareCluster(
        NODES, accounts, rule=rule, weight_qos=weight_qos, qos={QUICK: (1.0, 1.0)}, reserving=reserving
    )


def situation_of(lie: str, repetition: int) -> Situation:
    """Return the jobs of a repetition under a lie, or the truth."""
    truth = drawn(repetition)
    situation = truth if lie == TRUTH else submitted_as(truth, lie, NODES)
    assert situation is not None
    return situation


def row(reserving: str, rule: str, weight_qos: float, lie: str, repetition: int, rate: float) -> list[object]:
    """Play one lie, or the truth, on slurmctld."""
    played = cluster_of(reserving, rule, weight_qos).play_on_slurm(situation_of(lie, repetition), rate=rate)
    return [reserving, rule, weight_qos, lie, repetition, played.rate, json.dumps(played.starts)]


def both(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the round in which Ann's work was done on both, and how many jobs started in the same one."""
    found = []
    for each in rows.to_dict("records"):
        situation = situation_of(each["lie"], each["repetition"])
        cluster = cluster_of(each["reserving"], each["rule"], each["weight_qos"])
        slurm, port = json.loads(each["starts"]), cluster.starts_on_port(situation)
        equal = sum(port[name] == start for name, start in slurm.items())
        found.append((done(situation, slurm), done(situation, port), equal, len(situation.jobs)))
    return rows.assign(**dict(zip(("slurm", "port", "equal", "jobs"), zip(*found, strict=True), strict=True)))


def shown(rows: pd.DataFrame) -> str:
    """Return gains in rounds with Student's intervals over repetitions."""
    lines, by = [], ["reserving", "rule", "weight_qos", "repetition"]
    truth = rows[rows["lie"] == TRUTH].set_index(by)
    for (reserving, rule, weight, lie), each in rows[rows["lie"] != TRUTH].groupby([*by[:3], "lie"]):
        lying, text = each.set_index(by), []
        for where in ("slurm", "port"):
            gain = spread((truth[where] - lying[where]).dropna().to_numpy(float))
            text.append(f"{where} {gain.mean:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})")
        same = f"{each['equal'].sum()} of {each['jobs'].sum()} jobs start in the same round on both"
        lines.append(
            f"reserving {reserving:4} {rule:9} QOS {weight:4.0f} {lie:11} rounds earlier: {', '.join(text)}; "
            f"{len(each)} repetitions; {same}"
        )
    same = f"{truth['equal'].sum()} of {truth['jobs'].sum()} jobs start in the same round on both"
    return "\n".join([*lines, f"{TRUTH}: {len(truth)} plays; {same}"])


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    parser.add_argument("--lies", nargs="+", default=list(LIES), choices=list(LIES))
    parser.add_argument("--reserving", default="head", choices=list(RESERVING), help="for whom Slurm reserves nodes")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--rate", type=float, default=200.0, help="how fast Slurm's clock runs")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no further play after so many")
    arguments = parser.parse_args()
    known: set[tuple[str, ...]] = set()
    if arguments.out.exists():
        rows = csv.DictReader(arguments.out.open())
        known = {tuple(each[name] for name in COLUMNS[:5]) for each in rows}
    plays = [
        (rule, weight, lie, repetition)
        for repetition in range(arguments.repetitions)
        for rule in arguments.rules
        for weight in sorted({WEIGHT_QOS if lie == "qos" else 0.0 for lie in arguments.lies})
        for lie in (TRUTH, *(lie for lie in arguments.lies if (lie == "qos") == (weight > 0)))
    ]
    end = time.monotonic() + 60 * arguments.minutes
    with arguments.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if not file.tell():
            writer.writerow(COLUMNS)
        for rule, weight, lie, repetition in plays:
            if (arguments.reserving, rule, str(weight), lie, str(repetition)) not in known and time.monotonic() < end:
                writer.writerow(row(arguments.reserving, rule, weight, lie, repetition, arguments.rate))
                file.flush()
    print(shown(both(pd.read_csv(arguments.out))))


if __name__ == "__main__":
    main()
