"""The menu of a job of hidden duration at its arrival, kept for inspection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.offers.announced import Report, announced_values
from marketsched.mechanisms.offers.service import PATIENCE
from marketsched.mechanisms.offers.waits import expected_waits


@dataclass(frozen=True, slots=True, eq=False)
class TwoOffersMenu:
    """Both offers, for any report: rates, odds, and the calendars that waits are read from.

    It does not depend on the job's report.
    """

    now: int  # the round
    rates: tuple[float, float]  # spare and regular, credits per node and round used
    odds: NDArray[np.float64]  # (2, 12, 2): per offer and cell, completed in time and left
    free: NDArray[np.int64]  # (2, AHEAD): free nodes ahead, for a spare and for a regular job
    runs: NDArray[np.int64]  # (n, 3): nodes, rounds run and rounds to run of spare runs

    def waits(self, width: int, mean: float, usual_rounds: float) -> tuple[int, int]:
        """Return the expected waits of a job as spare and as regular job, rounds."""
        return expected_waits(self.free, self.runs, width, mean, PATIENCE * width * usual_rounds)

    def announced(self, report: Report, usual_rounds: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return what spare and regular are worth to a report, and its chances, as `announced_values`."""
        waits = self.waits(report.width, report.mean, usual_rounds)
        return announced_values(self.odds, waits, self.rates, report, self.now)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TwoOffersMenu):
            return NotImplemented
        mine, its = ((x.now, x.rates) for x in (self, other))
        arrays = ((self.odds, other.odds), (self.free, other.free), (self.runs, other.runs))
        return mine == its and all(np.array_equal(*pair) for pair in arrays)
