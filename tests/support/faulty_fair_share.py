"""Queues by decayed usage with a fault in their accounts, for an audit to find, and the rule without a fault."""

from collections import Counter, defaultdict

from marketsched.mechanisms import register
from marketsched.mechanisms.auctions.waiting_job import NOT_YET
from marketsched.mechanisms.schedulers.fair_share import HOUR_S, ROUND_S
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler


@register("usage-as-run")
class RunUsage(QueueScheduler):
    """The owner goes first whose usage, decayed node-rounds, is least; a job that does not fit lets others pass."""

    free_of_charge = True

    def __init__(self, capacity, horizon, *, half_life_hours=168.0, kill=False, **queue):
        super().__init__(capacity, horizon, kill=kill, **queue)
        self.kept = 0.5 ** (ROUND_S / (half_life_hours * HOUR_S))
        self.used = defaultdict(float)

    def serve(self, waiting):
        for owner in self.used:
            self.used[owner] *= self.kept
        for x in self._running.values():
            self.count_run(x)
        starts = [None if self._hopeless(x) else NOT_YET for x in waiting]
        left, free = [i for i, start in enumerate(starts) if start is not None], self.capacity - self.load
        while left:
            i = min(left, key=lambda i: (self.usage_of(waiting[i].owner), i))
            left.remove(i)
            if waiting[i].width <= free:
                starts[i], free = self.round, free - waiting[i].width
                self.count_entry(waiting[i])
        return starts

    def usage_of(self, owner):
        return self.used[owner]

    def count_entry(self, x):
        self.used[x.owner] += x.width

    def count_run(self, x):
        self.used[x.owner] += x.width


@register("usage-announced")
class AnnouncedUsage(RunUsage):
    """Charges what a job announces when it starts, and never what it takes."""

    def count_entry(self, x):
        self.used[x.owner] += x.width * x.agreed

    def count_run(self, x):
        pass


@register("leaking-penalty")
class LeakingPenalty(RunUsage):
    """Adds a small penalty when a job enters, and takes the announced one back when it ends."""

    def charge(self, x):
        self.used[x.owner] -= x.width * x.agreed
        return 0.0


@register("usage-average")
class AverageUsage(RunUsage):
    """Orders owners by usage over the number of their jobs so far: a small job more lowers it."""

    def __init__(self, capacity, horizon, **rest):
        super().__init__(capacity, horizon, **rest)
        self.had = Counter()

    def count_entry(self, x):
        super().count_entry(x)
        self.had[x.owner] += 1

    def usage_of(self, owner):
        return super().usage_of(owner) / max(1, self.had[owner])
