"""How many spot machines a zone of a cloud would give, and at what price: SkyPilot's series, one file for each zone.

A file of the repository `skypilot-org/spot-traces` is a JSON object: ``metadata`` with ``gap_seconds``, the time from
one entry to the next; ``data``, how many of the requested machines were available (0 or 1 of one, up to 4 or 16
elsewhere); and in some of the files ``prices``, dollars per machine and hour, as long as ``data``. What was collected
how: Wu et al., *Can't Be Late: Optimizing Spot Instance Savings under Deadlines*, NSDI 2024.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.traces.tables import open_lines

LARGEST_FILE = 100_000_000  # bytes; those published have at most 200,000
LARGEST_NUMBER = 1e15


def read_spot_series(path: Path) -> pd.DataFrame:
    """Return the series of a zone from a JSON file as published, plain or gzip.

    Columns: ``time_s`` (float64, from the first entry on), ``available`` (int64, machines), ``price`` (float64, dollars
    per machine and hour; NaN: not recorded). MissingDataError without the file; TraceError, which names the entry, if
    it is no such object, or an entry is out of range.
    """
    content = _content(path)
    metadata = content.get("metadata")
    gap = metadata.get("gap_seconds") if isinstance(metadata, Mapping) else None
    if not _is_amount(gap) or gap == 0:
        raise TraceError(place="metadata.gap_seconds", value=gap, legal="a number > 0", source=str(path))
    available = _entries(path, content, "data")
    if (fraction := np.flatnonzero(available != np.floor(available))).size:
        i = int(fraction[0])
        raise TraceError(place=f"data[{i}]", value=float(available[i]), legal="a whole number >= 0", source=str(path))
    prices = _entries(path, content, "prices") if "prices" in content else np.full(available.size, np.nan)
    if prices.size != available.size:
        legal = f"{available.size} of them, as many as data has"
        raise TraceError(place="prices", value=f"{prices.size} entries", legal=legal, source=str(path))
    times = np.arange(available.size) * float(gap)
    return pd.DataFrame({"time_s": times, "available": available.astype(np.int64), "price": prices})


def _content(path: Path) -> Mapping[str, Any]:
    """Return the JSON object of a file."""
    with open_lines(path) as file:
        text = file.read(LARGEST_FILE + 1)
    legal = "a JSON object with metadata.gap_seconds and data, as text in UTF-8"
    if len(text) > LARGEST_FILE:
        raise TraceError(f"{path}: more than {LARGEST_FILE:,} bytes", legal=legal)
    try:
        found = json.loads(text.decode())
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: byte {text[error.start]:#04x} at {error.start}", legal=legal) from None
    except json.JSONDecodeError as error:
        raise TraceError(f"{path}:{error.lineno}: {error.msg}", legal=legal) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets within brackets
        raise TraceError(f"{path}: a number or a list too deep to be read", legal=legal) from None
    if not isinstance(found, dict):
        raise TraceError(f"{path}: {type(found).__name__}", legal=legal)
    return found


def _entries(path: Path, content: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    """Return a list of numbers >= 0 as an array."""
    entries = content.get(name)
    if not isinstance(entries, list) or not entries:
        raise TraceError(place=name, value=entries, legal="a list of numbers >= 0", source=str(path))
    for i, each in enumerate(entries):
        if not _is_amount(each):
            raise TraceError(place=f"{name}[{i}]", value=each, legal="a finite number >= 0", source=str(path))
    return np.array(entries, dtype=np.float64)


def _is_amount(x: object) -> TypeGuard[float]:
    """Return True if it is a number that JSON has, finite and >= 0."""
    return isinstance(x, (int, float)) and not isinstance(x, bool) and 0 <= x < LARGEST_NUMBER
