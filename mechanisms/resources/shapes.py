"""Shapes: the alternative ways in which a job can run on a cluster.

A shape is a number of equal tasks that run together, each on one node, all in one pool. "8 GPUs of type A for 2 h,
or 16 of type B for 3 h" is two shapes; a moldable job has one for each width; a job that can use several kinds of nodes
equally has one shape that names them all, with a duration for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.legal import Maybe, Range, Whole, check_fields, is_number
from marketsched.mechanisms.resources.cluster import Cluster

MOST_SHAPES = 16  # of one statement
MOST_TASKS = 100_000
KEPT = 20_000  # statements whose options are remembered
LONGEST = 2**31 - 1  # rounds, as in the law of a statement


class _Worth(Range[float]):
    """Numbers in (0, 1]."""

    def __call__(self, x: object) -> float:
        if not (is_number(x) and 0 < x <= 1):
            raise ValueError("a number in (0, 1]")
        return float(x)


_DURATION = Whole(1, LONGEST)


@dataclass(frozen=True)
class Shape:
    """One way to run a job.

    Parameters
    ----------
    each : mapping of str to float
        The needs of one task, in units of each resource; 0 of missing ones. Of a device either a whole number,
        or a share below 1, which lies on one device.
    on : mapping of str to int, or to sequence of int
        Kinds of nodes on which it can run, and its duration there in rounds. A sequence has one duration for each
        case of the law: on every kind in the same order, and in that of the durations of the statement's law.
    tasks : int
        Equal tasks, which run together.
    per_node : int, optional
        The most of them on one node; None: as many as fit.
    worth : float
        The share of the value curve that the result is worth, in (0, 1].

    Raises
    ------
    InvalidReportError
        If a field is outside its range, or kinds have different numbers of durations.

    Examples
    --------
    >>> shape = Shape({"cpu": 24, "gpu": 4}, {"v100": 36, "a100": 20}, tasks=4, per_node=1)
    >>> shape.on["v100"], shape.duration_on("a100"), shape.kinds
    ((36,), 20, ('v100', 'a100'))
    """

    each: Mapping[str, float]
    on: Mapping[str, tuple[int, ...]]
    tasks: Annotated[int, Whole(1, MOST_TASKS)] = 1
    per_node: Annotated[int | None, Maybe(Whole(1, MOST_TASKS))] = None
    worth: Annotated[float, _Worth()] = 1.0

    def __post_init__(self) -> None:
        check_fields(self, InvalidReportError)
        for name in ("each", "on"):
            if not isinstance(getattr(self, name), Mapping) or not getattr(self, name):
                legal = "amounts by resource" if name == "each" else "durations by kind of node"
                raise InvalidReportError(place=name, value=getattr(self, name), legal=legal)
        for name, amount in self.each.items():
            if not (is_number(amount) and 0 <= amount < 1e100):
                raise InvalidReportError(place=f"each.{name}", value=amount, legal="a finite number >= 0")
        if not any(self.each.values()):
            raise InvalidReportError(place="each", value=dict(self.each), legal="some of at least one resource")
        on = {kind: _durations(f"on.{kind}", given) for kind, given in self.on.items()}
        cases = {kind: len(durations) for kind, durations in on.items()}
        if len(set(cases.values())) > 1:
            raise InvalidReportError(place="on", value=cases, legal="as many durations on every kind")
        object.__setattr__(self, "each", dict(self.each))
        object.__setattr__(self, "on", on)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds it can run on, as they were named."""
        return tuple(self.on)

    @property
    def cases(self) -> int:
        """How many durations it has on each kind."""
        return len(next(iter(self.on.values())))

    def duration_on(self, kind: str, case: int = 0) -> int | None:
        """Return the duration on a kind in one case of the law, rounds; None if it cannot run there."""
        return self.on[kind][case] if kind in self.on else None

    def __hash__(self) -> int:
        """Hash by content (a shape is never changed)."""
        amounts, kinds = tuple(self.each.items()), tuple(self.on.items())
        return hash((amounts, kinds, self.tasks, self.per_node, self.worth))


def _durations(place: str, given: object) -> tuple[int, ...]:
    """Return the durations on one kind; a single one may be given as a number."""
    several = isinstance(given, (list, tuple, np.ndarray))
    listed: Iterable[Any] = given if several else (given,)  # type: ignore[assignment]
    durations = tuple(_DURATION.check(place, each, InvalidReportError) for each in listed)
    if not durations:
        raise InvalidReportError(place=place, value=given, legal="at least one duration")
    return durations


def check_shapes(shapes: object) -> tuple[Shape, ...]:
    """Return the shapes of a statement as a tuple; the first is the one that its law's durations are those of.

    Raises InvalidReportError if they are no list of shapes, more than 16, or have different numbers of cases.
    """
    if isinstance(shapes, (str, bytes)) or not isinstance(shapes, Iterable):
        raise InvalidReportError(place="shapes", value=shapes, legal="a list of Shape")
    found = tuple(shapes)
    if len(found) > MOST_SHAPES:
        raise InvalidReportError(place="shapes", value=len(found), legal=f"at most {MOST_SHAPES} of them")
    for i, shape in enumerate(found):
        if not isinstance(shape, Shape):
            raise InvalidReportError(place=f"shapes[{i}]", value=shape, legal="a Shape")
        if shape.cases != found[0].cases:
            legal = f"{found[0].cases} durations on each kind, as the first shape"
            raise InvalidReportError(place=f"shapes[{i}].on", value=shape.cases, legal=legal)
    return found


def cases_of(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """Return the durations by which the cases of a law are named: of the first shape, on its first kind."""
    return shapes[0].on[shapes[0].kinds[0]]


def case_of(shapes: Sequence[Shape], duration: int | None) -> int:
    """Return the place of the case that a job with these shapes turned out to be; 0 if no case is named so."""
    cases = cases_of(shapes)
    return cases.index(duration) if duration in cases else 0


def check_cases(shapes: tuple[Shape, ...]) -> None:
    """Raise `InvalidReportError` if two cases of the law cannot be told apart by their names where they differ."""
    kind, named = shapes[0].kinds[0], cases_of(shapes)
    for case, duration in enumerate(named):
        first = named.index(duration)
        for i, shape in enumerate(shapes):
            other = next((each for each, on in shape.on.items() if on[first] != on[case]), None)
            if other is not None:
                what = f"cases {first + 1} and {case + 1} of the law take {duration} rounds on {kind}"
                legal = "a kind first, in the first shape, on which all cases differ"
                raise InvalidReportError(f"shapes[0].on: {what}, and differ on {other} in shapes[{i}]", legal=legal)


class Options(NamedTuple):
    """The ways in which a statement can run on a cluster: a row for each shape and pool that could hold it when empty.

    Rows are in the order in which equally good ones are taken: by pool, then by shape, those last that are in a pool
    with devices for which the shape does not ask.
    """

    shape: NDArray[np.int64]  # (n,): index among the shapes of the statement
    pool: NDArray[np.int64]  # (n,)
    tasks: NDArray[np.int64]  # (n,)
    per_node: NDArray[np.int64]  # (n,): the most tasks on one node
    demand: NDArray[np.int64]  # (n, n_resources): of ONE task, in parts
    durations: NDArray[np.int64]  # (n, n_cases): rounds
    worth: NDArray[np.float64]  # (n,)

    @property
    def total(self) -> NDArray[np.int64]:
        """What all tasks take together, in parts, shape (n, n_resources)."""
        return self.tasks[:, None] * self.demand


def options_of(shapes: Iterable[Shape], cluster: Cluster) -> Options:
    """Return where on a cluster a statement of these shapes can run.

    Raises InvalidReportError if a shape names an unknown resource or kind, asks for an amount that is no whole number
    of parts or for parts of several devices, or fits no nodes of any kind that it names.

    Examples
    --------
    >>> from marketsched.mechanisms.resources.cluster import NodeGroup, Resource
    >>> cpu, gpu = Resource("cpu"), Resource("gpu", parts=1000, device=True)
    >>> groups = [NodeGroup("a", "a100", 2, {"cpu": 96, "gpu": 8}), NodeGroup("c", "cpu", 3, {"cpu": 64})]
    >>> options = options_of([Shape({"cpu": 40}, {"a100": 2, "cpu": 3}, tasks=4)], Cluster((cpu, gpu), groups))
    >>> options.pool.tolist(), options.durations.tolist()  # two nodes of 96 hold four tasks, three of 64 three
    ([0], [[2]])
    """
    return _options(tuple(shapes), cluster)


@lru_cache(maxsize=KEPT)
def _options(shapes: tuple[Shape, ...], cluster: Cluster) -> Options:
    """Return the options; kept, since a report is checked at submission and used at arrival."""
    rows: list[tuple[int, int, int, int, NDArray[np.int64], tuple[int, ...], float]] = []
    devices = (cluster.layout.pool_size > 0) & (cluster.layout.device_parts > 0)
    for i, shape in enumerate(shapes):
        demand = demand_of(shape, cluster, f"shapes[{i}]")
        for kind in shape.kinds:
            if kind not in cluster.kinds:
                legal = f"kinds {', '.join(cluster.kinds)}"
                raise InvalidReportError("is no kind of this cluster", place=f"shapes[{i}].on.{kind}", legal=legal)
        most = shape.tasks if shape.per_node is None else min(shape.tasks, shape.per_node)
        held = tasks_held(demand, cluster, most)
        pools = [g for g, kind in enumerate(cluster.pool_kinds) if kind in shape.on and held[g] >= shape.tasks]
        if not pools:
            raise InvalidReportError(_misfit(shape, cluster, demand), place=f"shapes[{i}]")
        rows += [(g, i, shape.tasks, most, demand, shape.on[cluster.pool_kinds[g]], shape.worth) for g in pools]
    rows.sort(key=lambda row: (bool((devices[row[0]] & (row[4] == 0)).any()), *row[:2]))
    columns = list(zip(*rows, strict=True))
    whole = [np.array(column, dtype=np.int64) for column in columns[:6]]
    worths = np.array(columns[6], dtype=np.float64)
    for column in (*whole, worths):
        column.flags.writeable = False
    return Options(whole[1], whole[0], whole[2], whole[3], whole[4], whole[5], worths)


def demand_of(shape: Shape, cluster: Cluster, place: str = "shape") -> NDArray[np.int64]:
    """Return the needs of one task of a shape on a cluster, in parts, shape (n_resources,).

    InvalidReportError if a resource is unknown, an amount no whole number of parts, or parts of several devices.
    """
    known = {resource.name: i for i, resource in enumerate(cluster.resources)}
    demand = np.zeros(len(known), dtype=np.int64)
    for name, amount in shape.each.items():
        where = f"{place}.each.{name}"
        if name not in known:
            raise InvalidReportError(place=where, value=amount, legal=f"resources {', '.join(known)}")
        resource = cluster.resources[known[name]]
        parts = resource.in_parts(where, amount, InvalidReportError)
        if resource.device and parts > resource.parts and parts % resource.parts:
            raise InvalidReportError(place=where, value=amount, legal="whole devices, or a share of one below 1")
        demand[known[name]] = parts
    return demand


def tasks_held(demand: NDArray[np.int64], cluster: Cluster, most: int) -> NDArray[np.int64]:
    """Return how many equal tasks the nodes of each pool hold when they are empty, shape (n_pools,).

    ``demand``, shape (n_resources,), is that of one task, in parts; ``most`` the tasks on one node at most.
    """
    layout = cluster.layout
    tasks = np.full(layout.node_group.size, most, dtype=np.int64)
    for k, need in enumerate(demand.tolist()):
        if need:
            whole, device = layout.size[:, k], int(layout.device_parts[k])
            on_one = device // need if 0 < need < device else 0  # shares that lie on one device
            fit = (whole // device) * on_one if on_one else whole // need
            np.minimum(tasks, fit, out=tasks)
    return np.add.reduceat(tasks, layout.pool_begin[:-1])


def _misfit(shape: Shape, cluster: Cluster, demand: NDArray[np.int64]) -> str:
    """Say of the first kind why a shape does not fit: what is too much for any of its nodes, or how many tasks."""
    kind, layout = shape.kinds[0], cluster.layout
    nodes = np.array([cluster.groups[g].kind == kind for g in layout.node_group])
    for k, resource in enumerate(cluster.resources):
        largest = int(layout.size[nodes, k].max())
        if demand[k] > largest:
            return (
                f"fits no node of {kind}: {resource.name} {shape.each[resource.name]:g} of {largest / resource.parts:g}"
            )
    tasks = "one task" if shape.tasks == 1 else f"{shape.tasks} tasks"
    return f"fits no pool of {kind}: {tasks} of {dict(shape.each)} at once"


def check_first_shape(first: Shape, tasks: int, durations: Sequence[int]) -> None:
    """Raise ``InvalidReportError`` if a law of these durations is not about the first shape of its statement."""
    if tasks != first.tasks:
        raise InvalidReportError(place="concurrency", value=tasks, legal=f"the tasks of shapes[0], {first.tasks}")
    kind = first.kinds[0]
    for duration in durations:
        if duration not in first.on[kind]:
            legal = f"those of shapes[0] on {kind}, {', '.join(map(str, first.on[kind]))}"
            raise InvalidReportError(place="duration in requirements", value=duration, legal=legal)
