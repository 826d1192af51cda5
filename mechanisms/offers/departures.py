r"""Jobs that leave at the beginning of a round, and estimates from them: usual durations, odds, densities of values.

A run is stopped where completing could bring nothing any more; a waiting job leaves when it can make it no more.
Everything that is learnt is learnt here, from jobs that are gone:

* *usual rounds* of each band of widths: the mean :math:`m` that jobs announced, .97 a departure;
* :math:`\kappa`, real over announced node-rounds of completed jobs, .98 a departure;
* *odds*: per offer, twelve cells (see `announced`), each the share of jobs that stood there at their arrival and were
  completed in time, .98 a departure; and the same for each of nine groups of jobs (`present.group_of`), of which the
  share of all is the prior, with the weight of six jobs;
* of the last 300 jobs the density :math:`v = V / (c m)` and the work: :math:`c d` if completed, else
  :math:`c m \kappa`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.present import GROUPS, REGULAR, SPARE, Present

REMEMBERED = 300  # departures that the rates are made of
UNKNOWN = 4.0  # usual quarters of an hour before any job has left
PRIOR = (0.05, 0.6, 0.75, 0.85, 0.9, 0.95)  # odds before any job has left, by x
PRIOR_WEIGHT = 6.0  # departures that the prior counts for
GROUP_WEIGHT = 6.0  # jobs that the odds of all count for in those of a group
FADES = 0.98  # of what is known of odds, at each departure
LATE_ODDS = 0.6  # of a regular job whose expected wait is too long, once `LATE_AFTER` jobs have left
LATE_AFTER = 50  # departures: a job that is let in by mistake can undo much while little else is known


class _Estimates(NamedTuple):
    """What `Learnt` knows, as the kernel changes it."""

    odds: NDArray[np.float64]  # (2, 12, 2), as `Odds.odds`
    grouped: NDArray[np.float64]  # (2, 9, 12, 2), as `Odds.grouped`
    announced: NDArray[np.float64]  # (5, 2), by band of widths: rounds and jobs, both fade
    usual_rounds: NDArray[np.float64]  # (5,), by band of widths
    kappa: NDArray[np.float64]  # (2,), real and announced node-rounds, both fade
    densities: NDArray[np.float64]  # (300,), of the last departures, credits per node-round
    works: NDArray[np.float64]  # (300,), of the same, node-rounds


class Odds:
    """Odds of jobs that stood alike, and the values and works of the last that have left.

    A regular offer whose expected wait is too long has odds ``PRIOR[0]`` at first, and ``late_odds`` from the departure
    `LATE_AFTER` on, before one that took it has left: an offer that seems hopeless is not taken, so that nothing is
    learnt of it. ``odds``, shape (2, 12, 2), has per offer and cell how many were completed in time, and how many left;
    both fade. ``grouped``, shape (2, groups, 12, 2), has the same of each group of jobs, from nothing.
    """

    def __init__(self, groups: int, late_odds: float = LATE_ODDS) -> None:
        shares = np.array([2 * PRIOR, 2 * PRIOR])  # alike for w = 0 and for w > 0
        self._late_odds = late_odds
        self.odds = PRIOR_WEIGHT * np.stack([shares, np.ones_like(shares)], axis=2)
        self.grouped = np.zeros((2, groups, 12, 2))
        self._densities, self._works = np.zeros(REMEMBERED), np.zeros(REMEMBERED)
        self.departures = 0

    @property
    def remembered(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Densities (credits per node-round) and works (node-rounds) of the last departures."""
        n = min(self.departures, REMEMBERED)
        return self._densities[:n], self._works[:n]

    def learn(self, offer: int, group: int, cell: int, *, in_time: bool, density: float, work: float) -> None:
        """Learn from a job that has left."""
        for share in (self.odds[offer, cell], self.grouped[offer, group, cell]):
            share *= FADES
            share += in_time, 1.0
        place = self.departures % REMEMBERED
        self._densities[place], self._works[place] = density, work
        self._counts(1)

    def _counts(self, n_gone: int) -> None:
        """Count jobs that have left."""
        if self.departures < LATE_AFTER <= self.departures + n_gone:
            self._let_late_ones_try()
        self.departures += n_gone

    def _let_late_ones_try(self) -> None:
        """Put ``late_odds`` in place of the prior of regular jobs whose wait is too long; what was seen stays."""
        late = self.odds[1, ::6]  # for w = 0 and for w > 0
        most = 1.0 / (1.0 - FADES)
        prior_left = PRIOR_WEIGHT * (most - late[:, 1]) / (most - PRIOR_WEIGHT)
        late[:, 0] += prior_left * (self._late_odds - PRIOR[0])


class Learnt(Odds):
    """Statistics of jobs that have left; ``unknown`` are the usual rounds before any has."""

    def __init__(self, late_odds: float = LATE_ODDS, unknown: float = UNKNOWN) -> None:
        super().__init__(GROUPS, late_odds)
        self.usual_rounds, self.usual = np.full(5, unknown), unknown
        self._announced = np.zeros((5, 2))  # by band: rounds and jobs
        self._kappa = np.ones(2)  # real and announced node-rounds

    @property
    def kappa(self) -> float:
        """Real over announced node-rounds of completed jobs."""
        return float(self._kappa[0] / self._kappa[1])

    def departed(self, present: Present, now: int) -> NDArray[np.int64]:
        """Learn from all jobs that have left; remove and return their rows: `HERE` are those that leave now."""
        gone = np.empty(present.n, dtype=np.int64)
        estimates = _Estimates(
            self.odds, self.grouped, self._announced, self.usual_rounds, self._kappa, self._densities, self._works
        )
        present.n, n_gone = _departed_kernel(present.in_turn, now, estimates, self.departures, gone)
        self._counts(n_gone)
        if n_gone:
            rounds, n_jobs = self._announced.sum(axis=0).tolist()
            self.usual = rounds / n_jobs
        return gone[:n_gone]


def shares_of(odds: NDArray[np.float64], grouped: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the odds of a group's jobs, shape (2, 12), from those of all and its own, both of shape (2, 12, 2)."""
    shares = np.empty((2, 12))
    _shares_kernel(odds, grouped, GROUP_WEIGHT, shares)
    return shares


def announced_and_happened(rates: tuple[float, float], figures: NDArray[np.float64]) -> dict[str, float]:
    """Return the rates (spare, regular), and of each class how many have left, with odds as announced and observed."""
    found = dict[str, float]()
    for k, name in ((REGULAR, "regular"), (SPARE, "spare")):
        found |= {f"{name}_rate": rates[k], f"{name}_jobs": float(figures[k, 0, 0])}
        for of, (left, announced, happened) in zip(("", "_by_value"), figures[k].tolist(), strict=True):
            shares = (announced / left, happened / left) if left else (0.0, 0.0)
            found |= dict(zip((f"{name}_announced{of}", f"{name}_happened{of}"), shares, strict=True))
    return found


@njit(cache=True)
def _shares_kernel(odds, grouped, weight, shares):  # type: ignore[no-untyped-def]
    """Fill the odds of both offers."""
    for k in range(2):
        for cell in range(12):
            of_all = odds[k, cell, 0] / odds[k, cell, 1]
            shares[k, cell] = (grouped[k, cell, 0] + weight * of_all) / (grouped[k, cell, 1] + weight)


@njit(cache=True)
def _departed_kernel(present, now, estimates, departures, gone):  # type: ignore[no-untyped-def]
    """Keep in ``turn`` who stays, write into ``gone`` who does not. Returns how many of each."""
    jobs, turn = present
    odds, grouped, announced, usual_rounds, kappa, densities, works = estimates
    start, stop, last_start, state = jobs["start"], jobs["stop"], jobs["last_start"], jobs["state"]
    offer, cell, width, band, mean = jobs["offer"], jobs["cell"], jobs["width"], jobs["band"], jobs["mean"]
    used, in_time, density, group = jobs["used"], jobs["in_time"], jobs["density"], jobs["group"]
    stay, n_gone = 0, 0
    for i in range(turn.size):
        j = turn[i]
        runs = start[j] > 0
        if state[j] == 0 and ((runs and now < stop[j]) or (not runs and now <= last_start[j])):
            turn[stay] = j
            stay += 1
            continue
        done = state[j] == 1
        for share in (odds[offer[j], cell[j]], grouped[offer[j], group[j], cell[j]]):
            share[0] = FADES * share[0] + (1.0 if done and in_time[j] else 0.0)
            share[1] = FADES * share[1] + 1.0
        usual = announced[band[j]]
        usual[0] = 0.97 * usual[0] + mean[j]
        usual[1] = 0.97 * usual[1] + 1.0
        if done:
            kappa[0] = 0.98 * kappa[0] + width[j] * used[j]
            kappa[1] = 0.98 * kappa[1] + width[j] * mean[j]
        place = (departures + n_gone) % densities.size
        densities[place] = density[j]
        works[place] = width[j] * (used[j] if done else mean[j] * kappa[0] / kappa[1])
        gone[n_gone] = j
        n_gone += 1
    if n_gone:
        overall = announced[:, 0].sum() / announced[:, 1].sum()
        for b in range(usual_rounds.size):
            usual_rounds[b] = announced[b, 0] / announced[b, 1] if announced[b, 1] > 0.5 else overall
    return stay, n_gone
