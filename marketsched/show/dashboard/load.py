"""More or fewer jobs than a scenario has, without asking the workload for others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marketsched.agents.job import Job
from marketsched.mechanisms.checks import finite_parameter


def scaled_jobs(jobs: Sequence[Job], load: float, rng: np.random.Generator) -> list[Job]:
    """Return ``jobs`` with about ``load`` times as many.

    Each job is there ``floor(load)`` times, and a share of them, drawn without replacement, once
    more, so that the number of jobs is ``round(load * n_jobs)`` up to one. A copy is a job of the
    same owner that turns out the same; it stands behind its original, and is called ``"<name>~2"``.

    Parameters
    ----------
    jobs : sequence of Job
        In order of submission.
    load : float
        Jobs for each job, > 0.
    rng : Generator
        Draws which jobs the remainder keeps.

    Raises
    ------
    InvalidParameterError
        If ``load`` is not positive and finite.
    """
    load = finite_parameter("load", load, "(0, inf)")
    whole = math.floor(load)
    chosen = np.zeros(len(jobs), dtype=np.int64)
    chosen[rng.permutation(len(jobs))[: round((load - whole) * len(jobs))]] = 1
    names = {job.name for job in jobs}
    scaled: list[Job] = []
    for job, more in zip(jobs, chosen.tolist(), strict=True):
        for copy in range(whole + more):
            if copy == 0:
                scaled.append(job)
                continue
            name = f"{job.name}~{copy + 1}"
            while name in names:  # a trace may name its jobs as it likes
                name += "~"
            names.add(name)
            scaled.append(replace(job, name=name))
    return scaled
