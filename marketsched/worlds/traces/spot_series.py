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

from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.mechanisms.legal import Positive, legal
from marketsched.worlds.traces.tables import open_lines

HOUR_S, DAY_S = 3600.0, 86_400.0
LARGEST_FILE = 100_000_000  # bytes; those published have at most 200,000
LARGEST_NUMBER = 1e15


def read_spot_series(path: Path) -> pd.DataFrame:
    """Return the series of a zone.

    Parameters
    ----------
    path : Path
        A JSON file as published, plain or gzip.

    Returns
    -------
    DataFrame
        ``time_s`` (float64, from the first entry on), ``available`` (int64, machines), ``price`` (float64, dollars per
        machine and hour; NaN: not recorded).

    Raises
    ------
    MissingDataError
        If there is no such file.
    TraceError
        If it is no such object, or an entry is out of range; the message names the entry.
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


def spot_statistics(series: pd.DataFrame) -> dict[str, float]:
    """Return the statistics of a series of a zone.

    Parameters
    ----------
    series : DataFrame
        As of `read_spot_series`.

    Returns
    -------
    dict
        ``days``; ``gap_s``; ``most``, machines; ``mean``, machines; ``share_any``, of the time in which there was one;
        ``losses``, times at which fewer were there than before; ``mean_up_h`` and ``mean_down_h``, hours that there
        was one, or none, without a break (those cut off at the ends included; NaN: never); ``price_low``,
        ``price_mean``, ``price_high``, dollars per machine and hour (NaN: not recorded).
    """
    available, price = series["available"].to_numpy(), series["price"].to_numpy()
    gap = _gap(series)
    up = available > 0
    first = np.flatnonzero(np.r_[True, up[1:] != up[:-1]])
    lengths = np.diff(np.r_[first, up.size]) * gap / HOUR_S
    known = bool(np.isfinite(price).any())
    return {
        "days": up.size * gap / DAY_S,
        "gap_s": gap,
        "most": float(available.max()),
        "mean": float(available.mean()),
        "share_any": float(up.mean()),
        "losses": float((np.diff(available) < 0).sum()),
        "mean_up_h": float(lengths[up[first]].mean()) if up.any() else np.nan,
        "mean_down_h": float(lengths[~up[first]].mean()) if not up.all() else np.nan,
        "price_low": float(np.nanmin(price)) if known else np.nan,
        "price_mean": float(np.nanmean(price)) if known else np.nan,
        "price_high": float(np.nanmax(price)) if known else np.nan,
    }


@legal
def spot_prices(series: pd.DataFrame, round_seconds: Positive) -> NDArray[np.float64]:
    """Return the cost of a node and round at the recorded prices: what `PostedPricing` takes.

    Parameters
    ----------
    series : DataFrame
        As of `read_spot_series`.
    round_seconds : float
        Length of a round.

    Returns
    -------
    ndarray of float, shape (n_rounds,)
        Dollars per node and round, the mean over the entries of each round (a round without one: the last before it).

    Raises
    ------
    InvalidParameterError
        If no price was recorded, or the length is out of range.
    """
    price = series["price"].to_numpy()
    if not np.isfinite(price).all():
        raise InvalidParameterError("this series has no prices", legal="a file with prices: see docs/traces.md")
    times = series["time_s"].to_numpy()
    n_rounds = max(1, int((times[-1] + _gap(series)) // round_seconds))
    rounds = np.minimum(np.floor_divide(times, round_seconds).astype(np.int64), n_rounds - 1)
    counts, sums = np.bincount(rounds, minlength=n_rounds), np.bincount(rounds, weights=price, minlength=n_rounds)
    last = np.maximum.accumulate(np.where(counts > 0, np.arange(n_rounds), 0))  # round 0 has the first entry
    return np.asarray((sums / np.maximum(counts, 1))[last] * round_seconds / HOUR_S)


def _gap(series: pd.DataFrame) -> float:
    """Return the time from one entry to the next, s; of a single entry 1."""
    times = series["time_s"].to_numpy()
    return float(times[1]) if times.size > 1 else 1.0


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
