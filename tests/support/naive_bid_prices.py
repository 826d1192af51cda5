"""Bid prices once more, written from the rules alone and for reading: lists, dictionaries and plain loops.

Durations revealed, scenarios from history. Costs of windows are prefix differences, as the rules' ties
(the earliest of equal entries) would otherwise hang on the order of a sum.
"""

import math


class NaiveBidPrices:
    """Serve rounds of arrivals; everything that the rules name is an attribute."""

    def __init__(self, capacity, horizon, max_delay, max_duration, *, lags, ahead, steps, step, slack, gain, ramp):
        self.capacity, self.horizon, self.max_delay, self.max_duration = capacity, horizon, max_delay, max_duration
        self.lags, self.ahead, self.steps, self.step = lags, ahead, steps, step
        self.slack, self.gain, self.ramp = slack, gain, ramp
        self.free = {t: capacity for t in range(1, horizon + 1)}
        self.past = []  # (round, duration, width, values of starts)
        self.iterate = {}  # round: price where the next descent begins
        self.price = {}  # round: price announced
        self.blocked = self.idle = 0.0

    def worth(self, sow, now, duration):
        """Values of the starts now, now + 1, ... that can be worth anything."""
        last = min(sow.value.last, sow.birth + self.max_delay - 1, self.horizon + 1)
        return (
            [sow.value(s + duration) for s in range(now, last - duration + 1)] if duration <= self.max_duration else []
        )

    def serve(self, now, arrivals):
        """Return {name: (start, price) or None} for arrivals (name, sow, duration) of round ``now``, in order."""
        if arrivals:
            self.make_prices(now)
        prefix = self.prefixes(now, self.price)
        found, lost = {}, 0.0
        for name, sow, duration in arrivals:
            values = self.worth(sow, now, duration)
            best, entry, unlimited = 1e-12, None, 0.0
            for k, value in enumerate(values):
                s = now + k
                if s + duration - 1 > self.horizon:
                    break
                cost = sow.concurrency * (prefix[s + duration] - prefix[s])
                unlimited = max(unlimited, value - cost)
                if all(self.free[t] >= sow.concurrency for t in range(s, s + duration)) and value - cost > best:
                    best, entry = value - cost, (s, cost)
            lost += unlimited - (best if entry else 0.0)
            found[name] = entry
            for t in range(entry[0], entry[0] + duration) if entry else ():
                self.free[t] -= sow.concurrency
        if arrivals:
            self.blocked += 0.02 * (lost - self.blocked)
        self.idle += 0.02 * (self.price.get(now, 0.0) * self.free[now] - self.idle)
        if self.blocked + self.idle > 0 and now >= 5:
            ratio = (self.blocked - self.idle) / (self.blocked + self.idle)
            self.slack = min(0.3, max(0.0, self.slack + self.gain * ratio))
        for _, sow, duration in arrivals:
            values = self.worth(sow, now, duration)
            self.past.append((now, duration, sow.concurrency, [max(values[k:]) for k in range(len(values))]))
        return found

    def prefixes(self, now, prices):
        """Prices from ``now`` on added up, at the beginning of each round."""
        total, prefix = 0.0, {}
        for t in range(now, self.horizon + 2):
            prefix[t] = total
            total += prices.get(t, 0.0)
        return prefix

    def scenario(self, now, last, k):
        """What arrived a lag ago, and again and again."""
        lag = min(self.lags[k], max(1, (now - 1) * (k + 1) // len(self.lags)))
        for q in range(now, last + 1):
            source = q - lag
            while source >= now:
                source -= lag
            for arrival, duration, width, values in self.past:
                if arrival == source:
                    yield q, duration, width, values

    def make_prices(self, now):
        """Subgradient steps on one vector of prices for all scenarios."""
        last, n_scenarios = min(self.horizon, now + self.ahead), len(self.lags)
        window = range(now, last + 1)
        self.price = {t: 0.0 for t in window}
        p = {t: self.iterate.get(t, 0.0) for t in window}
        if now - 1 >= 4:
            tasks = [task for k in range(n_scenarios) for task in self.scenario(now, last, k)]
            worth = [values[0] / (width * duration) for _, duration, width, values in self.past if values]
            rho = sum(worth) / len(worth) if worth else 1.0
            mean = {t: 0.0 for t in window}
            for i in range(self.steps):
                demand, prefix = {t: 0.0 for t in window}, self.prefixes(now, p)
                for q, duration, width, values in tasks:
                    best, chosen = 0.0, None
                    for k, value in enumerate(values):
                        if q + k + duration - 1 > last:
                            break
                        cost = round((prefix[q + k + duration] - prefix[q + k]) * 1e9) * 1e-9
                        if value - width * cost > best:
                            best, chosen = value - width * cost, q + k
                    for t in range(chosen, chosen + duration) if chosen else ():
                        demand[t] += width / n_scenarios
                for t in window:
                    kept = self.slack * min(1.0, (t - now + 1) / self.ramp)
                    supply = self.free[t] - self.capacity * kept
                    length = self.step * rho / math.sqrt(i + 1)
                    p[t] = max(0.0, p[t] - length * (supply - demand[t]) / self.capacity)
                    if i >= self.steps // 2:
                        mean[t] += p[t] / (self.steps - self.steps // 2)
            self.price = mean
        self.iterate = p
