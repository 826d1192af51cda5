"""OgaSched with strategic owners of ports: their reports, the core's beliefs, and true utilities.

*Requirements and edges.* The core allocates legally in the cluster of the *reported* requirements and channels. What a
port gets beyond its true :math:`a_l^k`, or on an instance that it has no edge to, is left unused, without gain or
overhead. What it can use is worth its true gain less its true overhead, OgaSched (5).

*Utility curve.* Gains belong to instances and types, not to ports. There are two ways to lie about them.

``worth``
    The port's jobs count as ``worth`` jobs. The counts of arrivals that the core sees are whole, so all ports' counts
    are multiplied with the smallest number q that makes ``q * worth`` whole for all (worths are rounded to fractions
    with denominators up to 24), and this one's with q * worth. The common multiple changes nothing if the step is
    that of OgaSched (26), which is scale-free; with another step it scales all ports', so use whole worths there.
``coefficient``
    The port reports ``coefficient * alpha``. The cluster holds one number per instance and type: the core is given the
    mean of what the ports with a (reported) channel to the instance say.

Policies that only look at who has arrived (DRF, Fairness, ...) ignore both: the truthful control.

With ``payment="capacity prices"`` ports pay for what they hold, used or not (`CapacityPrices`): for OgaSched alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from fractions import Fraction
from math import lcm
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.games import CoreGame, OwnersSlot, Take
from marketsched.cores.agents.reports import CorePublic, PortReport
from marketsched.cores.core import OGASCHED
from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.cluster_environment import ClusterEnvironment
from marketsched.mechanisms.allocation.oga.oga import OgaSched
from marketsched.mechanisms.allocation.payments import CapacityPrices
from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotOutcome
from marketsched.mechanisms.arrays import bool_array, float_array
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.legal import LARGEST_WHOLE, Finite, Named, Whole, legal

FINEST = 24  # denominator of a worth

PolicyMaker = Callable[[BipartiteCluster, int], Policy]


class PortGame(CoreGame):
    """A bipartite cluster whose ports have owners: at most one job per port and slot; every play copies the arrivals.

    ``policy`` makes a fresh policy of (believed cluster, T).

    Examples
    --------
    >>> from marketsched.cores.agents.games import play_out
    >>> from marketsched.cores.agents.reports import CoreLie
    >>> from marketsched.mechanisms.allocation import Fairness, RecordedArrivals
    >>> cluster = BipartiteCluster([[1.0], [1.0]], [[1.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> game = PortGame(cluster, RecordedArrivals([[1, 1]]), 1, lambda believed, horizon: Fairness(believed))
    >>> lie = CoreLie("requirements", 3.0).report(game.truth(0), game.public)
    >>> play_out(game, {}).values, play_out(game, {0: lie}).values
    (array([0.375, 0.375]), array([0.5625, 0.1875]))
    """

    core = OGASCHED

    @legal
    def __init__(
        self,
        cluster: BipartiteCluster,
        arrivals: ArrivalProcess,
        slots: int,
        policy: PolicyMaker,
        payment: Annotated[str, Named(OGASCHED.payments)] = "none",
    ) -> None:
        total = Whole(1, LARGEST_WHOLE if arrivals.slots is None else arrivals.slots).check("slots", slots)
        public = CorePublic(cluster.capacities, total, cluster.channels.sum(axis=0))
        super().__init__(cluster.n_ports, total, payment, public)
        self.cluster, self.policy, self._arrivals = cluster, policy, arrivals

    def truth(self, owner: int) -> PortReport:
        """Return the true report of a port."""
        return PortReport(self.cluster.requirements[owner], self.cluster.channels[owner])

    def _begin(self, reports: list[PortReport]) -> tuple[Policy, Environment, Take]:
        believed = believed_cluster(self.cluster, reports)
        policy = self.policy(believed, self.slots)
        if self.payment != "none" and (not isinstance(policy, OgaSched) or policy.peek):
            raise InvalidParameterError(
                f"payment = {self.payment!r} with policy {policy.name!r}: expected ogasched, which has prices"
            )
        world = _ReportedEnvironment(believed, deepcopy(self._arrivals), _multiples(reports))
        prices = CapacityPrices(believed) if self.payment != "none" else None
        usable, nothing = _usable(self.cluster, believed), np.zeros(self.n_owners)
        held: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []  # of the last slot: amounts and arrivals

        def take(decision: Any, outcome: SlotOutcome) -> OwnersSlot:
            flat = decision if decision.ndim == 1 else believed.layout.to_channels(decision)
            paid = nothing
            if prices is not None:
                if held:  # the policy has learnt from the last slot: its step is known
                    prices.settle(*held.pop(), policy.last_step)  # type: ignore[attr-defined]
                paid = prices.charge(flat)
                held.append((flat.copy(), outcome.feedback[0]))
            gain, overhead = self.cluster.channel_rewards(world.arrived, usable(flat))
            return OwnersSlot(gain - overhead, paid)

        return policy, world, take


class _ReportedEnvironment(ClusterEnvironment):
    """The reported cluster, whose policy sees multiples of the arrivals."""

    def __init__(self, believed: BipartiteCluster, arrivals: ArrivalProcess, multiples: NDArray[np.int64]) -> None:
        super().__init__(believed, arrivals)
        self._multiples = multiples
        self.arrived = np.zeros(believed.n_ports, dtype=np.int64)  # in the slot played last

    def observation(self, observes: str) -> tuple[Any, ...]:
        """Return nothing, or the slot's reported counts."""
        return tuple(counts * self._multiples for counts in super().observation(observes))

    def play(self, decision: Any) -> SlotOutcome:
        """Play the slot; the feedback is that of the reports."""
        outcome = super().play(decision)
        self.arrived = outcome.feedback[0]
        return SlotOutcome(outcome.measures, (self.arrived * self._multiples,))


def believed_cluster(cluster: BipartiteCluster, reports: Sequence[PortReport]) -> BipartiteCluster:
    """Return the cluster that ports describe by their reports; equal to the true one if all tell the truth.

    Capacities, gains and overheads are the operator's, and known. InvalidReportError if a report is not legal.
    """
    for port, report in enumerate(reports):
        _check_report(cluster, report, f"report of port {port}")
    channels = np.stack([report.channels for report in reports])
    factors = np.array([report.coefficient for report in reports])
    degrees = np.maximum(channels.sum(axis=0), 1)
    pooled = np.where(channels.any(axis=0), (factors[:, None] * channels).sum(axis=0) / degrees, 1.0)
    return BipartiteCluster(
        np.stack([report.requirements for report in reports]),
        cluster.capacities,
        channels,
        cluster.gain,
        cluster.alpha * pooled[:, None],
        cluster.overhead,
    )


def _check_report(cluster: BipartiteCluster, report: Any, where: str) -> None:
    if not isinstance(report, PortReport):
        raise InvalidReportError(f"{where} is a {type(report).__name__}: expected a PortReport")
    try:
        float_array("requirements", report.requirements, (cluster.n_types,), lowest=0.0)
        if not bool_array("channels", report.channels, (cluster.n_instances,)).any():
            raise InvalidParameterError("channels has none: expected at least one")
        Finite("(0, inf)").check("worth", report.worth)
        Finite("(0, inf)").check("coefficient", report.coefficient)
    except InvalidParameterError as problem:
        raise InvalidReportError(f"{where}: {problem}") from problem


def _multiples(reports: Sequence[PortReport]) -> NDArray[np.int64]:
    """Return by what the counts of every port are multiplied; see the module."""
    shares = [Fraction(report.worth).limit_denominator(FINEST) for report in reports]
    if min(shares) <= 0:
        raise InvalidReportError(f"worth = {min(r.worth for r in reports):g}: expected at least 1 / {2 * FINEST}")
    unit = lcm(*(share.denominator for share in shares))
    return np.array([int(share * unit) for share in shares], dtype=np.int64)


def _usable(
    cluster: BipartiteCluster, believed: BipartiteCluster
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return a function from what is held (channel array of the believed cluster) to what is used of it."""
    true, reported = cluster.layout, believed.layout
    numbers = np.full((cluster.n_ports, cluster.n_instances), -1, dtype=np.int64)
    numbers[true.ports, true.instances] = np.arange(true.n_channels)
    own = numbers[reported.ports, reported.instances]
    held, used = reported.places[own >= 0].ravel(), true.places[own[own >= 0]].ravel()

    def use(flat: NDArray[np.float64]) -> NDArray[np.float64]:
        amounts = np.zeros(true.size)
        amounts[used] = np.minimum(flat[held], cluster.bounds[used])
        return amounts

    return use
