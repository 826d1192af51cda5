"""Whole markets of a rule that takes runs back: what its clearing moves, for jobs that are rows of columns."""

from __future__ import annotations

from typing import Any

from marketsched.mechanisms.auctions.arrival_market import WaitingJob
from marketsched.mechanisms.auctions.rows_play import RowsPlay
from marketsched.mechanisms.columns import NEVER, Ending, Move, Outcomes
from marketsched.mechanisms.mechanism import EventKind

Moved = tuple[WaitingJob, EventKind]

_ENDING = {EventKind.DROP: Ending.DROPPED, EventKind.EVICT: Ending.EVICTED}


class MovesPlay(RowsPlay):
    """A market between two rounds, whose `moves` clear one, and whose `saved` says what a job's earlier runs kept."""

    _market: Any  # has both

    def _clear(self, now: int, outcomes: Outcomes) -> None:
        for x, kind in self._market.moves():
            row = x.order
            if kind is EventKind.START:
                outcomes.starts[row] = now
                outcomes.moves.note(now, Move.STARTED, row)
                self._ending[self._end(x)].append(x)
            elif kind is EventKind.REQUEUE:
                outcomes.starts[row] = NEVER
                outcomes.moves.note(now, Move.TAKEN_BACK, row)
            else:
                outcomes.leave(row, now, _ENDING[kind])
        self._ending[now + 1] = [x for x in self._ending[now + 1] if self._end(x) == now + 1]  # no run of before

    def _end(self, x: WaitingJob) -> int:
        """Return the round after the last one of a run; another one, if the job does not run."""
        return int(x.start + self._jobs.durations[x.order] - self._market.saved(x))
