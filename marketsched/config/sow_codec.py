"""Statements of work as JSON or YAML, and back.

The form is that of the replay contract, `NodesStatement`; on a cluster it is `ShapedStatement`. These types are its one
description: they check what is read, and make its JSON Schema (`marketsched.config.ranges_schema`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, PlainValidator, StrictBool, WithJsonSchema, create_model

from marketsched.config.cluster_section import shapes_from_data
from marketsched.config.ranges_schema import RangesSchema
from marketsched.config.strict_yaml import Strict, validated
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, placed, shown
from marketsched.mechanisms.law import THE_DURATION, Point
from marketsched.mechanisms.legal import Amount, Natural, Positive, Share, Whole
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import (
    DeadlineValue,
    FallingValue,
    LinearValue,
    RankValue,
    TableValue,
    ValueCurve,
)

MOST_DIGITS = 30  # of a time given as text
LAST_ROUND = 10_000_000  # no time beyond it is read: a slip of the pen would ask for gigabytes

Said = TypeVar("Said", bound=BaseModel)
Round = Annotated[int, Whole(1, LAST_ROUND)]
Time = Annotated[int, Whole(0, LAST_ROUND)]


def _times(values: object) -> dict[int, Any]:
    """Return a table with whole-number keys; in JSON the keys are strings."""
    if not isinstance(values, Mapping):
        raise ValueError("an object {completion time: value}")
    table: dict[int, Any] = {}
    for key, value in values.items():
        # Longer than any legal time, a text is no number: Python refuses to read one of thousands of digits.
        digits = isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= MOST_DIGITS
        time = int(key) if digits else key
        if isinstance(time, bool) or not isinstance(time, int) or not 0 <= time <= LAST_ROUND:
            raise InvalidReportError(f"has the key {shown(key)}", legal=f"completion times in [0, {LAST_ROUND}]")
        if time in table:
            raise InvalidReportError(f"lists the completion time {time} twice")
        table[time] = value
    return table


class _Curve(Strict):
    """A value curve as data; its fields are those of the curve, in their order."""

    made: ClassVar[Callable[..., ValueCurve]]

    def curve(self) -> ValueCurve:
        """Return the value curve."""
        return type(self).made(*(getattr(self, name) for name in type(self).model_fields if name != "kind"))


def _curve(kind: str, made: Callable[..., Any], **fields: Any) -> type[_Curve]:
    of_kind: Any = {"kind": (Literal[kind], ...), **{name: (legal, ...) for name, legal in fields.items()}}
    found: type[_Curve] = create_model(f"{kind}-value", __base__=_Curve, **of_kind)
    found.made = staticmethod(made)
    return found


_CURVES = {
    "table": _curve("table", TableValue, values=Annotated[dict[Any, Amount], BeforeValidator(_times)]),
    "deadline": _curve("deadline", DeadlineValue, value=Amount, deadline=Time),
    "linear": _curve("linear", LinearValue, value=Amount, **{"from": Time}, slope=Amount, deadline=Time),
    "falling": _curve("falling", FallingValue, value=Amount, **{"from": Time}, half=Positive, deadline=Time),
}
_RANKED = {**_CURVES, "rank": _curve("rank", RankValue.of, rank=Annotated[int, Whole(1, 9)], deadline=Time)}


def _value(curves: Mapping[str, type[_Curve]]) -> Any:
    """Return the type of a value curve of one of these kinds."""

    def read(x: object) -> _Curve:
        if not isinstance(x, Mapping):
            raise ValueError("an object with a kind")
        kind = x.get("kind")
        if not isinstance(kind, str) or kind not in curves:
            legal = f"one of {', '.join(curves)}" if kind != "rank" else "a rank only of jobs on identical nodes"
            if "kind" not in x:
                raise InvalidReportError("is missing", place="kind", legal=legal)
            raise InvalidReportError(place="kind", value=kind, legal=legal)
        return curves[kind].model_validate(x)

    schemas = [curve.model_json_schema(schema_generator=RangesSchema) for curve in curves.values()]
    return Annotated[Any, PlainValidator(read), WithJsonSchema({"anyOf": schemas})]


def _signal(x: object) -> Any:
    if isinstance(x, (Mapping, list, bool)):
        raise ValueError("a number, a string or null")
    return x


def _no_cost(x: object) -> int:
    if isinstance(x, bool) or x != 0:
        raise ValueError("0, or nothing: durations in requirements are those of runs that save their work")
    return 0


_SIGNAL = {
    "anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}],
    "description": "What the platform sees when the job is ready: the duration, if left out; null: nothing.",
}
_DURATIONS = {
    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "items": {"type": "integer", "minimum": 1}}]
}
_SHAPE = {  # read by `shapes_from_data`
    "type": "object",
    "properties": {
        "each": {"type": "object", "additionalProperties": {"type": "number"}, "description": "A task's, by resource."},
        "on": {"type": "object", "additionalProperties": _DURATIONS, "description": "Rounds by kind of node."},
        "tasks": {"type": "integer", "minimum": 1},
        "per_node": {"type": "integer", "minimum": 1},
        "worth": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "law": {"type": "array", "items": {"type": "number"}, "description": "Probabilities, one for each duration."},
    },
    "required": ["each", "on"],
}


class Case(Strict):
    """One case of the law of a job: what may happen, and how likely it is."""

    arrival: Round
    duration: Round
    probability: Share
    signal: Annotated[Any, PlainValidator(_signal), WithJsonSchema(_SIGNAL)] = Field(
        default_factory=lambda: THE_DURATION
    )


class Checkpoint(Strict):
    """How often a run saves its work; what that takes is in the durations."""

    every: Round
    cost: Annotated[Any, PlainValidator(_no_cost), WithJsonSchema({"const": 0})] = 0


class NodesStatement(Strict):
    """A statement of work in a market of identical nodes."""

    concurrency: Annotated[int, Whole(1, LAST_ROUND)]
    value: _value(_RANKED)  # type: ignore[valid-type]
    requirements: Annotated[list[Case], Field(json_schema_extra={"minItems": 1})]
    restarts: StrictBool = Field(True, description="False: a run that was taken back cannot start again.")
    patience: Natural | None = Field(None, description="Rounds to wait for a start, where patience is sold.")
    checkpoint: Checkpoint | None = None


class ShapedStatement(Strict):
    """A statement of work on a cluster, with the ways to run: any of them will do."""

    value: _value(_CURVES)  # type: ignore[valid-type]
    arrival: Round
    shapes: Annotated[Any, WithJsonSchema({"type": "array", "items": _SHAPE, "minItems": 1})]
    revealed: StrictBool = Field(True, description="Whether the case of the law is seen at arrival.")


@dataclass(frozen=True, slots=True)
class ReportLimits:
    """The largest report that a market takes."""

    max_concurrency: int  # nodes
    max_duration: int  # rounds
    max_value: float  # credits
    cluster: Cluster | None = None  # where jobs have shapes; None: identical nodes


NO_LIMITS = ReportLimits(LAST_ROUND, LAST_ROUND, math.inf)


class ReadOnce(dict[str, Any]):
    """A report as JSON that keeps the statement it was read as: several who read it in one round share the work."""

    read_as: tuple[int, ReportLimits, StatementOfWork] | None = None

    def statement(self, birth: int, limits: ReportLimits) -> StatementOfWork:
        """Return it as a statement of work; parameters and errors as of `sow_from_json`."""
        if self.read_as is None or self.read_as[0] != birth or self.read_as[1] is not limits:
            self.read_as = birth, limits, _statement(birth, self, limits)
        return self.read_as[2]


def sow_from_json(birth: int, fields: object, limits: ReportLimits = NO_LIMITS) -> StatementOfWork:
    """Return the statement of work that ``fields`` describes, submitted in round ``birth`` to a market of ``limits``.

    Raises
    ------
    InvalidReportError
        If a field is missing, unknown, malformed or outside its range; the message names its place.
    """
    return fields.statement(birth, limits) if isinstance(fields, ReadOnce) else _statement(birth, fields, limits)


def _statement(birth: int, fields: object, limits: ReportLimits) -> StatementOfWork:
    if limits.cluster is not None:
        return _shaped(birth, fields, limits, limits.cluster)
    said = _read(NodesStatement, fields)
    Whole(1, limits.max_concurrency).check("concurrency", said.concurrency, InvalidReportError)
    arrivals, durations = Whole(birth, LAST_ROUND), Whole(1, limits.max_duration)
    points: list[Point] = []
    for i, case in enumerate(said.requirements):
        arrivals.check(f"requirements[{i}].arrival", case.arrival, InvalidReportError)
        durations.check(f"requirements[{i}].duration", case.duration, InvalidReportError)
        signal = case.duration if case.signal is THE_DURATION else case.signal
        points.append((case.arrival, case.duration, case.probability, signal))
    every = None if said.checkpoint is None else said.checkpoint.every
    value = _within(said.value, limits, said.concurrency, points)
    return StatementOfWork.of_points(
        birth, said.concurrency, value, points, restarts=said.restarts, patience=said.patience, checkpoint=every
    )


def _shaped(birth: int, fields: object, limits: ReportLimits, cluster: Cluster) -> StatementOfWork:
    """Return the statement of a job that lists the ways in which it can run on a cluster."""
    said = _read(ShapedStatement, fields)
    Whole(birth, LAST_ROUND).check("arrival", said.arrival, InvalidReportError)
    shapes, law = shapes_from_data(said.shapes, cluster, limits.max_duration)
    for i, shape in enumerate(shapes):
        Whole(1, limits.max_concurrency).check(f"shapes[{i}].tasks", shape.tasks, InvalidReportError)
    value = _within(said.value, limits, 1, ())
    return StatementOfWork.of_shapes(birth, value, said.arrival, shapes, law, revealed=said.revealed)


def _read(model: type[Said], fields: object) -> Said:
    try:
        return validated(model, fields)
    except InvalidParameterError as error:
        raise error.turned(InvalidReportError) from None


def _within(said: Any, limits: ReportLimits, nodes: int, points: Sequence[Point]) -> ValueCurve:
    """Return a value curve; raise InvalidReportError if it is none, or above the largest value of the market."""
    with placed("value"):
        if said.kind != "rank":
            value: ValueCurve = said.curve()
            if value.highest > limits.max_value:
                raise InvalidReportError(value=value.highest, legal=f"values in [0, {limits.max_value!r}]")
            return value
        mass = sum(probability for _, _, probability, _ in points) or 1.0
        rounds = sum(duration * probability for _, duration, probability, _ in points) / mass
        ranked = RankValue.of(said.rank, said.deadline, nodes, rounds)
        if ranked.value > limits.max_value:
            legal = (
                f"times nodes and announced mean rounds in [0, {limits.max_value!r}], the largest value of this market"
            )
            raise InvalidReportError(place="rank", value=said.rank, legal=legal)
        return ranked


def signals_left_out(fields: Mapping[str, Any]) -> bool:
    """Return True if no requirement of a (valid) JSON statement of work states its signal.

    One with shapes states none, unless its durations are not ``revealed``: then there is nothing to be seen.
    """
    if "shapes" in fields:
        return bool(fields.get("revealed", True))
    return all("signal" not in row for row in fields["requirements"])


class _OfACluster(Strict):
    value: _value(_CURVES)  # type: ignore[valid-type]


def value_from_json(fields: object) -> ValueCurve:
    """Return the value curve that ``fields`` describes.

    Raises
    ------
    InvalidReportError
        If a field is missing, unknown, malformed or outside its range; the message names its place.
    """
    return _within(_read(_OfACluster, {"value": fields}).value, NO_LIMITS, 1, ())


def sow_to_json(sow: StatementOfWork) -> dict[str, Any]:
    """Return ``sow`` in the form that :func:`sow_from_json` reads; the birth is not part of it."""
    points = sow.requirements
    revealed = all(r.signal == r.duration and type(r.signal) is int for r in points)
    rows = []
    for r in points:
        row: dict[str, Any] = {"arrival": r.arrival, "duration": r.duration, "probability": r.probability}
        if not revealed:
            row["signal"] = r.signal
        rows.append(row)
    found = {"concurrency": sow.concurrency, "value": value_to_json(sow.value), "requirements": rows}
    if sow.patience is not None:
        found["patience"] = sow.patience
    if sow.checkpoint is not None:
        found["checkpoint"] = {"every": sow.checkpoint}
    return found if sow.restarts else {**found, "restarts": False}


def value_to_json(value: ValueCurve) -> dict[str, Any]:
    """Return ``value`` in the form that :func:`value_from_json` reads.

    A curve of another class becomes the table of its positive values.
    """
    if isinstance(value, RankValue):
        return {"kind": "rank", "rank": value.rank, "deadline": value.deadline}
    if isinstance(value, DeadlineValue):
        return {"kind": "deadline", "value": value.value, "deadline": value.deadline}
    if isinstance(value, LinearValue):
        more = {"from": value.start, "slope": value.slope, "deadline": value.deadline}
        return {"kind": "linear", "value": value.value, **more}
    if isinstance(value, FallingValue):
        more = {"from": value.start, "half": value.half, "deadline": value.deadline}
        return {"kind": "falling", "value": value.value, **more}
    if isinstance(value, TableValue):
        return {"kind": "table", "values": {str(t): v for t, v in value.values.items()}}
    dense = value.table(0, value.last + 1).tolist()
    return {"kind": "table", "values": {str(t): v for t, v in enumerate(dense)}}
