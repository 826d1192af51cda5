"""Statements of work as JSON or YAML, and back.

The form is that of the replay contract: ``concurrency``, ``value`` (``kind``: ``table``,
``deadline``, ``linear``, ``falling`` or ``rank``) and ``requirements``, a list of ``arrival``, ``duration``,
``probability`` and, where it is not the duration, ``signal`` (null: durations hidden). On a cluster it is ``value``,
``arrival``, ``shapes`` and, where durations are hidden, ``revealed: false``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from marketsched.config.cluster_section import shapes_from_data
from marketsched.mechanisms.errors import InvalidReportError, placed, shown
from marketsched.mechanisms.law import THE_DURATION, Point, Requirement
from marketsched.mechanisms.legal import Whole
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import (
    DeadlineValue,
    FallingValue,
    LinearValue,
    RankValue,
    TableValue,
    ValueCurve,
    check_rank,
)

MOST_DIGITS = 30  # of a time given as text
LAST_ROUND = 10_000_000  # no time beyond it is read: a slip of the pen would ask for gigabytes

_OF_A_ROW = {"arrival", "duration", "probability"}
_VALUE_FIELDS: dict[str, tuple[str, ...]] = {
    "table": ("values",),
    "deadline": ("value", "deadline"),
    "linear": ("value", "from", "slope", "deadline"),
    "falling": ("value", "from", "half", "deadline"),
    "rank": ("rank", "deadline"),
}


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
    """Return the statement of work that ``fields`` describes, as submitted in round ``birth``.

    Parameters
    ----------
    birth : int
        Round of submission, >= 1.
    fields : mapping
        ``concurrency``, ``value``, ``requirements``, if a run cannot start again ``restarts: false``, and perhaps
        ``patience`` and ``checkpoint``, as in the replay contract; on a cluster ``value``, ``arrival``, ``shapes`` and
        perhaps ``revealed``.
    limits : ReportLimits, optional
        The announced limits of the market.

    Raises
    ------
    InvalidReportError
        If a field is missing, unknown, malformed or outside its range; the message names its place.
    """
    return fields.statement(birth, limits) if isinstance(fields, ReadOnce) else _statement(birth, fields, limits)


def _statement(birth: int, fields: object, limits: ReportLimits) -> StatementOfWork:
    if limits.cluster is not None:
        return _shaped(birth, fields, limits, limits.cluster)
    table = _table("sow", fields, ("concurrency", "value", "requirements"), ("restarts", "patience", "checkpoint"))
    concurrency = Whole(1, limits.max_concurrency).check("concurrency", table["concurrency"], InvalidReportError)
    ranked = _is_ranked(table["value"])
    value = None if ranked else _value(table["value"], limits)
    rows = table["requirements"]
    if not isinstance(rows, Sequence) or isinstance(rows, (str, bytes)):
        raise InvalidReportError(place="requirements", value=rows, legal="a list")
    points = [_point(i, row, birth, limits.max_duration) for i, row in enumerate(rows)]
    if value is None:
        value = _rank(table["value"], concurrency, points, limits)
    more = {"restarts": table.get("restarts", True), "patience": table.get("patience")}
    more["checkpoint"] = None if table.get("checkpoint") is None else _every(table["checkpoint"])
    return StatementOfWork.of_points(birth, concurrency, value, points, **more)


def _every(fields: object) -> int:
    """Return the rounds between checkpoints; what they cost is not stated, as it is in the durations of the law."""
    table = _table("checkpoint", fields, ("every",), ("cost",))
    with placed("checkpoint"):
        every = Whole(1, LAST_ROUND).check("every", table["every"], InvalidReportError)
        cost = table.get("cost", 0)
        if isinstance(cost, bool) or cost != 0:
            legal = "0, or nothing: durations in requirements are those of runs that save their work"
            raise InvalidReportError(place="cost", value=cost, legal=legal)
    return every


def _shaped(birth: int, fields: object, limits: ReportLimits, cluster: Cluster) -> StatementOfWork:
    """Return the statement of a job that lists the ways in which it can run on a cluster."""
    table = _table("sow", fields, ("value", "arrival", "shapes"), ("revealed",))
    value = _value(table["value"], limits)
    arrival = Whole(birth, LAST_ROUND).check("arrival", table["arrival"], InvalidReportError)
    revealed = table.get("revealed", True)
    if not isinstance(revealed, bool):
        raise InvalidReportError(place="revealed", value=revealed, legal="true or false")
    shapes, law = shapes_from_data(table["shapes"], cluster, limits.max_duration)
    for i, shape in enumerate(shapes):
        Whole(1, limits.max_concurrency).check(f"shapes[{i}].tasks", shape.tasks, InvalidReportError)
    return StatementOfWork.of_shapes(birth, value, arrival, shapes, law, revealed=revealed)


def _value(fields: object, limits: ReportLimits) -> ValueCurve:
    value = value_from_json(fields)
    if value.highest > limits.max_value:
        raise InvalidReportError(place="value", value=value.highest, legal=f"values in [0, {limits.max_value!r}]")
    return value


def _is_ranked(fields: object) -> bool:
    return isinstance(fields, Mapping) and fields.get("kind") == "rank"


def _rank(fields: Mapping[str, Any], nodes: int, points: Sequence[Point], limits: ReportLimits) -> RankValue:
    """Return the curve of a job that names its rank in place of a value."""
    table = _table("value", fields, ("kind", *_VALUE_FIELDS["rank"]))
    with placed("value"):
        deadline = Whole(0, LAST_ROUND).check("deadline", table["deadline"], InvalidReportError)
        rank = check_rank(table["rank"])
    mass = sum(probability for _, _, probability, _ in points) or 1.0
    rounds = sum(duration * probability for _, duration, probability, _ in points) / mass
    value = RankValue.of(rank, deadline, nodes, rounds)
    if value.value > limits.max_value:
        legal = f"times nodes and announced mean rounds in [0, {limits.max_value!r}], the largest value of this market"
        raise InvalidReportError(place="value.rank", value=rank, legal=legal)
    return value


def signals_left_out(fields: Mapping[str, Any]) -> bool:
    """Return True if no requirement of a (valid) JSON statement of work states its signal.

    One with shapes states none, unless its durations are not ``revealed``: then there is nothing to be seen.
    """
    if "shapes" in fields:
        return bool(fields.get("revealed", True))
    return all("signal" not in row for row in fields["requirements"])


def value_from_json(fields: object) -> ValueCurve:
    """Return the value curve that ``fields`` describes.

    Raises
    ------
    InvalidReportError
        If a field is missing, unknown, malformed or outside its range; the message names its place.
    """
    if not isinstance(fields, Mapping):
        raise InvalidReportError(place="value", value=fields, legal="an object with a kind")
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _VALUE_FIELDS:
        legal = f"one of {', '.join(_VALUE_FIELDS)}"
        if "kind" not in fields:
            raise InvalidReportError("is missing", place="value.kind", legal=legal)
        raise InvalidReportError(place="value.kind", value=kind, legal=legal)
    if kind == "rank":
        raise InvalidReportError(place="value.kind", value=kind, legal="a rank only of jobs on identical nodes")
    table = _table("value", fields, ("kind", *_VALUE_FIELDS[kind]))
    with placed("value"):
        if kind == "table":
            return TableValue(_times(table["values"]))
        deadline = Whole(0, LAST_ROUND).check("deadline", table["deadline"], InvalidReportError)
        if kind == "deadline":
            return DeadlineValue(table["value"], deadline)
        start = Whole(0, LAST_ROUND).check("from", table["from"], InvalidReportError)
        if kind == "falling":
            return FallingValue(table["value"], start, table["half"], deadline)
        return LinearValue(table["value"], start, table["slope"], deadline)


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


def _table(place: str, fields: object, names: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return ``fields`` if it has exactly the keys ``names`` (and perhaps ``optional``)."""
    if not isinstance(fields, Mapping):
        raise InvalidReportError(place=place, value=fields, legal=f"an object with {', '.join(names)}")
    unknown = [name for name in fields if name not in names and name not in optional]
    near = {name: get_close_matches(str(name), [*names, *optional], n=1) for name in unknown}
    slips = [name for name in unknown if near[name]]
    for name in names:
        if name not in fields and not slips:  # else what is missing is there under another name
            raise InvalidReportError("is missing", place=f"{place}.{name}", legal=", ".join(names))
    for name in [*slips, *unknown]:
        hint = f" (did you mean {near[name][0]!r}?)" if near[name] else ""
        why = f"is an unknown field: known here are {', '.join([*names, *optional])}{hint}"
        raise InvalidReportError(why, place=f"{place}.{shown(name)[1:-1]}")
    return fields


def _point(i: int, row: object, birth: int, max_duration: int) -> Point:
    """Return a row as a point of the law; one that is not as nearly all are is checked field by field."""
    if type(row) is dict and len(row) == 3 + ("signal" in row) and row.keys() >= _OF_A_ROW:
        arrival, duration, probability = row["arrival"], row["duration"], row["probability"]
        signal = row.get("signal", duration)
        numbers = type(arrival) is int and type(duration) is int and type(probability) is float
        if numbers and birth <= arrival <= LAST_ROUND and 1 <= duration <= max_duration and 0 <= probability <= 1:
            if signal is None or type(signal) is int or type(signal) is str:
                return arrival, duration, probability, signal
    found = _requirement(f"requirements[{i}]", row, birth, max_duration)
    return found.arrival, found.duration, found.probability, found.signal


def _requirement(place: str, row: object, birth: int, max_duration: int) -> Requirement:
    fields = _table(place, row, ("arrival", "duration", "probability"), ("signal",))
    signal = fields.get("signal", THE_DURATION)
    if isinstance(signal, (Mapping, list, bool)):
        raise InvalidReportError(place=f"{place}.signal", value=signal, legal="a number, a string or null")
    with placed(place):
        arrival = Whole(birth, LAST_ROUND).check("arrival", fields["arrival"], InvalidReportError)
        duration = Whole(1, max_duration).check("duration", fields["duration"], InvalidReportError)
        return Requirement(arrival, duration, fields["probability"], signal)


def _times(values: object) -> dict[int, float]:
    """Return a table with whole-number keys; in JSON the keys are strings."""
    if not isinstance(values, Mapping):
        raise InvalidReportError(place="values", value=values, legal="an object {completion time: value}")
    table: dict[int, float] = {}
    for key, value in values.items():
        # Longer than any legal time, a text is no number: Python refuses to read one of thousands of digits.
        digits = isinstance(key, str) and key.isascii() and key.isdigit() and len(key) <= MOST_DIGITS
        time = int(key) if digits else key
        if isinstance(time, bool) or not isinstance(time, int) or not 0 <= time <= LAST_ROUND:
            raise InvalidReportError(
                f"has the key {shown(key)}", place="values", legal=f"completion times in [0, {LAST_ROUND}]"
            )
        if time in table:
            raise InvalidReportError(f"lists the completion time {time} twice", place="values")
        table[time] = value
    return table
