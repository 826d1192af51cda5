"""The menu of a job of hidden duration at its arrival: both classes, with every patience that is posted."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.offers.announced import Report, announced_values, usual_length
from marketsched.mechanisms.offers.departures import shares_of
from marketsched.mechanisms.offers.patience import offered, posted_rates
from marketsched.mechanisms.offers.present import band_of, group_of
from marketsched.mechanisms.offers.service import MOST_LOST
from marketsched.mechanisms.offers.waits import expected_waits
from marketsched.mechanisms.unit import Unit


class Entries(NamedTuple):
    """What a menu holds for one report: row 0 of each array is spare, row 1 regular; a column for each patience."""

    patience: NDArray[np.int64]  # (n,), rounds
    rates: NDArray[np.float64]  # (2, n), credits per node and round used
    waits: NDArray[np.int64]  # (2, n), expected, rounds
    values: NDArray[np.float64]  # (2, n), what the entry is worth, credits; 0: it is not offered
    chances: NDArray[np.float64]  # (2, n), to be completed while that is worth anything; 0: it is not offered


def announced(
    shares: NDArray[np.float64],
    patience: NDArray[np.int64],
    rates: NDArray[np.float64],
    waits: NDArray[np.int64],
    report: Report,
    now: int,
) -> Entries:
    """Return the entries with these columns as they are announced to a report; those not offered are worth 0.

    Offered are those of the patience that the report states; of a report without one those in which it could end in
    time.
    """
    stated = report.patience >= 0
    n_offered = offered(patience, report.patience if stated else report.last - now - usual_length(report.mean))
    values, chances = announced_values(shares, waits, rates, patience, n_offered, report, now)
    if stated:
        values[:, : n_offered - 1] = chances[:, : n_offered - 1] = 0.0
    return Entries(patience, rates, waits, values, chances)


@dataclass(frozen=True, slots=True, eq=False)
class TwoOffersMenu:
    """All entries, for any report: rates, odds, and the calendars and the queue that waits are read from."""

    now: int  # the round
    capacity: int  # nodes
    rates: tuple[float, float]  # spare and regular, before the price of patience
    usual: float  # announced mean of all that have left, rounds
    usual_rounds: NDArray[np.float64]  # (5,), the same by band of widths
    odds: NDArray[np.float64]  # (2, 12, 2): per class and cell, completed in time and left
    grouped: NDArray[np.float64]  # (2, 9, 12, 2): the same of each group of jobs
    free: NDArray[np.int64]  # (2, ahead), as `Calendars`
    runs: NDArray[np.int64]  # (n, 3)
    line: NDArray[np.int64]  # (m, 5)
    patience: NDArray[np.int64]  # (n,), posted, rounds
    unit: Unit

    def entries(self, report: Report) -> Entries:
        """Return the entries as they are announced to a report, see `announced`."""
        width, group = report.width, group_of(report.width, self.capacity, report.longest / self.unit.rounds)
        most_lost = MOST_LOST * width * float(self.usual_rounds[band_of(width, self.capacity)])
        rates = posted_rates(self.rates, self.patience, self.usual)
        waits = expected_waits(self.free, self.runs, self.line, self.now + self.patience, width, report.mean, most_lost)
        return announced(shares_of(self.odds, self.grouped[:, group]), self.patience, rates, waits, report, self.now)

    @property
    def posted(self) -> list[float]:
        """Every rate that is offered, those of each patience included, credits per node and round."""
        found: list[float] = posted_rates(self.rates, self.patience, self.usual).ravel().tolist()
        return found

    def kept(self) -> TwoOffersMenu:
        """Return a copy that later rounds do not change."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        copies: dict[str, Any] = {name: x.copy() for name, x in own.items() if isinstance(x, np.ndarray)}
        return replace(self, **copies)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TwoOffersMenu):
            return NotImplemented
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return all(np.array_equal(mine, its) for mine, its in pairs)
