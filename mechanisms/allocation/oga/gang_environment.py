"""Gang scheduling in the slot loop: only allocations that keep the all-or-nothing rule are played."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
from marketsched.mechanisms.allocation.oga.cluster_environment import ArrivalStage, checked_channels
from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster
from marketsched.mechanisms.allocation.slot_loop import Policy, SlotOutcome
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError


class GangEnvironment(ArrivalStage):
    """A gang cluster with its arrivals.

    Measures: ``reward`` = ``gain`` - ``overhead``, ``jobs`` that arrived, and ``launched``, how many of
    these had enough scheduled tasks to run. Feedback: the slot's arrivals, counts of shape (L,).

    Parameters
    ----------
    gang : GangCluster
    arrivals : ArrivalProcess
        At most one job per port and slot.

    Raises
    ------
    InvalidParameterError
        If the ports disagree in number, or more than one job may come to a port in one slot.
    """

    def __init__(self, gang: GangCluster, arrivals: ArrivalProcess) -> None:
        super().__init__(arrivals, gang.n_ports)
        self.gang = gang

    def play(self, decision: Any) -> SlotOutcome:
        """Check the allocation, then draw the arrivals if nobody has seen them, then count the reward.

        Parameters
        ----------
        decision : array_like of float, shape (n_tasks, n_instances, n_types), or channel array of tasks
            Not kept.

        Raises
        ------
        DecisionError
            If it is not a legal allocation of this cluster, or breaks the all-or-nothing rule.
        """
        flat = checked_channels(self.gang.relaxed, decision, self._slot)
        try:
            self.gang.check_gangs(flat)
        except InvalidParameterError as problem:
            raise DecisionError(f"slot {self._slot}: {problem}") from problem
        counts = self._draw()
        gains, overheads = self.gang.channel_rewards(counts, flat)
        launched = counts @ self.gang.launched_channels(flat)
        self._end_slot()
        gain, overhead = float(gains.sum()), float(overheads.sum())
        measures = {
            "reward": gain - overhead,
            "gain": gain,
            "overhead": overhead,
            "jobs": float(counts.sum()),
            "launched": float(launched),
        }
        return SlotOutcome(measures, (counts,))


class GangRepaired:
    """A policy that knows nothing of tasks, made to keep the all-or-nothing rule.

    The policy allocates to the ports of `GangCluster.merged`; what a port gets is divided among its
    tasks in proportion to requirements, and then repaired.

    Parameters
    ----------
    policy : Policy
        A fresh policy of ``gang.merged``, for instance `OgaSched` or one of the baselines.
    gang : GangCluster

    Attributes
    ----------
    name : str
        The policy's, with "-gang" added.
    observes : str
        The policy's.
    """

    def __init__(self, policy: Policy, gang: GangCluster) -> None:
        self.name, self.observes = f"{policy.name}-gang", policy.observes
        self._policy, self._gang = policy, gang

    def allocate_channels(self, *observed: Any) -> NDArray[np.float64]:
        """Return the repaired allocation as a channel array of tasks."""
        compact = getattr(self._policy, "allocate_channels", None)
        if compact is not None:
            flat = compact(*observed)
        else:
            flat = self._gang.merged.layout.to_channels(self._policy.allocate(*observed))
        return self._gang.repair_channels(self._gang.split(flat))

    def allocate(self, *observed: Any) -> NDArray[np.float64]:
        """Return the repaired allocation, shape (n_tasks, n_instances, n_types)."""
        return self._gang.relaxed.layout.to_dense(self.allocate_channels(*observed))

    def update(self, *feedback: Any) -> None:
        """Hand the feedback on."""
        self._policy.update(*feedback)
