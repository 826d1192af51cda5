"""Gang clusters for tests, and what section 3.5 says written out naively, with loops over dense arrays."""

import numpy as np

import naive_allocation
from marketsched.mechanisms.allocation import GangCluster
from marketsched.mechanisms.allocation.oga.instances import draw_gains


def random_gang(seed, *, share=0.0, n_ports=3, n_instances=3, n_types=2, gain="mixed", whole=True):
    """Return a small gang cluster; whole numbers make ties, zero capacities and zero requirements common."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, n_ports)

    def draw(most, shape):
        return rng.integers(0, most + 1, shape) if whole else rng.uniform(0, most, shape)

    channels = rng.random((n_ports, n_instances)) < 0.7
    channels[np.arange(n_ports), rng.integers(n_instances, size=n_ports)] = True
    return GangCluster(
        [draw(3, (size, n_types)) for size in sizes],
        draw(5, (n_instances, n_types)),
        channels,
        rng.integers(1, sizes + 1),
        draw_gains(rng, gain, n_instances, n_types),
        rng.integers(1, 3, (n_instances, n_types)),
        rng.integers(0, 5, n_types) / 4,
        task_share=share,
    )


def random_allocation(gang, seed):
    """Return an allocation that is legal but for the all-or-nothing rule; some tasks get nothing."""
    rng = np.random.default_rng(seed)
    point = rng.uniform(-1, 3, (gang.n_tasks, gang.relaxed.n_instances, gang.relaxed.n_types))
    point[rng.random(gang.n_tasks) < 0.4] = -1.0
    return shrunk(gang, np.clip(point, 0, gang.relaxed.requirements[:, None, :]) * gang.relaxed.channels[:, :, None])


def shrunk(gang, y):
    """Return ``y`` scaled down on every instance and type where it takes more than there is."""
    used = y.sum(axis=0)
    room = gang.relaxed.capacities
    return y * np.divide(room, used, out=np.ones_like(used), where=used > room)


def reward_of(gang, counts, y):
    """Return the reward of a slot, summed over ports, of a dense allocation."""
    gains, overheads = gang.channel_rewards(counts, gang.relaxed.layout.to_channels(y))
    return (gains - overheads).sum()


def repaired_of(gang, y):
    """Return the repair of a dense allocation."""
    layout = gang.relaxed.layout
    return layout.to_dense(gang.repair(layout.to_channels(y)))


def naive_reward(gang, counts, y):
    """Return the reward of section 3.5: that of the ports, each with what its tasks have together."""
    together = np.zeros((gang.n_ports, *y.shape[1:]))
    np.add.at(together, gang.task_ports, y)
    return naive_allocation.naive_reward(gang.merged, counts, together)


def counted_tasks(gang, y):
    """Return which tasks count as scheduled: they get something, and their share of every type."""
    counted = []
    for q in range(gang.n_tasks):
        got = [sum(y[q, r, k] for r in range(gang.relaxed.n_instances)) for k in range(gang.relaxed.n_types)]
        needed = [gang.task_share * a for a in gang.relaxed.requirements[q]]
        counted.append(sum(got) > 0 and all(g >= n * (1 - 1e-9) for g, n in zip(got, needed, strict=True)))
    return counted


def violations(gang, y, slack=1e-9):
    """Return everything that is wrong with an allocation, in words; empty: it is legal."""
    cluster, wrong = gang.relaxed, []
    counted = counted_tasks(gang, y)
    for q in range(gang.n_tasks):
        for r in range(cluster.n_instances):
            for k in range(cluster.n_types):
                most = cluster.requirements[q, k] if cluster.channels[q, r] else 0.0
                if not 0 <= y[q, r, k] <= most + slack:
                    wrong.append(f"task {q} has {y[q, r, k]} of at most {most}")
        if not counted[q] and y[q].any():
            wrong.append(f"task {q} does not count but has something")
    for r in range(cluster.n_instances):
        for k in range(cluster.n_types):
            if sum(y[q, r, k] for q in range(gang.n_tasks)) > cluster.capacities[r, k] + slack:
                wrong.append(f"instance {r} gives more of type {k} than it has")
    for port in range(gang.n_ports):
        n = sum(counted[q] for q in range(gang.n_tasks) if gang.task_ports[q] == port)
        if 0 < n < gang.minimum_tasks[port]:
            wrong.append(f"port {port} has {n} tasks of at least {gang.minimum_tasks[port]}")
    return wrong
