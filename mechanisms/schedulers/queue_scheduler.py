"""The base of schedulers with a queue: announced wall times, stops behind them, and hopeless jobs.

The wall time of a job is the longest duration that its report has for its arrival (the duration itself where
signals are durations); it is taken as announced. There are no payments.
"""

from __future__ import annotations

from typing import Any, ClassVar

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Natural, legal
from marketsched.mechanisms.mechanism import JobId


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

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the wall time (``agreed``), the rounds the job may run, and the last start that could be worth it."""
        shortest, longest = x.announced
        x.agreed = min(longest, self.max_duration)
        x.limit = min(x.agreed + self.grace, self.max_duration) if self.kill else self.max_duration
        x.last_start = x.useful - shortest

    def charge(self, x: WaitingJob) -> float:
        """Return 0: there are no prices."""
        return 0.0

    def _hopeless(self, x: WaitingJob) -> bool:
        return self.drop_hopeless and self.round > x.last_start

    def _ends(self) -> list[tuple[int, int]]:
        """Return (first round without it, nodes) of every running job, by wall time."""
        soon = self.round + 1
        return [(max(x.start + x.agreed, soon), x.width) for x in self._running.values()]
