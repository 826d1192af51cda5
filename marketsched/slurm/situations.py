"""Situations of a log: what one user meets who submits a job, small enough to be played through a real Slurm.

The log is played by the port of fair share, each owner with an account of its own. A situation holds what is there when
a job arrives: the usage of every account, running and waiting jobs, and the jobs that arrive until it starts.
Accounts get their usage in the first rounds, from a job each on one node whose QOS multiplies it (``UsageFactor``);
accounts without a job in the situation are one, with their shares and their usage. What waits begins to age anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.mechanisms.schedulers.fair_share import FairShare
from marketsched.mechanisms.schedulers.multifactor import kept
from marketsched.slurm.fair_share import FairShareCluster, Situation
from marketsched.slurm.gate import ROUND_S, Asked, wall_time
from marketsched.slurm.lies import AHEAD, FRESH, LOOKED, QUICK
from marketsched.slurm.port import played, simple_job
from marketsched.worlds.workload import Workload

LONGEST_WAIT, MARGIN = 24, 6  # rounds: a longer wait is not looked at; arrivals after the start of the job
LEAST_USAGE = 0.01  # node-rounds: what an account has used less than that has used nothing
REST = "rest"  # the account of all owners without a job in the situation


@dataclass(frozen=True, slots=True)
class Looked:
    """A waiting job of the log, and its situation.

    Parameters
    ----------
    job, owner : str
        In the log.
    wait : int
        Rounds, under the truth in the log.
    cluster : FairShareCluster
        Accounts and QOS of the situation.
    truth : Situation
        Its jobs; the job is called ``looked``.
    """

    job: str
    owner: str
    wait: int
    cluster: FairShareCluster
    truth: Situation


class PlayedLog:
    """A log under the port of fair share: the start of each job, and each owner's usage by round.

    Parameters
    ----------
    workload : Workload
        Of a log.
    rules : mapping
        Parameters of `FairShareCluster` besides nodes, shares and QOS, for rounds of the log's own length.
    nodes : int, optional
        None: those of the workload.
    """

    def __init__(self, workload: Workload, rules: Mapping[str, Any], nodes: int | None = None) -> None:
        self.nodes = nodes or workload.capacity
        self.rules, self.round_s = dict(rules), workload.round_seconds or float(ROUND_S)
        self.jobs = [job for job in workload.jobs if job.arrival is not None]
        last = workload.horizon + sum(min(job.duration, wall_time(job)) for job in self.jobs)
        market = FairShare(
            self.nodes, last + workload.max_delay, rule=rules["rule"], drop_hopeless=False, stop_at_deadline=False,
            max_concurrency=workload.max_concurrency, max_duration=workload.max_duration,
            max_value=workload.max_value, max_delay=workload.max_delay, round_seconds=self.round_s,
            **{name: value for name, value in rules.items() if name != "rule"},
        )  # fmt: skip
        self.runs = played(market, self.jobs)
        self._kept = kept(float(rules["half_life_hours"]) * 3600.0, self.round_s)

    def waiting(self) -> list[Job]:
        """Return the jobs that wait, not longer than `LONGEST_WAIT`, and are done within their wall time."""
        found = []
        for job in self.jobs:
            wait = self.runs[job.name][0] - (job.arrival or 0)
            if 1 <= wait <= LONGEST_WAIT and job.duration <= wall_time(job) and (job.arrival or 0) > AHEAD:
                found.append(job)
        return found

    def usage(self, now: int) -> dict[str, float]:
        """Return each owner's decayed usage before a round, node-rounds of that round."""
        found: dict[str, float] = {}
        for job in self.jobs:
            start, end = self.runs[job.name]
            found.setdefault(job.owner, 0.0)
            if start < now:
                ages = now - np.arange(start, min(end, now))
                found[job.owner] += float(job.truth.concurrency * np.sum(self._kept**ages))
        return found

    def situation(self, looked: Job) -> Looked:
        """Return the situation of a job."""
        arrival, start = looked.arrival or 1, self.runs[looked.name][0]
        now = arrival - AHEAD  # the round in which the situation begins
        here = [
            job for job in self.jobs
            if (job.arrival or 0) <= start + MARGIN and self.runs[job.name][1] > now
        ]  # fmt: skip
        owners = list(dict.fromkeys(job.owner for job in here))
        names = {owner: f"user{i}" for i, owner in enumerate(owners, start=1)}
        usage = self.usage(now)
        seen = {job.owner for job in self.jobs if (job.arrival or 0) < now} - set(owners)
        used = {names[owner]: usage.get(owner, 0.0) for owner in owners} | {REST: sum(usage[owner] for owner in seen)}
        used = {name: amount for name, amount in used.items() if amount > LEAST_USAGE}
        history = -(-len(used) // self.nodes)  # rounds
        jobs = [simple_job(f"used-{name}", name, 1 + i // self.nodes, 1, 1) for i, name in enumerate(used)]
        jobs += self._there(here, now, history + 1, names, looked)
        cluster = FairShareCluster(
            self.nodes,
            {name: 1 for name in names.values()} | ({REST: len(seen)} if seen else {}) | {FRESH: 1},
            qos={f"past-{name}": (0.0, amount) for name, amount in used.items()} | {QUICK: (1.0, 1.0)},
            **self._in_ten_minutes(),
        )
        asked = {f"used-{name}": Asked(qos=f"past-{name}") for name in used}
        return Looked(looked.name, looked.owner, start - arrival, cluster, Situation(tuple(jobs), asked))

    def _there(self, here: Sequence[Job], now: int, first: int, names: Mapping[str, str], looked: Job) -> list[Job]:
        """Return the jobs that run (from round ``first`` on), that wait (from the next one on), and that come."""
        running, later = [], []
        for i, job in enumerate(here):
            start, end = self.runs[job.name]
            name, nodes = LOOKED if job is looked else f"job{i}", job.truth.concurrency
            if start < now:
                limit = max(start + wall_time(job), end) - now
                running.append(simple_job(name, names[job.owner], first, nodes, end - now + 1, limit + 1))
            else:
                arrival = first + 1 + max(0, (job.arrival or 0) - now)
                later.append(simple_job(name, names[job.owner], arrival, nodes, job.duration, wall_time(job)))
        return [*running, *sorted(later, key=lambda job: job.arrival or 0)]

    def _in_ten_minutes(self) -> dict[str, Any]:
        """Return the rules where a round takes ten minutes of Slurm's clock."""
        scale = ROUND_S / self.round_s
        hours = {name: self.rules[name] * scale for name in ("half_life_hours", "max_age_hours")}
        return {**self.rules, **hours}
