"""Clusters and shapes in scenario files: the key ``cluster`` of a workload, and ``shapes`` of a job.

A shape says where it runs, and for how long, in one of three forms::

    on: {a100: 24, v100: 36}                               # rounds on each kind
    on: {a100: [6, 12]}, law: [0.5, 0.5]                   # or one for each case of a law
    on: [a100, v100], law: [[6, 0.5], [12, 0.5]], speed: {v100: 0.6}     # rounds at speed 1, divided by the speed
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from marketsched.config.strict_yaml import Name, Strict
from marketsched.mechanisms.errors import InvalidReportError, placed
from marketsched.mechanisms.legal import Finite, Range, Whole, is_number
from marketsched.mechanisms.resources.cluster import MOST_NODES, Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape, check_shapes, options_of

_SPEED = Finite("(0, inf)")
_ROUNDS = Finite("(0, 2147483647]")  # at speed 1
_KEYS = ("tasks", "each", "per_node", "on", "worth", "law", "speed")


class ResourceSection(Strict):
    """One resource: its whole parts, and whether it comes in devices."""

    unit: str = ""
    parts: Annotated[int, Whole(1, 1_000_000_000)] = 1
    device: StrictBool = False


class GroupSection(Strict):
    """Equal nodes of a kind."""

    name: Name
    kind: Name
    nodes: Annotated[int, Whole(1, MOST_NODES)]
    each: dict[str, float]


class _Pools(Range[Any]):
    """What nodes share prices: those of a kind, of a group, or of the groups that are listed together."""

    def __call__(self, x: object) -> Any:
        if x in ("kind", "group"):
            return x
        if isinstance(x, (list, tuple)) and x and all(isinstance(pool, (list, tuple)) and pool for pool in x):
            return tuple(tuple(map(str, pool)) for pool in x)
        raise ValueError("'kind', 'group', or a list of lists of groups, as in [[a, b], [c]]")


class ClusterSection(Strict):
    """The nodes that a workload is made for, in place of ``capacity``."""

    resources: Annotated[dict[str, ResourceSection], Field(min_length=1)]
    groups: Annotated[tuple[GroupSection, ...], Field(min_length=1)]
    pools: Annotated[Literal["kind", "group"] | tuple[tuple[str, ...], ...], _Pools()] = "kind"

    def cluster(self) -> Cluster:
        """Return the cluster.

        Raises
        ------
        InvalidParameterError
            If names stand twice or are unknown, or an amount is no whole number of parts.
        """
        resources = tuple(Resource(name, x.parts, x.device, x.unit) for name, x in self.resources.items())
        groups = tuple(NodeGroup(group.name, group.kind, group.nodes, group.each) for group in self.groups)
        with placed("workload.cluster"):
            return Cluster(resources, groups, self.pools)


def shapes_from_data(given: object, cluster: Cluster, max_duration: int) -> tuple[tuple[Shape, ...], tuple[float, ...]]:
    """Return the shapes that a list describes, and the probabilities of the cases of their law.

    Raises
    ------
    InvalidReportError
        If a key is missing, unknown or out of range, laws differ, or a shape fits nowhere; the message names its place.
    """
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)) or not given:
        raise InvalidReportError(place="shapes", value=given, legal="a list of at least one shape")
    shapes, laws = [], []
    for i, fields in enumerate(given):
        with placed(f"shapes[{i}]"):
            shape, law = _shape(fields)
            for kind, durations in shape.on.items():
                for duration in durations:
                    Whole(1, max_duration).check(f"on.{kind}", duration, InvalidReportError)
        shapes.append(shape)
        laws.append(law)
    for i, law in enumerate(laws):
        if law != laws[0]:
            raise InvalidReportError(place=f"shapes[{i}].law", value=law, legal=f"that of shapes[0], {laws[0]}")
    found = check_shapes(shapes)
    options_of(found, cluster)
    return found, laws[0]


def _shape(fields: object) -> tuple[Shape, tuple[float, ...]]:
    """Read one shape, and the probabilities of its cases."""
    if not isinstance(fields, Mapping):
        raise InvalidReportError(value=fields, legal=f"an object with {', '.join(_KEYS)}")
    for key in fields:
        if key not in _KEYS:
            raise InvalidReportError("is unknown", place=str(key), legal=f"one of {', '.join(_KEYS)}")
    for key in ("each", "on"):
        if key not in fields:
            raise InvalidReportError("is missing", place=key, legal="what one task needs, and where it runs")
    on, law = _durations(fields)
    more = {key: fields[key] for key in ("tasks", "per_node", "worth") if key in fields}
    return Shape(fields["each"], on, **more), law


def _durations(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[float, ...]]:
    """Return the durations by kind, and the probabilities of their cases."""
    on, law, speed = fields["on"], fields.get("law"), fields.get("speed", {})
    if isinstance(on, Mapping):
        if speed:
            raise InvalidReportError(place="speed", value=speed, legal="none where `on` has durations")
        cases = max((len(d) if isinstance(d, list) else 1 for d in on.values()), default=1)
        chances = [1.0] if law is None and cases == 1 else law
        return on, _chances(chances, cases)
    kinds = isinstance(on, list) and bool(on) and all(isinstance(kind, str) for kind in on)
    if not kinds or not isinstance(law, list) or not law or not all(_is_pair(row) for row in law):
        legal = "rounds by kind, or a list of kinds with law: [[rounds, probability], ...]"
        raise InvalidReportError(place="on", value=on, legal=legal)
    if not isinstance(speed, Mapping):
        raise InvalidReportError(place="speed", value=speed, legal="speeds by kind")
    for kind in speed:
        if kind not in on:
            raise InvalidReportError(place=f"speed.{kind}", value=speed[kind], legal=f"speeds on {', '.join(on)}")
    lengths = [_ROUNDS.check(f"law[{i}]", rounds, InvalidReportError) for i, (rounds, _) in enumerate(law)]
    found = {}
    for kind in on:
        factor = _SPEED.check(f"speed.{kind}", speed.get(kind, 1.0), InvalidReportError)
        found[kind] = [_whole_rounds(f"speed.{kind}", rounds / factor) for rounds in lengths]
    return found, _chances([p for _, p in law], len(law))


def _whole_rounds(place: str, rounds: float) -> int:
    """Return how many rounds a run takes; a tiny speed makes it longer than any market is."""
    return max(1, math.ceil(_ROUNDS.check(place, rounds, InvalidReportError) - 1e-9))


def _chances(given: object, cases: int) -> tuple[float, ...]:
    if (
        not isinstance(given, (list, tuple))
        or len(given) != cases
        or not all(is_number(p) and 0 < p <= 1 for p in given)
    ):
        raise InvalidReportError(place="law", value=given, legal=f"{cases} probabilities, one for each duration")
    if sum(given) > 1 + 1e-9:
        raise InvalidReportError(place="law", value=given, legal="probabilities that add up to 1 at most")
    return tuple(float(p) for p in given)


def _is_pair(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and all(is_number(x) for x in row)
