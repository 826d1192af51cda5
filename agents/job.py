"""A job: the owner's true statement of work, and its real arrival and duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a workload.

    ``truth`` is the owner's true type; ``arrival`` (a round >= truth.birth, or None: it never
    arrives), ``duration`` (rounds) and ``signal`` (seen at arrival) are what really happens, and
    may lie outside the law of ``truth`` when a prediction was wrong. ``tags`` are columns of the
    jobs table (owner's class, band, recurring group, ...). With shapes ``duration`` is one of those of the first
    shape on the kind that it names first, and says which of their durations all shapes take.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> truth = StatementOfWork(1, 2, DeadlineValue(9.0, 6), [(2, 3, 1.0)])  # 2 nodes, ready in round 2, for 3 rounds
    >>> job = Job("nightly", "ann", truth, arrival=2, duration=4)  # it takes a round longer
    >>> job.duration, job.truth.value(job.arrival + job.duration)
    (4, 9.0)
    """

    name: str
    owner: str
    truth: StatementOfWork
    arrival: int | None
    duration: int
    signal: Signal = None
    tags: Mapping[str, Any] = field(default_factory=dict)
