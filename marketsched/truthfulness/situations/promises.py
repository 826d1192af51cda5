"""Promises of a mechanism about truth-telling: they decide which gain counts as a lie that pays."""

from __future__ import annotations

from marketsched.mechanisms.mechanism import Mechanism, Truthful
from marketsched.mechanisms.promises import Disclosure, promised
from marketsched.mechanisms.signals import Signals, observed_duration
from marketsched.mechanisms.sow import StatementOfWork


def promise_of(mechanism: Mechanism, truth: StatementOfWork, market: Disclosure) -> Truthful:
    """Return what a mechanism promises to a job in such a market, see `promised`."""
    return promised(mechanism, market, hidden=not durations_seen(mechanism, truth))


def durations_seen(mechanism: Mechanism, truth: StatementOfWork) -> bool:
    """Tell whether a mechanism knows the duration of a job when it arrives, and not only what its report says.

    One that plans at submission has the signal determine it, as the theorems ask. One that serves at arrival has to see
    it: a law of a single duration without a signal, as of a log with wall times, is what the owner says.
    """
    if not truth.revealed or mechanism.reads_reports == "submission":
        return truth.revealed
    kind: Signals = getattr(mechanism, "_signals", getattr(mechanism, "signals", "durations"))
    return all(observed_duration(signal, kind) is not None for signal in truth.law.group_signals)
