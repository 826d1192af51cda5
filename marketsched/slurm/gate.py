"""Jobs of a market played through a real Slurm, round by round, on a clock that runs fast.

A round takes ten minutes of Slurm's clock, since its time limits are whole minutes. Rounds are kept apart by a gate,
the state of the partition: it is down while the jobs that end with a round leave their nodes and those that arrive in
the next one are submitted, and up while Slurm decides. So Slurm sees, once a round, what a scheduler of the market
sees, and its start times fall into the first minutes of a round. Everything in between is Slurm's: ``sched/backfill``
with its own loop, time limits and their enforcement, the choice of nodes.

So that rounds decide, and not seconds:

* A job requests its wall time less a minute. It is ended by the gate after its last round, or killed by Slurm at
  that limit; once it has started, its limit is set to end a minute before a round does.
* It allows Slurm to plan with six minutes less (``--time-min``), so that a job may pass whose wall time ends in the
  round in which the first in the queue is to start.
* Where this machine falls behind the clock, the coming rounds, and the limits of what runs, move by whole minutes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from marketsched.agents.job import Job
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.slurm.cluster import PATIENCE_S, OneHostCluster
from marketsched.slurm.commands import SlurmError, SlurmJob

ROUND_S = 600  # of Slurm's clock
LESS, LEAST = 1, 6  # minutes by which the limit, and the least that is allowed, stay below the wall time
BEHIND_S = 60  # of Slurm's clock: further behind, rounds move
LATE_S = 240  # a start so long after the beginning of its round could have been decided by seconds
SETTLED = 3  # looks at the queue without a change, after which Slurm has decided
LOOK_S = 0.05
SLOWER = "a machine that keeps up with the clock: a lower rate"


class TooSlow(SlurmError):
    """Rounds that a machine is too slow for: it does not keep up with the clock."""


@dataclass(frozen=True)
class SlurmRun:
    """What Slurm did with the jobs.

    Parameters
    ----------
    frame : DataFrame
        One row per job, in order of submission: ``job, owner, nodes, arrival, duration, wall_time`` (rounds), ``start``
        (round), ``offset_s`` (seconds of Slurm's clock from that round's beginning to the start), ``state`` (Slurm's).
    rounds : int
        How many were played.
    moved_s : int
        Seconds of Slurm's clock by which rounds were moved.
    late : int
        Rounds with a start that came so late that seconds, and not rounds, may have decided.

    Examples
    --------
    See `play_in_slurm`, which returns one.
    """

    frame: pd.DataFrame = field(repr=False)
    rounds: int
    moved_s: int
    late: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests of a submission besides nodes and wall time.

    Parameters
    ----------
    qos : str
        ``--qos``; empty: the account's own.
    least : int
        ``--time-min`` in rounds: Slurm may shorten the wall time to it; 0: it may not.
    ahead : int
        Rounds before its arrival in which it is submitted, with ``--begin``.
    """

    qos: str = ""
    least: int = 0
    ahead: int = 0


PLAIN = Asked()


def wall_time(job: Job) -> int:
    """Return the longest duration that its owner announces, rounds."""
    return int(job.truth.law.durations.max())


def play_in_slurm(
    jobs: Sequence[Job],
    cluster: OneHostCluster,
    *,
    counting: Literal["nodes", "licenses"] = "nodes",
    accounts: bool = False,
    asked: Mapping[str, Asked] | None = None,
    until: Collection[str] = (),
) -> SlurmRun:
    """Play jobs through a cluster, until all of them are over.

    Parameters
    ----------
    jobs : sequence of Job
        Those that never arrive are left out.
    cluster : OneHostCluster
        With as many nodes as the market, and nothing else to do.
    counting : "nodes" or "licenses"
        The counterpart of a node of the market: a node of the cluster, which has a name; or a license ``node``, of
        which each job has a number, on one node of the cluster.
    accounts : bool
        Jobs are charged to the account that has their owner's name (`marketsched.slurm.accounts`).
    asked : mapping of str to Asked, optional
        Further requests by name of the job.
    until : collection of str
        Names of jobs: the play ends once all of these have started. Jobs without a start are then left out.

    Raises
    ------
    InvalidParameterError
        If a job needs more nodes than there are, or no job arrives.
    SlurmError
        If Slurm refuses a command.

    Examples
    --------
    >>> with OneHostCluster(Path("/tmp/c"), workload.capacity, rate=300.0) as cluster:  # doctest: +SKIP
    ...     run = play_in_slurm(workload.jobs, cluster)
    >>> run.frame[["job", "arrival", "start"]]  # doctest: +SKIP
    """
    for job in jobs:
        if job.truth.concurrency > cluster.nodes:
            raise InvalidParameterError(
                place=f"job {job.name!r}: nodes", value=job.truth.concurrency, legal=f"at most {cluster.nodes}"
            )
    return _Gate(jobs, cluster, counting, accounts, asked or {}, until).play()


class _Gate:
    """The rounds of one run."""

    def __init__(
        self,
        jobs: Sequence[Job],
        cluster: OneHostCluster,
        counting: str,
        accounts: bool,
        asked: Mapping[str, Asked],
        until: Collection[str],
    ) -> None:
        arriving = [job for job in jobs if job.arrival is not None]
        if not arriving:
            raise InvalidParameterError(place="jobs", value=len(jobs), legal="at least one that arrives")
        self.asked, self.until = asked, set(until)
        self.jobs = sorted(arriving, key=lambda job: (self._due(job), job.truth.birth))  # stable: then as submitted
        self.cluster, self.slurm, self.clock = cluster, cluster.slurm, cluster.clock
        self.counting, self.accounts = counting, accounts
        self.numbers: dict[int, Job] = {}  # by Slurm's number of the job
        self.starts: dict[int, tuple[int, int]] = {}  # round, seconds after its beginning
        self.granted: dict[int, int] = {}  # wall time of what has started, rounds
        self.begins, self.moved, self.late = 0, 0, set[int]()
        self.folder = cluster.folder / "ends"  # a pipe for each job: it ends when it reads from there
        self.folder.mkdir(exist_ok=True)

    def play(self) -> SlurmRun:
        self._turn("DOWN")
        self.begins = (int(self.clock.now()) // ROUND_S + 1) * ROUND_S
        now, running, waiting = 0, list[SlurmJob](), False
        while True:
            now += 1
            if not running and not waiting:  # no job is there: on to the next
                now = max(now, self._due(self.jobs[len(self.numbers)]))
            self.begins += ROUND_S
            self.clock.wait_until(self.begins)
            running = self._end(running, now)
            self._submit(now)
            self._catch_up(running)
            self._turn("UP")
            found = self._let_decide(now)
            self._turn("DOWN")
            running = [each for each in found if each.state == "RUNNING"]
            waiting = any(each.state == "PENDING" for each in found)
            if waiting and not running:
                self._check_nodes()
            started = {self.numbers[number].name for number in self.starts}
            if (self.until and self.until <= started) or (
                len(self.numbers) == len(self.jobs) and all(each.over for each in found)
            ):
                return SlurmRun(self._table(found), now, self.moved, len(self.late))

    def _check_nodes(self) -> None:
        """Say that a node has left: jobs could wait for it for ever."""
        usable = self.slurm.usable_nodes("market")
        if usable < self.cluster.nodes:
            raise TooSlow(
                f"{usable} of {self.cluster.nodes} nodes can run jobs",
                legal=SLOWER,
            )

    def _turn(self, state: str) -> None:
        self.slurm.update(PartitionName="market", State=state)

    def _end(self, running: Sequence[SlurmJob], now: int) -> list[SlurmJob]:
        """End who has run its last round, wait for those that Slurm kills, and return who runs on."""
        for each in running:
            if self.starts[each.id][0] + self.numbers[each.id].duration <= now:
                self._tell(each.id)
        leaving = {each.id for each in running if self.starts[each.id][0] + self._rounds(each) <= now}
        while True:
            active = [each for each in self.slurm.jobs() if each.active]
            if not any(each.id in leaving or each.state == "COMPLETING" for each in active):
                return active
            time.sleep(LOOK_S / 4)

    def _tell(self, number: int) -> None:
        """Let a job end, once its script listens."""
        while number in {each.id for each in self.slurm.jobs() if each.active}:
            try:
                pipe = os.open(self.folder / str(number), os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                time.sleep(LOOK_S / 4)
                continue
            os.write(pipe, b"over\n")
            os.close(pipe)
            return

    def _asked(self, job: Job) -> Asked:
        return self.asked.get(job.name, PLAIN)

    def _due(self, job: Job) -> int:
        """Return the round in which a job is submitted."""
        assert job.arrival is not None
        return job.arrival - self._asked(job).ahead

    def _rounds(self, each: SlurmJob) -> int:
        return min(self.numbers[each.id].duration, self.granted[each.id])

    def _submit(self, now: int) -> None:
        while len(self.numbers) < len(self.jobs):
            job = self.jobs[len(self.numbers)]
            if self._due(job) > now:
                return
            number = self.slurm.submit(
                f'#!/bin/sh\nread line < "{self.folder}/$SLURM_JOB_ID"\n', *self._options(job),
                "--output=/dev/null", "--chdir=/", f"--job-name={job.name}",
            )  # fmt: skip
            os.mkfifo(self.folder / str(number))
            self.numbers[number] = job

    def _options(self, job: Job) -> list[str]:
        """Return the requests of a submission, as options of sbatch."""
        nodes, asked, limit = job.truth.concurrency, self._asked(job), wall_time(job)
        sizes = {
            "nodes": [f"--nodes={nodes}"],
            "licenses": [f"--licenses=node:{nodes}", "--nodes=1"],
        }
        found = [*sizes[self.counting], f"--time={limit * ROUND_S // 60 - LESS}"]
        found.append(f"--time-min={(asked.least or limit) * ROUND_S // 60 - LEAST}")
        found += [f"--account={job.owner}"] if self.accounts else []
        found += [f"--qos={asked.qos}"] if asked.qos else []
        if asked.ahead:
            begins = time.localtime(self.begins + asked.ahead * ROUND_S)
            found.append(f"--begin={time.strftime('%Y-%m-%dT%H:%M:%S', begins)}")
        return found

    def _catch_up(self, running: Sequence[SlurmJob]) -> None:
        """Where this machine is behind, move the round, and the limits of what runs, by whole minutes."""
        behind = self.clock.now() - self.begins
        if behind > BEHIND_S:
            minutes = int(behind // 60)
            for each in running:
                self._set_limit(each.id, f"+{minutes}")
            self.begins += 60 * minutes
            self.moved += 60 * minutes

    def _let_decide(self, now: int) -> list[SlurmJob]:
        """Wait until nothing changes any more; return the queue."""
        before, same = None, 0
        while same < SETTLED:
            time.sleep(LOOK_S)
            found = self.slurm.jobs()
            self._note_starts(found, now)
            states = [(each.id, each.state) for each in found]
            same = same + 1 if states == before else 0
            before = states
        return found

    def _note_starts(self, found: Sequence[SlurmJob], now: int) -> None:
        """Set the limits of who has started, before one that was shortened is over."""
        for each in found:
            if not each.started or each.id in self.starts:
                continue
            offset = int(each.started - self.begins)
            self.starts[each.id] = (now, offset)
            if offset > LATE_S:
                self.late.add(now)
            self.granted[each.id] = (each.limit + LEAST) * 60 // ROUND_S
            minutes = self.granted[each.id] * ROUND_S // 60
            limit = max(minutes - LESS - round(offset / 60), minutes - LEAST)
            if each.over:
                raise TooSlow(
                    f"job {self.numbers[each.id].name} was over ({each.state}) before its limit could be set",
                    legal=SLOWER,
                )
            self._set_limit(each.id, limit)

    def _set_limit(self, number: int, minutes: int | str) -> None:
        """Set or change a time limit; where the accounts' database numbers the job just now, again."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.slurm.update(JobId=number, TimeLimit=minutes)
            except SlurmError as error:
                if "already finished" in str(error):
                    raise TooSlow(
                        f"job {self.numbers[number].name} was over before its limit was changed", legal=SLOWER
                    ) from error
                if "try again" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_S)

    def _table(self, found: Sequence[SlurmJob]) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "job": job.name,
                "owner": job.owner,
                "nodes": job.truth.concurrency,
                "arrival": job.arrival,
                "duration": job.duration,
                "wall_time": wall_time(job),
                "start": self.starts[each.id][0],
                "offset_s": self.starts[each.id][1],
                "state": each.state,
            }
            for each in found
            if each.id in self.starts
            for job in (self.numbers[each.id],)
        )
