"""What a market knows of one job: one record, whether its report is an object or a row of columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.columns import JobColumns, steps_of
from marketsched.mechanisms.law import DurationLaw, Signal
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.signals import announced_durations
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import importance

NOT_YET = 0  # a round that is still open


class WaitingJob:
    """A job from submission, the ``order``-th of the market, until it is gone; rounds that are open are 0 (`NOT_YET`).

    Attributes
    ----------
    job, owner, order, width
        Its name, its owner's, its place in the order of submission, and the nodes that it asks for.
    arrival, signal, start, useful, last_start
        Its round of arrival, and what was seen then; its first round, which may be booked ahead; the last completion
        and (if noted) the last start that are worth anything by the report.
    limit, mean, worth
        What `foresee` notes: the most rounds that it may run, those expected, and the expected value of each start from
        the arrival on, credits, shape (n_starts,).
    agreed
        What `serve` notes for `charge`.
    """

    __slots__ = (
        "_columns", "_sow", "agreed", "arrival", "job", "last_start", "limit", "mean", "order", "owner", "signal",
        "start", "useful", "width", "worth",
    )  # fmt: skip

    def __init__(
        self, job: JobId, order: int, sow: StatementOfWork | None, owner: Hashable = None, width: int | None = None
    ) -> None:
        self.job, self.order, self._sow = job, order, sow
        self.owner = job if owner is None else owner
        self.width: int = sow.concurrency if width is None else width  # type: ignore[union-attr]
        self.arrival = self.start = self.useful = self.last_start = NOT_YET
        self.signal: Signal = None
        self.limit, self.mean = 0, 0.0
        self.worth: NDArray[np.float64] | None = None
        self.agreed: Any = None
        self._columns: JobColumns | None = None

    @classmethod
    def of_row(cls, columns: JobColumns, row: int, job: JobId, owner: Hashable) -> WaitingJob:
        """Return the job whose report stands in a row of columns; it was submitted as that row."""
        x = cls(job, row, None, owner, int(columns.widths[row]))
        x._columns = columns
        return x

    @property
    def sow(self) -> StatementOfWork:
        """The report."""
        if self._sow is None:
            assert self._columns is not None
            self._sow = self._columns.stated(self.order)
        return self._sow

    def restate(self, sow: StatementOfWork) -> None:
        """Put another report in the place of the one before the arrival."""
        self._sow, self.width, self._columns = sow, sow.concurrency, None

    def come(self, arrival: int, signal: Signal, useful: int) -> WaitingJob:
        """Note the arrival, and the last completion worth anything; return the job."""
        self.arrival, self.signal, self.useful = arrival, signal, useful
        return self

    # -- what the report says, given the arrival and what was seen then ---------------------------------------

    @property
    def excluded(self) -> bool:
        """Whether the report excludes what happened; `law` is then that of all its points."""
        if self._columns is None:
            return self.sow.law.group_of(self.arrival, self.signal) is None
        return bool(self._columns.joint_laws.happens[self.order] < 0)

    @property
    def law(self) -> DurationLaw:
        """The law of the duration."""
        if self._columns is not None:
            return self._columns.law_of(self.order)
        law = self.sow.law
        points = law.points_of(self.arrival, self.signal)
        return DurationLaw.of(law.durations[points], law.probabilities[points])

    @property
    def announced(self) -> tuple[int, int]:
        """The shortest and the longest duration that the report announces, rounds; the duration where it is seen."""
        if self._columns is not None:
            return int(self._columns.shortest[self.order]), int(self._columns.wall_times[self.order])
        durations = announced_durations(self.sow, self.arrival, self.signal)
        return int(durations.min()), int(durations.max())

    @property
    def announced_mean(self) -> float:
        """The mean duration between the two, rounds; the middle, if the law has no mass."""
        (shortest, longest), law = self.announced, self.law
        return law.mean if shortest < longest and law.durations.size else (shortest + longest) / 2.0

    @property
    def highest(self) -> float:
        """The value of any completion, credits."""
        return float(self.sow.value.highest if self._columns is None else self._columns.highest[self.order])

    def value(self, completion: int) -> float:
        """Return the value of a completion up to ``useful``, credits."""
        if self._columns is None:
            return float(self.sow.value(completion))
        values, lasts = self.steps(completion, self.useful)
        return float(values[lasts.searchsorted(completion)])

    @property
    def due(self) -> int:
        """The last completion worth half of the highest value or more: a deadline, or the half life of a fall."""
        values, lasts = self.steps(self.arrival + 1, self.useful)
        worth_half = int((values >= 0.5 * self.highest).sum())
        return min(int(lasts[worth_half - 1]), self.useful) if worth_half else self.useful

    @property
    def importance(self) -> float:
        """The importance among the jobs of its owner, by the announced mean; see `values.importance`."""
        if self._columns is None:
            return importance(self.sow.value, self.width, self.announced_mean)
        return self.highest / (self.width * self.announced_mean)  # no rank stands in columns

    @property
    def checkpoint(self) -> int:
        """Rounds of the work after which it is saved, each time; 0: never."""
        return self.sow.checkpoint or 0 if self._columns is None else int(self._columns.checkpoints[self.order])

    @property
    def patience(self) -> int:
        """Rounds that the job agrees to wait for a start; -1: it does not say."""
        if self._columns is None:
            return -1 if self.sow.patience is None else self.sow.patience
        return int(self._columns.patience[self.order])

    @property
    def restarts(self) -> bool:
        """Whether a run that is taken back can begin anew."""
        return self.sow.restarts if self._columns is None else bool(self._columns.restarts[self.order])

    def steps(self, first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the value curve for completions ``first .. last`` as steps, see `steps_of`."""
        if self._columns is None:
            return steps_of(self.sow.value, first, last)
        curve = slice(self._columns.begins[self.order], self._columns.begins[self.order + 1])
        values, lasts = self._columns.values[curve], self._columns.lasts[curve]
        if lasts.size > 1:
            here = slice(lasts.searchsorted(first), lasts.searchsorted(last) + 1)
            values, lasts = values[here], lasts[here]
        return values, lasts
