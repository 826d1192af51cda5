"""The Monte Carlo oracle: one table, one round's update, and what re-simulating would cost.

Size: 10,000 paths, 256 rounds ahead, durations up to 32, 250 to 4,000 active jobs at 85 % load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from harness import Row, Timed, benchmark, peak_memory, time_interleaved
from marketsched.mechanisms import DeadlineValue, MonteCarloOracle, StatementOfWork
from marketsched.mechanisms.limits import MarketLimits

PATHS, ROUNDS, DURATIONS, WIDEST = 10_000, 224, 32, 4  # 224 starts + 32 durations: 256 rounds
FAR = 100_000


def _statement(rng: np.random.Generator, arrival: int) -> StatementOfWork:
    """Return a job around ``arrival``: 3 arrivals x 5 durations, as a prediction would give."""
    typical = int(rng.integers(2, 17))
    durations = np.unique(np.clip(np.rint(typical * np.array([0.8, 0.9, 1.0, 1.2, 1.6])), 1, DURATIONS).astype(int))
    arrivals = arrival + np.arange(3)
    points = [x.ravel() for x in np.meshgrid(arrivals, durations, indexing="ij")]
    weights = rng.random(points[0].size)
    width = int(rng.integers(1, WIDEST + 1))
    return StatementOfWork.from_arrays(1, width, DeadlineValue(1.0, FAR), points[0], points[1], weights / weights.sum())


def market(n_jobs: int, *, load: float = 0.85, paths: int = PATHS) -> MonteCarloOracle:
    """Return an oracle that follows ``n_jobs`` jobs spread over the coming rounds."""
    rng = np.random.default_rng(7)
    jobs = [_statement(rng, int(a)) for a in np.sort(rng.integers(1, ROUNDS - 2, n_jobs))]
    work = sum(s.concurrency * float(s.law.durations @ s.law.probabilities) for s in jobs)
    capacity = round(work / ROUNDS / load)
    oracle = MonteCarloOracle(paths, 0.0, rng=1)
    oracle.attach(MarketLimits(capacity, FAR, min(WIDEST, capacity), DURATIONS, 1.0, ROUNDS), rng)
    for order, sow in enumerate(jobs):
        oracle.submitted(order, order, sow.concurrency, sow.law, sow.law.group_arrivals)
    return oracle


def table(oracle: MonteCarloOracle) -> NDArray[np.float64]:
    """Return the whole failure table of the widest job."""
    return oracle.failure_table(WIDEST)


class Rounds:
    """A market in its steady state: what a round ends is replaced by new jobs ``ROUNDS`` ahead."""

    def __init__(self, n_jobs: int) -> None:
        self.oracle = market(n_jobs)
        self.rng = np.random.default_rng(3)
        self.ends: dict[int, list[int]] = {}
        self.cases: dict[int, list[tuple[int, int, int, int]]] = {}
        self.orders = n_jobs
        self.per_round = n_jobs / ROUNDS
        for job in range(n_jobs):
            self._decide(job)

    def _decide(self, job: int) -> None:
        """Draw what really happens to a job."""
        law = self.oracle._jobs[job].law
        group = int(self.rng.choice(law.group_arrivals.size, p=law.probabilities))
        start, duration = int(law.group_arrivals[group]), int(law.durations[group])
        self.cases.setdefault(start, []).append((job, group, start, start + duration))

    def refill(self) -> None:
        """Submit new jobs (not part of the round's update)."""
        for _ in range(self.rng.poisson(self.per_round)):
            sow = _statement(self.rng, self.oracle.now + ROUNDS - 4)
            self.oracle.submitted(self.orders, self.orders, sow.concurrency, sow.law, sow.law.group_arrivals)
            self._decide(self.orders)
            self.orders += 1

    def update(self, _: None = None) -> None:
        """Play one round: arrivals, the clearing, completions, and what did not happen."""
        oracle = self.oracle
        due = self.cases.pop(oracle.now, ())
        if due:
            oracle.arrived([(job, group, start) for job, group, start, _end in due])
        for job, _group, _start, end in due:
            self.ends.setdefault(end, []).append(job)
        oracle.advanced(oracle.now + 1)
        for job in self.ends.pop(oracle.now, ()):
            oracle.removed(job)
        oracle._settle()


@njit(cache=True)
def _resimulate(  # type: ignore[no-untyped-def]
    cumulated, offsets, firsts, lasts, widths, uniforms, capacity, now, counts
):
    """Appendix F for one table: draw every job on every path, play the rounds under LIFO, test all launches."""
    n_jobs, n_paths = uniforms.shape
    n_starts, n_durations = counts.shape
    rounds = n_starts + n_durations - 1
    first, last = np.empty(n_jobs, np.int64), np.empty(n_jobs, np.int64)
    load = np.empty(rounds, np.int64)
    for path in range(n_paths):
        load[:] = 0
        for j in range(n_jobs):
            point = np.searchsorted(cumulated[offsets[j] : offsets[j + 1]], uniforms[j, path], side="right")
            point = offsets[j] + min(point, offsets[j + 1] - offsets[j] - 1)
            first[j], last[j] = firsts[point] - now, lasts[point] - now
            for t in range(first[j], min(last[j] + 1, rounds)):
                load[t] += widths[j]
        newest = n_jobs
        lost = rounds
        for t in range(rounds):
            if load[t] > capacity:
                lost = min(lost, t)
            while load[t] > capacity:
                newest -= 1
                for later in range(max(first[newest], t), min(last[newest] + 1, rounds)):
                    load[later] -= widths[newest]
        for s in range(n_starts):
            failing = s > lost
            for d in range(n_durations):
                failing = failing or s + d == lost or load[s + d] > capacity - WIDEST
                counts[s, d] += failing


def resimulation(oracle: MonteCarloOracle) -> NDArray[np.float64]:
    """Return the table as Appendix F computes it, from all jobs anew (one set of paths for all cells)."""
    jobs = list(oracle._jobs.values())
    laws = [r.law.probabilities for r in jobs]
    uniforms = np.random.default_rng(5).random((len(jobs), oracle.samples), dtype=np.float32)
    counts = np.zeros((ROUNDS, DURATIONS), np.int64)
    _resimulate(
        np.concatenate([np.cumsum(p) for p in laws]),
        np.cumsum([0, *(p.size for p in laws)]),
        np.concatenate([r.firsts for r in jobs]),
        np.concatenate([r.lasts for r in jobs]),
        np.array([r.width for r in jobs]),
        uniforms,
        oracle.limits.capacity,
        oracle.now,
        counts,
    )
    return counts / oracle.samples


@benchmark
def one_table() -> Iterator[Row]:
    """One table against one pass over the loads, with few jobs and many, from a light load to overload.

    What a table costs depends on how many loads come near the capacity; the named rows take the
    load at which each is slowest.
    """
    slowest = {250: 0.0, 4000: 0.0}
    worst_over_pass = 0.0
    for load in (0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.2):
        few, many = market(250, load=load), market(4000, load=load)
        candidates: list[Callable[[], Any]] = [
            partial(table, few),
            partial(table, many),
            few._paths.loads.max,
            many._paths.loads.max,
        ]
        times = time_interleaved(candidates, rounds=7)
        over_pass = max(times[0] / times[2], times[1] / times[3])
        slowest = {250: max(slowest[250], times[0]), 4000: max(slowest[4000], times[1])}
        worst_over_pass = max(worst_over_pass, over_pass)
        yield Row(f"oracle.table_over_pass_at_load_{load}", over_pass, "x")
    yield Row("oracle.table_ms", max(slowest.values()) * 1e3, "ms")
    yield Row("oracle.table_over_pass", worst_over_pass, "x", at_most=8)
    yield Row("oracle.jobs_4000_over_250", slowest[4000] / slowest[250], "x", at_most=1.3)


@benchmark
def resimulating() -> Iterator[Row]:
    """What Appendix F would cost for the same table, with few jobs and many."""
    resimulation(market(50))  # compiles
    for n_jobs in (250, 4000):
        oracle = market(n_jobs)
        (once,) = time_interleaved([partial(table, oracle)], rounds=11)
        ratio = Timed(partial(resimulation, oracle)).seconds() / once
        name = "oracle.resimulation_over_table" + ("" if n_jobs == 4000 else f"_{n_jobs}_jobs")
        yield Row(name, ratio, "x", at_least=1000 if n_jobs == 4000 else None)


@benchmark
def one_round() -> Iterator[Row]:
    """One round's update against one table, with the jobs arriving as they go."""
    for n_jobs in (250, 4000):
        rounds = Rounds(n_jobs)
        update, whole = time_interleaved(
            [Timed(rounds.update, rounds.refill), partial(table, rounds.oracle)], rounds=101, shortest=0.0
        )
        yield Row(f"oracle.round_ms_{n_jobs}_jobs", update * 1e3, "ms")
        yield Row(f"oracle.round_over_table_{n_jobs}_jobs", update / whole, "x", at_most=1 if n_jobs == 250 else 4)


def _hold() -> None:
    """Build the large market and ask it once."""
    table(market(4000))


@benchmark
def memory() -> Iterator[Row]:
    """Peak memory of a process that holds the large market; the interpreter and numba included."""
    yield Row("oracle.peak_memory", peak_memory(_hold), "MB", at_most=300)
