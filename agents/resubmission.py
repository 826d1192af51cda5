"""Resubmission: the statement that an owner submits when the real case was not in its first report.

A job that arrives outside the support of its own report has no launch in its plan and never runs.
Its owner may submit a new statement in a later round; by then the job is ready, so its arrival is
certain, and its duration is as well known as the signal has made it.
"""

from __future__ import annotations

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, value_until
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.legal import EXACT, Whole
from marketsched.mechanisms.sow import StatementOfWork


def covered(job: Job) -> bool:
    """Return True if the law of ``job.truth`` allows for what really happens.

    With durations revealed that is the pair of arrival and duration; with durations hidden the
    arrival alone. A job that never arrives is covered: nothing happens that a plan would lack.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> law = StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(2, 3, 0.5), (3, 4, 0.5)])
    >>> [covered(Job("a", "ann", law, arrival, 3, 3)) for arrival in (2, 3, None)]
    [True, False, True]
    """
    return job.arrival is None or job.truth.law.group_of(job.arrival, job.signal) is not None


def resubmission(job: Job, now: int) -> StatementOfWork:
    """Return the statement of work to submit in round ``now`` for a job that is already there.

    Same value curve and concurrency; born and ready in ``now``. The law of the duration is

    * durations revealed (the signal is the duration): the realised duration for certain;
    * durations hidden (no signal): the predicted marginal law of the duration;
    * any other signal: the predicted law of the duration given that signal, or the marginal law
      if the prediction does not know the signal.

    ``now`` is not before the arrival. The total mass is 1, whatever that of ``job.truth``: the job is there.

    Raises
    ------
    InvalidParameterError
        If the job never arrives, ``now`` lies before its arrival, or a duration law is needed and
        the one of ``job.truth`` has no mass.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> law = StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(2, 3, 0.5), (3, 4, 0.5)])
    >>> resubmission(Job("a", "ann", law, arrival=5, duration=2, signal=2), now=6).requirements
    (Requirement(arrival=6, duration=2, probability=1.0, signal=2),)
    """
    if job.arrival is None:
        raise InvalidParameterError(
            f"job {job.name!r} never arrives: expected a job that is there to be submitted again"
        )
    try:
        now = Whole(job.arrival, EXACT).check("now", now, InvalidReportError)
    except ValueError as error:
        raise InvalidParameterError(f"job {job.name!r} arrived in round {job.arrival}: {error}") from None
    truth = job.truth
    if job.signal == job.duration and not isinstance(job.signal, bool):
        points = [Requirement(now, job.duration, 1.0)]
    else:
        durations, probabilities = _durations_given(job)
        points = [Requirement(now, d, p, job.signal) for d, p in zip(durations, probabilities, strict=True)]
    return StatementOfWork(now, truth.concurrency, truth.value, points, truth.shapes, **truth.terms)


def second_statement(job: Job, now: int, public: PublicInformation) -> StatementOfWork | None:
    """Return the second submission in round ``now`` of an owner whose job was dropped, if there is one.

    It does only if what happened was not foreseen by its own law and the job is not longer than the
    announced limit. Value and deadline of the job do not change with the second statement.
    """
    if covered(job):
        return None
    known = resubmission(job, now)
    if public.max_duration is not None and known.law.durations.max() > public.max_duration:
        return None
    value = value_until(known, job.truth.birth + public.max_delay - 1, public)
    return StatementOfWork(known.birth, known.concurrency, value, known.requirements, known.shapes, **known.terms)


def _durations_given(job: Job) -> tuple[list[int], list[float]]:
    """Return the predicted law of the duration given the signal, scaled to mass 1."""
    law = job.truth.law
    of_signal = np.repeat([signal == job.signal for signal in law.group_signals], np.diff(law.offsets))
    chosen = of_signal if law.probabilities[of_signal].sum() > 0 else np.ones_like(of_signal)
    mass = np.bincount(law.durations[chosen], weights=law.probabilities[chosen])
    if not mass.sum() > 0:
        raise InvalidParameterError(f"the law of job {job.name!r} has no mass: expected one that says how long it runs")
    durations = np.flatnonzero(mass)
    return durations.tolist(), (mass[durations] / mass.sum()).tolist()
