"""Posted prices over columns: the rounds of `PostedPriceMechanism` for jobs that are rows of a table.

Submissions of a round are one call of a kernel; the rest of a round handles the rows that act in it. Rows are in order
of submission, and so a row is the number of its job's submission, which keys its draws.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.columns import Ending, JobColumns, Outcomes
from marketsched.mechanisms.errors import TooLargeError
from marketsched.mechanisms.law import Law
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.posted.draws import SUBMIT, stamp_of
from marketsched.mechanisms.posted.eviction import overload_removals
from marketsched.mechanisms.posted.exponential import SlotPricing
from marketsched.mechanisms.posted.launch_plan import ZERO_TOLERANCE
from marketsched.mechanisms.posted.menu import check_menu
from marketsched.mechanisms.posted.oracle import FailureOracle, MonteCarloOracle
from marketsched.mechanisms.posted.path_kernels import HIGH, KEY, LOW, MAY_NEVER, OFFSET
from marketsched.mechanisms.posted.planner import Planner
from marketsched.mechanisms.posted.residual import ARRIVE, SETTLE
from marketsched.mechanisms.posted.rows_kernels import (
    Found,
    Rows,
    Rule,
    enter_kernel,
    plan_row_kernel,
    settle_kernel,
    take_row_kernel,
)
from marketsched.mechanisms.posted.sample_paths import MAX_POINTS


class PostedPlay:
    """A market of posted prices between two rounds.

    The planner's prices are a `SlotPricing`, and no job has been submitted; the market's oracle evicts by the rule over
    all active jobs; no law of ``jobs`` has more than `MAX_POINTS` points. ``submitted`` counts the jobs so far,
    ``load`` the nodes of those that run.
    """

    def __init__(self, planner: Planner, oracle: MonteCarloOracle, jobs: JobColumns, limits: MarketLimits) -> None:
        self._planner, self._oracle, self._jobs, self._limits = planner, oracle, jobs, limits
        self.submitted = self.load = 0
        self._laws = jobs.joint_laws
        self._rows = Rows(
            jobs.births,
            jobs.durations,
            jobs.widths,
            jobs.begins,
            jobs.values,
            jobs.lasts,
            jobs.useful(limits.max_delay, limits.horizon),
            _spans(self._laws.points, self._laws.durations),
        )
        self._sizes = np.diff(self._laws.points)
        self._prices = np.zeros(jobs.n)  # that a completion pays
        self._comes = np.zeros(jobs.n, np.bool_)  # whether a job arrived, and is launched as planned
        self._active: dict[int, None] = {}  # rows, in order of submission
        self._running: dict[int, int] = {}  # widths by row
        self._starting: defaultdict[int, list[int]] = defaultdict(list)  # rows by round of launch
        self._overdue: defaultdict[int, list[int]] = defaultdict(list)  # by round in which D_max is exceeded
        self._ending: defaultdict[int, list[int]] = defaultdict(list)  # by last round

    @classmethod
    def of(cls, planner: Planner, oracle: FailureOracle, jobs: JobColumns, limits: MarketLimits) -> PostedPlay | None:
        """Return the play of a market that has not begun; None: it is to be played by the loop."""
        kernels = type(oracle) is MonteCarloOracle and type(planner.relaxed) is SlotPricing
        if not kernels or oracle.eviction != "all" or not jobs.within(limits):
            return None
        try:
            check_menu(limits.max_delay, limits.max_duration)  # the loop may get by with smaller ones
        except TooLargeError:
            return None
        if np.diff(jobs.joint_laws.points).max(initial=0) > MAX_POINTS:
            return None
        assert isinstance(oracle, MonteCarloOracle)
        return cls(planner, oracle, jobs, limits)

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``."""
        rounds, (order, arrivals) = np.arange(first, until + 2), self._jobs.by_arrival
        births, comes = (np.searchsorted(each, rounds).tolist() for each in (self._jobs.births, arrivals))
        with np.errstate(over="ignore"):  # a price too high for a float32 is shown as not on sale
            for i, now in enumerate(range(first, until + 1)):
                self._note_surface(now, outcomes)
                if births[i] < births[i + 1]:
                    self._submit(now, np.arange(births[i], births[i + 1]), outcomes)
                if comes[i] < comes[i + 1]:
                    self._arrive(now, order[comes[i] : comes[i + 1]], outcomes)
                self._note_prices(now, outcomes)
                self._clear(now, outcomes)
                self._settle(outcomes)
                self._oracle.advanced(now + 1)
                self._complete(now, outcomes)

    def _note_surface(self, now: int, outcomes: Outcomes) -> None:
        if outcomes.surface is not None:
            outcomes.surface[now - 1] = self._planner.relaxed.slot_prices(now, outcomes.surface.shape[1])

    def _note_prices(self, now: int, outcomes: Outcomes) -> None:
        outcomes.prices[now - 1] = self._planner.relaxed.slot_prices(now, 1)[0]
        outcomes.promised[now - 1] = self._planner.relaxed.usage(now, 1)[0]

    # -- submissions -----------------------------------------------------------------------------

    def _submit(self, now: int, chosen: NDArray[np.int64], outcomes: Outcomes) -> None:
        """Submit rows that are born now: up to the next one that is probed in one call."""
        oracle, planner, limits = self._oracle, self._planner, self._limits
        self._settle(outcomes)
        n_points, width = (int(each.sum()) for each in (self._sizes[self._laws.of[chosen]], self._rows.widths[chosen]))
        slots, used = oracle.paths.make_room(chosen.size, n_points, width)
        rule = Rule(
            now, oracle.samples, oracle.paths.root, stamp_of(now, SUBMIT), limits.capacity, limits.horizon,
            limits.max_duration, planner.threshold + ZERO_TOLERANCE, planner.tolerance,
        )  # fmt: skip
        assert isinstance(planner.relaxed, SlotPricing)
        menu = planner.relaxed.arrays(now + limits.max_delay + 2 * limits.max_duration + 3)
        found = Found(outcomes.planned, outcomes.estimates, self._prices, *planner.ledger.totals())
        at, places = 0, np.array(slots, dtype=np.int64)
        while at < chosen.size:
            oracle.prepare()
            unprobed = oracle.unprobed(chosen.size - at)
            end = at + 1 if oracle.refresh == "submission" else at + max(1, unprobed)
            columns = (self._rows, self._laws, menu, oracle.paths.arrays, rule, found)
            if unprobed:
                enter_kernel(chosen[at:end], places[at:end], used, *columns)
            else:
                row = int(chosen[at])
                starts, failures = plan_row_kernel(row, *columns)
                oracle.probe(int(self._rows.widths[row]), self._law(row), starts, failures)
                take_row_kernel(row, starts, places[at:end], used, *columns)
            oracle.took(chosen[at:end].tolist(), slots[at:end], used, probed=not unprobed)
            at = end
        planner.ledger.put(found.welfare, found.counts)
        self._active.update(dict.fromkeys(chosen.tolist()))
        self.submitted += chosen.size

    def _law(self, row: int) -> Law:
        """Return the law of a row, with no signals."""
        laws, law, birth = self._laws, int(self._laws.of[row]), int(self._rows.births[row])
        own, cases = (slice(*ends[law : law + 2].tolist()) for ends in (laws.points, laws.cases))
        begins = laws.begins[cases.start + law : cases.stop + law + 1]
        points = (laws.waits[own] + birth, laws.durations[own], laws.weights[own])
        return Law(*points, begins, laws.case_waits[cases] + birth, ())

    # -- a round ---------------------------------------------------------------------------------

    def _arrive(self, now: int, rows: NDArray[np.int64], outcomes: Outcomes) -> None:
        """Step 4: fix the start of every job that arrives, or drop it."""
        ready, gone = [], []
        for row, start in zip(rows.tolist(), outcomes.planned[rows].tolist(), strict=True):
            if row in self._active:  # else it was cancelled before
                if start:
                    self._starting[start].append(row)
                    ready.append(row)
                else:
                    gone.append(row)
        self._leave(gone, now, Ending.DROPPED, outcomes)
        if ready:
            launched = np.array(ready, dtype=np.int64)
            self._comes[launched] = True
            slot_of, slots = self._oracle.paths.slot_of, self._oracle.paths.arrays.slots
            places = [slot_of[row] for row in ready]
            law = self._laws.of[launched]
            at = self._laws.cases[law] + law + self._laws.happens[launched]
            slots[places, LOW], slots[places, HIGH] = self._laws.begins[at], self._laws.begins[at + 1]
            slots[places, MAY_NEVER] = 0
            self._oracle.follow(places, ARRIVE)

    def _settle(self, outcomes: Outcomes) -> None:
        """Condition on what did not happen in the round before, once in each round."""
        oracle = self._oracle
        if oracle.settled:  # as by `prepare` and `advanced`
            return
        paths = oracle.paths.arrays
        live = np.fromiter(oracle.paths.slot_of.values(), np.int64, len(oracle.paths.slot_of))
        own = (self._rows, self._laws, paths, self._comes, outcomes.planned)
        narrowed = settle_kernel(live, oracle.now, self._limits.max_duration, *own)
        if narrowed.size:
            oracle.follow(narrowed.tolist(), SETTLE)
            rows = paths.slots[narrowed, KEY]
            never = (paths.slots[narrowed, LOW] >= paths.slots[narrowed, HIGH]) & ~self._comes[rows]
            for row in rows[never].tolist():
                oracle.paths.forget(row)

    def _clear(self, now: int, outcomes: Outcomes) -> None:
        """Step 5, and starts: remove what runs too long and then, last submission first, what does not fit."""
        starting = {
            row: int(self._rows.widths[row]) for row in sorted(self._starting.pop(now, ())) if row in self._active
        }
        late = [row for row in self._overdue.pop(now, ()) if row in self._running]
        self._leave(late, now, Ending.EVICTED, outcomes)
        if self.load + sum(starting.values()) > self._limits.capacity:
            counted = self._running | starting
            removed = overload_removals(reversed(self._active), counted, self._limits.capacity, only_counted=False)
            ran = [row for row in removed if row in self._running]
            self._leave([row for row in removed if row not in self._running], now, Ending.CANCELLED, outcomes)
            self._leave(ran, now, Ending.EVICTED, outcomes)
        started = [row for row in starting if row in self._active]
        if started:
            outcomes.starts[started] = now
            self._running.update((row, starting[row]) for row in started)
            self.load += sum(starting[row] for row in started)
            self._overdue[now + self._limits.max_duration].extend(started)
            for row, runs in zip(started, self._rows.durations[started].tolist(), strict=True):
                self._ending[now + runs - 1].append(row)

    def _complete(self, now: int, outcomes: Outcomes) -> None:
        """Complete and charge the runs whose last round this is."""
        due = [row for row in self._ending.pop(now, ()) if row in self._running]
        if due:
            outcomes.payments[due] = self._prices[due]
            self._leave(due, now, Ending.COMPLETED, outcomes)

    def _leave(self, rows: list[int], now: int, ending: Ending, outcomes: Outcomes) -> None:
        """Take jobs out of the market, and off the paths that still have them."""
        if not rows:
            return
        outcomes.left[rows], outcomes.endings[rows] = now, ending
        for row in rows:
            del self._active[row]
            self.load -= self._running.pop(row, 0)
        slot_of = self._oracle.paths.slot_of
        followed = [row for row in rows if row in slot_of]  # the others could not run any more
        for row, past in zip(followed, self._are_past(followed), strict=True):
            self._oracle.leave(row, past=past)

    def _are_past(self, rows: list[int]) -> list[bool]:
        """Tell of each job whether all that is still possible ends before the oracle's round, `ResidualJob.is_past`."""
        if not rows:
            return []
        paths, slot_of = self._oracle.paths.arrays, self._oracle.paths.slot_of
        known = paths.slots[[slot_of[row] for row in rows]]
        highest = np.maximum(known[:, OFFSET] + known[:, HIGH] - 1, 0)
        possible = self._comes[rows] & (known[:, LOW] < known[:, HIGH])
        past: list[bool] = (possible & (paths.points[1, highest] < self._oracle.now)).tolist()
        return past


def _spans(points: NDArray[np.int64], durations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shortest and the longest duration of each law, shape (n_laws, 2)."""
    if points.size == 1:
        return np.zeros((0, 2), np.int64)
    ends = [each.reduceat(durations, points[:-1]) for each in (np.minimum, np.maximum)]
    return np.ascontiguousarray(np.stack(ends, axis=1))
