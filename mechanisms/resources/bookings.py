"""The bookings of jobs on a cluster, and the durations of their work there.

A booking is a pool, rounds, and so much of each of its nodes. Whatever a job reported, its work can use a booking
exactly if the tasks of one of its true shapes can run inside it: in that pool, within what is held on each node, for
no more rounds than are booked. Else it brings nothing. A job starts one of its shapes, and stays with it: which one is
chosen by what the platform has seen of its duration, not by the duration itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Shape, cases_of, demand_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import ValueCurve

if TYPE_CHECKING:  # numba, which scenarios are checked without
    from marketsched.mechanisms.resources.calendars import Placed, Wanted


class Booking(NamedTuple):
    """Rounds ``start .. start + length - 1`` on some nodes of a pool, for good."""

    shape: int  # index among the shapes that the job reported
    kind: str  # of the nodes
    start: int
    length: int  # rounds
    wanted: Wanted
    placed: Placed
    quoted: NDArray[np.float64]  # (length + 1,), what the first 0, 1, ... rounds cost, credits
    phi: float = 0.0  # share of the price of booked rounds that is paid for those not used

    def owed(self, used: int) -> float:
        """Return the payment for ``used`` rounds, at most those booked, with ``phi`` of the price of the rest."""
        price = float(self.quoted[min(used, self.length)])
        return price + self.phi * (float(self.quoted[-1]) - price) if self.phi else price


def booking_to_data(booking: Booking, cluster: Cluster) -> dict[str, Any]:
    """Return a booking as plain data: ``shape``, ``kind``, ``length`` (rounds) and ``nodes`` by name.

    Of each node ``tasks``, and ``devices`` by resource: pairs of a device's number on its node and its parts taken.
    """
    layout, nodes = cluster.layout, {}
    devices = sorted(zip(booking.placed.devices.tolist(), booking.placed.parts.tolist(), strict=True))
    for node, tasks in zip(booking.placed.nodes.tolist(), booking.placed.tasks.tolist(), strict=True):
        own: dict[str, list[list[int]]] = {}
        for k, resource in enumerate(cluster.resources):
            first, last = layout.device_begin[node, k : k + 2].tolist()
            taken = [[device - first, parts] for device, parts in devices if first <= device < last]
            own |= {resource.name: taken} if taken else {}
        nodes[cluster.node_name(node)] = {"tasks": tasks, **({"devices": own} if own else {})}
    return {"shape": booking.shape, "kind": booking.kind, "length": booking.length, "nodes": nodes}


def real_run(
    shapes: Sequence[Shape],
    case: int,
    value: ValueCurve,
    booking: Booking,
    cluster: Cluster,
    chances: Mapping[int, float] | None = None,
) -> tuple[int, float]:
    """Return for how many rounds a job occupies its booking, and the worth of its completion there.

    The whole length and 0 if the work is not done inside. ``shapes`` and ``value`` are the true ones, ``case`` is the
    place of the duration it takes. Of the shapes that can run inside the booking starts the one of largest expected
    value less payment: ``chances`` has how likely each case is by its true law and by what was seen at its arrival;
    None: the case was seen.
    """
    known = {case: 1.0} if not chances else chances
    best, found = -np.inf, (booking.length, 0.0)
    own = booking.shape if booking.shape < len(shapes) else 0
    for i in [own, *(i for i in range(len(shapes)) if i != own)]:
        shape = shapes[i]
        if booking.kind not in shape.on or not runs_inside(shape, booking, cluster):
            continue
        expected, durations = 0.0, shape.on[booking.kind]
        for c, chance in known.items():
            done = durations[c] <= booking.length
            brings = shape.worth * float(value(booking.start + durations[c])) if done else 0.0
            expected += chance * (brings - booking.owed(durations[c]))
        if expected > best:
            done = durations[case] <= booking.length
            best, found = expected, (durations[case], shape.worth) if done else (booking.length, 0.0)
    return found


def chances_of_cases(truth: StatementOfWork, arrival: int, signal: Signal) -> dict[int, float]:
    """Return how likely each case of a statement with shapes is, given what was seen at its arrival.

    By the place of the duration in the first shape; empty if nothing is known, as where the law excludes what was seen.
    """
    law = truth.law
    if law.group_of(arrival, signal) is None:
        return {}
    points, reference = law.points_of(arrival, signal), cases_of(truth.shapes)
    mass = float(law.probabilities[points].sum())
    cases = zip(law.durations[points].tolist(), law.probabilities[points].tolist(), strict=True)
    return {reference.index(duration): p / mass for duration, p in cases if p > 0} if mass > 0 else {}


def runs_inside(shape: Shape, booking: Booking, cluster: Cluster) -> bool:
    """Return whether all tasks of a shape can run on the booked resources of each node."""
    demand, layout, left = demand_of(shape, cluster), cluster.layout, shape.tasks
    most = shape.tasks if shape.per_node is None else shape.per_node
    for node, tasks in zip(booking.placed.nodes.tolist(), booking.placed.tasks.tolist(), strict=True):
        fit = most
        for k, need in enumerate(demand.tolist()):
            if not need:
                continue
            parts = int(layout.device_parts[k])
            if not parts:
                fit = min(fit, tasks * int(booking.wanted.demand[k]) // need)
                continue
            first, last = layout.device_begin[node, k], layout.device_begin[node, k + 1]
            own = booking.placed.parts[(booking.placed.devices >= first) & (booking.placed.devices < last)]
            whole = int((own == parts).sum()) * parts // need
            fit = min(fit, whole if need >= parts else int((own // need).sum()))
        left -= fit
    return left <= 0
