"""The answer of a comparison in one sentence: the first mechanism against first come, first served."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

FIRST_COME = ("first-come", "first-come:price=0")  # what is compared with, at price 0
FEW = 3  # seeds, below which nothing is claimed
RIVAL = "first come, first served"
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
    asked = next((str(row["mechanism"]) for row in rows if row["mechanism"] not in FIRST_COME), "")
    own = [row for row in rows if row["mechanism"] == asked and math.isfinite(row.get("over_first_come", math.nan))]
    if not own:
        return ""
    where = "On this log" if "rule" in (meta.get("workload") or {}) else "Here"
    if "load" not in own[0]:
        return f"{where} {_sentence(asked, own[0], meta)}."
    several = "; ".join(
        f"at load {row['load']:g}: {_difference(row) if place == 0 else _brief(row)}" for place, row in enumerate(own)
    )
    if _few(meta):
        return f"{where} {asked} and {RIVAL} cannot be ranked by {_runs(meta)}, too few for a claim."
    return f"{where} {asked} delivers {several}."


def _sentence(asked: str, row: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """Claim a difference only from enough seeds, and only where its interval does not hold 0."""
    shown = f"({_shown(*_points(row), sign=True)} {UNIT})"
    if _few(meta):
        return f"{asked} and {RIVAL} cannot be ranked by {_runs(meta)}, too few for a claim {shown}"
    if _same(row):
        return f"{asked} delivers as much as {RIVAL}"
    if _open(row):
        return f"{asked} and {RIVAL} cannot be told apart {shown}"
    return f"{asked} delivers {_difference(row)}"


def _points(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return a difference and half the width of its interval, in points."""
    return 100 * row["over_first_come"], 100 * (row["over_first_come_high"] - row["over_first_come"])


def _same(row: Mapping[str, Any]) -> bool:
    return max(map(abs, _points(row))) < 5e-4


def _open(row: Mapping[str, Any]) -> bool:
    """Tell whether there is no interval, or one that holds 0."""
    difference, half = _points(row)
    return not abs(difference) > half


def _few(meta: Mapping[str, Any]) -> bool:
    return int(meta.get("runs", FEW)) < FEW


def _runs(meta: Mapping[str, Any]) -> str:
    return "one run" if meta["runs"] == 1 else f"{meta['runs']} runs"


def _difference(row: Mapping[str, Any]) -> str:
    """Say a difference at the first load, or the only one."""
    if _same(row):
        return f"as much as {RIVAL}"
    if _open(row):
        return f"a value that cannot be told from that of {RIVAL} ({_shown(*_points(row), sign=True)} {UNIT})"
    difference, half = _points(row)
    return f"{_shown(abs(difference), half)} {UNIT} {'more' if difference > 0 else 'less'} than {RIVAL}"


def _brief(row: Mapping[str, Any]) -> str:
    """Say the difference at a further load."""
    if _same(row):
        return "as much"
    difference, half = _points(row)
    if _open(row):
        return f"not to be told apart ({_shown(difference, half, sign=True)} points)"
    return f"{_shown(abs(difference), half)} points {'more' if difference > 0 else 'less'}"


def _shown(x: float, half: float, sign: bool = False) -> str:
    places = 1 if max(abs(x), half if math.isfinite(half) else 0.0) >= 0.1 else 3
    text = f"{x:+.{places}f}" if sign else f"{x:.{places}f}"
    return text + (f" ± {half:.{places}f}" if math.isfinite(half) else "")
