"""Runs of a log that earlier ones predict: a user's executable is one recurring job, announced ahead of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from marketsched.agents.job import Job
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.worlds.prediction import History, PredictionRule, predict


def recurring_jobs_of(
    runs: pd.DataFrame, origin: float, rule: PredictionRule, rng: np.random.Generator
) -> tuple[list[Job], int, int]:
    """Return the runs from ``origin`` on that earlier ones of their user's executable predict.

    Returns
    -------
    tuple of (list of Job, int, int)
        The jobs; how many runs from ``origin`` on are of an unknown user or executable, which is no recurring job;
        and how many have too few earlier ones.
    """
    named = runs[(runs["user"] != "") & (runs["executable"] != "")]
    jobs = [
        job
        for (user, executable), own in named.groupby(["user", "executable"])
        for job in _recurring(f"{user}-{executable}", str(user), own, origin, rule, rng)
    ]
    coming, predictable = (int((each["submit_s"] >= origin).sum()) for each in (runs, named))
    return jobs, coming - predictable, predictable - len(jobs)


def _recurring(
    name: str, owner: str, runs: pd.DataFrame, origin: float, rule: PredictionRule, rng: np.random.Generator
) -> Iterator[Job]:
    """Yield the runs of one recurring job from ``origin`` on that can be predicted."""
    submits, seconds = runs["submit_s"].tolist(), runs["run_s"].tolist()
    rounds = [rule.rounds_of(each) for each in seconds]
    past = History(submits, [s + r for s, r in zip(submits, seconds, strict=True)], rounds)
    density, slack, nodes = float(rng.lognormal(1, 0.7)), int(rng.integers(2, 13)), int(runs["processors"].median())
    for i, submit in enumerate(submits):
        run = predict(past, i, rule, origin) if submit >= origin else None
        if run is None or run.birth < 1:
            continue
        worth = DeadlineValue(density * nodes * run.duration.mean, run.expected + run.duration.quantile(0.9) + slack)
        truth = StatementOfWork.from_arrays(run.birth, nodes, worth, run.arrivals, run.durations, run.probabilities)
        arrival = int((submit - origin) // rule.round_seconds) + 1
        yield Job(f"{name}-{i}", owner, truth, arrival, rounds[i], rounds[i])
