r"""Which free jobs become regular: late ones, by their owner's own order of importance and its own purse.

Of a job that saved some of its work m is the mean of what is left. D is the last completion worth half of the highest
value or more: the deadline, or where a value falls and never ends the time at which half of it is left.

A waiting free job with :math:`D - t \le m (1 + \text{margin}) + \ell` becomes regular, in order of arrival, if
(:math:`\ell` is half an hour)

* its owner's purse covers it, :math:`w - n \ge c m \kappa`, with n what the owner's regular jobs still need; and
* it is among the important ones, :math:`\rho \ge \theta`. Of the owner's last 64 earlier jobs, the most important
  first, :math:`\theta` is the importance of the one at which their work exceeds the share a/A of all: A is their work
  a round times :math:`\kappa`, and :math:`a = r C s + (w - n) / \tau` what the owner can pay for. 0 if all can be
  paid, and while there are fewer than five jobs.

Both sides of :math:`\rho \ge \theta` are of one owner. A job is not among those that its own threshold is made of.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.offers.present import Rows
from marketsched.mechanisms.unit import Unit

REMEMBERED, FEWEST = 64, 5  # jobs of an owner


class Spans(NamedTuple):
    """Durations of the rule, rounds."""

    late: float = 2.0  # slack beside the margin
    shortest: float = 8.0  # the remembered jobs are taken to have come in no less
    savings_last: float = 400.0  # tau, over which savings are spent

    @classmethod
    def of(cls, unit: Unit) -> Spans:
        """Return them where the numbers above are quarters of an hour."""
        return cls(*(unit.rounds * each for each in cls()))


@dataclass(slots=True)
class Upgrade:
    """A job that becomes regular, and what came of it."""

    job: JobId
    owner: Hashable
    round: int
    cost: float  # credits that it is expected to take
    purse: float  # of its owner, credits, after this round's income
    threshold: float  # of its owner's jobs, by importance
    bound: float  # rounds within which it starts; nan: it is too wide for one
    started: int = 0  # the round of its start as regular run; 0: not yet
    left: int = 0  # the round in which it left without one; 0: it has not
    unpaid: int = 0  # rounds from `patience` on in which its owner could not pay: the bound does not count them


class Remembered(NamedTuple):
    """The last jobs of each owner, as kernels read them."""

    columns: NDArray[np.float64]  # (3, n, 64): importance, work (node-rounds) and arrival (round)
    seen: NDArray[np.int64]  # (n,), how many jobs of each owner came
    spans: Spans


class Memory:
    """The last jobs of each owner: importance, work and arrival."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self._columns = np.zeros((3, 0, REMEMBERED))
        self._seen = np.zeros(0, np.int64)

    def admit(self, n_owners: int) -> None:
        """Make room for so many owners."""
        if n_owners > self._seen.size:
            more = max(n_owners, 2 * self._seen.size) - self._seen.size
            self._columns = np.concatenate([self._columns, np.zeros((3, more, REMEMBERED))], axis=1)
            self._seen = np.concatenate([self._seen, np.zeros(more, np.int64)])

    def learn(self, owner: int, important: float, work: float, arrival: int) -> None:
        """Remember a job; it counts for those that are looked at later."""
        place = self._seen[owner] % REMEMBERED
        self._columns[:, owner, place] = important, work, arrival
        self._seen[owner] += 1

    @property
    def known(self) -> Remembered:
        """Views for kernels."""
        return Remembered(self._columns, self._seen, self.spans)


def upgraded(
    present: Rows, now: int, purses: Purses, memory: Memory, kappa: float, margin: float
) -> list[tuple[int, float, float]]:
    """Make late free jobs regular; return row, credits that it is expected to cost, and threshold of each.

    No purse is changed: a regular run pays round by round. ``kappa`` is real over announced work; a job is late
    ``margin`` times its announced mean before its latest start.
    """
    rows, figures = np.empty(present.n, dtype=np.int64), np.empty((present.n, 2))
    incomes = purses.incomes / CREDIT
    found = _upgrade_kernel(present.in_turn, now, purses.credits, incomes, memory.known, kappa, margin, rows, figures)
    return [(int(row), *pair) for row, pair in zip(rows[:found], figures[:found].tolist(), strict=True)]


def outlook(present: Rows, now: int, purses: Purses, memory: Memory, kappa: float, owner: int) -> tuple[float, float]:
    """Return the credits that an owner's regular jobs still need, and its threshold; nothing is changed."""
    needed = np.zeros(purses.held.size)
    needed_kernel(present.in_turn, now, kappa, needed)
    memory.admit(purses.held.size)
    free = max(0.0, float(purses.credits[owner]) - float(needed[owner]))
    can_pay = float(purses.incomes[owner]) / CREDIT + free / memory.spans.savings_last
    threshold = _threshold_kernel(memory.known, owner, now, can_pay, kappa)
    return float(needed[owner]), float(threshold)


@njit(cache=True)
def _upgrade_kernel(present, now, credits, incomes, memory, kappa, margin, rows, figures):  # type: ignore[no-untyped-def]
    """Set ``since`` of those that become regular; fill ``rows`` and ``figures``; return how many."""
    jobs, turn = present
    owner, width, mean, important = jobs["owner"], jobs["width"], jobs["rest"], jobs["important"]
    unpaid = jobs["unpaid"]
    start, since, state, deadline = jobs["start"], jobs["since"], jobs["state"], jobs["last"]
    needed, thresholds = np.zeros(credits.size), np.full(credits.size, -1.0)
    summed, found = False, 0
    for i in range(turn.size):
        j = turn[i]
        if (
            since[j] > 0
            or start[j] > 0
            or state[j] != 0
            or deadline[j] - now > mean[j] * (1.0 + margin) + memory.spans.late
        ):
            continue
        if not summed:
            summed = True
            needed_kernel(present, now, kappa, needed)
        o = owner[j]
        cost = width[j] * mean[j] * kappa
        if credits[o] - needed[o] < cost:
            continue
        if thresholds[o] < 0.0:
            can_pay = incomes[o] + max(0.0, credits[o] - needed[o]) / memory.spans.savings_last
            thresholds[o] = _threshold_kernel(memory, o, now, can_pay, kappa)
        if important[j] < thresholds[o]:
            continue
        rows[found] = j
        figures[found, 0], figures[found, 1] = cost, thresholds[o]
        found += 1
        since[j], unpaid[j] = now, 0
        needed[o] += width[j] * max(1.0, mean[j] * kappa)
        thresholds[o] = -1.0
    return found


@njit(cache=True)
def needed_kernel(present, now, kappa, needed):  # type: ignore[no-untyped-def]
    """Add to ``needed`` what the regular jobs of each owner still need."""
    jobs, turn = present
    start, since, state = jobs["start"], jobs["since"], jobs["state"]
    for k in range(turn.size):
        j = turn[k]
        if since[j] > 0 and state[j] == 0:
            run = now - start[j] if start[j] > 0 else 0
            needed[jobs["owner"][j]] += jobs["width"][j] * max(1.0, jobs["rest"][j] * kappa - run)


@njit(cache=True)
def _threshold_kernel(memory, owner, now, can_pay, kappa):  # type: ignore[no-untyped-def]
    """Return the importance from which on an owner can pay for all its jobs."""
    columns, seen, spans = memory
    count = min(seen[owner], columns.shape[2])
    if count < FEWEST:
        return 0.0
    important, work, arrival = columns[0, owner, :count], columns[1, owner, :count], columns[2, owner, :count]
    total = work.sum()
    a_round = total / max(spans.shortest, now - arrival.min() + 1.0) * kappa
    most, above = can_pay / max(1e-9, a_round) * total, 0.0
    for place in np.argsort(-important, kind="mergesort"):
        above += work[place]
        if above > most:
            return important[place]
    return 0.0
