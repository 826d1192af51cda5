"""Times in a statement of work as dates or hours, turned into rounds by the market's clock.

| in a statement | is |
|---|---|
| ``17`` | a round |
| ``now`` | the open round |
| ``in 2 h``, ``in 90 min``, ``in 3 rounds`` | so much later than now |
| ``18:00``, ``by 18:00`` | the next time that it is so late here |
| ``2026-11-22T18:00:00Z``, ``by 2026-11-22 18:00`` | a moment; without a zone: here |
| ``90 min``, ``2 h`` (durations) | so long, rounded up to rounds |

A job that is ready at a moment arrives in the round that the moment lies in; a deadline is the last completion time
that is not after it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from marketsched.mechanisms.errors import InvalidReportError

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
LATER = re.compile(r"(in )?\s*(\d{1,9}(?:\.\d{1,9})?)\s*(s|min|h|d|rounds?)")
HOUR = re.compile(r"(\d{1,2}):(\d{2})")
LEGAL = "a round, or such as 'now', 'in 2 h', 'in 3 rounds', '18:00', '2026-11-22T18:00:00Z'"


def in_rounds(statement: Mapping[str, Any], market: Mapping[str, Any]) -> dict[str, Any]:
    """Return a statement whose times are rounds; numbers, and texts that are no times, stay.

    ``market`` is as ``GET /v1/market`` answers: the open round, and the clock. Raises InvalidReportError if a text is
    no time, or rounds have no length: they end by request.
    """
    here = _Here(market)
    found = dict(statement)
    value, rows = statement.get("value"), statement.get("requirements")
    if isinstance(value, Mapping):
        found["value"] = {
            key: here.round_of(f"value.{key}", each) if key in ("deadline", "from") else each
            for key, each in value.items()
        }
    if isinstance(rows, list):
        found["requirements"] = [_row(here, i, row) for i, row in enumerate(rows)]
    if "arrival" in statement:
        found["arrival"] = here.round_of("arrival", statement["arrival"])
    if "patience" in statement:
        found["patience"] = here.rounds_in("patience", statement["patience"])
    if isinstance(statement.get("checkpoint"), Mapping) and "every" in statement["checkpoint"]:
        every = here.rounds_in("checkpoint.every", statement["checkpoint"]["every"])
        found["checkpoint"] = {**statement["checkpoint"], "every": every}
    if isinstance(statement.get("shapes"), list):
        found["shapes"] = [_shape(here, i, shape) for i, shape in enumerate(statement["shapes"])]
    return found


def _shape(here: _Here, i: int, shape: Any) -> Any:
    """Turn the durations of one way to run on a cluster into rounds."""
    if not isinstance(shape, Mapping):
        return shape
    found, place = dict(shape), f"shapes[{i}]"
    if isinstance(shape.get("on"), Mapping):
        found["on"] = {kind: _rounds(here, f"{place}.on.{kind}", each) for kind, each in shape["on"].items()}
    elif isinstance(shape.get("law"), list):
        rows = [row if isinstance(row, list) and row else [row] for row in shape["law"]]
        found["law"] = [[here.rounds_in(f"{place}.law[{n}]", row[0]), *row[1:]] for n, row in enumerate(rows)]
    return found


def _rounds(here: _Here, place: str, said: Any) -> Any:
    """Return durations on one kind, one or one for each case, as rounds."""
    return [here.rounds_in(place, each) for each in said] if isinstance(said, list) else here.rounds_in(place, said)


def _row(here: _Here, i: int, row: Any) -> Any:
    if not isinstance(row, Mapping):
        return row
    place = f"requirements[{i}]"
    read = {"arrival": here.round_of, "duration": here.rounds_in}
    return {key: read[key](f"{place}.{key}", each) if key in read else each for key, each in row.items()}


class _Here:
    """The market's clock, as its client sees it."""

    def __init__(self, market: Mapping[str, Any]) -> None:
        clock = market["clock"]
        self.round: int = market["round"]
        self.length: float | None = clock["round_seconds"]
        self.now = datetime.fromisoformat(clock["now"])
        ends = clock["round_ends"]
        self.ends = None if ends is None else datetime.fromisoformat(ends)

    def round_of(self, place: str, said: Any) -> Any:
        """Return the round that a time lies in."""
        if not isinstance(said, (str, datetime)):
            return said
        text = str(said).strip().removeprefix("by ").strip()
        if text == "now":
            return self.round
        later = LATER.fullmatch(text)
        if later and later[1]:
            if later[3].startswith("round"):
                return self.round + int(float(later[2]))
            return self._at(place, said, self.now + timedelta(seconds=float(later[2]) * SECONDS[later[3]]))
        return self._at(place, said, self._moment(place, said, text))

    def rounds_in(self, place: str, said: Any) -> Any:
        """Return how many rounds a duration takes."""
        if not isinstance(said, str):
            return said
        found = LATER.fullmatch(said.strip())
        if found is None or found[1]:
            raise InvalidReportError(place=place, value=said, legal="rounds, or such as '90 min', '2 h'")
        if found[3].startswith("round"):
            return int(float(found[2]))
        return max(1, math.ceil(float(found[2]) * SECONDS[found[3]] / self._length(place, said)))

    def _moment(self, place: str, said: Any, text: str) -> datetime:
        try:
            hour = HOUR.fullmatch(text)
            if hour is None:
                return datetime.fromisoformat(text).astimezone()
            here = self.now.astimezone()
            found = here.replace(hour=int(hour[1]), minute=int(hour[2]), second=0, microsecond=0)
            return found if found > here else found + timedelta(days=1)
        except (ValueError, OverflowError):
            raise InvalidReportError(place=place, value=said, legal=LEGAL) from None

    def _at(self, place: str, said: Any, moment: datetime) -> int:
        length = self._length(place, said)
        assert self.ends is not None
        return self.round + 1 + math.floor((moment - self.ends).total_seconds() / length)

    def _length(self, place: str, said: Any) -> float:
        if self.length is None:
            raise InvalidReportError(place=place, value=said, legal="rounds: those of this market end by request")
        return self.length
