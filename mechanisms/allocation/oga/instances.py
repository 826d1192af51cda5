"""Families of random cluster instances for experiments.

The contention level of the OgaSched paper multiplies requirements. ``gain`` is one of the four names
of `gains`, or ``"mixed"``: drawn for every instance and type, each as likely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gains import GAIN_NAMES
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Finite, Natural, Positive, Share, legal
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.randomness import Rng, generator_of

DEVICE_RANGES = ((1, 127), (2, 511), (0, 63), (0, 7), (0, 7), (0, 3))
"""Devices per instance in the published code: CPU, MEM, GPU, TPU, NPU, FPGA; both ends included."""

Range = tuple[float, float]


@legal
def published_instance(
    rng: Rng,
    *,
    n_ports: Count = 10,
    n_instances: Count = 128,
    ports_per_instance: float | None = None,
    contention: Positive = 10.0,
    gain: str = "mixed",
    alpha: Range = (1.0, 1.5),
    overhead: Range = (0.3, 0.5),
    ranges: ArrayLike = DEVICE_RANGES,
) -> BipartiteCluster:
    r"""Return an instance of the published code's family; the defaults are the OgaSched paper's (Table 1).

    Capacities :math:`c_r^k` are whole numbers, uniform over the type's range; requirements
    :math:`a_l^k` are the contention level times a number uniform over the same range;
    :math:`\alpha_r^k` and :math:`\beta_k` are uniform over theirs.

    Parameters
    ----------
    rng : int, Generator or None
    n_ports, n_instances : int
        L, R; the paper's large run has 100 and 1024.
    ports_per_instance : float, optional
        Mean degree of instances, the paper's *graph dense* sum_r \|L_r\| / R; all ports by default
        (`regular_channels`). A port left without an instance takes the place of a port that has several.
    contention : float
        5 in the large run.
    gain : str
        One of the four names, or ``"mixed"``.
    alpha, overhead : tuple of float
        Ends of the ranges; in the large run the overhead's are 0.01 and 0.015.
    ranges : array_like of int, shape (n_types, 2)
        Fewest and most devices of each type per instance.

    Examples
    --------
    >>> published_instance(np.random.default_rng(0), n_instances=8, ports_per_instance=3)
    BipartiteCluster(10 ports, 8 instances, 6 types, 24 channels)
    """
    rng = generator_of(rng)
    low, high = _ends("ranges", ranges).T
    if not (np.floor(low) == low).all() or not (np.floor(high) == high).all():
        raise InvalidParameterError(f"ranges = {np.stack([low, high]).T.tolist()}: expected whole numbers")
    n_types = len(low)
    _check_size(n_ports, n_instances, n_types, ports_per_instance)
    return BipartiteCluster(
        requirements=contention * rng.uniform(low, high, (n_ports, n_types)),
        capacities=rng.integers(low.astype(np.int64), high.astype(np.int64), (n_instances, n_types), endpoint=True),
        channels=regular_channels(rng, n_ports, n_instances, ports_per_instance),
        gain=draw_gains(rng, gain, n_instances, n_types),
        alpha=_uniform(rng, "alpha", alpha, (n_instances, n_types)),
        overhead=_uniform(rng, "overhead", overhead, (n_types,)),
    )


@legal
def pai_like_instance(
    rng: Rng,
    machines: ArrayLike,
    *,
    n_ports: Count = 10,
    n_instances: Count = 128,
    ports_per_instance: float | None = None,
    contention: Positive = 1.0,
    gain: str = "mixed",
    alpha: Range = (1.0, 1.5),
    overhead: Range = (0.3, 0.5),
    share: Range | None = None,
) -> BipartiteCluster:
    """Return a cluster of real machines whose jobs ask for shares of such machines.

    Every instance is a machine drawn from the table ``machines``, capacities of shape (n_machines, n_types). Every port
    draws a machine, too, and asks on each instance for the contention level times a share of it, drawn for each type
    from ``share``. With the default shares, uniform over 1/2 to 3/2 divided by the ports of an instance, contention 1
    means that these ask on average for as much as a machine has. The rest is as in `published_instance`.

    The units of the table matter: gains bend at amounts around 1, overheads add up amounts of one type,
    and so memory in GB dominates every overhead, while memory in units of 8 GB weighs like CPUs.

    Examples
    --------
    >>> table = [[96.0, 512.0, 2.0], [64.0, 512.0, 8.0], [96.0, 384.0, 0.0]]
    >>> pai_like_instance(np.random.default_rng(0), table, n_instances=20)
    BipartiteCluster(10 ports, 20 instances, 3 types, 200 channels)
    """
    rng = generator_of(rng)
    table = float_array("machines", machines, (None, None), lowest=0.0)
    if not table.size or not table.any(axis=1).all():
        raise InvalidParameterError(f"machines has shape {table.shape}: expected machines that all have something")
    n_types = table.shape[1]
    _check_size(n_ports, n_instances, n_types, ports_per_instance)
    channels = regular_channels(rng, n_ports, n_instances, ports_per_instance)
    degree = float(channels.sum() / n_instances)
    share = (0.5 / degree, 1.5 / degree) if share is None else share
    shares = _uniform(rng, "share", share, (n_ports, n_types))
    if shares.min() <= 0.0:
        raise InvalidParameterError(f"share = {share!r}: expected a range of numbers > 0")
    return BipartiteCluster(
        requirements=contention * shares * table[rng.integers(len(table), size=n_ports)],
        capacities=table[rng.integers(len(table), size=n_instances)],
        channels=channels,
        gain=draw_gains(rng, gain, n_instances, n_types),
        alpha=_uniform(rng, "alpha", alpha, (n_instances, n_types)),
        overhead=_uniform(rng, "overhead", overhead, (n_types,)),
    )


@legal
def small_integer_instance(
    rng: np.random.Generator,
    *,
    n_ports: Count = 4,
    n_instances: Count = 5,
    n_types: Count = 2,
    largest_requirement: Natural = 3,
    largest_capacity: Natural = 5,
    density: Share = 0.7,
    gain: str = "mixed",
) -> BipartiteCluster:
    """Return a small instance of whole numbers, where equal amounts, slopes and overheads are common.

    Requirements and capacities are uniform whole numbers from 0; alpha is 1 or 2, and the overheads are 1/4 or 1/2, so
    that sums are exact in floating point and ties are exact ties. ``density`` is the probability of each channel; a
    port without any gets one.

    Examples
    --------
    >>> small_integer_instance(np.random.default_rng(0)).capacities[0]
    array([1., 3.])
    """
    _check_size(n_ports, n_instances, n_types, density * n_ports)
    channels = rng.random((n_ports, n_instances)) < density
    for port in np.flatnonzero(~channels.any(axis=1)):
        channels[port, rng.integers(n_instances)] = True
    return BipartiteCluster(
        requirements=rng.integers(0, largest_requirement, (n_ports, n_types), endpoint=True),
        capacities=rng.integers(0, largest_capacity, (n_instances, n_types), endpoint=True),
        channels=channels,
        gain=draw_gains(rng, gain, n_instances, n_types),
        alpha=rng.integers(1, 2, (n_instances, n_types), endpoint=True),
        overhead=rng.integers(1, 2, n_types, endpoint=True) / 4,
    )


def regular_channels(
    rng: np.random.Generator, n_ports: int, n_instances: int, ports_per_instance: float | None = None
) -> NDArray[np.bool_]:
    """Return channels (n_ports, n_instances) of which every instance has the same number, and every port at least one.

    ``ports_per_instance`` is the mean degree, in [1, n_ports]; all ports by default. With a mean between two whole
    numbers instances have one of the two; which ones have the higher is drawn. The number of all channels is the mean
    times the instances, rounded.
    """
    mean = float(n_ports)
    if ports_per_instance is not None:
        mean = Finite(f"[1, {n_ports}]").check("ports_per_instance", ports_per_instance)
    degree = int(mean) if mean.is_integer() else mean
    if round(mean * n_instances) < n_ports:
        raise InvalidParameterError(
            f"{n_instances} instances of {degree} ports each: expected at least one channel for each of {n_ports} ports"
        )
    drawn = rng.random((n_ports, n_instances))
    order = np.argsort(drawn, axis=0)
    degrees = np.full(n_instances, int(mean))
    # The lowest number of a column says nothing about its order: the one with the higher degree is drawn without
    # another draw, and instances of other means from the same seed differ in their channels alone.
    degrees[np.argsort(drawn.min(axis=0))[: round(mean * n_instances) - degrees.sum()]] += 1
    channels = order < degrees  # each column is a uniform permutation
    for port in np.flatnonzero(~channels.any(axis=1)):
        spare = np.argwhere(channels & (channels.sum(axis=1) > 1)[:, None])  # ports that keep another one
        taken_from, instance = spare[rng.integers(len(spare))]
        channels[taken_from, instance], channels[port, instance] = False, True
    return channels


def draw_gains(rng: np.random.Generator, gain: str, n_instances: int, n_types: int) -> NDArray[np.str_]:
    """Return the name of the gain of every instance and type: the given one, or mixed ones."""
    if gain == "mixed":
        return np.array(GAIN_NAMES)[rng.integers(len(GAIN_NAMES), size=(n_instances, n_types))]
    if gain not in GAIN_NAMES:
        raise InvalidParameterError(f"gain = {gain!r}: expected one of {', '.join(GAIN_NAMES)}, mixed")
    return np.full((n_instances, n_types), gain)


def _check_size(n_ports: int, n_instances: int, n_types: int, ports_per_instance: object) -> None:
    """Refuse a cluster that no memory holds, before anything is drawn."""
    given = isinstance(ports_per_instance, (int, float)) and 0 < ports_per_instance < n_ports
    channels = float(ports_per_instance if given else n_ports) * n_instances  # type: ignore[arg-type]
    at_once = 26.0 * n_ports * n_instances  # draws and their order, before channels are chosen
    at_once += channels * (40.0 + 60.0 * n_types)  # their ends; bounds, allocation, gradient, ... of a policy
    at_once += 64.0 * (n_ports + n_instances) * n_types
    check_memory(
        f"a cluster of {n_ports} ports, {n_instances} instances and {n_types} types",
        at_once,
        "fewer ports or instances",
    )


def _ends(name: str, x: ArrayLike) -> NDArray[np.float64]:
    """Return ranges, shape (n, 2), of numbers >= 0 that do not fall."""
    ends = float_array(name, x, (None, 2), lowest=0.0)
    if not len(ends) or (ends[:, 0] > ends[:, 1]).any():
        raise InvalidParameterError(f"{name} = {ends.tolist()}: expected pairs (low, high) with low <= high")
    return ends


def _uniform(rng: np.random.Generator, name: str, ends: Range, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if len(ends) != 2:
        raise InvalidParameterError(f"{name} = {ends!r}: expected a pair (low, high)")
    low, high = _ends(name, [ends])[0]
    return rng.uniform(low, high, shape)
