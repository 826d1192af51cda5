"""The answer of a comparison in one sentence: the first mechanism against a rival, or first come, first served."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from marketsched.results.versus import FEW

FIRST_COME = ("first-come", "first-come:price=0")  # what is compared with, at price 0
UNIT = "points of the best possible value"


class Rival(NamedTuple):
    """The mechanism that others are compared with: its name in a sentence, and the column of differences to it."""

    name: str
    column: str
    labels: tuple[str, ...]


def rival_of(meta: Mapping[str, Any]) -> Rival:
    """Return the rival of a comparison: the one that was named, else first come, first served."""
    named = meta.get("against")
    if named is None or named in FIRST_COME:
        return Rival("first come, first served", "over_first_come", FIRST_COME)
    words = {"recorded": "the schedule that was recorded", "easy-backfill": "EASY backfilling"}
    return Rival(words.get(str(named), str(named)), "over_rival", (str(named),))


def question_of(rows: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> str:
    """Return the mechanism that the answer is about: the first that is not the rival; empty if there is none."""
    others = (str(row["mechanism"]) for row in rows if row["mechanism"] not in rival_of(meta).labels)
    return next(others, "")


def answer_of(rows: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> str:
    """Return the answer of a comparison of mechanisms, at one load or several.

    Parameters
    ----------
    rows : sequence of mapping
        Of its summary: ``mechanism``, ``over_first_come`` or ``over_rival`` with ``_low`` and ``_high`` (shares of the
        bound), ``bounded_runs`` (in how many runs anything could be earned), and ``load`` where there are several.
    meta : mapping
        Of the result; ``against`` names the rival, ``unrepeatable`` says why plays of one seed differ, by mechanism.

    Returns
    -------
    str
        Empty where there is nothing but the rival.

    Examples
    --------
    >>> row = {"mechanism": "bid-price", "over_first_come": -0.029, "over_first_come_low": -0.053}
    >>> answer_of([{**row, "over_first_come_high": -0.005}], {})
    'Here bid-price delivers 2.9 ± 2.4 points of the best possible value less than first come, first served.'
    """
    rival, asked = rival_of(meta), question_of(rows, meta)
    own = [row for row in rows if row["mechanism"] == asked and math.isfinite(row.get(rival.column, math.nan))]
    if not own:
        return ""
    where = "On this log" if "rule" in (meta.get("workload") or {}) else "Here"
    runs = min(int(row.get("bounded_runs", meta.get("runs", FEW))) for row in own)
    alike = "alike" in meta  # nothing is drawn
    few = runs < FEW and not alike
    for name in (asked, *rival.labels):
        if why := (meta.get("unrepeatable") or {}).get(name):
            return f"{where} {asked} and {rival.name} cannot be ranked: {name} {why}."
    unranked = f"{where} {asked} and {rival.name} cannot be ranked by {_runs(runs, meta)}" if few else ""
    changes = [_Change.of(row, rival.column, alike) for row in own]
    if "load" not in own[0]:
        (change,) = changes
        return f"{unranked} ({change.shown()} {UNIT})." if few else f"{where} {_sentence(asked, change, rival.name)}."
    several = "; ".join(
        f"at load {row['load']:g}: {_brief(change) if place else _difference(change, rival.name)}"
        for place, (row, change) in enumerate(zip(own, changes, strict=True))
    )
    return f"{unranked}." if few else f"{where} {asked} delivers {several}."


class _Change(NamedTuple):
    """A difference and half the width of its interval, in points; NaN where there is none."""

    points: float
    half: float

    @classmethod
    def of(cls, row: Mapping[str, Any], column: str, alike: bool = False) -> _Change:
        return cls(100 * row[column], 0.0 if alike else 100 * (row[f"{column}_high"] - row[column]))

    @property
    def none(self) -> bool:
        return max(abs(self.points), abs(self.half)) < 5e-4

    @property
    def open(self) -> bool:
        """Tell whether there is no interval, or one that holds 0."""
        return not abs(self.points) > self.half

    def shown(self) -> str:
        return _shown(self.points, self.half, sign=True)

    def size(self) -> str:
        return _shown(abs(self.points), self.half)

    @property
    def word(self) -> str:
        return "more" if self.points > 0 else "less"


def _sentence(asked: str, change: _Change, rival: str) -> str:
    """Claim a difference only where its interval does not hold 0."""
    if change.open and not change.none:
        return f"{asked} and {rival} cannot be told apart ({change.shown()} {UNIT})"
    return f"{asked} delivers {_difference(change, rival)}"


def _runs(count: int, meta: Mapping[str, Any]) -> str:
    """Say how many runs there are to rank by, and that they are too few."""
    of = "" if count == meta.get("runs", count) else f" of {meta['runs']} in which anything could be earned"
    return f"{'one run' if count == 1 else f'{count} runs'}{of}, too few for a claim"


def _difference(change: _Change, rival: str) -> str:
    """Say a difference at the first load, or the only one."""
    if change.none:
        return f"as much as {rival}"
    if change.open:
        return f"a value that cannot be told from that of {rival} ({change.shown()} {UNIT})"
    return f"{change.size()} {UNIT} {change.word} than {rival}"


def _brief(change: _Change) -> str:
    """Say the difference at a further load."""
    if change.none:
        return "as much"
    if change.open:
        return f"not to be told apart ({change.shown()} points)"
    return f"{change.size()} points {change.word}"


def _shown(x: float, half: float, sign: bool = False) -> str:
    places = 1 if max(abs(x), half if math.isfinite(half) else 0.0) >= 0.1 else 3
    text = f"{x:+.{places}f}" if sign else f"{x:.{places}f}"
    return text + (f" ± {half:.{places}f}" if math.isfinite(half) and half > 0 else "")


def truth_sentence(rows: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> str:
    """Say that the mechanism of the answer rests on true reports if a lie is known to pay; empty if none is.

    Examples
    --------
    >>> rows = [{"mechanism": "pay-as-bid", "truthful": "fails", "truthful_but": "a bid", "welfare_share": 0.9},
    ...     {"mechanism": "vcg", "truthful": "proved", "welfare_share": 0.84}, {"mechanism": "first-come"}]
    >>> truth_sentence(rows, {})
    'That takes true reports, and a lie pays under pay-as-bid (a bid). Without a known lie vcg leads, 84.0 % of best.'
    """
    asked = question_of(rows, meta)
    row = next((each for each in rows if each["mechanism"] == asked), {})
    if row.get("truthful") != "fails":
        return ""
    found = f"That takes true reports, and a lie pays under {asked} ({row.get('truthful_but') or 'see audit'})."
    others = [each for each in rows if each.get("truthful") in ("proved", "in part", "searched", "unknown")]
    if not others or not math.isfinite(others[0].get("welfare_share", math.nan)):
        return found
    best = max(others, key=lambda each: float(each["welfare_share"]))
    return f"{found} Without a known lie {best['mechanism']} leads, {100 * best['welfare_share']:.1f} % of best."
