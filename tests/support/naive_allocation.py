"""Plain, slow counterparts of the allocation cores, written from the paper's formulas without the package's code."""

import math
from itertools import pairwise

import numpy as np

SLOPES = {
    0: lambda alpha, y: alpha,
    1: lambda alpha, y: alpha / (y + 1.0),
    2: lambda alpha, y: 1.0 / (y + alpha) ** 2,
    3: lambda alpha, y: alpha / (2.0 * math.sqrt(y + 1.0)),
}
GAINS = {
    0: lambda alpha, y: alpha * y,
    1: lambda alpha, y: alpha * math.log(y + 1.0),
    2: lambda alpha, y: 1.0 / alpha - 1.0 / (y + alpha),
    3: lambda alpha, y: alpha * math.sqrt(y + 1.0) - alpha,
}


def naive_projection(point, bounds, capacity):
    """Nearest point of {0 <= y <= bounds, sum y <= capacity}: every piece between two kinks is tried."""
    point, bounds = np.asarray(point, float), np.asarray(bounds, float)
    clipped = np.clip(point, 0.0, bounds)
    if math.fsum(clipped) <= capacity:
        return clipped
    kinks = sorted({0.0, *point.tolist(), *(point - bounds).tolist()})
    for low, high in pairwise(kinks):
        if high <= 0.0 or math.fsum(np.clip(point - high, 0.0, bounds)) > capacity:
            continue
        middle = low + 0.5 * (high - low)
        full, inside = point - bounds >= middle, (point > middle) & (point - bounds < middle)
        if not inside.any():
            return np.clip(point - high, 0.0, bounds)
        level = (math.fsum(point[inside]) + math.fsum(bounds[full]) - capacity) / inside.sum()
        return np.clip(point - max(level, 0.0), 0.0, bounds)
    return np.zeros_like(point)


def naive_reward(cluster, arrivals, allocation):
    """(5) and (7) of the paper, term by term."""
    total = 0.0
    for port in range(cluster.n_ports):
        gain, used = 0.0, [0.0] * cluster.n_types
        for r in range(cluster.n_instances):
            if cluster.channels[port, r]:
                for k in range(cluster.n_types):
                    y = allocation[port, r, k]
                    gain += GAINS[int(cluster.gain[r, k])](cluster.alpha[r, k], y)
                    used[k] += y
        overhead = max(beta * u for beta, u in zip(cluster.overhead, used, strict=True))
        total += arrivals[port] * (gain - overhead)
    return total


def naive_gradient(cluster, arrivals, allocation):
    """(9) and (10) of the paper, term by term; the first of several dominant types."""
    gradient = np.zeros_like(allocation)
    for port in range(cluster.n_ports):
        held = [cluster.overhead[k] * math.fsum(allocation[port, :, k]) for k in range(cluster.n_types)]
        dominant = held.index(max(held))
        for r in range(cluster.n_instances):
            if cluster.channels[port, r]:
                for k in range(cluster.n_types):
                    slope = SLOPES[int(cluster.gain[r, k])](cluster.alpha[r, k], allocation[port, r, k])
                    gradient[port, r, k] = arrivals[port] * (slope - cluster.overhead[k] * (k == dominant))
    return gradient


def naive_slot(cluster, arrivals, allocation, horizon, step=None):
    """(11) of the paper with the step (26), or the one given: one slot from a state."""
    gradient = naive_gradient(cluster, arrivals, allocation)
    norm = math.sqrt(math.fsum((gradient**2).ravel()))
    if norm == 0.0:
        return allocation.copy()
    if step is None:
        largest = cluster.requirements.max(axis=0)
        diameter = math.sqrt(2.0 * math.fsum(largest * cluster.capacities.sum(axis=0)))
        step = diameter / (norm * math.sqrt(horizon))
    point = allocation + step * gradient
    out = np.zeros_like(allocation)
    for r in range(cluster.n_instances):
        ports = np.flatnonzero(cluster.channels[:, r])
        for k in range(cluster.n_types):
            if ports.size:
                out[ports, r, k] = naive_projection(
                    point[ports, r, k], cluster.requirements[ports, k], cluster.capacities[r, k]
                )
    return out


def random_cluster(rng, n_ports=5, n_instances=7, n_types=3, density=0.7, gain=None, integers=False, contention=2.0):
    """A cluster with random sizes of everything; whole numbers bring ties, some capacities and requests are zero."""
    from marketsched.mechanisms.allocation import BipartiteCluster

    channels = rng.random((n_ports, n_instances)) < density
    channels[np.arange(n_ports), rng.integers(0, n_instances, n_ports)] = True
    capacities = rng.uniform(0.0, 20.0, (n_instances, n_types))
    requirements = contention * rng.uniform(0.0, 20.0 / n_ports, (n_ports, n_types))
    if integers:
        capacities, requirements = np.floor(capacities), np.ceil(requirements)
    capacities[rng.random(capacities.shape) < 0.1] = 0.0
    requirements[rng.random(requirements.shape) < 0.1] = 0.0
    names = np.array(["linear", "log", "reciprocal", "poly"])
    return BipartiteCluster(
        requirements,
        capacities,
        channels,
        names[rng.integers(0, 4, (n_instances, n_types))] if gain is None else gain,
        rng.uniform(1.0, 1.5, (n_instances, n_types)),
        rng.uniform(0.0, 0.5, n_types),
    )
