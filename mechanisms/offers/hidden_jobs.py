"""The jobs of hidden duration in a market of two offers: who is present, what each took, and what is learnt of them.

Each step of a round (see `two_offers`) is a method here. The protocol, which knows jobs by name, and whole markets,
which know them by row of their columns, both take these steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.offers.announced import Report, cell_of, usual_length
from marketsched.mechanisms.offers.departures import UNKNOWN, Learnt
from marketsched.mechanisms.offers.menu import Entries, TwoOffersMenu
from marketsched.mechanisms.offers.patience import ONE, posted
from marketsched.mechanisms.offers.present import DONE, HERE, REGULAR, SPARE, Present, band_of, group_of
from marketsched.mechanisms.offers.rates import KEPT, Rates
from marketsched.mechanisms.offers.service import APART, serve
from marketsched.mechanisms.offers.waits import AHEAD, Calendars
from marketsched.mechanisms.unit import Unit

BOTH = (0.5, 0.9)  # part and factor of the threshold that rates are made of
REGULAR_ALONE = (0.7, 0.65)
NEVER_LEAVES = 2**62  # a round


class Left(NamedTuple):
    """A job that leaves at the beginning of a round without having been completed."""

    row: int  # of `Present`
    start: int  # first round of the run that is stopped; 0: it waited
    ran: bool  # whether it ran at any time


class Served(NamedTuple):
    """What a round did to runs, in the order in which it happened; first those that were taken back."""

    taken: list[tuple[int, int]]  # row, and first round of the run
    started: list[int]  # rows


class HiddenJobs:
    """The jobs of hidden duration that are present, by row, and the statistics of those that have left.

    ``spare``: spare nodes are offered, and patience; else regular nodes in order of arrival alone. ``requeue``: a run
    that is taken back leaves its job in the queue. ``counts_saved``: limits of evictions and expected waits count what
    stated checkpoints save. ``figures``, shape (2, 2, 3), has per offer, of jobs and of their reported values: those
    that have left, times their announced chances, and those completed in time.
    """

    def __init__(
        self,
        capacity: int,
        max_duration: int,
        late_odds: float,
        unit: Unit,
        *,
        spare: bool,
        requeue: bool,
        counts_saved: bool = False,
    ) -> None:
        self.present, self.learnt = Present(), Learnt(late_odds, UNKNOWN * unit.rounds)
        self.rates = Rates(capacity, *(BOTH if spare else REGULAR_ALONE), unit.kept(KEPT))
        self.patience, self.unit = posted(unit) if spare else ONE, unit
        self.held = [0, 0]
        self.figures = np.zeros((2, 2, 3))
        self.lost = [0, 0]
        self.gone: list[int] = []
        self._capacity, self._max_duration = capacity, max_duration
        self._spare, self._requeue, self._counts_saved = spare, requeue, counts_saved and requeue
        self._running = 0  # jobs
        self._moved = False  # whether a run was started or taken back in the last round
        self._calendars = Calendars(unit.whole(AHEAD))
        self._menu: TwoOffersMenu | None = None  # of the next arrival; None: somebody has come or gone since
        self._reports: dict[int, Report] = {}  # by row
        self._chances: dict[int, float] = {}
        self._kept: dict[int, tuple[int, int]] = {}  # rounds saved, and the most that it worked; by row

    def begin_round(self, now: int) -> list[Left]:
        """Remove who can bring nothing any more, learn from all that have left, and post the rates of the round."""
        self.gone = self.learnt.departed(self.present, now).tolist()
        left, jobs = [], self.present.jobs
        for row in self.gone:
            offer, state, start = int(jobs["offer"][row]), jobs["state"][row], int(jobs["start"][row])
            in_time = state == DONE and jobs["in_time"][row]
            figures = np.array([1.0, self._chances.pop(row), in_time])
            self.figures[offer] += figures, self._reports[row].highest * figures
            if state == HERE:
                left.append(Left(row, start, bool(start or jobs["ran"][row])))
                if start:
                    self._end(offer, self._reports[row].width)
            del self._reports[row]
            self._kept.pop(row, None)
        self.present.give_back(self.gone)
        self.rates.post(now, self.learnt)
        self._menu = None
        return left

    def counts(self, width: int) -> None:
        """Count a job of this width that has arrived; it enters rates from the next round on."""
        usual = float(self.learnt.usual_rounds[band_of(width, self._capacity)])
        self.rates.arrives(width, usual, self.learnt.kappa)

    def menu(self, now: int, unbooked: Callable[[int], NDArray[np.int64] | int]) -> TwoOffersMenu:
        """Return what is offered to the next arrival of round ``now``; later rounds change it.

        ``unbooked(now)`` returns the nodes of coming rounds that nobody else has booked, shape (ahead,), or of each.
        """
        if self._menu is None:
            learnt, calendars = self.learnt, self._calendars
            calendars.fill(self.present, now, unbooked(now), learnt.usual_rounds)
            self._menu = TwoOffersMenu(
                now, self._capacity, self.rates.posted, learnt.usual, learnt.usual_rounds, learnt.odds, learnt.grouped,
                calendars.free, calendars.runs, calendars.line, self.patience, self.unit,
            )  # fmt: skip
        return self._menu

    def first_offer(self, restarts: bool) -> int:
        """Return the class from which on a job may choose, by whether it can begin anew."""
        return SPARE if self._spare and restarts else REGULAR

    def take(self, report: Report, menu: TwoOffersMenu, entries: Entries, chosen: tuple[int, int]) -> int:
        """Let a job take an entry of a menu, class and column; return its row."""
        offer, patience, now = chosen[0], int(entries.patience[chosen[1]]), menu.now
        rate, length, width = float(entries.rates[chosen]), usual_length(report.mean), report.width
        row = self.present.add(
            offer, width, band_of(width, self._capacity), rate=rate, latest=now + patience,
            last_start=report.last_start(rate), every=report.checkpoint if self._counts_saved else 0,
            cell=cell_of(int(entries.waits[chosen]), min(report.last - now, patience + length), length),
            group=group_of(width, self._capacity, report.longest / self.unit.rounds), mean=report.mean,
            density=report.highest / (width * report.mean),
        )  # fmt: skip
        self._reports[row], self._chances[row] = report, float(entries.chances[chosen])
        self._menu = None
        return row

    def serve(self, now: int, idle: int, room: int) -> Served:
        """Take nodes back and start runs; ``idle`` and ``room`` as of `service.serve`."""
        self._menu, self._moved = None, False
        if self.present.n == self._running and idle >= 0:  # nobody waits
            return Served([], [])
        jobs, reports = self.present.jobs, self._reports
        starts = jobs["start"].copy()
        usual, apart = self.learnt.usual_rounds, self.unit.whole(APART)
        taken, started = serve(self.present, now, idle, room, usual, requeue=self._requeue, apart=apart)
        back = []
        for row in taken.tolist():
            start, width = int(starts[row]), reports[row].width
            self.lost[0] += 1
            self.lost[1] += width * (now - start - self._keep(row, now - start))
            self._end(int(jobs["offer"][row]), width)
            back.append((row, start))
        begun = started.tolist()
        for row in begun:
            self.held[int(jobs["offer"][row])] += reports[row].width
            self._running += 1
            jobs["stop"][row] = self._stop(now, float(jobs["rate"][row]), reports[row])
        self._moved = bool(back or begun)
        return Served(back, begun)

    def unchanged_until(self, now: int) -> int:
        """Return a round before which no run moves and no job leaves if none comes or ends (`ArrivalMarket`).

        What spare runs would lose only grows, but for checkpoints that count.
        """
        jobs = self.present.jobs[self.present.turn[: self.present.n]]
        waits = jobs["start"] == 0
        if self._moved or (jobs["state"] != HERE).any() or (self._counts_saved and waits.any()):
            return now
        return int(np.where(waits, jobs["last_start"] + 1, jobs["stop"]).min(initial=NEVER_LEAVES))

    def saved(self, row: int) -> int:
        """Return how many rounds of a job's work are saved, by its statement."""
        return self._kept.get(row, (0, 0))[0]

    def _keep(self, row: int, rounds: int) -> int:
        """Note what is saved of a run of so many rounds that was taken back; return how many rounds."""
        job, report = self.present.jobs[row], self._reports[row]
        if not report.checkpoint or not self._requeue:
            return 0
        before, most = self._kept.get(row, (0, 0))
        saved, worked = before + report.saved(rounds), max(most, before + rounds)
        self._kept[row] = saved, worked
        job["saved"] = saved if self._counts_saved else 0
        job["last_start"] = min(int(job["latest"]), report.last_start(float(job["rate"]), saved, worked))
        return saved - before

    def complete(self, row: int, now: int) -> float:
        """Note that a job has run its last round in ``now - 1``; return its payment, for the run that ends here."""
        job, report = self.present.jobs[row], self._reports[row]
        used = now - int(job["start"])
        job["state"], job["used"], job["in_time"] = DONE, self.saved(row) + used, now <= report.last
        self._end(int(job["offer"]), report.width)
        return float(job["rate"]) * report.width * used

    def _end(self, offer: int, width: int) -> None:
        """Free the nodes of a run."""
        self.held[offer] -= width
        self._running -= 1

    def _stop(self, start: int, rate: float, report: Report) -> int:
        """Return the round in which a run is stopped."""
        return report.stop(start, rate, self._max_duration)
