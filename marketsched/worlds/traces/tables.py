"""Strict reading of comma separated files, plain or gzip, in blocks or at once.

Recorded files have one header line, no quotes, a fixed number of fields a line, and an empty field
where something is not known. Anything else is an error that names file and line. The fast path is
the pandas parser; only if it, or a check after it, fails are the lines read one by one.
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError, TraceError
from marketsched.worlds.traces.columns import Column

BLOCK_ROWS = 100_000
UNPACKED_AT_ONCE = 128 * 1024  # bytes
HARMLESS_BYTES = 64 * 1024 * 1024  # unpacked, whatever the packed size is
MOST_GROWTH = 200  # of a gzip file; logs grow 5 to 50 times, zeros a thousand times


@contextmanager
def open_lines(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked if it is gzip, for reading lines of bytes.

    MissingDataError if there is none; TraceError if the gzip stream is cut short, damaged or made to fill the memory,
    also while it is being read.
    """
    try:
        raw = path.open("rb")
    except (OSError, ValueError) as error:  # ValueError: a zero byte in its name
        raise MissingDataError(f"{path}: {getattr(error, 'strerror', None) or error}: expected a trace file") from None
    with raw:
        packed = raw.peek(2)[:2] == b"\x1f\x8b" or path.suffix == ".gz"
        try:
            # buffered once more: lines are then split by compiled code
            yield io.BufferedReader(_Unpacked(path, raw), UNPACKED_AT_ONCE) if packed else raw
        except EOFError:
            raise TraceError(f"{path}: the gzip file is cut short: expected a complete one") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise TraceError(f"{path}: the gzip file is damaged ({error}): expected a readable one") from None


class _Unpacked(io.RawIOBase):
    """What a gzip file holds; one that becomes hundreds of times as large is no log, but made to fill a memory."""

    def __init__(self, path: Path, raw: io.BufferedReader) -> None:
        self._path, self._raw, self._gzip = path, raw, gzip.GzipFile(fileobj=raw)
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._gzip.read1(len(buffer))
        buffer[: len(found)] = found
        self._read += len(found)
        if self._read > HARMLESS_BYTES and self._read > MOST_GROWTH * self._raw.tell():
            grown = f"unpacks to more than {MOST_GROWTH} times its size"
            raise TraceError(grown, source=str(self._path), legal="a log, which unpacks to 5 to 50 times its size")
        return len(found)


def stream_table(
    path: Path,
    columns: tuple[Column, ...],
    rows: int = BLOCK_ROWS,
    plain: Callable[[bytes], bytes] | None = None,
    any_order: bool = False,
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a file in blocks of at most ``rows``, checked, with the dtypes of ``columns``.

    The index counts the rows of the file from 0. A file without rows gives one empty block. ``plain`` rewrites a line
    whose fields are not plain ones before it is looked at. With ``any_order`` the header may name the columns in
    another order; those of the table are in that of ``columns``. MissingDataError if there is no such file; TraceError
    if it is damaged, its header is another one, or a row is malformed.
    """
    if rows < 1:
        raise InvalidParameterError(f"rows = {rows}: expected at least 1 row a block")
    with open_lines(path) as file:
        header = file.readline().rstrip(b"\r\n").decode("utf-8-sig", "replace")
        expected, wanted = ",".join(column.name for column in columns), [column.name for column in columns]
        if any_order and sorted(header.split(",")) == sorted(wanted):
            columns = tuple(sorted(columns, key=lambda column: header.split(",").index(column.name)))
        elif header != expected:
            raise TraceError(f"{path}:1: header {header[:200]!r}: expected {expected!r}")
        done = 0
        blank: list[bytes] = []  # at the end of a block: an error only if more lines follow
        while True:
            more = list(islice(file, max(rows - len(blank), 1)))
            lines = blank + (more if plain is None else [plain(line) for line in more]) if more else []
            blank = []
            while lines and lines[-1].isspace():
                blank.append(lines.pop())
            if lines or not (more or done):
                yield _parse(path, b"".join(lines), len(lines), columns, done)[wanted]
            done += len(lines)
            if not more:
                return


def read_table(
    path: Path,
    columns: tuple[Column, ...],
    plain: Callable[[bytes], bytes] | None = None,
    any_order: bool = False,
) -> pd.DataFrame:
    """Return all rows of a file; see :func:`stream_table`. Memory: the table, and one block of text."""
    table = pd.concat(stream_table(path, columns, plain=plain, any_order=any_order), ignore_index=True)
    if table.empty:
        raise TraceError("has a header and no rows", place=str(path), legal="at least one row")
    return table


def _parse(path: Path, text: bytes, n_lines: int, columns: tuple[Column, ...], done: int) -> pd.DataFrame:
    """Parse one block whose first line is row ``done`` of the file (line ``done + 2``)."""
    table = _convert(text, columns) if text.count(b",") == n_lines * (len(columns) - 1) else None
    if table is None or len(table) != n_lines:
        raise _fault(path, text, columns, done)
    table.index = pd.RangeIndex(done, done + n_lines)
    return table


def _convert(text: bytes, columns: tuple[Column, ...]) -> pd.DataFrame | None:
    """Return the table, or None if any field is illegal in its column."""
    read = {"int": "int64", "float": "float64", "str": "str", "time": "str"}
    try:
        table = pd.read_csv(
            io.BytesIO(text),
            header=None,
            names=[column.name for column in columns],
            dtype={column.name: read[column.kind] for column in columns},
            na_values={column.name: [""] for column in columns if column.kind == "float"},
            keep_default_na=False,
            quoting=3,  # no quotes in these files: a stray one must not swallow lines
        )
        for column in columns:
            if column.kind == "time":
                table[column.name] = pd.to_datetime(table[column.name], format=column.time_format).astype(
                    np.dtype(column.dtype)
                )
    except pd.errors.EmptyDataError:
        table = pd.DataFrame({column.name: pd.Series(dtype=column.dtype) for column in columns})
    except (ValueError, OverflowError):  # pandas' own ParserError is a ValueError
        return None
    for column in columns:
        if not _legal(table[column.name], column):
            return None
        if column.kind in ("int", "float"):
            table[column.name] = table[column.name].astype(np.dtype(column.dtype))
    return table


def _legal(values: pd.Series[float], column: Column) -> bool:
    """Return True if a parsed column keeps the rules of ``column``."""
    if column.kind == "time":
        return True
    if column.kind == "str":
        return not (column.required and bool((values == "").any()))
    x = values.to_numpy()
    if column.kind == "float":
        unknown = np.isnan(x)
        if column.required and unknown.any():
            return False
        x = x[~unknown]
    return bool((np.isfinite(x) & (x >= column.low) & (x <= column.high)).all())


def _fault(path: Path, text: bytes, columns: tuple[Column, ...], done: int) -> TraceError:
    """Find the first malformed line of a block and say what is wrong with it."""
    for number, raw in enumerate(text.split(b"\n")[: text.count(b"\n") + (not text.endswith(b"\n"))], start=done + 2):
        line = raw.rstrip(b"\r").decode("utf-8", "replace")
        fields = line.split(",")
        if len(fields) != len(columns):
            return TraceError(f"{path}:{number}: {len(fields)} fields in {line[:80]!r}: expected {len(columns)}")
        for field, column in zip(fields, columns, strict=True):
            if not _field_is_legal(field, column):
                return TraceError(f"{path}:{number}: {column.name} = {field[:80]!r}: expected {column.legal}")
    return TraceError(f"{path}: lines {done + 2} and on cannot be read: expected {len(columns)} plain fields a line")


def _field_is_legal(field: str, column: Column) -> bool:
    if field == "" or column.kind == "str":
        return not (column.required and field == "")
    try:
        if column.kind == "time":
            pd.to_datetime(field, format=column.time_format)
            return True
        number = int(field) if column.kind == "int" else float(field)
    except ValueError:
        return False
    return math.isfinite(number) and column.low <= number <= column.high
