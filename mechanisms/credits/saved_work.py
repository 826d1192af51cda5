"""What a job that saves its work has saved, and the law of what is left, as of `marketsched.mechanisms.offers`.

Rounds count from the beginning of the work, over all its runs. Of work of which S rounds are saved and which did not
end in a longest stretch of y rounds, the law is that of d - S given d > y; of a law that such a job proves wrong, any
round may be the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.law import DurationLaw


@dataclass(slots=True)
class SavedWork:
    """The work of a job, of law ``law``, that is saved after every so many rounds.

    Examples
    --------
    >>> import numpy as np
    >>> work = SavedWork(2, DurationLaw.of(np.array([2, 6, 8]), np.array([0.5, 0.25, 0.25])))
    >>> work.keep(5), work.shortest_rest, work.mean_rest
    (4, 2, 3.0)
    """

    every: int
    law: DurationLaw
    saved: int = 0
    longest: int = 0  # y

    @classmethod
    def of(cls, x: WaitingJob) -> SavedWork:
        """Return the work of a job with checkpoints that has arrived."""
        shortest, longest = x.announced
        return cls(x.checkpoint, DurationLaw(np.array([shortest]), np.ones(1)) if shortest == longest else x.law)

    def keep(self, rounds: int) -> int:
        """Note a run of so many rounds that was taken back; return how many of them are saved."""
        self.longest = max(self.longest, self.saved + rounds)
        kept = rounds // self.every * self.every
        self.saved += kept
        return kept

    @property
    def shortest_rest(self) -> int:
        """The fewest rounds that can be left."""
        longer = self.law.durations[self.law.durations > self.longest]
        return int(longer[0]) - self.saved if longer.size else 1

    @property
    def mean_rest(self) -> float:
        """The mean of the rounds that are left."""
        longer = self.law.durations > self.longest
        rest = DurationLaw.of(self.law.durations[longer], self.law.weights[longer])
        return rest.mean - self.saved if rest.durations.size else 1.0


def keep(work: SavedWork | None, job: NDArray[np.void], limit: int, rounds: int) -> int:
    """Note a run that was taken back in the row of its job (`present.JOB`); return how many of its rounds are saved.

    ``work`` is None of a job without checkpoints; ``limit`` is its last completion worth anything.
    """
    if work is None:
        return 0
    kept = work.keep(rounds)
    if work.saved:
        job["rest"], job["last_start"] = work.mean_rest, limit - work.shortest_rest
    return kept
