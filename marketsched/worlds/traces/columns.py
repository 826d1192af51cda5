"""Columns of a table in a file: the legal values of their fields."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
MINUTES = "%Y-%m-%d %H:%M"

_EXPECTED = {"int": "a whole number", "float": "a number", "str": "a word"}
_TIMES = {TIME_FORMAT: "a time YYYY-MM-DD HH:MM:SS", MINUTES: "a time YYYY-MM-DD HH:MM"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a file.

    ``dtype`` is a NumPy integer or floating dtype, ``"str"`` or ``"datetime64[s]"``; numbers lie in ``[low, high]``. In
    a column that is not ``required`` an empty field is NaN (or an empty word); such a column is floating or text.
    ``time_format`` is that of a column of times, to the second or to the minute.
    """

    name: str
    dtype: str
    required: bool = True
    low: float = -math.inf
    high: float = math.inf
    time_format: str = TIME_FORMAT

    @property
    def kind(self) -> Literal["int", "float", "str", "time"]:
        """The type of the fields."""
        if self.dtype == "str":
            return "str"
        return "time" if self.dtype.startswith("datetime") else "int" if "int" in self.dtype else "float"

    @property
    def legal(self) -> str:
        """The legal values of a field, in words."""
        bounds = f" in [{self.low:g}, {self.high:g}]" if self.high < math.inf else f" >= {self.low:g}"
        what = _TIMES[self.time_format] if self.kind == "time" else _EXPECTED[self.kind]
        text = what + (bounds if self.low > -math.inf else "")
        return text if self.required else f"{text}, or nothing"


def whole(name: str, bits: int = 32, low: float = 0) -> Column:
    """Return a required column of whole numbers from ``low`` to what ``bits`` bits hold."""
    return Column(name, f"int{bits}", low=low, high=2.0 ** (bits - 1) - 1)


def seconds(name: str, required: bool = True) -> Column:
    """Return a column of times or lengths of time in seconds, >= 0."""
    return Column(name, "float64", required=required, low=0.0)
