"""Bid prices once more, written from the rules alone and for reading: lists, dictionaries and plain loops.

Costs of windows are prefix differences, as the rules' ties (the earliest of equal entries) would otherwise hang on the
order of a sum. A duration of None: hidden. Owners are dealt to buckets by whoever calls.
"""

import math
import random
from types import SimpleNamespace


class NaiveCurve:
    """What one bucket of owners faces, and what it has been taught."""

    def __init__(self, slack):
        self.slack = slack
        self.past = []  # tasks: arrival, duration, width, values of starts, density, sealed
        self.left = []  # (rounds waited, task) of sealed jobs, the last to leave first
        self.tasks = {}  # of jobs in the queue, by name
        self.iterate = self.begin = {}  # round: price where the next descent begins, and where the last one began
        self.price = {}  # round: price announced
        self.blocked = self.idle = 0.0


class NaiveBidPrices:
    """Serve rounds of arrivals; everything that the rules name is an attribute."""

    def __init__(
        self, capacity, horizon, max_delay, max_duration, *, lags, ahead, steps, step, slack, gain, ramp,
        buckets=1, bucket_of=lambda owner: 0, order="strict", yesterday=(), rounds_of_yesterday=0,
    ):  # fmt: skip
        self.capacity, self.horizon, self.max_delay, self.max_duration = capacity, horizon, max_delay, max_duration
        self.lags, self.ahead, self.steps, self.step = lags, ahead, steps, step
        self.gain, self.ramp, self.order, self.bucket_of = gain, ramp, order, bucket_of
        self.free = {t: capacity for t in range(1, horizon + 1)}
        self.curves = [NaiveCurve(slack) for _ in range(buckets)]
        self.queue, self.running = [], {}
        self.seen, self.earlier = 0, rounds_of_yesterday
        self.made = {}  # prices, by (round, curve)
        self.announced, self.ties = {}, 0  # by (round, curve): prices of somebody else, to settle ties by
        for owner, sow, arrival, duration in sorted(yesterday, key=lambda each: each[2]):
            if arrival <= rounds_of_yesterday:
                job = self.job(None, owner, sow, duration, arrival, horizon)
                job.arrival -= rounds_of_yesterday
                self.teach(job, sealed=False)
                self.seen += 1

    @property
    def slack(self):
        return sum(curve.slack for curve in self.curves) / len(self.curves)

    def job(self, name, owner, sow, duration, arrival, horizon):
        """What is known of a job at its arrival: cases (duration, share), and what its starts are worth."""
        cases = [(duration, 1.0)]
        if duration is None:
            rows = [row for row in sow.requirements if row.arrival == arrival and row.signal is None]
            total = sum(row.probability for row in rows)
            cases = [(row.duration, row.probability / total) for row in rows]
        last = min(sow.value.last, sow.birth + self.max_delay - 1, horizon + 1)
        n_starts = max(0, last - min(d for d, _ in cases) - arrival + 1)
        if duration is not None and duration > self.max_duration:
            n_starts = 0
        values = [
            sum(share * sow.value(arrival + k + d) for d, share in cases if arrival + k + d <= last)
            for k in range(n_starts)
        ]
        return SimpleNamespace(
            name=name, owner=owner, width=sow.concurrency, hidden=duration is None, arrival=arrival, cases=cases,
            mean=sum(d * share for d, share in cases), values=values, start=None,
            limit=self.max_duration if duration is None else duration,
        )  # fmt: skip

    def taught(self, owner):
        """The curves that an owner's reports teach: all but that of its own bucket, or the only one."""
        own = self.bucket_of(owner)
        return [curve for b, curve in enumerate(self.curves) if len(self.curves) == 1 or b != own]

    def scale(self, curve):
        return self.seen / len(curve.past) if curve.past else 1.0

    def serve(self, now, arrivals):
        """Serve round ``now``: arrivals are (name, owner, sow, duration or None), in order.

        Returns {name: (start, price or rate x width)}, None for those that leave; who waits is not in it.
        """
        jobs = [self.job(name, owner, sow, duration, now, self.horizon) for name, owner, sow, duration in arrivals]
        if jobs:
            for b, curve in enumerate(self.curves):
                self.make_prices(now, curve)
                self.settle_ties(now, curve, self.announced.get((now, b)))
                self.made[now, b] = dict(curve.price)
        found, lost = {}, [0.0] * len(self.curves)
        for job in jobs:
            if not job.hidden:
                own = self.curves[self.bucket_of(job.owner)]
                for curve in self.taught(job.owner):
                    best, _, unlimited = self.favourite(now, curve, job)
                    lost[self.curves.index(curve)] += unlimited - best
                _, found[job.name], _ = self.favourite(now, own, job)
                if found[job.name]:
                    job.start = found[job.name][0]
                    self.book(job, -1)
                    self.running[job.name] = job
        for curve, each in zip(self.curves, lost, strict=True):
            if any(not job.hidden and curve in self.taught(job.owner) for job in jobs):
                curve.blocked += 0.02 * (each * self.scale(curve) - curve.blocked)
        for job in jobs:
            if job.hidden:
                price = self.curves[self.bucket_of(job.owner)].price
                job.rate = sum(price.get(t, 0.0) for t in range(now, now + 24)) / 24
                self.queue.append(job)
        found |= self.serve_queue(now)
        for curve in self.curves:
            curve.idle += 0.02 * (curve.price.get(now, 0.0) * self.free[now] - curve.idle)
            if curve.blocked + curve.idle > 0 and now >= 5:
                ratio = (curve.blocked - curve.idle) / (curve.blocked + curve.idle)
                curve.slack = min(0.3, max(0.0, curve.slack + self.gain * ratio))
        for job in jobs:
            self.teach(job, sealed=job.hidden and self.order == "sealed" and job.width > 1)
        self.seen += len(jobs)
        for curve in self.curves:
            gone = [(waited, curve.tasks.pop(name)) for name, waited in self.gone.items() if name in curve.tasks]
            for waited, task in gone:
                if task.sealed:
                    task.sealed = False
                    curve.left.insert(0, (waited, task))
        return found

    def favourite(self, now, curve, job):
        """Surplus of the best entry, the entry (start, price), and the surplus if every node were free."""
        prefix = self.prefixes(now, curve.price)
        best, entry, unlimited = 1e-12, None, 0.0
        for k, value in enumerate(job.values):
            s, end = now + k, now + k + job.limit
            if end - 1 > self.horizon:
                break
            cost = job.width * (prefix[end] - prefix[s])
            unlimited = max(unlimited, value - cost)
            if all(self.free[t] >= job.width for t in range(s, end)) and value - cost > best:
                best, entry = value - cost, (s, cost)
        return (best if entry else 0.0), entry, unlimited

    def serve_queue(self, now):
        """In order of arrival; at its first turn with the nodes free a job chooses its start."""
        found, waiting, blocked, self.gone = {}, [], False, {}
        for job in self.queue:
            surplus = []
            for s, value in enumerate(job.values[now - job.arrival :], now):  # a run that outlives T is not charged
                charged = sum(d * share for d, share in job.cases if s + d <= self.horizon + 1)
                surplus.append(value - job.rate * job.width * charged)
            best = max(surplus, default=0.0)
            if best <= 1e-12:
                found[job.name] = None
            elif blocked or self.free[now] < job.width:
                waiting.append(job)
                blocked = self.order == "strict"
                continue
            else:
                job.start = now + surplus.index(best)
                found[job.name] = job.start, job.rate * job.width
                self.book(job, -1, since=now)
                self.running[job.name] = job
            self.gone[job.name] = now - job.arrival
        self.queue = waiting
        return found

    def book(self, job, sign, since=None):
        for t in range(job.start if since is None else since, min(job.start + job.limit, self.horizon + 1)):
            self.free[t] += sign * job.width

    def complete(self, name, completion):
        """The job is over: what was booked beyond is free again."""
        job = self.running.pop(name)
        self.book(job, 1, since=completion)

    def teach(self, job, sealed):
        values = [max(job.values[k:]) for k in range(len(job.values))]
        for curve in self.taught(job.owner):
            task = SimpleNamespace(
                arrival=job.arrival, duration=max(1, round(job.mean)), width=job.width, values=values, sealed=sealed,
                density=values[0] / (job.width * job.mean) if values else None,
            )  # fmt: skip
            curve.past.append(task)
            if job.hidden and job.name is not None:
                curve.tasks[job.name] = task

    def prefixes(self, now, prices):
        """Prices from ``now`` on added up, at the beginning of each round."""
        total, prefix = 0.0, {}
        for t in range(now, self.horizon + 2):
            prefix[t] = total
            total += prices.get(t, 0.0)
        return prefix

    def scenario(self, now, last, lag, curve):
        """What arrived a lag ago, and again and again."""
        for q in range(now, last + 1):
            source = q - lag
            while source >= now:
                source -= lag
            if source < 1 and self.earlier:  # yesterday at the same time
                source = q - self.earlier
                while source >= now:
                    source -= self.earlier
            for task in curve.past:
                if task.arrival == source and not task.sealed and source > -self.earlier:
                    yield q, task

    def in_the_queue(self, now, curve):
        """(Round of arrival, task) of what waits; for a sealed job one of the last four that had waited as long."""
        n_sealed = 0
        for job in self.queue:
            task = curve.tasks.get(job.name)
            if task is None:
                continue
            if task.sealed:
                n_sealed += 1
                longer = [other for waited, other in curve.left if waited >= now - job.arrival][:4]
                if not longer:
                    continue
                task = longer[n_sealed % len(longer)]
            yield job.arrival, task

    def supply(self, now, curve, window):
        """Nodes left: running jobs of hidden duration count for as long as they are expected to go on."""
        found = {}
        for t in window:
            found[t] = self.free[t] - self.capacity * curve.slack * min(1.0, (t - now + 1) / self.ramp)
        for job in self.running.values():
            if job.hidden and job.start < now:
                age = now - job.start
                mass = sum(share for d, share in job.cases if d > age)
                left = sum(share * (d - age) for d, share in job.cases if d > age) / mass if mass > 1e-12 else 1.0
                for t in window:
                    booked = t < job.start + job.limit
                    found[t] += job.width * (booked - min(1.0, max(0.0, left - (t - now))))
        return found

    def settle_ties(self, now, curve, announced):
        """Where prices are not those announced, look whether rounding alone, in the last digits, tells them apart.

        Two starts of a task may be equally good; which one rounding prefers says nothing about the rules. Prices
        that no change of the iterate by 1e-12 of itself makes equal are left as they are, and fail the comparison.
        """
        begin, rng = curve.begin, random.Random(now)
        for _ in range(100):
            if announced is None or all(abs(curve.price[t] - p) <= 1e-9 * max(1.0, p) for t, p in announced.items()):
                return
            self.ties += 1
            size = 10 ** rng.uniform(-15, -12)
            curve.iterate = {t: p * (1 + size * rng.uniform(-1, 1)) for t, p in begin.items()}
            self.make_prices(now, curve)

    def make_prices(self, now, curve):
        """Subgradient steps on one vector of prices for all scenarios."""
        last, n_scenarios = min(self.horizon, now + self.ahead), len(self.lags)
        window = range(now, last + 1)
        curve.price = {t: 0.0 for t in window}
        p = {t: curve.iterate.get(t, 0.0) for t in window}
        curve.begin = dict(p)
        known = now - 1 + self.earlier
        if known >= 4:
            tasks = []
            for k, lag in enumerate(self.lags):
                lag = min(lag, max(1, known * (k + 1) // n_scenarios))
                tasks += [
                    (q, task, self.scale(curve) / n_scenarios) for q, task in self.scenario(now, last, lag, curve)
                ]
            tasks += [(q, task, self.scale(curve)) for q, task in self.in_the_queue(now, curve)]
            worth = [task.density for task in curve.past if task.density is not None and not task.sealed]
            rho = sum(worth) / len(worth) if worth else 1.0
            supply, mean = self.supply(now, curve, window), {t: 0.0 for t in window}
            for i in range(self.steps):
                demand, prefix = {t: 0.0 for t in window}, self.prefixes(now, p)
                for q, task, weight in tasks:
                    best, chosen = 0.0, None
                    for k, value in enumerate(task.values):
                        s, end = q + k, q + k + task.duration
                        if s < now:
                            continue
                        if end - 1 > last:
                            break
                        surplus = value - task.width * (round((prefix[end] - prefix[s]) * 1e9) * 1e-9)
                        if surplus > best:
                            best, chosen = surplus, s
                    for t in range(chosen, chosen + task.duration) if chosen else ():
                        demand[t] += task.width * weight
                for t in window:
                    length = self.step * rho / math.sqrt(i + 1)
                    p[t] = max(0.0, p[t] - length * (supply[t] - demand[t]) / self.capacity)
                    if i >= self.steps // 2:
                        mean[t] += p[t] / (self.steps - self.steps // 2)
            curve.price = mean
        curve.iterate = p
