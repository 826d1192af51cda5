"""OPM written down from the paper, one number at a time: what the compiled kernels are compared with."""

import math

import numpy as np


def project(y):
    """Solve P4 on one machine by sorting."""
    if np.maximum(y, 0.0).sum() <= 1.0:
        return np.maximum(y, 0.0)
    ordered = np.sort(y)[::-1]
    sums = np.cumsum(ordered) - 1.0
    last = np.flatnonzero(ordered > sums / np.arange(1, y.size + 1))[-1]
    return np.maximum(y - sums[last] / (last + 1), 0.0)


def estimate(works, plays, gamma):
    """(66)-(67) with (14)."""
    rates = []
    for work, tasks in zip(works, plays, strict=True):
        mean = work / (tasks + 1)
        rates.append(min(1.0, mean + 2.0 * (math.sqrt(gamma * mean / (tasks + 1)) + gamma / (tasks + 1))))
    return np.array(rates)


class NaiveOpm:
    """Fractional shares and multipliers of OPM; told what the real one drew and saw."""

    def __init__(self, prices, gamma, alpha, mu, slack, floor, fixed=None):
        self.prices, self.gamma, self.alpha, self.mu, self.slack, self.floor = prices, gamma, alpha, mu, slack, floor
        self.fixed = fixed
        self.works, self.plays = np.zeros(prices.size), np.zeros(prices.size)
        self.jobs = {}
        self.old_rates = self.rates()

    def rates(self):
        return estimate(self.works, self.plays, self.gamma) if self.fixed is None else self.fixed

    def add(self, job, arrival, deadline, budget, weight, exponent):
        zero = np.zeros(self.prices.size)
        self.jobs[job] = {
            "arrival": arrival, "share": (1 - self.slack) * budget / (deadline - arrival), "weight": weight,
            "exponent": exponent, "dual": 0.0, "x": zero, "x_before": zero, "work": 0.0,
        }  # fmt: skip

    def step(self, slot):
        rates = self.rates()
        points = []
        for job in self.jobs.values():
            over = self.prices @ job["x"] - job["share"]  # (64)
            over_before = self.prices @ job["x_before"] - job["share"]
            job["dual"] = max(0.0, job["dual"] + 2 * self.mu * over - self.mu * over_before)  # (73)
            begun = slot - 1 - job["arrival"]
            average = max(job["work"] / begun if begun else 0.0, self.floor)
            slope = job["weight"] * job["exponent"] * average ** (job["exponent"] - 1)
            points.append(job["x"] + self.alpha * (self.old_rates * slope - job["dual"] * self.prices))  # (69)
        shares = np.array(points)
        for i in range(self.prices.size):
            shares[:, i] = project(shares[:, i])
        for job, x in zip(self.jobs.values(), shares, strict=True):
            job["x_before"], job["x"] = job["x"], x
            job["work"] += rates @ x
        self.old_rates = rates

    def learn(self, decision, work):
        self.plays += decision >= 0
        self.works += np.where(decision >= 0, work, 0.0)
