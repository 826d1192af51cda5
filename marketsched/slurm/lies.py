"""Requests that a user may send to Slurm in place of the truth, job by job.

Each lie changes one job, the one examined, and leaves all others as they are. It counts when the work is done:
a job that is split is done with its last part, and one on half of its nodes takes twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from marketsched.agents.job import Job
from marketsched.slurm.fair_share import Situation
from marketsched.slurm.gate import Asked, wall_time
from marketsched.slurm.port import simple_job

LOOKED, FRESH, QUICK = "looked", "fresh", "high"  # the job that is looked at, an unused account, a QOS that goes first
AHEAD = 3  # rounds
Told = tuple[list[Job], dict[str, Asked]]


def _again(job: Job, name: str, nodes: int, rounds: int, limit: int) -> Job:
    return simple_job(name, job.owner, job.arrival or 1, nodes, rounds, limit)


def _truth(job: Job) -> Told:
    return [job], {}


def _exact(job: Job) -> Told | None:
    """Ask for the wall time that it will take."""
    if wall_time(job) <= job.duration:
        return None
    return [_again(job, job.name, job.truth.concurrency, job.duration, job.duration)], {}


def _least(job: Job) -> Told | None:
    """Let Slurm shorten the wall time to what it will take."""
    return None if wall_time(job) <= job.duration else ([job], {job.name: Asked(least=job.duration)})


def _account(job: Job) -> Told:
    return [replace(job, owner=FRESH)], {}


def _split(job: Job) -> Told | None:
    """Submit two jobs of half of its nodes."""
    nodes, limit = job.truth.concurrency, wall_time(job)
    if nodes < 2:
        return None
    return [_again(job, f"{job.name}{k}", (nodes + k) // 2, job.duration, limit) for k in (0, 1)], {}


def _narrow(job: Job) -> Told | None:
    """Ask for half of its nodes, for twice as long."""
    nodes = job.truth.concurrency
    return None if nodes % 2 else ([_again(job, job.name, nodes // 2, 2 * job.duration, 2 * wall_time(job))], {})


def _wide(job: Job) -> Told:
    """Ask for twice its nodes."""
    return [_again(job, job.name, 2 * job.truth.concurrency, job.duration, wall_time(job))], {}


def _early(job: Job) -> Told:
    """Submit it before it is ready, to begin when it is."""
    return [job], {job.name: Asked(ahead=AHEAD)}


def _quick(job: Job) -> Told:
    return [job], {job.name: Asked(qos=QUICK)}


LIES: Mapping[str, tuple[str, Callable[[Job], Told | None]]] = {
    "wall time": ("asks for the time that it will take", _exact),
    "time-min": ("--time-min is the time that it will take", _least),
    "account": ("comes from a fresh account", _account),
    "split": ("is two jobs of half of its nodes", _split),
    "half width": ("asks for half of its nodes, twice as long", _narrow),
    "twice width": ("asks for twice its nodes", _wide),
    "begin": (f"is submitted {AHEAD} rounds before it is ready, with --begin", _early),
    "qos": (f"asks for the QOS {QUICK}", _quick),
}


def submitted_as(situation: Situation, lie: str, nodes: int) -> Situation | None:
    """Return a situation in which the job `LOOKED` is submitted as a lie of `LIES` says.

    Parameters
    ----------
    situation : Situation
        The truth.
    lie : str
        Key of `LIES`.
    nodes : int
        Of the cluster.

    Returns
    -------
    Situation or None
        None: the lie does not apply to this job: it requests exactly its need, has one node, or has no room for more.

    Examples
    --------
    >>> found = submitted_as(Situation((simple_job("looked", "ann", arrival=1, nodes=3, rounds=2),)), "split", 4)
    >>> [(job.name, job.truth.concurrency) for job in found.jobs]
    [('looked0', 1), ('looked1', 2)]
    """
    jobs: list[Job] = []
    asked = dict(situation.asked)
    for job in situation.jobs:
        changed = LIES[lie][1](job) if job.name == LOOKED else _truth(job)
        if changed is None or any(each.truth.concurrency > nodes for each in changed[0]):
            return None
        jobs += changed[0]
        asked |= changed[1]
    return Situation(tuple(jobs), asked)


def done(situation: Situation, starts: Mapping[str, int]) -> int:
    """Return the first round after the work of the job `LOOKED`, all of its parts."""
    parts = [job for job in situation.jobs if job.name.startswith(LOOKED)]
    return max(starts[job.name] + job.duration for job in parts)


def parts_of(situation: Situation) -> tuple[str, ...]:
    """Return the names of the jobs that the job `LOOKED` is submitted as."""
    return tuple(job.name for job in situation.jobs if job.name.startswith(LOOKED))
