"""Two offers over columns: the steps of `hidden_jobs`, round by round, for jobs that are rows of a table."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.columns import NEVER, Ending, JobColumns, Move, Outcomes
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.offers.announced import Report, Stairs, preferred
from marketsched.mechanisms.offers.hidden_jobs import HiddenJobs
from marketsched.mechanisms.offers.present import REGULAR


def falling(jobs: JobColumns) -> bool:
    """Tell whether no value curve rises, in the part that counts."""
    rises = jobs.values[1:] > jobs.values[:-1]
    first = jobs.begins[1:-1]  # of each curve but the first; the curve of a job that is worth nothing may be empty
    rises[first[(first > 0) & (first < jobs.values.size)] - 1] = False  # from one curve to the next
    return not rises.any()


class OffersPlay:
    """A market of two offers in which all durations are hidden, many rounds at a time.

    Parameters
    ----------
    hidden : HiddenJobs
        Of the mechanism; nobody is present.
    jobs : JobColumns
        All jobs.
    limits : MarketLimits
        Of the market.
    requeue : bool
        As of `HiddenJobs`.
    """

    def __init__(self, hidden: HiddenJobs, jobs: JobColumns, limits: MarketLimits, *, requeue: bool) -> None:
        self._hidden, self._jobs, self._limits, self._requeue = hidden, jobs, limits, requeue
        self._order, self._rounds = jobs.by_arrival
        self._reports = _Reports(jobs, jobs.useful(limits.max_delay, limits.horizon))
        self._job_in: dict[int, int] = {}  # by row of `Present`
        self._ending: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)  # by end
        self._ends: dict[int, int] = {}  # by row, of those that run

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``."""
        bounds = np.searchsorted(self._rounds, np.arange(first, until + 2)).tolist()
        for now, begin, end in zip(range(first, until + 1), bounds[:-1], bounds[1:], strict=True):
            self._note_price(now, outcomes)
            self._depart(now, outcomes)
            if begin < end:
                self._arrive(now, self._order[begin:end].tolist(), outcomes)
            self._serve(now, outcomes)
            self._complete(now, outcomes)

    def _note_price(self, now: int, outcomes: Outcomes) -> None:
        """Note the regular rate as it stands before the round is cleared."""
        rate = self._hidden.rates.posted[REGULAR]
        outcomes.prices[now - 1] = rate
        if outcomes.surface is not None:
            outcomes.surface[now - 1] = rate

    def _depart(self, now: int, outcomes: Outcomes) -> None:
        for row, start, ran in self._hidden.begin_round(now):
            j = self._job_in[row]
            if start:
                del self._ends[row]
            outcomes.leave(j, now, Ending.EVICTED if ran else Ending.DROPPED)
        for row in self._hidden.gone:
            del self._job_in[row]

    def _arrive(self, now: int, rows: list[int], outcomes: Outcomes) -> None:
        """Let the jobs that arrive choose, in order of submission."""
        hidden = self._hidden
        for j in rows:
            hidden.counts(int(self._jobs.widths[j]))
            report, chosen = self._reports.of(j, now), None
            if report is not None:
                menu = hidden.menu(now, self._unbooked)
                entries = menu.entries(report)
                chosen = preferred(entries.values, hidden.first_offer(report.restarts))
            if report is None or chosen is None:
                outcomes.leave(j, now, Ending.DROPPED)
            else:
                self._job_in[hidden.take(report, menu, entries, chosen)] = j

    def _unbooked(self, now: int) -> int:
        return self._limits.capacity

    def _serve(self, now: int, outcomes: Outcomes) -> None:
        capacity, held = self._limits.capacity, self._hidden.held
        taken, started = self._hidden.serve(now, capacity - sum(held), capacity - held[REGULAR])
        for row, _ in taken:
            j = self._job_in[row]
            del self._ends[row]
            if self._requeue:
                outcomes.starts[j] = NEVER
                outcomes.moves.note(now, Move.TAKEN_BACK, j)
            else:
                outcomes.leave(j, now, Ending.EVICTED)
        for row in started:
            j = self._job_in[row]
            outcomes.starts[j] = now
            outcomes.moves.note(now, Move.STARTED, j)
            self._ends[row] = now + int(self._jobs.durations[j]) - self._hidden.saved(row)
            self._ending[self._ends[row]].add((j, row))

    def _complete(self, now: int, outcomes: Outcomes) -> None:
        """Complete the runs whose last round this is, in order of submission."""
        for j, row in sorted(self._ending.pop(now + 1, ())):
            if self._job_in.get(row) != j or self._ends.get(row) != now + 1:
                continue  # it was stopped, or began anew
            del self._ends[row]
            outcomes.payments[j] = self._hidden.complete(row, now + 1)
            outcomes.left[j], outcomes.endings[j] = now, Ending.COMPLETED


class _Reports:
    """What jobs report at their arrival, from columns."""

    def __init__(self, jobs: JobColumns, useful: NDArray[np.int64]) -> None:
        self._jobs, self._laws, self._useful = jobs, jobs.laws, useful
        self._means: dict[int, float] = {}  # by law

    def of(self, j: int, now: int) -> Report | None:
        """Return the report of one job; None: no run of it can bring anything. See `announced.report_of`."""
        jobs, laws, last = self._jobs, self._laws, int(self._useful[j])
        number, law = int(laws.of[j]), jobs.law_of(j)
        if not law.durations.size or now + law.durations[0] > last:
            return None
        if number not in self._means:
            self._means[number] = law.mean
        shortest = int(law.durations[0])
        curve = slice(jobs.begins[j], jobs.begins[j + 1])
        until, worth = jobs.lasts[curve], jobs.values[curve]
        if until.size > 1:
            here = slice(until.searchsorted(now + shortest), until.searchsorted(last) + 1)
            until, worth = until[here], worth[here]
        return Report(
            int(jobs.widths[j]), *law, shortest, int(law.durations[-1]), self._means[number],
            Stairs(np.minimum(until, last), worth), last, float(jobs.highest[j]), bool(jobs.restarts[j]),
            int(jobs.patience[j]), int(jobs.checkpoints[j]),
        )  # fmt: skip
