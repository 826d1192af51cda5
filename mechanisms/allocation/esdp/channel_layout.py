"""Memory layout of allocations: only the channels, instance by instance, each column contiguous over ports.

A *channel array* is a flat float64 array of ``n_channels * n_types`` entries. The block of instance
``r`` starts at ``offsets[r] * n_types`` and has shape ``(n_types, n_r)``, where ``n_r`` is the number
of its ports: the amounts of one type on one instance, a *column*, lie side by side, in the order of
the ports. Projection works column by column, and compiled loops run along columns.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import bool_array, check_shape, read_only
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, legal


class ChannelLayout:
    """Places of the channels of a bipartite cluster in a channel array (see the module).

    Parameters
    ----------
    channels : array_like of bool, shape (n_ports, n_instances)
        Which port may use which instance; every port at least one.
    n_types : int
        K, resource types.

    Attributes
    ----------
    ports, instances : ndarray of int64, shape (n_channels,)
        Ends of each channel, ordered by instance, then by port.
    offsets : ndarray of int64, shape (n_instances + 1,)
        Instance ``r`` has channels ``offsets[r]`` to ``offsets[r + 1]``, the latter excluded.
    size : int
        ``n_channels * n_types``, the length of a channel array.

    Examples
    --------
    >>> layout = ChannelLayout([[True, True], [False, True]], n_types=1)
    >>> layout.ports, layout.offsets
    (array([0, 0, 1]), array([0, 1, 3]))
    >>> layout.to_dense([5.0, 6.0, 7.0])[:, :, 0]
    array([[5., 6.],
           [0., 7.]])
    """

    @legal
    def __init__(self, channels: ArrayLike, n_types: Count) -> None:
        self.n_types = n_types
        self.channels: NDArray[np.bool_] = bool_array("channels", channels, (None, None)).copy()
        self.n_ports, self.n_instances = self.channels.shape
        if self.channels.size == 0:
            raise InvalidParameterError(f"channels has shape {self.channels.shape}: expected a port and an instance")
        lonely = np.flatnonzero(~self.channels.any(axis=1))
        if lonely.size:
            raise InvalidParameterError(f"channels: port {lonely[0]} has no channel: expected at least one per port")
        instances, ports = np.nonzero(self.channels.T)
        self.instances: NDArray[np.int64] = instances.astype(np.int64)
        self.ports: NDArray[np.int64] = ports.astype(np.int64)
        self.offsets: NDArray[np.int64] = np.searchsorted(instances, np.arange(self.n_instances + 1)).astype(np.int64)
        self.n_channels = int(self.ports.size)
        self.size = self.n_channels * self.n_types
        for array in (self.channels, self.instances, self.ports, self.offsets):
            read_only(array)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Place of each channel's amount of each type in a channel array, shape (n_channels, n_types)."""
        start = self.offsets[self.instances]
        degree = np.diff(self.offsets)[self.instances]
        first = start * self.n_types + (np.arange(self.n_channels) - start)
        places = first[:, None] + degree[:, None] * np.arange(self.n_types)
        read_only(places)
        return np.asarray(places, dtype=np.int64)

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Starts of the columns, by instance and then by type, shape (n_instances * n_types + 1,)."""
        degree = np.repeat(np.diff(self.offsets), self.n_types)
        columns = np.concatenate(([0], np.cumsum(degree))).astype(np.int64)
        read_only(columns)
        return columns

    def to_dense(self, flat: ArrayLike) -> NDArray[np.float64]:
        """Return a channel array as (n_ports, n_instances, n_types), zero where there is no channel."""
        values = np.asarray(flat, dtype=np.float64)
        check_shape("flat", values.shape, (self.size,))
        dense = np.zeros((self.n_ports, self.n_instances, self.n_types))
        dense[self.ports, self.instances] = values[self.places]
        return dense

    def to_channels(self, dense: ArrayLike) -> NDArray[np.float64]:
        """Return the channel array of an array (n_ports, n_instances, n_types) without those off the channels."""
        values = np.asarray(dense, dtype=np.float64)
        check_shape("dense", values.shape, (self.n_ports, self.n_instances, self.n_types))
        flat = np.empty(self.size)
        flat[self.places] = values[self.ports, self.instances]
        return flat

    def spread_ports(self, per_port: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the channel array of ``per_port[l, k]``, shape (n_ports, n_types), on every channel of ``l``."""
        flat = np.empty(self.size)
        flat[self.places] = per_port[self.ports]
        return flat

    def spread_instances(self, per_instance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the channel array of ``per_instance[r, k]``, shape (n_instances, n_types), on every one of ``r``."""
        return np.repeat(np.ascontiguousarray(per_instance).ravel(), np.diff(self.columns))
