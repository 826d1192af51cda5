"""Algorithms 1, 2 and 3 as dictionaries and loops: slow, and meant to be checked by reading.

Written from docs/mathematics.md alone. Where it leaves a choice, the reading taken is:

* a job that has executed ``max_duration`` rounds is evicted at the beginning of the next clearing,
  before the load is counted; its line is sorted with the other removals of the round (latest
  submission first);
* prices of ``posted`` pricing are never infinite: the hard cap belongs to Algorithm 3;
* in the ``running`` variant the free capacity R_t is, as in (6), what is left *before* anybody is
  removed in round t.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reference.failures import FailureTable, Residual

TOLERANCE = 1e-12  # of utilities, and of the threshold
CAP_SLACK = 1e-9

Signal = int | str | None
Case = tuple[int, Signal]  # (arrival, signal)


def signal_order(signal: Signal) -> tuple[int, float, str]:
    """Sort key: no signal, then numbers, then labels."""
    if signal is None:
        return (0, 0.0, "")
    return (2, 0.0, signal) if isinstance(signal, str) else (1, float(signal), "")


@dataclass(frozen=True)
class Report:
    """A statement of work: ``law`` maps (arrival, signal, duration) to its probability."""

    birth: int
    concurrency: int
    value: Callable[[int], float]
    law: Mapping[tuple[int, Signal, int], float]
    signals_left_out: bool = False

    def cases(self) -> list[Case]:
        """Return the (arrival, signal) pairs, sorted."""
        return sorted({(a, o) for a, o, _ in self.law}, key=lambda case: (case[0], signal_order(case[1])))

    def durations(self, case: Case) -> dict[int, float]:
        """Return duration -> probability (joint, not conditional) for one (arrival, signal)."""
        return {d: p for (a, o, d), p in sorted(self.law.items(), key=lambda x: x[0][2]) if (a, o) == case}


@dataclass(eq=False)
class Job:
    """A submitted job. ``status``: waiting (until it starts), running, or gone."""

    name: str
    report: Report
    plan: dict[Case, int | None]
    committed: dict[int, float]  # Y_t at the moment of submission: the job's menu
    status: str = "waiting"
    case: Case | None = None  # (arrival, signal), once observed
    start: int | None = None
    duration: int | None = None  # known to the replayer only
    arrive_seen: bool = False

    def rounds_run(self, now: int) -> int:
        """Return how many rounds before ``now`` the job has executed."""
        if self.status != "running":
            return 0
        assert self.start is not None
        return now - self.start


@dataclass(frozen=True)
class Settings:
    """The market's parameters, under the names of the configuration file."""

    capacity: int
    max_concurrency: int
    max_duration: int
    max_value: float
    max_delay: int
    horizon: int
    epsilon: float = 0.0
    threshold: float = 0.0
    pricing: Mapping[str, Any] = field(default_factory=lambda: {"kind": "exponential"})
    eviction: str = "all"

    @property
    def supply(self) -> float:
        """Return C' = (1 - epsilon) C."""
        return (1 - self.epsilon) * self.capacity

    def slot_price(self, t: int, committed: Mapping[int, float]) -> float:
        """Return the price of one node in round ``t``: r(Y_t), or the posted one."""
        if self.pricing["kind"] == "posted":
            prices: list[float] = self.pricing["prices"]
            return prices[min(t, len(prices)) - 1]
        kappa = self.pricing.get("kappa", 1.0)
        low = self.pricing.get("floor")
        high = self.pricing.get("ceiling")
        low = kappa / (2 * self.max_concurrency * self.max_duration) if low is None else low
        high = self.max_value / kappa if high is None else high
        y = committed.get(t, 0.0)
        return float(low * (high / low) ** (y / (self.supply - self.max_concurrency)))

    def formula_price(self, s: int, c: int, d: int, committed: Mapping[int, float]) -> float:
        """Return c times the sum of slot prices: what a completed job is charged."""
        return c * math.fsum(self.slot_price(t, committed) for t in range(s, s + d))

    def price(self, s: int, c: int, d: int, committed: Mapping[int, float]) -> float:
        """Return the announced price: the formula, infinite where the hard cap binds."""
        if self.pricing["kind"] == "exponential":
            for t in range(s, s + d):
                if committed.get(t, 0.0) + c > self.supply + CAP_SLACK:
                    return math.inf
        return self.formula_price(s, c, d, committed)


class Market:
    """Algorithm 1 with the announcements of Algorithm 2 and the prices of Algorithm 3."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.round = 1  # the next round to clear
        self.jobs: list[Job] = []  # in order of submission
        self.committed: dict[int, float] = defaultdict(float)  # Y_t

    def job(self, name: str) -> Job | None:
        """Return the job of that name, if it was submitted."""
        return next((job for job in self.jobs if job.name == name), None)

    def active(self) -> list[Job]:
        """Return the jobs that wait or run, in order of submission."""
        return [job for job in self.jobs if job.status != "gone"]

    def residual(self, job: Job) -> Residual:
        """Return the law of what an active job will still do, given everything observed so far."""
        now, law = self.round, job.report.law
        weights: dict[tuple[int | None, int], float] = defaultdict(float)
        if job.case is None:
            for (a, o, d), p in law.items():
                if a >= now and p > 0:
                    s = job.plan[(a, o)]
                    weights[(None, 0) if s is None else (s, d)] += p
            weights[(None, 0)] += max(0.0, 1 - math.fsum(law.values()))
        else:
            for d, p in job.report.durations(job.case).items():
                if d >= job.rounds_run(now) + 1 and p > 0:
                    weights[(job.start, d)] += p
        weights = {run: w for run, w in weights.items() if w > 0}
        if not weights:  # an observation the report excludes
            outlived = (job.start, self.settings.max_duration)
            weights = {(None, 0) if job.case is None else outlived: 1.0}
        mass = math.fsum(weights.values())
        return Residual(job.report.concurrency, tuple((w / mass, s, d) for (s, d), w in weights.items()))

    def failures(self) -> FailureTable:
        """Return the failure probabilities announced to a job that is submitted now."""
        return FailureTable.of(
            [self.residual(job) for job in self.active()],
            now=self.round,
            horizon=self.settings.horizon,
            capacity=self.settings.capacity,
            eviction=self.settings.eviction,
        )

    def announced_failure(self, table: FailureTable, s: int, c: int, d: int) -> float:
        """Return ftil: the estimate with small values zeroed (Algorithm 2)."""
        if s + d - 1 > self.settings.horizon:
            return 1.0
        estimate = table.failure(s, c, d)
        return min(1.0, estimate) if estimate > self.settings.threshold + TOLERANCE else 0.0

    def submit(self, name: str, report: Report) -> float:
        """Take a report, choose the plan (4), commit its expected usage; return (3)."""
        known = self.settings
        c = report.concurrency
        table = self.failures()
        menu = dict(self.committed)
        plan: dict[Case, int | None] = {}
        total = 0.0

        def value(f: int) -> float:
            return 0.0 if f >= report.birth + known.max_delay or f > known.horizon + 1 else report.value(f)

        for case in report.cases():
            best, plan[case] = 0.0, None
            for s in range(case[0], known.horizon + 1):
                utility = 0.0
                for d, p in report.durations(case).items():
                    if p == 0:
                        continue
                    price = known.price(s, c, d, menu)
                    if price == math.inf:
                        utility = -math.inf
                        break
                    utility += p * (1 - self.announced_failure(table, s, c, d)) * (value(s + d) - price)
                if utility > best + TOLERANCE:
                    best, plan[case] = utility, s
            total += best
        for (a, o, d), p in report.law.items():
            s0 = plan[(a, o)]
            if s0 is not None:
                for t in range(s0, s0 + d):
                    self.committed[t] += p * c
        self.jobs.append(Job(name, report, plan, menu))
        return total

    def arrive(self, job: Job, signal: Signal, duration: int | None = None) -> None:
        """Observe an arrival in the current round."""
        job.arrive_seen = True
        if job.status == "gone":
            return
        job.case = (self.round, signal)
        job.start = job.plan.get(job.case)
        job.duration = duration

    def clear(self) -> list[dict[str, Any]]:
        """Run steps 4 to 6 for the current round; return its decisions."""
        t, known = self.round, self.settings
        lines: list[dict[str, Any]] = []

        def say(event: str, job: Job, **more: Any) -> None:
            lines.append({"round": t, "event": event, "job": job.name, **more})

        for job in self.active():
            if job.case is not None and job.start is None:
                job.status = "gone"
                say("drop", job)

        removed = [j for j in self.active() if j.rounds_run(t) >= known.max_duration]
        counted = [j for j in self.active() if j not in removed and (j.status == "running" or j.start == t)]
        candidates = [j for j in self.active() if j not in removed] if known.eviction == "all" else list(counted)
        load = sum(j.report.concurrency for j in counted)
        while load > known.capacity:
            newest = candidates.pop()
            removed.append(newest)
            if newest in counted:
                counted.remove(newest)
                load -= newest.report.concurrency
        for job in sorted(removed, key=self.jobs.index, reverse=True):
            say("evict" if job.status == "running" else "cancel", job)
            job.status = "gone"

        for job in counted:
            if job.start == t:
                job.status = "running"
                say("start", job)
        self.round = t + 1
        for job in counted:
            if job.duration is not None and job.rounds_run(t + 1) == job.duration:
                lines.append(self.complete(job))
        return lines

    def complete(self, job: Job) -> dict[str, Any]:
        """Charge a job whose last round was the one just cleared."""
        assert job.status == "running" and job.start is not None
        job.status = "gone"
        d = self.round - job.start
        payment = self.settings.formula_price(job.start, job.report.concurrency, d, job.committed)
        return {
            "round": self.round - 1,
            "event": "complete",
            "job": job.name,
            "completion": self.round,
            "payment": payment,
        }

    def sweep(self) -> list[dict[str, Any]]:
        """Remove every active job after the last round."""
        lines = []
        for job in reversed(self.active()):
            event = "evict" if job.status == "running" else "cancel"
            lines.append({"round": self.settings.horizon, "event": event, "job": job.name})
            job.status = "gone"
        return lines
