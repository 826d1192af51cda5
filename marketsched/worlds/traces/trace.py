"""What a recorded trace is: its file, where it comes from, and its columns, declared once for every reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from marketsched.worlds.traces.folder import Source, locate

if TYPE_CHECKING:
    import pandas as pd

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
MINUTES = "%Y-%m-%d %H:%M"

_EXPECTED = {"int": "a whole number", "float": "a number", "str": "a word"}
_TIMES = {TIME_FORMAT: "a time YYYY-MM-DD HH:MM:SS", MINUTES: "a time YYYY-MM-DD HH:MM"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a file.

    ``dtype`` is a NumPy integer or floating dtype, ``"str"`` or ``"datetime64[s]"``; numbers lie in
    ``[low, high]``. In a column that is not ``required`` an empty field is NaN (or an empty word);
    such a column is floating or text. ``time_format`` is that of a column of times, to the second or to
    the minute.
    """

    name: str
    dtype: str
    required: bool = True
    low: float = -math.inf
    high: float = math.inf
    time_format: str = TIME_FORMAT

    @property
    def kind(self) -> Literal["int", "float", "str", "time"]:
        """What the fields are read as."""
        if self.dtype == "str":
            return "str"
        return "time" if self.dtype.startswith("datetime") else "int" if "int" in self.dtype else "float"

    @property
    def legal(self) -> str:
        """What a field may be, in words."""
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


@dataclass(frozen=True, slots=True)
class Trace:
    """One recorded file.

    ``files`` are the names it goes by, the usual one first (others: as it was published). ``columns`` are
    those of its table, ``about`` says what they mean; ``plain`` makes plain fields of a line that has others.
    A file that is no table of comma separated fields has a ``reader`` of its own, given the path.
    """

    name: str
    title: str
    files: tuple[str, ...]
    licence: str
    source: str
    columns: tuple[Column, ...] = ()
    about: str = ""
    plain: Callable[[bytes], bytes] | None = None
    reader: Callable[[Path], pd.DataFrame] | None = None

    def __call__(self, source: Source = None) -> pd.DataFrame:
        """Return the whole table, as `read`."""
        return self.read(source)

    @property
    def file(self) -> str:
        """The usual name of the file."""
        return self.files[0]

    def path(self, source: Source = None) -> Path:
        """Return where the file is, or raise ``MissingDataError`` saying how to name its folder."""
        return locate(source, *self.files)

    def read(self, source: Source = None) -> pd.DataFrame:
        """Return the whole table.

        Parameters
        ----------
        source : path, optional
            Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

        Returns
        -------
        DataFrame
            With the dtypes of ``columns``; see ``about``.

        Raises
        ------
        MissingDataError
            If the folder or the file is not there.
        TraceError
            If the file is cut short, damaged or malformed; the message names file and line.
        """
        if self.reader is not None:
            return self.reader(self.path(source))
        from marketsched.worlds.traces.tables import read_table  # pandas: not to list the traces

        return read_table(self.path(source), self.columns, self.plain)

    def stream(self, source: Source = None, rows: int = 100_000) -> Iterator[pd.DataFrame]:
        """Yield the table in blocks of at most ``rows`` rows; one with a reader of its own comes as one block."""
        if self.reader is not None:
            yield self.read(source)
            return
        from marketsched.worlds.traces.tables import stream_table

        yield from stream_table(self.path(source), self.columns, rows, self.plain)
