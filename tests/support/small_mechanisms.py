"""Small mechanisms whose best lies are known in closed form, to test the search with."""

import numpy as np

from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    ExponentialPricing,
    PostedPriceMechanism,
    StatementOfWork,
)
from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.truthfulness import Situation, default_families
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.on_worlds import lies_on_worlds

ONE_ROUND = {"capacity": 1, "horizon": 3, "max_delay": 3}
BIDDER = StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(1, 1, 1.0)])
UNIFORM = [(k / 4, 1 / 40) for k in range(1, 41)]


class HighestBid:
    """One node, jobs of one round: the arrived job of the highest reported value runs, the others are dropped.

    ``rule``: "first" (its own bid), "second" (the highest other bid), "noise" (its own bid, and noise
    that depends on what it reports, with mean 0 under every report). Ties: the earlier submission.
    """

    max_concurrency, max_duration, max_value = 1, 1, 20.0

    def __init__(self, rule, horizon=3, rng=None):
        self.rule, self.horizon, self.round = rule, horizon, 1
        self.noise = None if rng is None else int(rng.integers(2**32))
        self.bids, self.arrived, self.due = {}, [], {}

    def submit(self, job, sow):
        self.bids[job] = sow
        return LaunchPlan(job, (), 0.0)

    def arrive(self, job, signal=None):
        self.arrived.append(job)

    def advance(self):
        now = self.round
        bid = {job: float(self.bids[job].value(now + 1)) for job in self.arrived}
        order = sorted(bid, key=lambda job: -bid[job])  # stable: in order of submission
        events = [Event(now, EventKind.DROP, job) for job in order[1:]]
        if order and bid[order[0]] > 0:
            second = max((bid[job] for job in order[1:]), default=0.0)
            self.due[order[0]] = second if self.rule == "second" else bid[order[0]]
            events.append(Event(now, EventKind.START, order[0]))
        elif order:
            events.append(Event(now, EventKind.DROP, order[0]))
        self.arrived = []
        self.round += 1
        return events

    def complete(self, job):
        payment = self.due.pop(job)
        if self.rule == "noise":
            told = int(self.bids[job].value.highest * 2**20)
            payment = float(np.random.default_rng([self.noise, told]).uniform(0, 4))
        return Event(self.round - 1, EventKind.COMPLETE, job, self.round, payment)


class OpenMarket:
    """A job runs when it arrives, if there are nodes and its value exceeds the price; else it is dropped.

    ``price`` is a function of (report, signal shown, rounds used, place in the order of submission).
    A job still running after ``max_duration`` rounds is evicted.
    """

    max_value = 20.0

    def __init__(self, capacity, horizon, price, *, max_concurrency=4, max_duration=4):
        self.capacity, self.horizon, self.price, self.round = capacity, horizon, price, 1
        self.max_concurrency, self.max_duration = max_concurrency, max_duration
        self.told, self.arrived, self.running = {}, [], {}

    def submit(self, job, sow):
        self.told[job] = (sow, len(self.told))
        return LaunchPlan(job, tuple((r.arrival, r.signal, r.arrival) for r in sow.requirements), 0.0)

    def arrive(self, job, signal=None):
        self.arrived.append((job, signal))

    def advance(self):
        now, events = self.round, []
        for job, (start, _) in list(self.running.items()):
            if now - start >= self.max_duration:
                del self.running[job]
                events.append(Event(now, EventKind.EVICT, job))
        for job, signal in self.arrived:
            sow, place = self.told[job]
            planned = signal if isinstance(signal, int) else int(sow.law.durations.max())
            fits = sum(self.told[other][0].concurrency for other in self.running) + sow.concurrency <= self.capacity
            if fits and sow.value(now + planned) > self.price(sow, signal, planned, place):
                self.running[job] = (now, signal)
                events.append(Event(now, EventKind.START, job))
            else:
                events.append(Event(now, EventKind.DROP, job))
        self.arrived = []
        self.round += 1
        return events

    def complete(self, job):
        start, signal = self.running.pop(job)
        sow, place = self.told[job]
        used = self.round - start
        return Event(self.round - 1, EventKind.COMPLETE, job, self.round, self.price(sow, signal, used, place))


def rivals(*laws):
    """Return owners who each bid by a law, for one round of work."""
    return [
        StatementLaw([(StatementOfWork(1, 1, DeadlineValue(bid, 3), [(1, 1, 1.0)]), p) for bid, p in law])
        for law in laws
    ]


def auction(rule, *laws):
    return Situation(lambda rng: HighestBid(rule), BIDDER, rivals(*laws), **ONE_ROUND)


def small_market(seed):
    """Return a random market of a few jobs, durations revealed, exact oracle; its worlds can be gone through."""
    rng = np.random.default_rng(seed)

    def statement(birth):
        n = int(rng.integers(1, 3))
        arrivals = birth + rng.choice(3, size=n, replace=False)
        rows = [(int(a), int(rng.integers(1, 3)), 1 / n) for a in arrivals]
        value = DeadlineValue(float(rng.integers(2, 11)), int(birth + rng.integers(2, 6)))
        return StatementOfWork(birth, int(rng.integers(1, 3)), value, rows)

    others = [statement(int(b)) for b in np.sort(rng.integers(1, 4, 4))]
    truth = statement(int(rng.integers(1, 4)))
    limits = {"max_concurrency": 2, "max_duration": 3, "max_value": 10.0, "max_delay": 7}

    def market(rng):
        return PostedPriceMechanism(4, 12, ExponentialPricing(), ExactOracle(), epsilon=-0.25, **limits)

    return Situation(market, truth, others, capacity=4, horizon=12, max_delay=7)


def on_worlds(situation, lies=None, plays=2000, more=4, **given):
    """Play lies of one owner on fresh worlds, by default all of the families."""
    if lies is None:
        families = default_families(situation.truth, situation.public)
        lies = [lie for family in families for lie in family.members]
    return lies_on_worlds([situation], {situation.name: lies}, Budget(plays, None), Budget(more * plays, None), **given)


def best_on_worlds(situation, lies=None, **given):
    """Return the confirmed lie that surely gains most; None: there is none."""
    found = on_worlds(situation, lies, **given).confirmed
    return found[0].deviation if found else None


def crowd(n=12, seed=0, horizon=12, **changes):
    """Return a scenario of jobs of one to three rounds on three nodes, more than there is room for, all revealed."""
    rng, jobs = np.random.default_rng(seed), []
    for i in range(n):
        birth, duration = 1 + i // 3, int(rng.integers(1, 4))
        jobs.append(
            {
                "name": f"job-{i}",
                "owner": f"owner-{i}",
                "birth": birth,
                "concurrency": int(rng.integers(1, 3)),
                "value": {"kind": "deadline", "value": float(rng.uniform(2, 10)), "deadline": birth + duration + 3},
                "requirements": [{"arrival": birth, "duration": duration, "probability": 1.0}],
            }
        )
    sizes = {"capacity": 3, "max_concurrency": 2, "max_duration": 4, "max_value": 10, "max_delay": 9}
    return {"name": "crowd", "workload": {"kind": "jobs", **sizes, "horizon": horizon, "jobs": jobs}, **changes}
