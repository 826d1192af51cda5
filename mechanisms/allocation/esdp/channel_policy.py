"""The base of policies over channels: the known cluster, present ports, and statistics of channels.

A decision of slot t knows slots 1 .. t - 1 only; so do the statistics here: ESDP (8)-(10) summed up to the slot before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted import MEMORY_LIMIT, BudgetedProblem
from marketsched.mechanisms.arrays import bool_array, check_shape, float_array, whole_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Memory, Whole

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.esdp.gang import GangProblem


class ScaledStatistics(NamedTuple):
    """Whole-number statistics for the dynamic program, shape (E,) each."""

    values: NDArray[np.int64]  # scaled means, ESDP (16)
    variances: NDArray[np.float64]  # scaled variances, ESDP (17): whole numbers; 0 where unseen
    unseen: NDArray[np.bool_]  # channels never used: their variance is +inf


class ChannelStatistics:
    """Counts and sums of the utilities seen on each of E channels.

    ``slot`` is t, the slot to be decided next, from 1; ``counts``, shape (E,), are n of ESDP (8), slots before t in
    which a channel was used; ``totals`` the sums of its utilities in them.
    """

    def __init__(self, n_channels: int) -> None:
        n_channels = Whole(1).check("number of channels", n_channels)
        self.slot = 1
        self.counts = np.zeros(n_channels, dtype=np.int64)
        self.totals = np.zeros(n_channels)

    def update(self, selected: ArrayLike, utilities: ArrayLike) -> None:
        """Take what slot t brought and go on to the next; as `ChannelPolicy.update`."""
        used = bool_array("selected", selected, self.counts.shape)
        try:
            given = np.asarray(utilities)
        except ValueError as problem:  # rows of different length
            raise InvalidParameterError(f"utilities is not an array ({problem}): expected numbers") from problem
        check_shape("utilities", given.shape, used.shape)
        seen = float_array("utilities", np.where(used, given, 0), used.shape, lowest=0.0, highest=1.0)
        self.counts += used
        self.totals += seen
        self.slot += 1

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Channels never used, shape (E,)."""
        return np.asarray(self.counts == 0)

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean utility of each channel, 0 where unseen: ESDP (9); shape (E,)."""
        return np.asarray(self.totals / np.maximum(self.counts, 1))

    def variances(self, exploration: float) -> NDArray[np.float64]:
        """Return ``g(t) / (2 n)``, +inf where unseen: ESDP (10); shape (E,)."""
        return np.where(self.unseen, np.inf, exploration / (2.0 * np.maximum(self.counts, 1)))

    def scaled(self, exploration: float, scale: int) -> ScaledStatistics:
        """Return means times ``scale`` = xi(t), and variances times its square, rounded up: ESDP (16)-(18)."""
        unseen = self.unseen
        finite = np.where(unseen, 0.0, self.variances(exploration))
        values = np.ceil(scale * self.means).astype(np.int64)
        return ScaledStatistics(values, np.ceil(scale**2 * finite), unseen)


class Channels:
    """The part of a cluster that policies know; arrays are kept read-only.

    Parameters
    ----------
    requests : array_like of int, shape (E, K)
        Units of each resource type a channel takes when used, at most what there is.
    capacities : array_like of int, shape (K,)
        Units there are in the whole cluster.
    ports : array_like of int, shape (E,)
        Port of each channel, from 0.
    n_ports : int, optional
        L. If not given, there are at least as many as the largest port says, and perhaps more,
        without channels: longer ``arrivals`` are then taken, too.

    Examples
    --------
    >>> channels = Channels([[1], [2]], [2], [0, 1])
    >>> channels.n_channels, channels.n_types, channels.n_ports
    (2, 1, 2)
    """

    def __init__(
        self, requests: ArrayLike, capacities: ArrayLike, ports: ArrayLike, *, n_ports: int | None = None
    ) -> None:
        self.requests = whole_array("requests", requests, (None, None))
        self.n_channels, self.n_types = self.requests.shape
        if self.requests.size == 0:
            raise InvalidParameterError(
                f"requests has shape {self.requests.shape}: expected at least one channel and one resource type"
            )
        self.capacities = whole_array("capacities", capacities, (self.n_types,))
        self.ports = whole_array("ports", ports, (self.n_channels,))
        lowest = int(self.ports.max()) + 1
        self.n_ports = lowest if n_ports is None else Whole(lowest).check("n_ports", n_ports)
        self._ports_given = n_ports is not None
        above = np.argwhere(self.requests > self.capacities)
        if above.size:
            e, k = above[0]
            raise InvalidParameterError(
                f"requests[{e}, {k}] = {self.requests[e, k]} is above capacities[{k}] = {self.capacities[k]}: "
                "expected requests that fit into the cluster alone"
            )
        for array in (self.requests, self.capacities, self.ports):
            array.setflags(write=False)

    def present(self, arrivals: ArrayLike) -> NDArray[np.bool_]:
        """Return which channels lead from a port with a job, shape (E,); ``arrivals`` has shape (L,)."""
        came = bool_array("arrivals", arrivals, (self.n_ports if self._ports_given else None,))
        if len(came) < self.n_ports:
            raise InvalidParameterError(f"arrivals has shape {came.shape}: expected at least {self.n_ports} ports")
        flags: NDArray[np.bool_] = came[self.ports]
        return flags

    def fits(self, selected: NDArray[np.bool_]) -> bool:
        """Return whether a selection stays within the capacities, ESDP (2)."""
        return bool((self.requests[selected].sum(axis=0) <= self.capacities).all())

    def violation(self, selected: NDArray[np.bool_], arrivals: NDArray[np.bool_]) -> str | None:
        """Return which of ESDP (2) and (4) a selection violates, and where, or None."""
        used = self.requests[selected].sum(axis=0)
        above = np.flatnonzero(used > self.capacities)
        if above.size:
            return f"selection takes {used[above[0]]} of type {above[0]}: expected at most {self.capacities[above[0]]}"
        absent = np.flatnonzero(selected & ~arrivals[self.ports])
        if absent.size:
            return f"selection[{absent[0]}] leads from port {self.ports[absent[0]]}, which has no job: expected false"
        return None

    def problem(self, memory_limit: Memory = MEMORY_LIMIT) -> BudgetedProblem | GangProblem:
        """Return the budgeted problems over these channels; `TooLargeError` if no table of any size holds them."""
        return BudgetedProblem(self.requests, self.capacities, memory_limit=memory_limit)


class ChannelPolicy(ABC):
    """A policy that sees which ports have a job, selects channels, and learns the utilities of those it used.

    Subclasses define ``name`` and `_select`. Arguments are those of `Channels`, or one `Channels` in place of all.
    """

    core: ClassVar[str] = "esdp"
    observes = "arrivals"
    name: str

    def __init__(
        self,
        requests: ArrayLike | Channels,
        capacities: ArrayLike = (),
        ports: ArrayLike = (),
        *,
        n_ports: int | None = None,
    ) -> None:
        if not isinstance(requests, Channels):
            requests = Channels(requests, capacities, ports, n_ports=n_ports)
        self.channels = requests
        self.statistics = ChannelStatistics(self.channels.n_channels)

    def allocate(self, arrivals: ArrayLike) -> NDArray[np.bool_]:
        """Return a legal selection of channels, shape (E,), given which ports have a job, shape (L,)."""
        return self._select(self.channels.present(arrivals))

    def update(self, selected: ArrayLike, utilities: ArrayLike) -> None:
        """Learn from the used channels, shape (E,), and their utilities in [0, 1]; other entries are not looked at."""
        self.statistics.update(selected, utilities)

    @abstractmethod
    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the channels to use among the present ones."""
