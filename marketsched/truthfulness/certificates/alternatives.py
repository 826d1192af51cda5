r"""All outcomes of a report at one moment: a declared concurrency, and a start for each case.

A report to a menu mechanism selects a pair (c', launch plan L') and nothing else; it is then run
with the true law and value (Section 4):

.. math:: u(L; c') = \sum_{a,d,o} P(a,d,o)\,(1 - f(s,c',d))\,(V(s+d) - \pi(s,c',d)), \quad s = L(a,o)

The sum splits over the cases (a, o), so the best response over all misreports is a finite maximum:
for each c' the best start of each case. Declaring c' < c yields nothing: at best like not running.

A start is *open* if some report is launched there: some duration d' is on sale, ends within the
horizon and while a report may still claim value, and has :math:`\tilde f < 1` and :math:`\pi < V_{max}`.
The claim is about d', not the true duration, so a start that is not on sale to the truth may be open:
the real run is then charged by the formula of the prices. Plans made of open starts are a superset of
what reports can select together, since all cases of a report share one value curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Law
from marketsched.mechanisms.limits import last_useful_completion
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.mechanisms.posted.menu import announced_failures, announced_prices
from marketsched.mechanisms.sow import StatementOfWork


class Alternatives(NamedTuple):
    """All starts of all cases for every declared concurrency worth looking at.

    Column ``n_starts`` of every array over starts stands for "not run", which is always open and
    yields 0. ``concurrencies[0]`` is the true one. Larger ones are left out where no start of theirs
    can beat the true one, whatever the failure probabilities (`_worth_declaring`).
    """

    truth: StatementOfWork
    concurrencies: NDArray[np.int64]  # (n_widths,), nodes
    first_start: int  # round of column 0
    durations: NDArray[np.int64]  # (n_durations,), distinct, rising
    lengths: NDArray[np.int64]  # (n_points,), index into durations
    net: NDArray[np.float64]  # (n_widths, n_points, n_starts), V - price, credits; 0 if it ends after T
    open: NDArray[np.bool_]  # (n_widths, n_cases, n_starts + 1)
    estimates: NDArray[np.float64]  # (n_widths, n_durations, n_starts), the mechanism's, not thresholded
    chosen: NDArray[np.int64]  # (n_cases,), column of the truthful plan

    @property
    def law(self) -> Law:
        """The true law."""
        return self.truth.law

    @property
    def n_starts(self) -> int:
        """How many starts there are, beside not running."""
        return int(self.net.shape[2])

    @property
    def anchors(self) -> NDArray[np.int64]:
        """The truthful start of each point as a column (-1: not run), shape (n_points,)."""
        columns = np.repeat(self.chosen, np.diff(self.law.offsets))
        return np.where(columns < self.n_starts, columns, -1)

    def by_case(self, of_points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the points of each case and add the column of not running: (n_widths, n_cases, n_starts + 1)."""
        sums = np.add.reduceat(of_points, self.law.offsets[:-1], axis=1)
        return np.concatenate([sums, np.zeros((*sums.shape[:2], 1))], axis=2)

    def utilities(self, failures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the utility of each case with each start, shape (n_widths, n_cases, n_starts + 1).

        Credits, weighted with the probability of the case, given ``failures`` of every launch, (n_widths, n_durations,
        n_starts).
        """
        runs = 1.0 - failures[:, self.lengths, :]
        return self.by_case(self.law.probabilities[:, np.newaxis] * runs * self.net)

    def truthful(self, utilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the utility of the truthful plan in each case, shape (n_cases,)."""
        return np.asarray(utilities[0, np.arange(self.chosen.size), self.chosen])

    def columns_of(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the columns of planned starts (rounds; -1: not run); above ``n_starts``: too late for any value."""
        late = starts - self.first_start
        return np.where(starts < 0, self.n_starts, np.where(late < self.n_starts, late, self.n_starts + 1))


def alternatives(view: Inspection, truth: StatementOfWork) -> Alternatives:
    """Lay out the outcomes of all reports of the owner of ``truth`` at this moment."""
    law, limits = truth.law, view.limits
    first = int(law.arrivals[0])
    last_value = last_useful_completion(truth, limits.max_delay, limits.horizon)
    # A later start completes when nothing is worth anything: at best like not running.
    n_starts = max(0, last_value - int(law.durations.min()) - first + 1)
    widths = np.arange(truth.concurrency, limits.max_concurrency + 1)
    cells = float(widths.size) * n_starts * (2 * np.unique(law.durations).size + 3 * law.durations.size)
    check_memory(
        f"the launches of {widths.size} concurrencies, {law.durations.size} outcomes and {n_starts} starts",
        8 * cells,
        "a smaller max_concurrency or max_delay",
    )
    starts = first + np.arange(n_starts)
    durations, lengths = np.unique(law.durations, return_inverse=True)
    lengths = lengths.ravel()
    values = truth.value.table(first, n_starts + int(durations[-1]))
    values[max(0, last_value + 1 - first) :] = 0.0
    worth = values[np.add.outer(durations, np.arange(n_starts))]
    too_late = np.add.outer(durations, starts) - 1 > limits.horizon
    ready = _with_column(starts >= law.group_arrivals[:, np.newaxis])

    menus = [_menu(view, truth, int(c), starts) for c in widths]
    charged = np.stack([_charged(view, menu, starts, durations) for menu in menus])
    net = np.where(too_late, 0.0, worth - charged)[:, lengths, :]
    launched = np.stack([menu.priced for menu in menus])[:, np.newaxis, :] & ready[:, :-1]
    kept = _worth_declaring(law, net, launched)
    estimates = {int(c): _estimates(view, int(c), first, n_starts) for c in widths[kept]}
    reached = np.stack([_reached(view, menus[c - widths[0]], table, first) for c, table in estimates.items()])
    for menu in (menus[w] for w in np.flatnonzero(~kept)):
        if (menu.priced & ~reached[0]).any():  # only where fewer nodes are worse placed than more
            reached[0] |= _reached(view, menu, _estimates(view, menu.concurrency, first, n_starts), first)
    chosen = view.plan(truth).starts
    columns = np.where(chosen >= 0, chosen - first, n_starts)
    is_open = _with_column(reached)[:, np.newaxis, :] & ready
    is_open[0, np.arange(columns.size), columns] = True
    return Alternatives(
        truth,
        widths[kept],
        first,
        durations,
        lengths,
        np.ascontiguousarray(net[kept]),
        is_open,
        np.stack([table[:, durations - 1].T for table in estimates.values()]),
        columns,
    )


class _Menu(NamedTuple):
    """The prices one concurrency meets; rows are starts, columns durations 1, 2, ..."""

    concurrency: int
    prices: NDArray[np.float64]  # credits
    longest: NDArray[np.int64]  # longest duration on sale per start
    affordable: NDArray[np.bool_]  # a report may claim a value above the price, and complete in time
    priced: NDArray[np.bool_]  # (n_starts,): some duration is


def _menu(view: Inspection, truth: StatementOfWork, concurrency: int, starts: NDArray[np.int64]) -> _Menu:
    limits = view.limits
    prices, longest = view.prices(concurrency, int(truth.law.arrivals[0]), starts.size, limits.max_duration)
    completions = np.add.outer(starts, np.arange(1, limits.max_duration + 1))
    claimable = completions <= min(truth.birth + limits.max_delay - 1, limits.horizon + 1)
    affordable = claimable & (announced_prices(prices, longest) < view.max_value)
    return _Menu(concurrency, prices, longest, affordable, np.asarray(affordable.any(axis=1)))


def _estimates(view: Inspection, concurrency: int, first: int, n_starts: int) -> NDArray[np.float64]:
    """Return the mechanism's estimates from the first start on, shape (n_starts, max_duration)."""
    ahead = first - view.now
    return view.estimates(concurrency, ahead + n_starts, view.limits.max_duration)[ahead:]


def _reached(view: Inspection, menu: _Menu, estimates: NDArray[np.float64], first: int) -> NDArray[np.bool_]:
    """Return at which starts some report is launched, shape (n_starts,)."""
    announced = announced_failures(estimates, view.threshold, first, view.limits.horizon)
    return np.asarray((menu.affordable & (announced < 1.0)).any(axis=1))


def _charged(
    view: Inspection, menu: _Menu, starts: NDArray[np.int64], durations: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return what runs are charged, (n_durations, n_starts): the menu's price, or the quote's where it has none."""
    charged = menu.prices[:, durations - 1].T.copy()
    without = ~np.isfinite(charged)
    for k, i in np.argwhere(without & menu.priced).tolist():
        charged[k, i] = view.charge(menu.concurrency, int(starts[i]), int(durations[k]))
    charged[without & ~menu.priced] = view.max_value  # never launched: any number will do
    return charged


def _with_column(of_starts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Add the column of not running, which is always possible."""
    return np.concatenate([of_starts, np.ones((of_starts.shape[0], 1), dtype=np.bool_)], axis=1)


def _worth_declaring(law: Law, net: NDArray[np.float64], launched: NDArray[np.bool_]) -> NDArray[np.bool_]:
    r"""Return which concurrencies may beat the true one, shape (n_widths,).

    More nodes fail at least as often, :math:`f' \ge f`. So a launch of c' brings no more than the
    same launch of c where :math:`0 \le V-\pi` and :math:`\pi' \ge \pi` for all durations of a case, and
    no more than not running where :math:`V-\pi' \le 0` for all of them. If one of the two holds for
    all that may be ``launched``, (n_widths, n_cases, n_starts), c' is left out.
    """
    kept = np.ones(net.shape[0], dtype=np.bool_)
    like_truth = _all_of_case(law, (net[1:] <= net[0]) & (net[0] >= 0))
    like_nothing = _all_of_case(law, net[1:] <= 0)
    kept[1:] = (launched[1:] & ~like_truth & ~like_nothing).any(axis=(1, 2))
    return kept


def _all_of_case(law: Law, of_points: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether something holds for every possible point of each case, (..., n_cases, n_starts)."""
    impossible = (law.probabilities == 0)[:, np.newaxis]
    return np.logical_and.reduceat(of_points | impossible, law.offsets[:-1], axis=-2)
