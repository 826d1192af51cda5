"""What a job could expect if it were submitted now: the cost of regular nodes to its owner, and when it would start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outlook:
    """The outlook of a job under credits; nothing of it is binding but the bound on starts."""

    cost: float  # credits that it is expected to take as a regular job, by the share really taken of announced work
    purse: float  # of its owner, credits
    needed: float  # credits that the owner's regular jobs still need
    late: int  # the round from which on it counts as late, and can become regular
    important: float
    threshold: float  # of importance: what makes a job of its owner regular now
    bound: int | None  # once regular, rounds to its start but those its owner cannot pay; None: too wide for a bound
    regular_within: int | None  # rounds within which 95 % of jobs like it started so far; None: not known
    free_within: int | None
    taken: float | None  # the part of all free runs that lost their nodes; None: there were none

    @property
    def covered(self) -> bool:
        """Whether the purse covers it now."""
        return self.purse - self.needed >= self.cost

    @property
    def chosen(self) -> bool:
        """Whether it is among the jobs that would become regular now."""
        return self.covered and self.important >= self.threshold
