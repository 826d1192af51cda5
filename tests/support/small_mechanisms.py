"""Small mechanisms whose best lies are known in closed form, to test the search with."""

import numpy as np

from marketsched.agents import Job
from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    ExponentialPricing,
    PostedPriceMechanism,
    StatementOfWork,
)
from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan
from marketsched.truthfulness import MarketAtHand, default_families
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.on_worlds import lies_on_worlds
from marketsched.truthfulness.situations.lotteries import of_statement

ONE_ROUND = {"capacity": 1, "horizon": 3, "max_delay": 3}
BIDDER = StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(1, 1, 1.0)])


class HighestBid:
    """One node, jobs of one round: the arrived job of the highest reported value runs, the others are dropped.

    ``rule``: "first" (its own bid), "second" (the highest other bid), "noise" (its own bid, and noise
    that depends on what it reports, with mean 0 under every report). Ties: the earlier submission. In each round so
    many ``rivals`` bid 1/4, 2/4, ... 10, drawn with ``rng``, and win ties.
    """

    max_concurrency, max_duration, max_value = 1, 1, 20.0

    def __init__(self, rule, horizon=3, rng=None, rivals=0):
        self.rule, self.horizon, self.round, self.rng, self.rivals = rule, horizon, 1, rng, rivals
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
        drawn = self.rng.integers(1, 41, self.rivals).max() / 4 if self.rivals else 0.0
        if order and bid[order[0]] > drawn:
            second = max([drawn, *(bid[job] for job in order[1:])])
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
            payment = float(np.random.default_rng([int(self.rng.integers(2**32)), told]).uniform(0, 4))
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


def owner_in(factory, truth, others=(), *, capacity, horizon, max_delay, ahead=None, seed=0, resubmit=False):
    """Return the owner of a job, among others, at its turn in a market in which all outcomes are drawn from ``seed``.

    Its own job comes. ``others`` are statements in order of submission, or jobs, whose outcomes are not drawn;
    ``ahead`` of those of the same birth submit before it, by default all.
    """
    rng = np.random.default_rng(seed)

    def drawn(name, sow, comes=False):
        law, fate = of_statement(sow), None
        while fate is None or (comes and fate.arrival is None):
            fate = law.outcomes[law.pick(rng.random())][1]
        return Job(name, name, sow, fate.arrival, fate.duration, fate.signal)

    jobs = [x if isinstance(x, Job) else drawn(f"other-{i + 1}", x) for i, x in enumerate(others)]
    same = sum(job.truth.birth == truth.birth for job in jobs) if ahead is None else ahead
    jobs.insert(sum(job.truth.birth < truth.birth for job in jobs) + same, drawn("owner", truth, comes=True))
    sizes = {"capacity": capacity, "horizon": horizon, "max_delay": max_delay, "resubmit": resubmit}
    (owner,) = MarketAtHand(factory, jobs, **sizes, seed=seed).owners(["owner"])
    return owner


def auction(rule, rivals):
    """Return the bidder in an auction of one round, against so many who bid 1/4, 2/4, ... 10 with equal chances."""
    return owner_in(lambda rng: HighestBid(rule, rng=rng, rivals=rivals), BIDDER, **ONE_ROUND)


def small_market(seed):
    """Return the owner in a random market of a few jobs, durations revealed, exact oracle."""
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

    return owner_in(market, truth, others, capacity=4, horizon=12, max_delay=7, seed=seed)


def on_worlds(owner, lies=None, plays=2000, more=4, **given):
    """Play lies of one owner on fresh worlds, by default all of the families."""
    if lies is None:
        families = default_families(owner.truth, owner.public)
        lies = [lie for family in families for lie in family.members]
    return lies_on_worlds([owner], {owner.name: lies}, Budget(plays, None), Budget(more * plays, None), **given)


def best_on_worlds(owner, lies=None, **given):
    """Return the confirmed lie that surely gains most; None: there is none."""
    found = on_worlds(owner, lies, **given).confirmed
    return found[0] if found else None


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
