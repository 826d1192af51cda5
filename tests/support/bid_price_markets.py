"""Small random markets for bid prices, the loop that plays them, and reports to try in them."""

from typing import NamedTuple

import numpy as np

from marketsched.agents.loop import Fate, MarketLoop
from marketsched.mechanisms import DeadlineValue, EventKind, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.bid_price.past import PastArrival, PastLog
from marketsched.mechanisms.limits import MarketLimits
from marketsched.truthfulness.situations.guarded_market import Snapshot
from naive_bid_prices import NaiveBidPrices

SIZES = {"max_concurrency": 3, "max_duration": 5, "max_value": 60.0, "max_delay": 14}
RULES = {"lags": (3, 5), "ahead": 9, "steps": 6, "step": 0.3, "slack": 0.1}


class SmallJob(NamedTuple):
    """A job: its number, true statement, round of arrival, duration, and owner."""

    name: int
    truth: StatementOfWork
    arrival: int
    duration: int
    owner: str = ""


def keeping(market):
    """Return a market after it was asked to keep the menus of its jobs."""
    market.keep_menus()
    return market


def random_curve(rng, first, rising=True):
    """Draw a curve; one of three kinds is a table, whose times before the first listed one are worth nothing."""
    worth, deadline = int(rng.integers(1, 60)), first + int(rng.integers(1, 10))
    kind = rng.integers(3 if rising else 2)
    if kind == 0:
        return DeadlineValue(float(worth), deadline)
    if kind == 1:
        return LinearValue(float(worth), first + 1, float(rng.integers(1, 6)), deadline)
    steps = np.sort(rng.integers(0, worth + 1, 4))[::-1]
    return TableValue({deadline - 3 + i: float(v) for i, v in enumerate(steps) if deadline - 3 + i > 0})


def random_market(rng, horizon=24, per_round=2.0, hidden=False, owners=3):
    """List jobs; all submitted in the round before they arrive, or in it."""
    jobs = []
    for birth in range(1, horizon - 3):
        for _ in range(rng.poisson(per_round)):
            arrival, durations = birth + int(rng.integers(0, 2)), sorted({*rng.integers(1, 6, 2).tolist()})
            rows = [(arrival, d, 1 / len(durations), *([None] if hidden else [])) for d in durations]
            truth = StatementOfWork(birth, int(rng.integers(1, 4)), random_curve(rng, arrival), rows)
            duration, owner = int(rng.choice(durations)), f"owner-{len(jobs) % owners}"
            jobs.append(SmallJob(len(jobs), truth, arrival, duration, owner))
    return jobs


def past_log(rng, capacity, rounds=10, hidden=False):
    """Draw yesterday's arrivals."""
    jobs = random_market(rng, rounds + 4, 1.5, hidden)
    arrivals = [PastArrival(job.owner, job.truth, job.arrival, None if hidden else job.duration) for job in jobs]
    return PastLog(tuple(arrivals), rounds, MarketLimits(capacity, 24, **SIZES))


def play(market, jobs, reports=None, hidden=False, until=None):
    """Play all rounds; return starts, payments and every event. A report replaces the truth of its job."""
    reports = reports or {}
    starts, payments, events, ending, born, ready, stopped = {}, {}, [], {}, {}, {}, set()
    for job in jobs:
        born.setdefault(job.truth.birth, []).append(job)
        ready.setdefault(job.arrival, []).append(job)
    for now in range(1, (until or market.horizon) + 1):
        for job in born.get(now, ()):
            market.submit(job.name, reports.get(job.name, job.truth), job.owner or None)
        for job in ready.get(now, ()):
            market.arrive(job.name, None if hidden else job.duration)
        for event in market.advance():
            events.append(event)
            if event.kind is EventKind.START:
                starts[event.job] = now
                job = jobs[event.job]
                if reports.get(event.job, job.truth).concurrency >= job.truth.concurrency:  # else it never ends
                    ending.setdefault(now + job.duration - 1, []).append(event.job)
            elif event.kind is EventKind.EVICT:
                stopped.add(event.job)
        for name in sorted(set(ending.pop(now, ())) - stopped):
            payments[name] = market.complete(name).payment
    return starts, payments, events


class Turn:
    """A market when one job is about to be submitted: what came before does not depend on its report.

    It is played up to there once, kept, and gone on with from a copy for each report, until the job has left.
    """

    def __init__(self, market, jobs, name, hidden=False):
        self.job, self._hidden = jobs[name], hidden
        self._born = {}
        for job in jobs:
            self._born.setdefault(job.truth.birth, []).append(job)
        loop = MarketLoop(market)
        for now in range(1, self.job.truth.birth):
            self._enter(loop, self._born.get(now, ()))
            loop.clear()
        together = self._born[self.job.truth.birth]
        place = [job.name for job in together].index(name)
        self._enter(loop, together[:place])
        self._after, self._horizon = together[place + 1 :], market.horizon
        self._kept = Snapshot(loop)

    def _enter(self, loop, jobs, report=None, duration=None):
        for job in jobs:
            lasts = duration or job.duration
            fate = Fate(job.arrival, lasts, None if self._hidden else lasts)
            loop.submit(job.name, report or job.truth, fate, job.truth.concurrency, owner=job.owner or None)

    def played(self, report, duration=None):
        """Return the events of the job under a report, and the market when it has left (or has come to its end)."""
        loop, name, own = self._kept.copy(), self.job.name, []
        self._enter(loop, [self.job], report, duration)
        self._enter(loop, self._after)
        while loop.now <= self._horizon:
            own += [event for event in loop.clear() if event.job == name]
            if name not in loop.entries or loop.now > self._horizon:
                break
            self._enter(loop, self._born.get(loop.now, ()))
        return own, loop.mechanism

    def utility(self, report, duration=None):
        """Return what its owner has in the end, credits."""
        ends = [event for event in self.played(report, duration)[0] if event.kind.leaves]
        value = sum(self.job.truth.value(event.completion) for event in ends if event.kind is EventKind.COMPLETE)
        return value - sum(event.payment for event in ends)


def utility(job, starts, payments, events=()):
    """What its owner has in the end, credits."""
    if job.name in payments:
        return job.truth.value(starts[job.name] + job.duration) - payments[job.name]
    return -sum(event.payment for event in events if event.job == job.name)


def loads(jobs, starts, horizon):
    """Nodes busy, by round."""
    busy = np.zeros(horizon + 2, int)
    for name, start in starts.items():
        busy[start : start + jobs[name].duration] += jobs[name].truth.concurrency
    return busy


def lies(truth, arrival, hidden=False):
    """Other reports of the same job: values, deadlines, widths, laws that leave out what happens."""
    signal = [None] if hidden else []
    rows = [(r.arrival, r.duration, r.probability, *signal) for r in truth.requirements]
    for factor in (0.0, 0.3, 0.7, 1.3, 2.0):
        times = range(arrival, truth.value.last + 1)
        worth = np.maximum.accumulate([0.0, *(min(60.0, factor * truth.value(t)) for t in reversed(times))])[:0:-1]
        table = dict(zip(times, worth, strict=True))
        yield StatementOfWork(truth.birth, truth.concurrency, TableValue(table or {1: 0.0}), rows)
    for shift in (-2, -1, 1, 3):
        times = range(arrival, max(arrival, truth.value.last + shift) + 1)
        worth = np.maximum.accumulate([truth.value(max(0, t - shift)) for t in reversed(times)])[::-1]
        yield StatementOfWork(truth.birth, truth.concurrency, TableValue(dict(zip(times, worth, strict=True))), rows)
    for width in (1, 2, 3):
        yield StatementOfWork(truth.birth, width, truth.value, rows)
    for begin in range(arrival + 1, arrival + 5):  # worth something from then on alone
        yield StatementOfWork(truth.birth, truth.concurrency, TableValue({begin + i: 60.0 for i in range(9)}), rows)
    yield StatementOfWork(
        truth.birth, truth.concurrency, DeadlineValue(60.0, arrival + 12), [(arrival, 1, 0.5, *signal)]
    )
    yield StatementOfWork(
        truth.birth, truth.concurrency, DeadlineValue(60.0, arrival + 12), [(arrival, 5, 1.0, *signal)]
    )


def market_and_rules(capacity, horizon, *, log=None, hidden=False, gain=0.02, ramp=4, **chosen):
    """Return the mechanism and its independent reference, with the same parameters."""
    kept = {"history": log, "stop_at_deadline": False}  # the reference stops no run
    market = BidPrice(capacity, horizon, **SIZES, **RULES, slack_gain=gain, slack_ramp=ramp, **kept, **chosen)
    given = {"lags": RULES["lags"], "ahead": 9, "steps": 6, "step": 0.3, "slack": 0.1, "gain": gain, "ramp": ramp}
    if "hidden_order" in chosen:
        given["order"] = chosen["hidden_order"]
    if log is not None:
        given["rounds_of_yesterday"] = log.rounds
        given["yesterday"] = [(a.owner, a.sow, a.arrival, None if hidden else a.signal) for a in log.arrivals]
    rules = NaiveBidPrices(
        capacity, horizon, SIZES["max_delay"], SIZES["max_duration"],
        buckets=chosen.get("buckets", 1), bucket_of=market.bucket_of, **given,
    )  # fmt: skip
    return market, rules


def noting_prices(market):
    """Return what will hold the prices that a market announces, by (round, curve)."""
    announced, make = {}, market._make_prices

    def noted(queue):
        make(queue)
        for b, curve in enumerate(market._curves):
            announced[market.round, b] = {curve.first + i: float(p) for i, p in enumerate(curve.prices)}

    market._make_prices = noted
    return announced


def played_by_the_rules(rules, jobs, horizon, hidden=False):
    """Play the reference; return {name: (start, price or rate)} of those that were given a start, and payments."""
    given, payments = {}, {}
    for now in range(1, horizon + 1):
        arrivals = [
            (j.name, j.owner or j.name, j.truth, None if hidden else j.duration) for j in jobs if j.arrival == now
        ]
        given |= {name: entry for name, entry in rules.serve(now, arrivals).items() if entry}
        for name, (start, price) in given.items():
            if start + jobs[name].duration == now + 1:
                rules.complete(name, now + 1)
                payments[name] = price * jobs[name].duration if hidden else price
    return given, payments
