"""What a job that saves its work has saved, and the law of what is left, as of `marketsched.mechanisms.offers`.

Rounds count from the beginning of the work, over all its runs. Of work of which S rounds are saved and which did not
end in a longest stretch of y rounds, the law is that of d - S given d > y; of a law that such a job proves wrong, any
round may be the last.
"""

from __future__ import annotations

from dataclasses import dataclass

from marketsched.mechanisms.law import DurationLaw


@dataclass(slots=True)
class SavedWork:
    """The work of a job with checkpoints.

    Parameters
    ----------
    every : int
        Rounds after which it is saved, each time.
    law : DurationLaw
        Of all its work.

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
