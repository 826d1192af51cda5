"""Several jobs per port and slot at ESDP (footnote 1 of the paper): every job of a port gets a port of its own.

A port to which up to J jobs may come is there J times, as in `oga.multiple_arrivals`, and so are its channels. In one
slot the copies of a channel have the same utility: it is that of the server. What is seen of one copy tells nothing of
the others to a policy, which knows them as channels of their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.channel_utilities import UtilitySource
from marketsched.mechanisms.allocation.oga.multiple_arrivals import PortCopies


def copied_channels(channels: Channels, copies: PortCopies) -> tuple[Channels, NDArray[np.int64]]:
    """Return the channels of all copies of the ports, and which channel each is a copy of.

    Examples
    --------
    >>> found, originals = copied_channels(Channels([[1], [2]], [2], [0, 1]), PortCopies([2, 1]))
    >>> found.ports, found.requests[:, 0], originals
    (array([0, 1, 2]), array([1, 1, 2]), array([0, 0, 1]))
    """
    own = [np.flatnonzero(channels.ports == port) for port in copies.ports.tolist()]
    originals = np.concatenate(own)
    ports = np.repeat(np.arange(copies.n_copies), [each.size for each in own])
    made = Channels(channels.requests[originals], channels.capacities, ports, n_ports=copies.n_copies)
    return made, originals


class CopiedUtilities:
    """Utilities of copied channels: those of the originals, slot by slot."""

    def __init__(self, source: UtilitySource, originals: NDArray[np.int64]) -> None:
        self._source, self._originals = source, originals
        self.means: NDArray[np.float64] = source.means[originals]
        self.slots, self.scaling = source.slots, source.scaling

    def begin(self) -> None:
        """Go back to the first slot."""
        self._source.begin()

    def draw(self) -> NDArray[np.float64]:
        """Return the utilities of the next slot, shape (n_copied_channels,)."""
        return self._source.draw()[self._originals]
