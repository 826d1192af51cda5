"""A job of posted prices between its submission and its end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Law
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.posted.relaxed import Quote


class ActiveJob:
    """A submitted job that has not ended.

    ``order`` is the submission number, the key of LIFO; ``starts[g]`` the planned start of case
    ``g`` (-1: not run); ``quote`` the prices of the menu at its submission.
    """

    __slots__ = ("case", "job", "law", "order", "quote", "start", "starts", "width")

    def __init__(
        self, job: JobId, order: int, width: int, law: Law, starts: NDArray[np.int64], quote: Quote | None
    ) -> None:
        self.job = job
        self.order = order
        self.width = width
        self.law = law
        self.starts = starts
        self.quote = quote
        self.case: int | None = None  # index of the realised (arrival, signal), once arrived
        self.start: int | None = None  # first round, once arrived and launched

    def has_run(self, now: int) -> bool:
        """Tell whether the job executed at least one round before round ``now``."""
        return self.start is not None and self.start < now
