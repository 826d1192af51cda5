r"""Payments for the allocation cores, which have none of their own.

*OgaSched: capacity prices.* A step with the projection of OgaSched (12) solves, for every slot,

.. math:: \max_{y \in \mathcal{Y}} \; \eta \, g \cdot y - \tfrac12 \lVert y - y(t) \rVert^2 ,

where :math:`g` is the slot's gradient. The dual of :math:`\sum_l y_{(l,r)}^k \le c_r^k` is :math:`\rho_r^k / 2`, with
:math:`\rho` of OgaSched (13). Divided by the step it is a price in credits per device and slot. A port pays it for the
devices that it holds, with a job or without. A column that is not full has price 0. Where several duals fit, the
projection finds the lowest: a port that has all of a column pays what the next one would give for it.

*ESDP: displaced utility.* Selections are whole: capacities have no exact prices. A port pays the most that the others'
present channels could bring with the whole cluster, less the most with what this port leaves, at the mean utilities
seen so far.

*OPM: displaced work, or the budgets themselves.* If no machine is idle, a job pays what the work of its machines would
have been worth to the jobs that could have used it best, by the reported curves. Or jobs pay what they spend.

None of this is claimed to be truthful: prices follow the reports of those who pay them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted import BudgetedProblem
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.oga.cluster import TOLERANCE, BipartiteCluster
from marketsched.mechanisms.allocation.oga.projection import project_columns
from marketsched.mechanisms.arrays import bool_array, float_array
from marketsched.mechanisms.errors import InvalidParameterError


class CapacityPrices:
    """The capacity prices of a run of OgaSched on the reported ``cluster``, slot by slot; the first slot has none.

    ``prices``, shape (n_instances, n_types), are those of the present slot, credits per device. The gradient is taken
    anew from what OgaSched held. Where two types dominate a port's overhead equally, OgaSched may have taken the other
    one by rounding: a column that has room left has price 0 whatever this gradient says.
    """

    def __init__(self, cluster: BipartiteCluster) -> None:
        self.cluster = cluster
        self.prices = np.zeros((cluster.n_instances, cluster.n_types))

    def charge(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what ports pay in the present slot for holding ``flat``, a channel array; shape (n_ports,)."""
        cluster, layout = self.cluster, self.cluster.layout
        self.prices[cluster.used(flat) < cluster.capacities - TOLERANCE * np.maximum(1.0, cluster.capacities)] = 0.0
        per_channel = (flat[layout.places] * self.prices[layout.instances]).sum(axis=1)
        return np.bincount(layout.ports, weights=per_channel, minlength=cluster.n_ports).astype(np.float64)

    def settle(self, flat: NDArray[np.float64], arrivals: ArrayLike, step: float) -> None:
        """End the slot in which ``flat`` was held: its arrivals, as reported, and the step taken (0: no prices)."""
        cluster = self.cluster
        self.prices = np.zeros_like(self.prices)
        if step > 0.0:
            moved = flat + step * cluster.channel_gradient(arrivals, flat)
            settled = project_columns(moved, cluster.bounds, cluster.capacities.ravel(), cluster.layout.columns)
            self.prices = settled.duals.reshape(self.prices.shape) / (2.0 * step)


def displaced_utilities(
    channels: Channels, means: ArrayLike, selected: ArrayLike, arrivals: ArrayLike
) -> NDArray[np.float64]:
    """Return the loss of the other ports from each port's channels in one slot, shape (n_ports,), >= 0.

    ``means`` are utilities of channels as far as they were seen, ``selected`` channels are in use, within the
    capacities; channels of ports without ``arrivals`` are worth nothing.
    """
    shape = (channels.n_channels,)
    values = float_array("means", means, shape, lowest=0.0)
    came, used = channels.present(arrivals), bool_array("selected", selected, shape)
    if not channels.fits(used):
        raise InvalidParameterError("selected is beyond the capacities: expected a selection that fits")
    charges = np.zeros(channels.n_ports)
    for port in np.unique(channels.ports[used]):
        held = channels.requests[used & (channels.ports == port)].sum(axis=0)
        if held.any():
            others = came & (channels.ports != port)
            whole, left = (_best(channels.requests, room, values, others) for room in
                           (channels.capacities, channels.capacities - held))  # fmt: skip
            charges[port] = whole - left
    return charges


def _best(
    requests: NDArray[np.int64], capacities: NDArray[np.int64], values: NDArray[np.float64], among: NDArray[np.bool_]
) -> float:
    """Return the most that channels bring within capacities."""
    none = np.zeros(values.size, dtype=np.int64)
    return float(BudgetedProblem(requests, capacities).solve(none, values, 0, among=among).finite[0])


def displaced_work(
    decision: ArrayLike, work: ArrayLike, works: ArrayLike, weights: ArrayLike, exponents: ArrayLike, waiting: ArrayLike
) -> NDArray[np.float64]:
    """Return the value of each job's machines to another job in one slot, credits, shape (N,); 0 if a machine is idle.

    For each job, machine by machine, the best one first: the most by which its work, added to what another waiting job
    then has, would have raised that job's reported utility. ``works`` are those of jobs before the slot; ``waiting``
    jobs are in the cluster, with budget left.
    """
    before = float_array("works", works, (None,), lowest=0.0)
    scale = float_array("weights", weights, before.shape, lowest=0.0)
    bend = float_array("exponents", exponents, before.shape, lowest=0.0, highest=1.0)
    there = bool_array("waiting", waiting, before.shape)
    jobs = np.asarray(decision)
    done = float_array("work", work, jobs.shape, lowest=0.0)
    if jobs.ndim != 1 or jobs.dtype.kind not in "iu" or (jobs.size and (jobs.min() < -1 or jobs.max() >= before.size)):
        raise InvalidParameterError(f"decision has {jobs.tolist()}: expected -1 or a job below {before.size}")
    charges = np.zeros(before.size)
    if (jobs < 0).any() or not there.any():
        return charges
    reached = before + np.bincount(jobs, weights=done, minlength=before.size)  # with the slot's own work
    for holder in np.unique(jobs):
        others = np.flatnonzero(there & (np.arange(before.size) != holder))
        works_of_others = reached[others]
        for amount in np.sort(done[jobs == holder])[::-1] if others.size else ():
            rises = scale[others] * ((works_of_others + amount) ** bend[others] - works_of_others ** bend[others])
            neediest = int(rises.argmax())
            charges[holder] += rises[neediest]
            works_of_others[neediest] += amount
    return charges
