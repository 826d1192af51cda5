"""Strict reading of one line of JSON, with one clear reason if it is malformed.

Python's own reader takes NaN for a number and lets the second of two equal fields win; both would
change the meaning of a log silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from marketsched.mechanisms.errors import EventError

MOST_LEVELS = 60  # of tables and lists inside each other
_NO_BRACKETS = re.compile(r'[^\[\]{}"]+|"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)  # texts, and what is outside of them


def parse_line(line: str | bytes) -> Any:
    """Return the content of one line.

    Raises
    ------
    EventError
        If it is not UTF-8 or not JSON, or says NaN, Infinity or one field twice.
    """
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        if _levels(text) > MOST_LEVELS:
            raise EventError(f"not JSON that can be read, more than {MOST_LEVELS} levels", legal="one JSON object")
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except UnicodeDecodeError as error:
        raise EventError(f"byte {error.start + 1} is not UTF-8: expected one JSON object") from None
    except json.JSONDecodeError as error:
        raise EventError(f"not JSON, column {error.colno}: {error.msg}: expected one JSON object") from None
    except EventError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise EventError(f"not JSON that can be read: {error}") from None


def _levels(text: str) -> int:
    """Return how deep brackets are inside each other; those in texts do not count."""
    if text.count("[") + text.count("{") <= MOST_LEVELS:
        return 0
    steps = _NO_BRACKETS.sub("", text)
    return max(accumulate(1 if step in "[{" else -1 for step in steps), default=0)


def _no_constant(name: str) -> float:
    raise EventError(f"{name} is not JSON: expected a finite number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise EventError(f"field {twin!r} twice: expected each once")
    return fields


def field(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field that must be there.

    Raises
    ------
    EventError
        If it is not.
    """
    if name not in fields:
        raise EventError(f"{name} is missing")
    return fields[name]
