"""Small crowded markets of several owners with hidden durations: what turns and credits are tested on."""

from dataclasses import replace

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.registry import get_mechanism

NODES, HORIZON = 8, 90
SIZES = {"max_concurrency": NODES, "max_duration": 12, "max_value": 1e12, "max_delay": HORIZON + 20}
LAWS = (((1,), (1.0,)), ((3,), (1.0,)), ((1, 4), (0.5, 0.5)), ((2, 6), (0.75, 0.25)), ((4, 12), (0.5, 0.5)))


def drawn_jobs(seed, n=60, span=40, owners=4, widest=NODES):
    """Return jobs of owners o0, o1, ... in order of birth, each ready when it is born."""
    rng = np.random.default_rng(seed)
    jobs = []
    for i, birth in enumerate(np.sort(rng.integers(1, span, n)).tolist()):
        durations, weights = LAWS[rng.integers(len(LAWS))]
        width = int(min(widest, rng.geometric(0.4)))
        last = birth + max(durations) + int(rng.integers(0, 30))
        value = DeadlineValue(float(rng.uniform(1, 9)), last)
        points = [(birth, d, p, None) for d, p in zip(durations, weights, strict=True)]
        duration = int(rng.choice(durations, p=weights))
        owner = f"o{int(owners * rng.random() ** 2)}"
        jobs.append(Job(f"j{i}", owner, StatementOfWork(birth, width, value, points), birth, duration))
    return jobs


def mean_of(job):
    return float(job.truth.law.probabilities @ job.truth.law.durations)


def density_of(job):
    return job.truth.value.value / (job.truth.concurrency * mean_of(job))


def of_density(job, density):
    """Return the same job with another value a node and mean round."""
    value = DeadlineValue(density * (job.truth.concurrency * mean_of(job)), job.truth.value.deadline)
    return replace(job, truth=job.truth.moved(job.truth.birth, value))


def market_of(name, jobs, nodes=NODES, horizon=HORIZON, **parameters):
    """Return a market in which every owner of a job has an account, unless shares say more."""
    if "shares" not in parameters:
        parameters.setdefault("owners", sorted({job.owner for job in jobs}))
    return get_mechanism(name, capacity=nodes, horizon=horizon, **SIZES, **parameters)


def played(mechanism, jobs, horizon=HORIZON):
    """Return the events of a market whose owners report what is true."""
    return play(MarketLoop(mechanism), TruthfulOwners(jobs), horizon)


def starts_of(events):
    return [(event.round, event.kind.value, event.job) for event in events if event.kind.value in ("start", "requeue")]
