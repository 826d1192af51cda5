"""Promises of a mechanism about truth-telling: they decide which gain counts as a lie that pays."""

from __future__ import annotations

from marketsched.mechanisms.mechanism import Mechanism, Truthful
from marketsched.mechanisms.sow import StatementOfWork


def promise_of(mechanism: Mechanism, truth: StatementOfWork) -> Truthful:
    """Return the promise of a mechanism to a job: one of "ex post", "in expectation", "up to regret", "none".

    Parameters
    ----------
    mechanism : Mechanism
        Says so by ``truthful`` and, for jobs whose durations are hidden, ``truthful_hidden``.
    truth : StatementOfWork
        The true statement of the job.
    """
    return mechanism.truthful if truth.revealed else mechanism.truthful_hidden
