"""A job of posted prices between its submission and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Law
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.posted.relaxed import Quote


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """What is fixed when a job is submitted."""

    job: JobId
    order: int  # number of the submission, the key of LIFO
    width: int  # nodes
    law: Law
    starts: NDArray[np.int64]  # planned start of each case; -1: not run
    quote: Quote | None  # prices of the menu at its submission

    never_changes: ClassVar[bool] = True  # copies of a market share it


class ActiveJob:
    """A submitted job that has not ended."""

    __slots__ = ("case", "start", "submission")

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        self.case: int | None = None  # index of the realised (arrival, signal), once arrived
        self.start: int | None = None  # first round, once arrived and launched

    @property
    def job(self) -> JobId:
        """Name of the job."""
        return self.submission.job

    @property
    def width(self) -> int:
        """Nodes."""
        return self.submission.width

    def has_run(self, now: int) -> bool:
        """Tell whether the job executed at least one round before round ``now``."""
        return self.start is not None and self.start < now
