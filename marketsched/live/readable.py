"""Answers as JSON that fits on a screen: what holds plain values alone stands on one line."""

from __future__ import annotations

import json
from typing import Any

DIGITS = 12  # of a number
WIDTH = 110  # characters of a line, beside its indent


def readable(data: Any, indent: int = 0) -> str:
    """Return plain data as JSON, a line for each part that fits on one.

    Examples
    --------
    >>> print(readable({"job": "ann.1", "plan": [{"arrival": 1, "start": None}, {"arrival": 2, "start": 4}], "to": {}}))
    {
      "job": "ann.1",
      "plan": [{"arrival": 1, "start": null}, {"arrival": 2, "start": 4}],
      "to": {}
    }
    >>> print(readable([0.1 + 0.2, 1e-9]))
    [
      0.3, 1e-09
    ]
    """
    data = _rounded(data)
    short = json.dumps(data)
    if not isinstance(data, (dict, list)) or not data or (indent and len(short) <= WIDTH):
        return short
    inner = "  " * (indent + 1)
    ends = "{}" if isinstance(data, dict) else "[]"
    if isinstance(data, dict):
        parts = [f"{json.dumps(key)}: {readable(each, indent + 1)}" for key, each in data.items()]
    elif any(isinstance(each, (dict, list)) for each in data):
        parts = [readable(each, indent + 1) for each in data]
    else:
        parts = _rows([json.dumps(each) for each in data])
    return f"{ends[0]}\n{inner}" + f",\n{inner}".join(parts) + f"\n{'  ' * indent}{ends[1]}"


def _rounded(data: Any) -> Any:
    """Return a number without the last digits, which come of adding in binary: 32.2 is not 32.199999999999996."""
    if isinstance(data, dict):
        return {key: _rounded(each) for key, each in data.items()}
    if isinstance(data, list):
        return [_rounded(each) for each in data]
    return float(f"{data:.{DIGITS}g}") if isinstance(data, float) else data


def _rows(texts: list[str]) -> list[str]:
    """Return plain values in lines of about the width."""
    rows = [""]
    for text in texts:
        if rows[-1] and len(rows[-1]) + len(text) > WIDTH:
            rows.append("")
        rows[-1] += f", {text}" if rows[-1] else text
    return rows
