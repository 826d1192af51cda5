"""The bookings of jobs on a cluster, and the durations of their work there.

A booking is a pool, rounds, and so much of each of its nodes. Whatever a job reported, its work can use a booking
exactly if the tasks of one of its true shapes can run inside it: in that pool, within what is held on each node, for
no more rounds than are booked. Else it brings nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Shape, demand_of
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

    def owed(self, used: int, phi: float = 0.0) -> float:
        """Return the payment for a run of this length: for those, and a share ``phi`` of the price of the rest."""
        price = float(self.quoted[used])
        return price + phi * (float(self.quoted[-1]) - price) if phi else price


def booking_to_data(booking: Booking, cluster: Cluster) -> dict[str, Any]:
    """Return a booking as plain data: ``shape``, ``kind``, ``length`` (rounds) and ``nodes`` by name.

    Of each node ``tasks``, and ``devices`` by resource: pairs of the number of a device on its node, from 0, and the
    parts that are taken of it.
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
    shapes: Sequence[Shape], case: int, value: ValueCurve, booking: Booking, cluster: Cluster
) -> tuple[int, float]:
    """Return how long a job occupies its booking, and what its completion is then worth compared with its value curve.

    Parameters
    ----------
    shapes : sequence of Shape
        The true ones.
    case : int
        Which of their durations it takes.
    value : ValueCurve
        Its true values: of the shapes that can run inside, it runs the one that is worth most.
    booking : Booking
        What it has.
    cluster : Cluster
        Where.

    Returns
    -------
    tuple of int, float
        Rounds and ``worth``; the whole length and 0 if its work cannot be done inside.
    """
    best, found = 0.0, (booking.length, 0.0)
    own = booking.shape if booking.shape < len(shapes) else 0
    for i in [own, *(i for i in range(len(shapes)) if i != own)]:
        duration = shapes[i].duration_on(booking.kind, case)
        if duration is None or duration > booking.length:
            continue
        brings = shapes[i].worth * float(value(booking.start + duration))
        if (brings > best or (i == own and brings == best)) and runs_inside(shapes[i], booking, cluster):
            best, found = brings, (duration, shapes[i].worth)
    return found


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
