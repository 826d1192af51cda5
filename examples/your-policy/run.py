"""A policy of your own for a cluster: ports in random order take what they ask for, or a share of it."""

import matplotlib.pyplot as plt
import numpy as np

from marketsched import compare, figure_style
from marketsched.mechanisms import register
from marketsched.mechanisms.allocation import BipartiteCluster


@register("policy", "lottery")
class Lottery:
    """``cluster`` and ``rng`` come from the scenario; ``greed``, of what a port asks for, is set in it."""

    name, observes = "lottery", "arrivals"

    def __init__(self, cluster: BipartiteCluster, rng: np.random.Generator, greed: float = 1.0) -> None:
        self.cluster, self.rng, self.greed = cluster, rng, greed

    def allocate(self, arrivals: np.ndarray) -> np.ndarray:
        """Return who gets how much of what, shape (ports, instances, types)."""
        left, given = self.cluster.capacities.copy(), np.zeros((len(arrivals), *self.cluster.capacities.shape))
        for port in self.rng.permutation(np.flatnonzero(arrivals)):
            wanted = self.greed * self.cluster.requirements[port] * self.cluster.channels[port][:, None]
            given[port] = np.minimum(wanted, left)
            left -= given[port]
        return given

    def update(self, arrivals: np.ndarray) -> None:
        """Learn nothing."""


policies = ["lottery", "lottery:greed=0.5", "lottery:greed=0.1", "fairness", "ogasched"]
scenario = {"name": "mine", "cluster": {"slots": 300, "policies": policies}}
found = compare(scenario, runs=5)
shares = found.runs.pivot(index="seed", columns="policy", values="reward").div(
    found.runs.pivot(index="seed", columns="policy", values="reference")
)
for policy in policies:
    print(f"{policy}: {100 * shares[policy].mean():.1f} % of the best fixed allocation ({len(shares)} seeds)")
plt.rcParams.update(figure_style())
figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
axes.barh(policies, 100 * shares[policies].mean())
axes.bar_label(axes.containers[0], fmt="%.0f", padding=3)
axes.invert_yaxis()
axes.set_xlabel("reward, % of the best fixed allocation")
figure.savefig("figure.png", dpi=110)
