"""Jobs played by a scheduler of this package as a real Slurm plays them: until all of them are over."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms.mechanism import EventKind, Mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue

HORIZON = 100_000  # rounds; a play ends with its jobs


def simple_job(name: str, owner: str, arrival: int, nodes: int, rounds: int, limit: int = 0) -> Job:
    """Return a job that is ready at ``arrival``, takes so many rounds, and asks for ``limit`` (0: for these)."""
    law = [arrival], [limit or rounds], [1.0]
    truth = StatementOfWork.from_arrays(arrival, nodes, DeadlineValue(1.0, HORIZON - 1), *law, revealed=False)
    return Job(name, owner, truth, arrival, rounds, None)


def played(market: Mechanism, jobs: Sequence[Job], until: Collection[str] = ()) -> dict[str, tuple[int, int]]:
    """Return first round, and first round after the last, of each job that starts in a market under the truth.

    Parameters
    ----------
    market : Mechanism
        Fresh.
    jobs : sequence of Job
        In order of submission.
    until : collection of str
        The play ends once these have started, the others being left where they are; empty: once all have left.
    """
    loop, owners = MarketLoop(market), _Until(jobs, frozenset(until))
    found: dict[str, tuple[int, int]] = {}
    for event in play(loop, owners, market.horizon):
        name = str(event.job)
        if event.kind is EventKind.START:
            found[name] = (event.round, HORIZON)
        elif event.kind.leaves and name in found:
            found[name] = (found[name][0], event.round if event.completion is None else event.completion)
    return found


class _Until(TruthfulOwners):
    """Owners of these jobs; the market is over once all have left it, or some have started."""

    def __init__(self, jobs: Sequence[Job], until: frozenset[str]) -> None:
        super().__init__(jobs)
        self._last = max((job.truth.birth for job in jobs), default=0)
        self._until = set(until)
        self._all = not until

    def hear(self, events: Sequence[Any], market: MarketLoop) -> None:
        """Note who has started, and whether a job is left."""
        self._until -= {str(event.job) for event in events if event.kind is EventKind.START}
        none_left = market.now > self._last and not market.entries
        self.over = none_left or not (self._all or self._until)
