"""OgaSched's slot against one pass over its amounts, against two threads, and against NumPy; whole runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np
from numba import njit
from numpy.typing import NDArray

from harness import Row, benchmark, time_interleaved
from marketsched.mechanisms.allocation import (
    BernoulliArrivals,
    BipartiteCluster,
    ClusterEnvironment,
    OgaSched,
    play_slots,
    published_instance,
)

Numbers = NDArray[np.float64]
PROBABILITY = 0.7
SEED = 4


def default_cluster(ports_per_instance: int | None = None) -> BipartiteCluster:
    """Return an instance of the paper's default size: L = 10, R = 128, K = 6, mixed gains."""
    return published_instance(np.random.default_rng(SEED), ports_per_instance=ports_per_instance)


def large_cluster(ports_per_instance: int | None = None) -> BipartiteCluster:
    """Return an instance of the paper's large size: L = 100, R = 1024, K = 6, mixed gains."""
    return published_instance(
        np.random.default_rng(SEED),
        n_ports=100,
        n_instances=1024,
        contention=5.0,
        overhead=(0.01, 0.015),
        ports_per_instance=ports_per_instance,
    )


def slots(policy: OgaSched | NumpySlots, n_ports: int) -> Callable[[], None]:
    """Return a function that plays one slot, always another one of the same 64 draws of arrivals."""
    draws = np.random.default_rng(SEED).random((64, n_ports)) < PROBABILITY
    arrivals = cycle(list(draws.astype(np.int64)))
    for _ in range(64):  # away from the first allocation
        policy.update(next(arrivals))
    return lambda: policy.update(next(arrivals))


@njit(cache=True)
def one_pass(y):  # type: ignore[no-untyped-def]
    """Read and write every amount once."""
    for i in range(y.size):
        y[i] = y[i] * 0.999 + 0.001


class NumpySlots:
    """The same slot in NumPy, every column at once; all channels, at most one job per port.

    Slopes are computed per gain on the columns that have it, and the projection is exact: the kinks of all
    columns are sorted, the sums at the kinks accumulated.
    """

    def __init__(self, cluster: BipartiteCluster, horizon: int) -> None:
        n_ports = cluster.n_ports
        self.ports, self.overhead = np.arange(n_ports), cluster.overhead
        self.shape = (cluster.n_instances, cluster.n_types, n_ports)
        self.capacities = cluster.capacities.reshape(-1)
        asked = np.broadcast_to(cluster.requirements.T, self.shape).reshape(-1, n_ports)
        self.y: Numbers = asked * np.minimum(1.0, self.capacities / asked.sum(axis=1))[:, None]
        self.bounds = np.minimum(asked, self.capacities[:, None])  # the same set
        self.rows = np.arange(self.capacities.size)
        self.columns = [np.flatnonzero(cluster.gain.reshape(-1) == code) for code in range(4)]
        self.alpha = [cluster.alpha.reshape(-1, 1)[columns] for columns in self.columns]
        self.slopes = np.empty_like(self.y)
        self.slopes[self.columns[0]] = self.alpha[0]
        self.reach = cluster.diameter() / horizon**0.5

    def update(self, arrivals: NDArray[np.int64]) -> None:
        """Gradient, step, projection."""
        y, slopes = self.y, self.slopes
        _, log, reciprocal, poly = self.columns
        slopes[log] = self.alpha[1] / (y[log] + 1.0)
        slopes[reciprocal] = (y[reciprocal] + self.alpha[2]) ** -2.0
        slopes[poly] = 0.5 * self.alpha[3] / np.sqrt(y[poly] + 1.0)
        dominant = (self.overhead[:, None] * y.reshape(self.shape).sum(axis=0)).argmax(axis=0)
        gradient = (slopes * arrivals).reshape(self.shape)
        gradient[:, dominant, self.ports] -= arrivals * self.overhead[dominant]
        flat = gradient.reshape(-1)
        norm = float(np.sqrt(flat @ flat))
        if norm > 0.0:
            self.y = self.project(y + self.reach / norm * gradient.reshape(y.shape))

    def project(self, z: Numbers) -> Numbers:
        """Return the nearest legal point: falling, a level meets a port at z and fills it at z - a."""
        kinks = np.concatenate((z, z - self.bounds), axis=1)
        order = np.argsort(-kinks, axis=1)
        kinks = np.take_along_axis(kinks, order, axis=1)
        inside = np.cumsum(np.where(order < z.shape[1], 1.0, -1.0), axis=1)
        sums = np.zeros_like(kinks)
        np.cumsum(inside[:, :-1] * (kinks[:, :-1] - kinks[:, 1:]), axis=1, out=sums[:, 1:])
        last = (sums < self.capacities[:, None]).sum(axis=1) - 1
        with np.errstate(divide="ignore", invalid="ignore"):  # columns that meet their capacity at no level
            level = kinks[self.rows, last] - (self.capacities - sums[self.rows, last]) / inside[self.rows, last]
        lowered: Numbers = np.clip(z - np.fmax(level, 0.0)[:, None], 0.0, self.bounds)
        return lowered


def _check_agreement(cluster: BipartiteCluster) -> None:
    """Raise unless both play the same first slots: a benchmark of different things would say nothing."""
    ours, numpys = OgaSched(cluster, 2000), NumpySlots(cluster, 2000)
    for arrivals in (np.random.default_rng(1).random((5, cluster.n_ports)) < PROBABILITY).astype(np.int64):
        ours.update(arrivals)
        numpys.update(arrivals)
        there = numpys.y.reshape(numpys.shape).transpose(2, 0, 1)
        if not np.allclose(ours.allocate(), there, rtol=0.0, atol=1e-9):
            raise RuntimeError("the slot in NumPy and the compiled one differ")


@benchmark
def oga_slot() -> Iterator[Row]:
    """One slot (gradient, step, projection) over one pass, on one thread and on two, in NumPy."""
    cluster = large_cluster()
    y = np.random.default_rng(0).random(cluster.layout.size)
    candidates = [slots(OgaSched(cluster, 10_000, threads=n), cluster.n_ports) for n in (1, 2)]
    one, two, over = time_interleaved([*candidates, lambda: one_pass(y)], rounds=61)
    yield Row("oga.large_slot_ms", 1e3 * one, "ms")
    yield Row("oga.slot_over_pass", one / over, "x", at_most=30.0)
    enough = (os.cpu_count() or 1) > 1
    yield Row("oga.one_over_two_threads", one / two, "x", at_least=1.85 if enough else None)

    cluster = default_cluster()
    _check_agreement(cluster)
    candidates = [slots(policy, cluster.n_ports) for policy in (OgaSched(cluster, 2000), NumpySlots(cluster, 2000))]
    ours, numpys = time_interleaved(candidates, rounds=101)
    yield Row("oga.default_slot_us", 1e6 * ours, "us")
    yield Row("oga.numpy_over_slot", numpys / ours, "x", at_least=25.0)

    for name, few in (("default", default_cluster(3)), ("large", large_cluster(3))):
        (ours,) = time_interleaved([slots(OgaSched(few, 2000), few.n_ports)])
        yield Row(f"oga.{name}_three_channels_slot_us", 1e6 * ours, "us")


@benchmark
def oga_runs() -> Iterator[Row]:
    """Whole runs through the slot loop, rewards included: T = 8000 by default, and a tenth of the large run."""
    threads = os.cpu_count() or 1
    for name, cluster, horizon, played in (
        ("default_8000", default_cluster(), 8000, 8000),
        ("large_1000", large_cluster(), 10_000, 1000),
    ):
        arrivals = BernoulliArrivals(PROBABILITY, np.random.default_rng(SEED), n_ports=cluster.n_ports)
        environment = ClusterEnvironment(cluster, arrivals)
        play_slots(OgaSched(cluster, horizon, threads=threads), environment, slots=20)
        begin = time.perf_counter()
        play_slots(OgaSched(cluster, horizon, threads=threads), environment, slots=played)
        yield Row(f"oga.{name}_run_s", time.perf_counter() - begin, "s")
