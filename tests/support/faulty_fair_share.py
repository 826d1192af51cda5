"""Kueue's rule with a fault in its accounts: what an audit has to find, and the rule without a fault beside it."""

from collections import Counter

from marketsched.mechanisms import register
from marketsched.mechanisms.schedulers.kueue import Kueue, Ledger


@register("usage-announced")
class AnnouncedUsage(Kueue):
    """Charges what a job announces when it starts, and never what it takes."""

    def _admit(self, x):
        ledger = self.ledgers.setdefault(x.owner, Ledger())
        ledger.used["nodes"] = ledger.used.get("nodes", 0.0) + x.sow.concurrency * x.agreed

    def _sample(self):
        kept = 0.5 ** (self.round_s / self.half_life_s)
        for ledger in self.ledgers.values():
            ledger.used = {name: kept * amount for name, amount in ledger.used.items()}


@register("usage-as-run")
class RunUsage(AnnouncedUsage):
    """Charges nodes for the rounds they run, without a penalty at entry: no fault."""

    def _admit(self, x):
        self._ran[x.owner] += x.sow.concurrency

    def _sample(self):
        super()._sample()
        for owner, nodes in self._ran.items():
            ledger = self.ledgers.setdefault(owner, Ledger())
            ledger.used["nodes"] = ledger.used.get("nodes", 0.0) + nodes
        self._ran.clear()
        for x in self._running.values():
            self._ran[x.owner] += x.sow.concurrency


@register("leaking-penalty")
class LeakingPenalty(RunUsage):
    """Adds a small penalty when a job enters, and takes the announced one back when it ends."""

    def charge(self, x):
        ledger = self.ledgers.setdefault(x.owner, Ledger())
        ledger.used["nodes"] = ledger.used.get("nodes", 0.0) - x.sow.concurrency * x.agreed
        return 0.0


@register("usage-average")
class AverageUsage(RunUsage):
    """Orders owners by usage over the number of their jobs so far: a small job more lowers it."""

    def __init__(self, capacity, horizon, **rest):
        super().__init__(capacity, horizon, **rest)
        self.had = Counter()

    def _admit(self, x):
        super()._admit(x)
        self.had[x.owner] += 1

    def usage_of(self, owner):
        return super().usage_of(owner) / max(1, self.had[owner])
