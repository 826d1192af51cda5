"""Conducts by family: all that an owner may do besides one true report at birth from its own account.

No theorem covers the families `FAMILIES`, nor `TERMS`, by which a job agrees to no wait; `BELIEFS` are misreports of
what a mechanism that promises no truthfulness takes as given: how long a job will run, what it is worth, whose it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from marketsched.agents.conduct import Conduct, Statement, plain
from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, ScaleDuration, ScaleValue, WithdrawTwin
from marketsched.agents.lies.base import count_of, restated
from marketsched.agents.loop import Fate
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue

FAMILIES = ("delay", "split", "ghost", "twin", "past")
TERMS = ("hurry",)  # where a mechanism sells patience
BELIEFS = ("estimate", "value", "account", "accounts", "estimates", "parts")
ESTIMATES = (0.25, 0.5, 0.8, 1.25, 2.0)  # of the duration announced
VALUES = (0.5, 2.0, 10.0)  # of the value of one job
HURRIED = (0.5, 2.0)  # a ghost that agrees to no wait, worth so much of the job
GHOSTS = ((0.5, 1), (2.0, 1), (0.5, 6), (2.0, 6))  # worth so much of the job, so many rounds before it


def identities(truth: StatementOfWork, parts: int) -> Conduct:
    """Return one job as ``parts`` jobs of as many identities, nodes and value shared as evenly as can be.

    Raises InvalidReportError if there are fewer nodes than parts.

    Examples
    --------
    >>> whole = StatementOfWork(1, 3, DeadlineValue(6.0, 4), [(1, 2, 1.0)])
    >>> [(each.report.concurrency, each.report.value.highest) for each in identities(whole, 2).statements]
    [(2, 4.0), (1, 2.0)]
    """
    nodes = truth.concurrency
    if not 2 <= parts <= nodes:
        raise InvalidReportError(f"{parts} identities for {nodes} nodes: expected a number in [2, {nodes}]")
    statements = []
    for k in range(parts):
        width = nodes // parts + (k < nodes % parts)
        value = ScaleValue(width / nodes).report(truth, PublicInformation(nodes, truth.birth + 1, 1)).value
        report = StatementOfWork(truth.birth, width, value, truth.requirements, **truth.terms)
        name = f"/{k + 1}" if k else ""
        statements.append(Statement(truth.birth, report, width, name, identity=name))
    return Conduct(tuple(statements), ("identities", parts, truth))


def longest_wall_time(truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
    """Return a report by which the longest run may take all the time that is allowed, half of the times.

    A wall time is the longest duration announced, so this raises it, and leaves the shortest run as it is: what is
    dropped once it can no longer end in time is not dropped earlier. Without a bound the longest run counts twice.

    Examples
    --------
    >>> whole = StatementOfWork(1, 3, DeadlineValue(6.0, 4), [(1, 1, 0.5, None), (1, 2, 0.5, None)])
    >>> found = longest_wall_time(whole, PublicInformation(3, 20, 9, max_duration=9))
    >>> [(each.duration, each.probability) for each in found.requirements]
    [(1, 0.5), (2, 0.25), (9, 0.25)]
    """
    longest = int(truth.law.durations.max())
    allowed = 2 * longest if public.max_duration is None else public.max_duration
    points = []
    for each in truth.requirements:
        shares = ((each.duration, 0.5), (allowed, 0.5)) if each.duration == longest else ((each.duration, 1.0),)
        points += [Requirement(each.arrival, d, share * each.probability, each.signal) for d, share in shares]
    return restated(truth, points=points)


def arriving_ghost(
    truth: StatementOfWork, job: Fate, share: float, early: int, highest: float, patience: int | None = None
) -> Conduct:
    """Return the truth with a further job of its size that arrives ``early`` rounds before, worth ``share`` of it.

    ``job`` is what happens to the truth's, which arrives; the ghost arrives at its own birth at the earliest, is worth
    at most ``highest`` credits, the most that may be reported, and agrees to wait ``patience`` rounds.
    """
    arrival = max(truth.birth, (job.arrival or truth.birth) - early)
    worth = DeadlineValue(min(highest, share * truth.value.highest), truth.value.last)
    signal = () if job.signal == job.duration else (job.signal,)
    law = [Requirement(arrival, job.duration, 1.0, *signal)]
    ghost = StatementOfWork(truth.birth, truth.concurrency, worth, law, patience=patience)
    fate = Fate(arrival, job.duration, job.signal)
    return Conduct(
        (
            Statement(truth.birth, ghost, truth.concurrency, "/ghost", part=lambda _: fate, counts=False),
            Statement(truth.birth, truth, truth.concurrency),
        ),
        ("ghost", share, early, patience, truth),
    )


def statements_of(
    job: Job, fate: Fate, public: PublicInformation, families: Collection[str]
) -> Iterator[tuple[str, str, Conduct]]:
    """Yield statements that the owner of a job may submit in place of it: family, name of the conduct, and conduct.

    ``fate`` is what really happens to the job. The families ``delay``, ``past``, ``accounts``, ``estimates`` and
    ``parts`` are no statements of one job: they yield nothing.
    """
    truth, nodes = job.truth, job.truth.concurrency
    highest = np.inf if public.max_value is None else public.max_value
    if "split" in families:
        for k in sorted({2, nodes}):
            if 2 <= k <= nodes:
                yield "split", f"into {k}", identities(truth, k)
    if "ghost" in families:
        for share, early in GHOSTS:
            conduct = arriving_ghost(truth, fate, share, early, highest)
            yield "ghost", f"worth {share:g} of it, {count_of(early, 'round')} before", conduct
    if "hurry" in families:
        yield "hurry", "the job agrees to no wait", plain(restated(truth, patience=0), nodes)
        for share in HURRIED:
            conduct = arriving_ghost(truth, fate, share, 1, highest, patience=0)
            yield "hurry", f"a ghost worth {share:g} of it does, 1 round before", conduct
    if "twin" in families:
        yield "twin", "withdrawn at once", WithdrawTwin().conduct(truth, truth, public)
    if "estimate" in families:
        law = [(a, fate.duration, p, o) for a, _, p, o in truth.law.points()]
        known = StatementOfWork(truth.birth, nodes, truth.value, law, **truth.terms)
        yield "estimate", "as it will be", plain(known, nodes)
        for factor in ESTIMATES:
            yield "estimate", f"times {factor:g}", plain(ScaleDuration(factor).report(truth, public), nodes)
    if "value" in families:
        for factor in VALUES:
            yield "value", f"times {factor:g}", plain(ScaleValue(factor).report(truth, public), nodes)
    if "account" in families:
        own = Statement(truth.birth, truth, nodes, identity="/own")
        yield "account", "one of its own", Conduct((own,), ("account", truth))
