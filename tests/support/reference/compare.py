"""Compare two lists of decisions as the replay contract says: numbers to 1e-7, error texts not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TOLERANCE = 1e-7
Line = dict[str, Any]


def same(x: Any, y: Any) -> bool:
    """Say whether two decoded JSON values agree."""
    if isinstance(x, bool) or isinstance(y, bool):
        return x is y
    if isinstance(x, int) and isinstance(y, int):
        return x == y
    if isinstance(x, int | float) and isinstance(y, int | float):
        return abs(x - y) <= TOLERANCE
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, dict) and isinstance(y, dict):
        return list(x) == list(y) and all(same(x[key], y[key]) for key in x)
    return bool(x == y)


def comparable(lines: Sequence[Line]) -> list[Line]:
    """Return the lines, those of errors reduced to their kind and line number."""
    return [{k: line[k] for k in ("event", "line")} if line["event"] == "error" else line for line in lines]


def difference(product: Sequence[Line], reference: Sequence[Line]) -> str | None:
    """Return None if the decisions agree, else the first that do not."""
    ours, theirs = comparable(product), comparable(reference)
    for i in range(max(len(ours), len(theirs))):
        x = ours[i] if i < len(ours) else None
        y = theirs[i] if i < len(theirs) else None
        if x is None or y is None or not same(x, y):
            return f"decision {i}: package {x}, reference {y}"
    return None
