"""Text tables with any separator, as text: lines that cannot be rows are kept apart, with their numbers."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.traces.faults import Fault
from marketsched.worlds.traces.tables import open_lines

REPEATED = "rows left out: as an earlier one in every field, as where two queries overlap"
LONGEST_HEADER, LONGEST_LINE = 100_000, 4_000_000  # bytes
SEPARATORS = ("|", "\t", ";", ",")


class TextTable(NamedTuple):
    """A table of text.

    Attributes
    ----------
    rows : DataFrame
        All columns as text; the index holds lines of the file, from 2 on.
    faults : list of Fault
        Lines with another number of fields.
    headers : int
        Rows left out, as they repeat the header.
    """

    rows: pd.DataFrame
    faults: list[Fault]
    headers: int = 0


def header_of(path: Path) -> str:
    """Return the first line of a file.

    Raises
    ------
    TraceError
        If it is too long, empty, or no UTF-8 text.
    """
    with open_lines(path) as file:
        line = file.readline(LONGEST_HEADER + 1)
    place = f"{path}:1"
    if len(line) > LONGEST_HEADER:
        raise TraceError(f"a first line of more than {LONGEST_HEADER:,} bytes", place=place, legal="names of columns")
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise TraceError(f"byte {line[error.start]:#04x} at {error.start}", source=place, legal="UTF-8 text") from None
    if not text.strip() or "\0" in text:
        raise TraceError("no text in the first line", place=place, legal="UTF-8 text, names of columns")
    return text


def _check_utf8(path: Path) -> None:
    """Raise TraceError for the first line that is no UTF-8: Arrow would name another fault of the same row."""
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    with open_lines(path) as file:
        while block := file.read(1 << 20):
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                line += error.object.count(b"\n", 0, error.start)
                byte = f"byte {error.object[error.start]:#04x}"
                raise TraceError(byte, source=f"{path}:{line}", legal="UTF-8 text") from None
            line += block.count(b"\n")


def separator_of(header: str) -> str:
    """Return what separates the columns of a header: the one of `SEPARATORS` that it has most of."""
    return max(SEPARATORS, key=header.count)


def names_in(header: str) -> list[str]:
    """Return the columns that a header names, quotes and blanks around them left out."""
    return [name.strip().strip('"').strip() for name in header.split(separator_of(header))]


def read_text_table(path: Path, *, open_end: Callable[[str], bool] = lambda name: False) -> TextTable:
    """Return a file with a header line and columns separated by ``,``, ``;``, ``|`` or tabs, plain or gzip.

    Fields may stand in double quotes. Empty lines are passed over. A last column of which ``open_end`` is true holds
    the rest of its row, whatever separators stand there.

    Raises
    ------
    TraceError
        If it has no rows, is no UTF-8 text, or a column occurs twice.
    MissingDataError
        If there is no such file.
    """
    header = header_of(path)
    _check_utf8(path)
    names = names_in(header)
    faults: list[Fault] = []
    longer: dict[int, str] = {}  # rows by line
    rest = open_end(names[-1])

    def note(row: csv.InvalidRow) -> str:
        if rest and row.actual_columns > row.expected_columns:
            longer[row.number] = row.text
        else:
            faults.append(Fault(row.number, f"{row.actual_columns} fields, not {row.expected_columns}"))
        return "skip"

    if twice := [name for name in dict.fromkeys(names) if name and names.count(name) > 1]:
        raise TraceError(f"the column {twice[0]!r} occurs twice", source=f"{path}:1", legal="each once")
    columns = [name or f"(column {place})" for place, name in enumerate(names, 1)]
    try:
        with open_lines(path) as file:
            found = csv.read_csv(
                file,
                # One thread numbers the lines.
                csv.ReadOptions(use_threads=False, column_names=columns, skip_rows=1, block_size=LONGEST_LINE),
                csv.ParseOptions(delimiter=separator_of(header), invalid_row_handler=note, ignore_empty_lines=False),
                csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string())),
            )
    except pa.ArrowInvalid as error:
        what = str(error).splitlines()[0]
        what = f"a line of more than {LONGEST_LINE:,} bytes" if "straddl" in what else what
        raise TraceError(what, source=str(path), legal="rows of UTF-8 text") from None
    if found.num_rows + len(faults) + len(longer) == 0:
        raise TraceError("has a header and no rows", place=str(path), legal="at least one row")
    rows = pd.DataFrame({name: found[name].to_numpy(zero_copy_only=False) for name in columns}, dtype="str")
    lines = np.arange(2, 2 + len(rows) + len(faults) + len(longer))
    rows.index = pd.Index(lines[~np.isin(lines, [*(fault.line for fault in faults), *longer])])
    if longer:
        split = [text.split(separator_of(header), len(names) - 1) for text in longer.values()]
        rows = pd.concat([rows, pd.DataFrame(split, pd.Index(list(longer)), columns, dtype="str")]).sort_index()
    unnamed = [f"(column {place})" for place, name in enumerate(names, 1) if not name]
    rows = rows[(rows != "").any(axis=1)].drop(columns=unnamed)
    again = rows.iloc[:, 0].str.strip() == rows.columns[0]
    again &= rows.eq(rows.columns).all(axis=1) if again.any() else False
    return TextTable(rows[~again], faults, int(again.sum()))


def repeated(rows: pd.DataFrame, ids: str | None) -> pd.Series[bool]:
    """Tell which rows equal an earlier one in every field, the job's number in the column ``ids`` included.

    A job that was requeued has another start or end in each of its rows. None: without numbers two jobs may be equal.
    """
    found = pd.Series(False, index=rows.index)
    if ids is not None:
        again = rows[rows[ids].ne("") & rows[ids].duplicated(keep=False)]  # few, as a rule
        found[again.index] = again.duplicated()
    return found
