"""A small mechanism that refuses any misuse of the protocol, to test whoever drives it."""

import numpy as np

from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan, Mechanism


class StrictMechanism(Mechanism):
    """Start at arrival, remove the newest while overloaded, charge a flat price; refuse any misuse.

    It checks the contract of ``mechanisms.mechanism``: in a round all ``submit``, then all
    ``arrive``, then ``advance``; then ``complete`` for jobs that ran in the round just cleared, before
    anything else; no call about a job that is unknown or gone.
    """

    def __init__(self, capacity, horizon, *, price=0.5, max_duration=50, prices=True):
        self.capacity, self.horizon, self.price, self.max_duration = capacity, horizon, price, max_duration
        self.round = 1
        self.phase = "complete"
        self.calls = []
        self.jobs = {}  # name -> [sow, ready, start]; active jobs in order of submission
        if prices:
            self.slot_prices = lambda first, count: self.price * np.arange(first, first + count)
            self.committed = lambda first, count: np.full(count, 1.5)

    def _enter(self, phase):
        order = ("complete", "submit", "arrive")
        assert order.index(phase) >= order.index(self.phase), f"{phase} after {self.phase} in round {self.round}"
        self.phase = phase

    def submit(self, job, sow):
        self._enter("submit")
        assert sow.birth == self.round
        assert job not in self.jobs
        self.calls.append(("submit", self.round, job))
        self.jobs[job] = [sow, False, None]
        starts = tuple((int(a), o, int(a)) for a, o in zip(sow.law.group_arrivals, sow.law.group_signals, strict=True))
        return LaunchPlan(job, starts, 1.0)

    def arrive(self, job, signal=None):
        self._enter("arrive")
        self.calls.append(("arrive", self.round, job, signal))
        assert not self.jobs[job][1], "arrived twice"
        self.jobs[job][1] = (self.round, signal)

    def advance(self):
        now, events = self.round, []
        for name, (sow, ready, start) in list(self.jobs.items()):
            if ready and start is None and sow.law.group_of(*ready) is None:
                events.append(Event(now, EventKind.DROP, name))
                del self.jobs[name]
            elif start is not None and now >= start + self.max_duration:
                events.append(Event(now, EventKind.EVICT, name))
                del self.jobs[name]
        while sum(sow.concurrency for sow, ready, _ in self.jobs.values() if ready) > self.capacity:
            name, (_, _, start) = self.jobs.popitem()
            events.append(Event(now, EventKind.CANCEL if start is None else EventKind.EVICT, name))
        for name, entry in self.jobs.items():
            if entry[1] and entry[2] is None:
                entry[2] = now
                events.append(Event(now, EventKind.START, name))
        self.phase, self.round = "complete", now + 1
        return events

    def complete(self, job):
        self._enter("complete")
        self.calls.append(("complete", self.round - 1, job))
        sow, _, start = self.jobs.pop(job)
        duration = self.round - start
        return Event(self.round - 1, EventKind.COMPLETE, job, self.round, self.price * sow.concurrency * duration)

    def close(self):
        self._enter("complete")
        assert self.round == self.horizon + 1
        kinds = [(name, EventKind.CANCEL if e[2] is None else EventKind.EVICT) for name, e in self.jobs.items()]
        self.jobs.clear()
        return [Event(self.horizon, kind, name) for name, kind in reversed(kinds)]

    def statistics(self):
        return {"calls": len(self.calls)}
