"""Several jobs per port and slot: every job of a port gets a port of its own.

If at most J_l jobs come to port l in one slot, the port is copied J_l times (Section 3.4 of the OgaSched paper,
footnote 1 of the ESDP paper): copy j has the same requirements and channels, and holds the slot's j-th job if there is
one. Copies share capacities, and every policy for at most one job per port works as it is. In one slot the copies of an
ESDP channel have the same utility: it is that of the server. A policy knows them as channels of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.channel_utilities import UtilitySource
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.arrays import count_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError


class PortCopies:
    """The copies of every port: port by port, first copies first.

    ``most``, shape (n_ports,), are the J_l; a port with 0 has no copy. ``ports`` and ``ranks``, shape (n_copies,), say
    whose copy each is, and which of the port's jobs it holds, from 1.

    Examples
    --------
    >>> copies = PortCopies([2, 1])
    >>> copies.ports, copies.presence([1, 1])
    (array([0, 0, 1]), array([1, 0, 1]))
    """

    def __init__(self, most: ArrayLike) -> None:
        self.most = read_only(count_array("most", most, np.size(most)).copy())
        if not self.most.any():
            raise InvalidParameterError(f"most = {self.most.tolist()}: expected a port to which jobs can come")
        self.ports: NDArray[np.int64] = read_only(np.repeat(np.arange(self.most.size), self.most))
        self.n_ports, self.n_copies = int(self.most.size), int(self.ports.size)
        first = np.cumsum(self.most) - self.most
        self.ranks: NDArray[np.int64] = read_only(np.arange(self.n_copies) - first[self.ports] + 1)

    def presence(self, counts: ArrayLike) -> NDArray[np.int64]:
        """Return which copies hold a job, zeros and ones, shape (n_copies,), given the jobs of each port."""
        jobs = count_array("counts", counts, self.n_ports)
        if (jobs > self.most).any():
            port = int(np.flatnonzero(jobs > self.most)[0])
            raise InvalidParameterError(f"counts[{port}] = {jobs[port]}: expected at most {self.most[port]} jobs")
        return np.asarray(self.ranks <= jobs[self.ports], dtype=np.int64)

    def replicate(self, cluster: BipartiteCluster) -> BipartiteCluster:
        """Return the cluster whose ports are the copies."""
        self._check_ports(cluster.n_ports)
        return cluster.of_ports(self.ports)

    def channels(self, channels: Channels) -> tuple[Channels, NDArray[np.int64]]:
        """Return the ESDP channels of all copies, and which channel each is a copy of."""
        own = [np.flatnonzero(channels.ports == port) for port in self.ports.tolist()]
        originals = np.concatenate(own)
        ports = np.repeat(np.arange(self.n_copies), [each.size for each in own])
        asked = channels.requests[originals]
        return Channels(asked, channels.capacities, ports, n_ports=self.n_copies), originals

    def _check_ports(self, n_ports: int) -> None:
        if n_ports != self.n_ports:
            raise InvalidParameterError(f"{n_ports} ports: expected {self.n_ports}, one per entry of most")


class _Copied:
    """A source of arrays, slot by slot, of which the copies' are made."""

    def __init__(self, source: Any, copy: Callable[[Any], Any]) -> None:
        self._source, self._copy = source, copy
        self.slots: int | None = source.slots

    def begin(self) -> None:
        """Go back to the first slot; the same comes again."""
        self._source.begin()

    def draw(self) -> Any:
        """Return the next slot's array, an entry for each copy."""
        return self._copy(self._source.draw())


class CopiedArrivals(_Copied):
    """Which copies hold a job, zeros and ones, as an arrival process of the copied cluster."""

    def __init__(self, arrivals: ArrivalProcess, copies: PortCopies) -> None:
        copies._check_ports(arrivals.n_ports)
        copies.presence(arrivals.most)  # raises if there can be more jobs than copies
        super().__init__(arrivals, copies.presence)
        self.n_ports = copies.n_copies
        self.most: NDArray[np.int64] = read_only(np.ones(self.n_ports, dtype=np.int64))


class CopiedUtilities(_Copied):
    """Utilities of copied channels: those of the originals."""

    def __init__(self, source: UtilitySource, originals: NDArray[np.int64]) -> None:
        super().__init__(source, lambda drawn: drawn[originals])
        self.means: NDArray[np.float64] = source.means[originals]
        self.scaling = source.scaling
