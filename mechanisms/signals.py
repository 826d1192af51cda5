"""Signals at arrival: the duration of a job, or a label that does not determine it.

Whether signals are durations is a fact about the platform. No report of an owner may decide it: a report that could
turn a revealed duration into a hidden one would choose the rule that it is served by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.sow import StatementOfWork

Signals = Literal["durations", "labels"]


class SeenAtArrival(Protocol):
    """A job whose true statement and signal are known, as `marketsched.agents.job.Job`."""

    @property
    def truth(self) -> StatementOfWork:
        """The true statement."""
        ...

    @property
    def duration(self) -> int:
        """Rounds it really takes."""
        ...

    @property
    def signal(self) -> Signal:
        """The signal at its arrival."""
        ...


def observed_duration(signal: Signal, signals: Signals = "durations") -> int | None:
    """Return the duration that the platform sees at arrival; None: it is hidden.

    ``signals`` says what whole numbers from 1 on are on this platform. Any other signal is a label.

    Examples
    --------
    >>> observed_duration(3), observed_duration("long"), observed_duration(3, "labels")
    (3, None, None)
    """
    if signals == "labels" or isinstance(signal, bool):
        return None
    whole = signal.is_integer() if isinstance(signal, float) else isinstance(signal, (int, np.integer))
    return int(signal) if whole and signal >= 1 else None  # type: ignore[call-overload, operator]


def signals_of(jobs: Iterable[SeenAtArrival]) -> Signals:
    """Return whether signals are durations or labels, from the signals and laws of these jobs.

    Labels, if a whole-number signal goes with another duration, in a true law or in what happens.
    """
    looked_at: set[int] = set()  # laws share their columns: each is looked at once
    for job in jobs:
        seen = observed_duration(job.signal)
        if seen is not None and seen != job.duration:
            return "labels"
        law = job.truth.law
        if id(law.group_signals) in looked_at:
            continue
        looked_at.add(id(law.group_signals))
        if any(observed_duration(signal) not in (None, duration) for _, duration, _, signal in law.points()):
            return "labels"
    return "durations"


def announced_durations(sow: StatementOfWork, arrival: int, signal: Signal) -> NDArray[np.int64]:
    """Return the durations that a report has for a job once it has arrived; the duration itself where it is seen.

    It is seen if the report takes signals for durations; the arrival may be one that the report excludes.
    """
    law = sow.law
    revealed = observed_duration(signal) if law.group_signals == tuple(sow.durations.tolist()) else None
    return law.durations[law.points_of(arrival, signal)] if revealed is None else np.array([revealed])
