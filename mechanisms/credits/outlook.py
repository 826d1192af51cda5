"""What a job could expect if it were submitted now: the cost of regular nodes to its owner, and when it would start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outlook:
    """The outlook of a job under credits; nothing of it is binding but the bound on starts.

    Parameters
    ----------
    cost : float
        Credits that it is expected to take as a regular job: nodes, announced mean rounds, and what jobs really took
        of what they announced.
    purse, needed : float
        Credits that its owner holds, and those that the owner's regular jobs still need.
    late : int
        The round from which on it counts as late, and can become regular.
    important, threshold : float
        Its importance, and what makes a job of its owner regular now.
    bound : int or None
        Once regular it starts within so many rounds, not counting those in which its owner cannot pay one; None: it is
        too wide for a bound.
    regular_within, free_within : int or None
        Rounds within which 95 % of jobs like it started so far; None: not known.
    taken : float or None
        The part of all free runs that lost their nodes; None: there were none.
    """

    cost: float
    purse: float
    needed: float
    late: int
    important: float
    threshold: float
    bound: int | None
    regular_within: int | None
    free_within: int | None
    taken: float | None

    @property
    def covered(self) -> bool:
        """Whether the purse covers it now."""
        return self.purse - self.needed >= self.cost

    @property
    def chosen(self) -> bool:
        """Whether it is among the jobs that would become regular now."""
        return self.covered and self.important >= self.threshold
