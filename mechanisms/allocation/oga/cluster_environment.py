"""A bipartite cluster and its arrivals as an environment of the slot loop.

A policy that observes nothing decides on slot t's allocation before slot t's arrivals are drawn; one
that observes arrivals is handed them first. Decisions outside the legal set are refused: an
allocation that is not feasible earns nothing here, and stops the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.arrivals import ArrivalProcess, ArrivalStage
from marketsched.mechanisms.allocation.oga.cluster import TOLERANCE, BipartiteCluster
from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster
from marketsched.mechanisms.allocation.slot_loop import Policy, SlotOutcome
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError


class ClusterEnvironment(ArrivalStage):
    """A bipartite cluster, or one of gangs, with its arrivals, at most one job per port and slot.

    Measures: ``reward`` = ``gain`` - ``overhead``, summed over ports, and ``jobs``, how many arrived; of gangs
    ``launched``, too: how many of these had enough scheduled tasks to run.
    Feedback: the slot's arrivals, counts of shape (L,).

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import RecordedArrivals, play_slots
    >>> cluster = BipartiteCluster([[2.0]], [[3.0]], [[True]], "linear", 1.0, 0.25)
    >>> class Everything:
    ...     name, observes = "everything", "nothing"
    ...     def allocate(self):
    ...         return [[[2.0]]]
    ...     def update(self, arrivals):
    ...         pass
    >>> play_slots(Everything(), ClusterEnvironment(cluster, RecordedArrivals([[1], [0]])))["reward"]
    array([1.5, 0. ])
    """

    decision_methods = ("allocate_channels", "allocate")
    offers = ("nothing", "arrivals")

    def __init__(self, cluster: BipartiteCluster | GangCluster, arrivals: ArrivalProcess) -> None:
        super().__init__(arrivals, cluster.n_ports)
        self.cluster = cluster
        self.begin()

    def play(self, decision: Any) -> SlotOutcome:
        """Check the allocation, then draw the arrivals if they were not observed, then count the reward.

        The decision, which is not kept, has shape (L, R, K), of gangs (n_tasks, R, K), or is a channel array.
        DecisionError if it is no allocation of this cluster, or not a legal one: of gangs, all or nothing of a job.
        """
        flat = _checked_channels(self.cluster, decision, self._slot)
        counts = self._draw()
        gain, overhead = (float(each.sum()) for each in self.cluster.channel_rewards(counts, flat))
        measures = {"reward": gain - overhead, "gain": gain, "overhead": overhead, "jobs": float(counts.sum())}
        if isinstance(self.cluster, GangCluster):
            measures["launched"] = float(counts @ self.cluster.launched(flat))
        self._end_slot()
        return SlotOutcome(measures, (counts,))


def _checked_channels(cluster: BipartiteCluster | GangCluster, decision: Any, slot: int) -> NDArray[np.float64]:
    """Return a decision as a channel array, a plain one, if it is legal; else raise DecisionError."""
    space = cluster.relaxed if isinstance(cluster, GangCluster) else cluster
    try:
        if isinstance(decision, np.ndarray) and decision.ndim == 1:
            flat = np.asarray(decision)  # of a subclass: the plain array behind it
            if flat.dtype != np.float64 or flat.size != space.layout.size or not is_legal(space, flat):
                space.check_channel_array(flat)
        else:
            dense = float_array("allocation", decision, (space.n_ports, space.n_instances, space.n_types))
            space.check_allocation(dense)
            flat = space.layout.to_channels(dense)
        if isinstance(cluster, GangCluster):
            cluster.check_gangs(flat)
    except InvalidParameterError as problem:
        raise DecisionError(f"slot {slot}: {problem}") from problem
    return flat


def is_legal(cluster: BipartiteCluster, flat: NDArray[np.float64]) -> bool:
    """Return whether a channel array is in Y, up to the tolerance of `BipartiteCluster.check_allocation`."""
    columns = cluster.layout.columns
    return bool(_is_legal_kernel(flat, cluster.bounds, cluster.capacities.ravel(), columns, TOLERANCE))


@njit(cache=True, nogil=True)
def _is_legal_kernel(flat, bounds, capacities, columns, tolerance):  # type: ignore[no-untyped-def]
    """Return whether every entry is within its bounds and every column within its capacity; nan is not."""
    for j in range(capacities.size):
        used, outside = 0.0, 0
        for i in range(columns[j], columns[j + 1]):
            slack = tolerance * max(1.0, bounds[i])
            outside += not (flat[i] >= -slack and flat[i] <= bounds[i] + slack)
            used += flat[i]
        if outside > 0 or not used <= capacities[j] + tolerance * max(1.0, capacities[j]):
            return False
    return True


class GangRepaired:
    """A policy that knows nothing of tasks, made to keep the all-or-nothing rule.

    The fresh ``policy`` allocates to the ports of ``gang.merged``; what a port gets is divided among its
    tasks in proportion to requirements, and then repaired.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import Fairness, GangCluster
    >>> gang = GangCluster([[[2.0], [2.0]]], [[3.0]], [[True]], [2], "linear", 1.0, 0.5)
    >>> policy = GangRepaired(Fairness(gang.merged), gang)
    >>> policy.name, policy.allocate([1])[:, 0, 0]
    ('fairness-gang', array([1.5, 1.5]))
    """

    def __init__(self, policy: Policy, gang: GangCluster) -> None:
        self.name, self.observes = f"{policy.name}-gang", policy.observes
        self.wrapped, self._gang, self._slot = policy, gang, 1

    def allocate_channels(self, *observed: Any) -> NDArray[np.float64]:
        """Return the repaired allocation as a channel array of tasks."""
        decide = getattr(self.wrapped, "allocate_channels", self.wrapped.allocate)
        flat = _checked_channels(self._gang.merged, decide(*observed), self._slot)
        return self._gang.repair(self._gang.split(flat))

    def allocate(self, *observed: Any) -> NDArray[np.float64]:
        """Return the repaired allocation, shape (n_tasks, n_instances, n_types)."""
        return self._gang.relaxed.layout.to_dense(self.allocate_channels(*observed))

    def update(self, *feedback: Any) -> None:
        """Hand the feedback on."""
        self._slot += 1
        self.wrapped.update(*feedback)
