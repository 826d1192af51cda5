"""Placements of the tasks of gang jobs on servers, and the rules they obey; see `esdp_gang` for the model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.channel_checks import whole_array
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.errors import InvalidParameterError


class GangChannels(Channels):
    """Placements of tasks on servers.

    Parameters
    ----------
    requests : array_like of int, shape (N, K)
        Units of each resource type a placement takes on its server.
    capacities : array_like of int, shape (R, K)
        Units there are on each server.
    ports, tasks, servers : array_like of int, shape (N,)
        Port, task within the port's job, and server of each placement, from 0.
    minimum : array_like of int, shape (L,)
        m_l: fewest tasks of a job that may run, 0 or 1 for no such rule.

    Raises
    ------
    InvalidParameterError
        If shapes disagree, an entry is out of range, a placement does not fit on its server alone, two
        placements are the same, or a minimum exceeds the tasks of its port.

    Examples
    --------
    >>> gang = GangChannels([[1], [1]], [[2]], [0, 0], [0, 1], [0, 0], [2])
    >>> print(gang.violation(np.array([True, False]), np.array([True])))
    port 0 has 1 tasks placed: expected none or at least 2
    """

    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        tasks: ArrayLike,
        servers: ArrayLike,
        minimum: ArrayLike,
    ) -> None:
        there = whole_array("capacities", capacities, (None, None))
        self.minimum = whole_array("minimum", minimum, (None,))
        super().__init__(requests, there.sum(axis=0), ports, n_ports=len(self.minimum))
        self.server_capacities = there
        self.tasks = whole_array("tasks", tasks, (self.n_channels,))
        self.servers = whole_array("servers", servers, (self.n_channels,))
        if (self.servers >= len(there)).any():
            raise InvalidParameterError(f"servers has {self.servers.max()}: expected numbers below {len(there)}")
        above = np.argwhere(self.requests > there[self.servers])
        if above.size:
            e, k = (int(i) for i in above[0])
            raise InvalidParameterError(
                f"requests[{e}, {k}] = {self.requests[e, k]} is above the {there[self.servers[e], k]} of server "
                f"{self.servers[e]}: expected requests that fit on their server alone"
            )
        places = np.stack((self.ports, self.tasks, self.servers), axis=1)
        if len(np.unique(places, axis=0)) < self.n_channels:
            raise InvalidParameterError("two placements agree in port, task and server: expected each once")
        pairs = np.unique(places[:, :2], axis=0)
        n_tasks = np.bincount(pairs[:, 0], minlength=self.n_ports)
        short = np.flatnonzero(self.minimum > n_tasks)
        if short.size:
            port = int(short[0])
            raise InvalidParameterError(
                f"minimum[{port}] = {self.minimum[port]}: expected at most the port's {n_tasks[port]} tasks"
            )
        for array in (self.server_capacities, self.tasks, self.servers, self.minimum):
            array.setflags(write=False)

    def fits(self, selected: NDArray[np.bool_]) -> bool:
        """Return whether a selection breaks no rule, arrivals aside."""
        return self.violation(selected, np.ones(self.n_ports, dtype=np.bool_)) is None

    def violation(self, selected: NDArray[np.bool_], arrivals: NDArray[np.bool_]) -> str | None:
        """Return which rule a selection breaks, and where, or None."""
        used = np.zeros_like(self.server_capacities)
        np.add.at(used, self.servers[selected], self.requests[selected])
        above = np.argwhere(used > self.server_capacities)
        if above.size:
            r, k = above[0]
            return f"server {r} gives {used[r, k]} of type {k}: expected at most {self.server_capacities[r, k]}"
        pairs, times = np.unique(self.ports[selected] + 1j * self.tasks[selected], return_counts=True)
        if (times > 1).any():
            twice = pairs[np.argmax(times)]
            return f"task {int(twice.imag)} of port {int(twice.real)} is placed {times.max()} times: expected once"
        placed = np.bincount(self.ports[selected], minlength=self.n_ports)
        few = np.flatnonzero((placed > 0) & (placed < self.minimum))
        if few.size:
            port = few[0]
            return f"port {port} has {placed[port]} tasks placed: expected none or at least {self.minimum[port]}"
        absent = np.flatnonzero((placed > 0) & ~arrivals)
        return f"port {absent[0]} has no job: expected no task placed" if absent.size else None
