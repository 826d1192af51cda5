"""Statements of work as they were sent, in markets of identical nodes and on clusters: what the service reads in them.

One on a cluster has ``arrival`` and ``shapes`` in place of ``concurrency`` and ``requirements``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from marketsched.live.bodies import LONGEST_SIGNAL
from marketsched.live.configuration import LiveConfig, counted
from marketsched.live.job import Durations
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.mechanisms.sow import StatementOfWork

MOST_CASES = 256  # of a statement
MOST_TIMES = 1024  # of a table of values


def nodes_of(report: Mapping[str, Any], config: LiveConfig) -> int:
    """Return how many nodes a job requests, as counted by its fee and the limit of announcements.

    On a cluster the most of any of its shapes: each task counts as one, or as its devices where it takes more of them.
    """
    if "shapes" not in report:
        return int(report["concurrency"])
    assert config.cluster is not None  # shapes are refused elsewhere
    return max(int(shape.get("tasks", 1)) * counted(shape["each"], config.cluster) for shape in report["shapes"])


def check_size(report: object) -> None:
    """Raise InvalidReportError if a statement has so many cases that others would wait while it is planned.

    It is called before the thread of the market has anything to do with it. What is no statement is refused there.
    """
    if not isinstance(report, Mapping):
        return
    rows, shapes = report.get("requirements"), report.get("shapes")
    count = len(rows) if isinstance(rows, list) else 0
    for shape in shapes if isinstance(shapes, list) else ():
        law = shape.get("law") if isinstance(shape, Mapping) else None
        count += len(law) if isinstance(law, list) else 1
    curve = report.get("value")
    table = curve.get("values") if isinstance(curve, Mapping) else None
    if isinstance(table, Mapping) and len(table) > MOST_TIMES:
        raise InvalidReportError(f"value.values has {len(table):,} times", legal=f"at most {MOST_TIMES:,}")
    if count > MOST_CASES:
        where = "requirements has" if isinstance(rows, list) else "shapes have"
        raise InvalidReportError(f"{where} {count:,} cases", legal=f"at most {MOST_CASES}, similar ones put together")


def first_arrival(report: Mapping[str, Any]) -> int:
    """Return the first round in which a job may be ready."""
    if "shapes" in report:
        return int(report["arrival"])
    return min(int(row["arrival"]) for row in report["requirements"])


def signals_of(report: Any) -> list[Any]:
    """Return the signals that a (valid) statement names; with shapes it names none."""
    return [] if "shapes" in report else [row.get("signal") for row in report["requirements"]]


def check_signal(signal: object) -> None:
    """Raise InvalidReportError if a signal is longer, or further off, than any that is seen at an arrival."""
    if isinstance(signal, str) and (len(signal) > LONGEST_SIGNAL or not signal.isprintable()):
        raise InvalidReportError(place="signal", value=signal, legal=f"at most {LONGEST_SIGNAL} characters to print")
    if isinstance(signal, (int, float)) and not abs(signal) <= LAST_ROUND:
        raise InvalidReportError(place="signal", value=signal, legal=f"a number in [-{LAST_ROUND}, {LAST_ROUND}]")


def longest_of(report: Mapping[str, Any], cases: list[list[Any]]) -> list[int]:
    """Return the longest duration announced for each case, rounds; a signal that is left out is the duration.

    On a cluster it is the longest one of all: a job holds its booking.
    """
    if "shapes" in report:
        return [max(map(_longest, report["shapes"]))] * len(cases)
    found = {case: max(law) for case, law in _laws(report).items()}
    longest = max(found.values())
    return [found.get((arrival, signal), longest) for arrival, signal, _ in cases]


def odds_of(report: Mapping[str, Any], cases: Sequence[Sequence[Any]]) -> tuple[float, ...]:
    """Return the announced probability of each case (arrival, signal) of a plan; nothing of one with shapes."""
    if "shapes" in report:
        return ()
    found = {case: sum(law.values()) for case, law in _laws(report).items()}
    return tuple(found.get((arrival, signal), 0.0) for arrival, signal, _ in cases)


def laws_of(report: Mapping[str, Any], cases: Sequence[Sequence[Any]]) -> tuple[Durations, ...]:
    """Return the durations of each case (arrival, signal) of a plan; nothing if each has one, or with shapes."""
    if "shapes" in report:
        return ()
    found = {case: [(d, p) for d, p in sorted(law.items()) if p > 0] for case, law in _laws(report).items()}
    if all(len(law) <= 1 for law in found.values()):
        return ()
    return tuple(tuple(found.get((arrival, signal), ())) for arrival, signal, _ in cases)


def _laws(report: Mapping[str, Any]) -> dict[tuple[int, Any], dict[int, float]]:
    """Return the announced probability of each duration, by case."""
    found: dict[tuple[int, Any], dict[int, float]] = {}
    for row in report["requirements"]:
        law = found.setdefault((row["arrival"], row.get("signal", row["duration"])), {})
        law[row["duration"]] = law.get(row["duration"], 0.0) + row["probability"]
    return found


def most_worth(sow: StatementOfWork) -> float:
    """Return the most that a run can cost at a price made at arrival, credits: V / q of `marketsched.live.costs`.

    With shapes q is the smallest share of any duration, as what is long on one kind of node may be short on another.
    """
    law, shares = sow.law, [1.0]
    for begin, end in pairwise(law.offsets.tolist()):
        points = law.probabilities[begin:end]
        possible = points > 0
        if possible.any():
            durations = law.durations[begin:end][possible]
            among = points[possible] if sow.shapes else points[possible][durations == durations.max()]
            shares.append(float(among.min() / points.sum()))
    return float(sow.value.highest) / min(shares)


def _longest(shape: Mapping[str, Any]) -> int:
    on = shape["on"]
    if isinstance(on, Mapping):
        return max(int(max(each)) if isinstance(each, list) else int(each) for each in on.values())
    slowest: float = min([1.0, *shape.get("speed", {}).values()])
    return max(math.ceil(float(rounds) / slowest) for rounds, _ in shape["law"])


def smallest(t: int, config: LiveConfig) -> dict[str, Any]:
    """Return a statement of one node, or of the least of one, and of one round; ready in round ``t``."""
    value = {"kind": "deadline", "value": min(1.0, config.max_value), "deadline": t + 1}
    if config.cluster is None:
        row = {"arrival": t, "duration": 1, "probability": 1.0}
        return {"concurrency": 1, "value": value, "requirements": [row]}
    group = config.cluster.groups[0]
    name = next(name for name, amount in group.each.items() if amount)
    shape = {"each": {name: 1 / config.cluster.resources[name].parts}, "on": {group.kind: 1}}
    return {"value": value, "arrival": t, "shapes": [shape]}
