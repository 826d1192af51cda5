"""The base of schedulers with a queue: announced wall times, stops behind them, and hopeless jobs.

The wall time of a job is the longest duration that its report has for its arrival (the duration itself where
signals are durations); it is taken as announced. There are no payments.
"""

from __future__ import annotations

from typing import Any, ClassVar

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket, WaitingJob
from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Natural, legal
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.schedulers.backfilling import QueuePlay
from marketsched.mechanisms.schedulers.queue_orders import Line
from marketsched.mechanisms.signals import announced_durations


class QueueScheduler(ArrivalMarket):
    """A scheduler of jobs by their wall times, at no price; a subclass says in `serve` who starts.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    kill : bool
        True: a job that has run for its wall time and ``grace`` is evicted, as Slurm does by default. False: it may
        run for ``max_duration`` rounds. In both cases it counts as about to end once its wall time is over.
    grace : int
        Rounds beyond the wall time before a job is evicted, as Slurm's ``OverTimeLimit``. Slurm's own default is 0
        minutes, but a run ends there up to half a minute (``KillWait``) after its limit was seen to be over. Rounds
        are whole, and an overshoot of seconds takes one more: hence 1. 0: to the round.
    drop_hopeless : bool
        True: a waiting job that could no longer end while it is worth anything, even if it took the shortest time
        announced, is dropped, as by Slurm's ``--deadline``. False: it waits until it starts.
    stop_at_deadline : bool
        True: a run is stopped once no completion could be worth anything. False: it goes on.

    Attributes
    ----------
    reserved : dict
        The first round that a waiting job was last promised, by schedulers that promise one.
    """

    free_of_charge: ClassVar[bool] = True

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        kill: bool = True,
        grace: Natural = 1,
        drop_hopeless: bool = True,
        stop_at_deadline: bool = True,
        **sizes: Any,
    ) -> None:
        super().__init__(capacity, horizon, stop_at_deadline=stop_at_deadline, **sizes)
        self.kill, self.grace, self.drop_hopeless = kill, grace, drop_hopeless
        self.reserved: dict[JobId, int] = {}
        self._played: QueuePlay | None = None  # of a market that is played as columns

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the wall time (``agreed``), the rounds the job may run, and the last start that could be worth it."""
        durations = announced_durations(x.sow, self.round, signal)
        self._note_wall_time(x, int(durations.min()), int(durations.max()))

    def foresee_row(self, x: WaitingJob, jobs: JobColumns) -> None:
        """Note the same of a row."""
        self._note_wall_time(x, int(jobs.shortest[x.order]), int(jobs.wall_times[x.order]))

    def _note_wall_time(self, x: WaitingJob, shortest: int, longest: int) -> None:
        wall_time = min(longest, self.max_duration)
        x.agreed = wall_time
        x.limit = min(wall_time + self.grace, self.max_duration) if self.kill else self.max_duration
        x.last_start = self._useful(x) - shortest

    def charge(self, x: WaitingJob) -> float:
        """Return 0: there are no prices."""
        return 0.0

    def _play_queue(
        self,
        home: type[QueueScheduler],
        rule: int,
        jobs: JobColumns,
        outcomes: Outcomes,
        until: int,
        line: Line,
    ) -> bool:
        """Play many rounds at once by the rule of the class ``home``; see `Mechanism.play`."""
        if not self.can_play(home, jobs):
            return False
        if self._played is None:
            rules = self.kill, self.grace, self.drop_hopeless, self.stop_at_deadline
            self._played = QueuePlay(jobs, self.limits, rule, *rules, line)
        self._played.advance(self.round, until, outcomes)
        self._round = until + 1
        return True

    def _hopeless(self, x: WaitingJob) -> bool:
        return self.drop_hopeless and self.round > x.last_start

    def _ends(self) -> list[tuple[int, int]]:
        """Return (first round without it, nodes) of every running job, by wall time."""
        soon = self.round + 1
        return [(max(x.start + x.agreed, soon), x.width) for x in self._running.values()]
