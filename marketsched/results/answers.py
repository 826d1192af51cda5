"""The answer of a comparison in one sentence: the first mechanism against first come, first served."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

FIRST_COME = ("first-come", "first-come:price=0")  # what is compared with, at price 0
UNIT = "points of the best possible value"


def answer_of(rows: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> str:
    """Return the answer of a comparison of mechanisms, at one load or several.

    Parameters
    ----------
    rows : sequence of mapping
        Of its summary: ``mechanism``, ``over_first_come`` with ``_low`` and ``_high`` (shares of the bound), and
        ``load`` where there are several.
    meta : mapping
        Of the result.

    Returns
    -------
    str
        Empty where there is nothing but first come, first served.

    Examples
    --------
    >>> row = {"mechanism": "bid-price", "over_first_come": -0.029, "over_first_come_low": -0.053}
    >>> answer_of([{**row, "over_first_come_high": -0.005}], {})
    'Here bid-price delivers 2.9 ± 2.4 points of the best possible value less than first come, first served.'
    """
    asked = next((row["mechanism"] for row in rows if row["mechanism"] not in FIRST_COME), None)
    own = [row for row in rows if row["mechanism"] == asked and math.isfinite(row.get("over_first_come", math.nan))]
    if not own:
        return ""
    where = "On this log" if "rule" in (meta.get("workload") or {}) else "Here"
    if "load" not in own[0]:
        return f"{where} {asked} delivers {_difference(own[0])}{_once(meta)}."
    several = "; ".join(
        f"at load {row['load']:g}: {_difference(row, brief=place > 0)}" for place, row in enumerate(own)
    )
    return f"{where} {asked} delivers {several}{_once(meta)}."


def _difference(row: Mapping[str, Any], brief: bool = False) -> str:
    """Say one difference: as much, more or less."""
    difference, high = 100 * row["over_first_come"], 100 * row["over_first_come_high"]
    half, rival = high - difference, "" if brief else " first come, first served"
    unit = "points" if brief else UNIT
    if (math.isfinite(half) and abs(difference) <= half) or abs(difference) < 5e-4:
        shown = f" ({_shown(difference, half, sign=True)} {unit})" if abs(difference) >= 5e-4 else ""
        return ("as much, as far as can be told" if brief else f"as much as{rival}, as far as can be told") + shown
    word = "more" if difference > 0 else "less"
    return f"{_shown(abs(difference), half)} {unit} {word}" + ("" if brief else f" than{rival}")


def _shown(x: float, half: float, sign: bool = False) -> str:
    places = 1 if max(abs(x), half if math.isfinite(half) else 0.0) >= 0.1 else 3
    text = f"{x:+.{places}f}" if sign else f"{x:.{places}f}"
    return text + (f" ± {half:.{places}f}" if math.isfinite(half) else "")


def _once(meta: Mapping[str, Any]) -> str:
    return ", in the one run that was made (no interval)" if meta.get("runs") == 1 else ""
