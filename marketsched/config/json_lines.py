"""One line of JSON in: strict about what JSON is, and one clear reason when it is not.

Python's own reader takes NaN for a number and lets the second of two equal fields win; both would
change the meaning of a log silently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marketsched.mechanisms.errors import EventError


def parse_line(line: str | bytes) -> Any:
    """Return what one line says.

    Raises
    ------
    EventError
        If it is not UTF-8 or not JSON, or says NaN, Infinity or one field twice.
    """
    try:
        text = line.decode("utf-8") if isinstance(line, bytes) else line
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except UnicodeDecodeError as error:
        raise EventError(f"byte {error.start + 1} is not UTF-8: expected one JSON object") from None
    except json.JSONDecodeError as error:
        raise EventError(f"not JSON, column {error.colno}: {error.msg}: expected one JSON object") from None
    except RecursionError:
        raise EventError("not JSON that can be read, nested too deeply: expected one JSON object") from None
    except EventError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise EventError(f"not JSON that can be read: {error}") from None


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


def shown(x: object) -> str:
    """Return ``x`` as an error line shows it: its repr, cut at 60 characters."""
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."
