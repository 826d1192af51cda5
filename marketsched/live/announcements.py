"""What jobs do, held against what was announced of them: the tests of `surprise`, at arrivals and along runs.

A job that would bring the record of its owner's group to the limit by its arrival is not let in. Where durations are
hidden, the law says for each duration d that it lists how likely a run that has lasted that long ends with d: of two
outcomes, it ends or it goes on, the one that happens is added to the record. A run that would bring the record to
the limit by going on is complete with d, pays for d rounds, and leaves its nodes; the record stays. So an owner that
announces long runs as unlikely, and always runs long, soon keeps nobody else's nodes. A run that starts again is
not tested for durations that it has outlasted before.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from marketsched.live.job import Durations, LiveJob
from marketsched.live.state import LiveState
from marketsched.live.surprise import factor

ENDS, GOES_ON = 0, 1


def odds_at(law: Durations, duration: int) -> tuple[float, float]:
    """Return the announced odds that a run which lasts at least ``duration`` rounds ends with them, and goes on.

    Examples
    --------
    >>> odds_at(((1, 0.5), (2, 0.375), (8, 0.125)), 2)
    (0.75, 0.25)
    """
    left = sum(p for d, p in law if d >= duration)
    ends = next(p for d, p in law if d == duration) / left
    return ends, 1.0 - ends


def too_surprising(market: LiveState, job: LiveJob, case: int | None) -> bool:
    """Tell whether a job comes in an unlikely case once too often; None: in none that was announced."""
    group, limit = market.group_of(job.owner), market.config.surprise_limit
    return case is not None and market.records.refuse(group, job.odds, case, limit)


def settle(market: LiveState, job: LiveJob, case: int | None) -> None:
    """Add what became of an announcement to the record of its owner's group; None: the job did not come."""
    if job.odds:
        market.records.add(market.group_of(job.owner), job.odds, case)
    job.law, job.laws = (job.laws[case] if job.laws and case is not None else ()), ()


def watch(market: LiveState, job: LiveJob) -> None:
    """Take note of the rounds in which a run that starts now would outlast a duration that its law lists."""
    for duration, _ in job.law[:-1]:
        if duration > job.outlasted and job.start is not None:
            market.outlasting[job.start + duration].append((job.name, duration))


def too_long(market: LiveState) -> Iterator[LiveJob]:
    """Yield the runs that may not go on, at the end of the open round: their groups' jobs outlast too often."""
    others: defaultdict[str, float] = defaultdict(float)  # by group: logarithms of what its runs before this one add
    for job, duration in _outlasting(market):
        group, odds = market.group_of(job.owner), odds_at(job.law, duration)
        if market.records.refuse(group, odds, GOES_ON, market.config.surprise_limit, others[group]):
            yield job
        else:
            others[group] += math.log(factor(odds, GOES_ON))


def go_on(market: LiveState) -> None:
    """Add to the records that runs go on behind the open round."""
    for job, duration in _outlasting(market):
        job.outlasted = duration
        market.records.add(market.group_of(job.owner), odds_at(job.law, duration), GOES_ON)


def end(market: LiveState, job: LiveJob) -> None:
    """Add to the records that a run is over by itself; one shorter than any that is listed counts as the next one."""
    used = market.round - (job.start or market.round)
    duration = next((d for d, _ in job.law if d >= used and d > job.outlasted), None)
    if duration is not None:
        market.records.add(market.group_of(job.owner), odds_at(job.law, duration), ENDS)


def _outlasting(market: LiveState) -> Iterator[tuple[LiveJob, int]]:
    for name, duration in market.outlasting.get(market.round, ()):
        job = market.jobs.get(name)
        if job is not None and job.state == "running" and job.start == market.round - duration:
            yield job, duration
