r"""Residual uncertainty about the earlier jobs: their conditional laws given the history.

A new submission can only be hurt by jobs submitted earlier (Lemma 3.1), so the oracles follow those
jobs alone. Each is a report whose launch plan is fixed, hence a law over outcomes "occupy ``width``
nodes in rounds first .. last". Observation narrows it (Section 3, conditional law given
:math:`H_\tau`):

* not arrived before :math:`\tau`: :math:`P_i(\cdot \mid a \ge \tau)`, missing mass counting as
  :math:`a = \infty`;
* arrived: :math:`P_i(d \mid a, o)`; running: also :math:`d \ge \tau - s_i + 1`, and :math:`d =
  D_{max}` once that event has mass 0.

The points of a law are sorted by (arrival, signal, duration), so what remains possible is always
one range of them: two integers describe the condition, and oracles need nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, Literal, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Law
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import JobId

Eviction = Literal["all", "running"]  # LIFO over all active jobs (the paper), or over this round's load (Section 15.3)

SETTLE, ARRIVE = 2, 3  # why a law was narrowed: nothing happened in the round before, or an arrival


class ResidualJob:
    """One earlier active job: its outcomes, and the range ``low .. high - 1`` still possible.

    Outcome ``i`` occupies rounds ``firsts[i] .. lasts[i]``; ``firsts[i] = -1``: it does not run. ``may_never`` tells
    that the job may still never arrive. ``exhausted``: it outlived its law, so ``d = D_max`` is assumed.
    """

    __slots__ = (
        "exhausted",
        "firsts",
        "high",
        "job",
        "lasts",
        "law",
        "low",
        "may_never",
        "order",
        "start",
        "width",
    )

    def __init__(self, job: JobId, order: int, width: int, law: Law, starts: NDArray[np.int64]) -> None:
        self.job = job
        self.order = order
        self.width = width
        self.law = law
        self.firsts = law.spread(starts)
        self.lasts = np.where(self.firsts >= 0, self.firsts + law.durations - 1, -1)
        self.firsts.flags.writeable = self.lasts.flags.writeable = False  # copies of a market share them
        self.low, self.high = 0, law.arrivals.size
        self.may_never = True
        self.exhausted = False
        self.start: int | None = None  # known once arrived

    @property
    def missing(self) -> float:
        """Probability that the job never arrives, as it was reported."""
        return max(0.0, 1.0 - float(self.law.probabilities.sum()))

    def next_check(self) -> int | None:
        """Return the round whose clearing can contradict the range next; None: no more."""
        if self.exhausted or self.low >= self.high:
            return None
        if self.start is None:
            return int(self.law.arrivals[self.low])
        return self.start + int(self.law.durations[self.low]) - 1

    def not_arrived(self, now: int) -> None:
        """Narrow to arrivals in rounds >= ``now``."""
        self.low = not_arrived_kernel(self.law.arrivals, self.low, self.high, now)

    @property
    def never_runs(self) -> bool:
        """True once it did not arrive in any round of its law: whenever it arrives now, it is dropped."""
        return self.start is None and self.low >= self.high

    def arrived(self, group: int, start: int) -> None:
        """Narrow to one case (arrival, signal), whose launch is in round ``start``."""
        self.low, self.high = int(self.law.offsets[group]), int(self.law.offsets[group + 1])
        self.may_never = False
        self.start = start

    def outlived(self, now: int) -> None:
        """Narrow to durations that have not ended before round ``now`` (none left: D_max)."""
        assert self.start is not None
        columns = self.law.durations, self.law.probabilities
        self.low = outlived_kernel(*columns, self.low, self.high, now - self.start)
        self.exhausted = self.low == self.high

    def is_past(self, now: int) -> bool:
        """Tell whether every outcome still possible ends before round ``now``."""
        if self.start is None or self.exhausted:
            return False
        return int(self.lasts[self.high - 1]) < now  # of one case the longest duration is the last

    def outcomes(self, now: int, max_duration: int) -> Iterator[tuple[float, int, int]]:
        """Yield (conditional probability, first, last) of each distinct outcome from ``now`` on."""
        if self.exhausted:
            assert self.start is not None
            yield 1.0, max(self.start, now), self.start + max_duration - 1
            return
        weights = self.law.probabilities[self.low : self.high]
        total = float(weights.sum()) + (self.missing if self.may_never else 0.0)
        if total <= 0:  # never arrives
            yield 1.0, -1, -1
            return
        merged: dict[tuple[int, int], float] = defaultdict(float)
        for weight, first, last in zip(
            weights.tolist(),
            self.firsts[self.low : self.high].tolist(),
            self.lasts[self.low : self.high].tolist(),
            strict=True,
        ):
            runs = first >= 0 and last >= now
            merged[(max(first, now), last) if runs else (-1, -1)] += weight
        if self.may_never and self.missing > 0:
            merged[(-1, -1)] += self.missing
        for (first, last), weight in merged.items():
            if weight > 0:
                yield weight / total, first, last


class ResidualTracker:
    """The earlier active jobs with their observations; base of both oracles, which override the hooks ``_on_*``.

    A mechanism calls :meth:`attach` once, then ``submitted``, ``arrived``, ``removed``, ``advanced`` as they happen.
    """

    def __init__(self) -> None:
        self._limits: MarketLimits | None = None
        self.eviction: Eviction = "all"
        self.now = 1
        self._jobs: dict[JobId, ResidualJob] = {}  # in order of submission
        self._checks: dict[int, list[ResidualJob]] = defaultdict(list)
        self._settled = True
        self._rested: Any = None  # a copy that estimates were asked of since the last event

    @property
    def limits(self) -> MarketLimits:
        """The limits of the mechanism this oracle serves."""
        if self._limits is None:
            raise InvalidParameterError("oracle: not attached: pass it to a PostedPriceMechanism first")
        return self._limits

    def attach(self, limits: MarketLimits, rng: np.random.Generator, eviction: Eviction = "all") -> None:
        """Serve one mechanism, which evicts by the rule ``eviction``; its paths are refused to a second one."""
        if self._limits is not None:
            raise InvalidParameterError("oracle: already serves another mechanism: expected a new oracle for each")
        self._limits, self.eviction = limits, eviction

    def _copied(self) -> Self:
        """Return a copy that estimates for this moment, and takes no later event."""
        twin = copy(self)
        twin._rested = None
        due = {r.job: copy(r) for r in self._checks.get(self.now - 1, ()) if self._jobs.get(r.job) is r}
        twin._jobs = self._jobs | due  # the others are not narrowed before the next event
        twin._checks = defaultdict(list, {self.now - 1: list(due.values())})
        self._on_copied(twin)
        return twin

    def branched(self) -> Self:
        """Return a copy that can go on while this one stays as it is."""
        twin = copy(self)
        twin._rested = None
        twin._jobs = {job: copy(residual) for job, residual in self._jobs.items()}
        there = {id(residual): twin._jobs[job] for job, residual in self._jobs.items()}
        checks = {now: [there[id(r)] for r in due if id(r) in there] for now, due in self._checks.items()}
        twin._checks = defaultdict(list, checks)
        self._on_copied(twin)
        return twin

    def submitted(self, job: JobId, order: int, width: int, law: Law, starts: NDArray[np.int64]) -> None:
        """Follow a job whose launch plan starts case ``g`` in round ``starts[g]`` (-1: not run)."""
        self._rested = None
        residual = ResidualJob(job, order, width, law, starts)
        self._jobs[job] = residual
        self._schedule(residual)
        self._on_submitted(residual)

    def arrived(self, arrivals: Iterable[tuple[JobId, int, int]]) -> None:
        """Observe the arrivals of a round, in order of submission: of each its job, its case, its launch."""
        self._rested = None
        narrowed = []
        for job, group, start in arrivals:
            residual = self._jobs[job]
            residual.arrived(group, start)
            self._schedule(residual)
            narrowed.append(residual)
        self._on_narrowed(narrowed, ARRIVE)

    def removed(self, job: JobId) -> None:
        """Forget a job that was dropped, cancelled, evicted or completed."""
        self._rested = None
        residual = self._jobs.pop(job, None)
        if residual is not None:  # else it was forgotten before: it could not run any more
            self._on_removed(residual)

    def advanced(self, now: int) -> None:
        """Move to round ``now``; completions of the round before may still be reported."""
        self._settle()
        self._rested = None
        self.now = now
        self._settled = False
        self._on_advanced()

    def _settle(self) -> None:
        """Condition on what did *not* happen in the round before: no arrival, no completion.

        Late, because completions are reported after the round is cleared.
        """
        if self._settled:
            return
        self._settled = True
        due = [r for r in self._checks.pop(self.now - 1, ()) if self._jobs.get(r.job) is r]
        narrowed = []
        for residual in due:
            if residual.start is None:
                residual.not_arrived(self.now)
            elif residual.next_check() == self.now - 1:
                residual.outlived(self.now)
            else:
                continue  # an entry made before the job arrived
            self._schedule(residual)
            narrowed.append(residual)
        if narrowed:
            self._on_narrowed(narrowed, SETTLE)
        for residual in narrowed:
            if residual.never_runs:
                del self._jobs[residual.job]
                self._on_forgotten(residual)

    @property
    def settled(self) -> bool:
        """Whether what did not happen in the round before was looked at."""
        return self._settled

    def _schedule(self, residual: ResidualJob) -> None:
        check = residual.next_check()
        if check is not None:
            self._checks[max(check, self.now)].append(residual)

    def _on_copied(self, twin: Any) -> None:
        """Give a copy what it must not share (hook)."""

    def _on_submitted(self, residual: ResidualJob) -> None:
        """Take in a new job (hook)."""

    def _on_narrowed(self, residuals: Iterable[ResidualJob], kind: int) -> None:
        """React to narrowed ranges (hook)."""

    def _on_removed(self, residual: ResidualJob) -> None:
        """React to a job leaving (hook)."""

    def _on_forgotten(self, residual: ResidualJob) -> None:
        """React to a job that can no longer run, after its narrowing (hook)."""

    def _on_advanced(self) -> None:
        """React to a new round (hook)."""


@njit(cache=True)
def not_arrived_kernel(arrivals, low, high, now):  # type: ignore[no-untyped-def]
    """Return the first of the points ``low .. high - 1`` that arrives in round ``now`` or later; ``high``: none."""
    while low < high and arrivals[low] < now:
        low += 1
    return low


@njit(cache=True)
def outlived_kernel(durations, probabilities, low, high, ran):  # type: ignore[no-untyped-def]
    """Return the first of the points ``low .. high - 1`` that lasts longer than ``ran``; ``high``: none that can be."""
    while low < high and durations[low] <= ran:
        low += 1
    for point in range(low, high):
        if probabilities[point] != 0.0:
            return low
    return high
