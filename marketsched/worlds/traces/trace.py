"""A recorded trace: where its file lies, where it comes from, and its columns.

Files lie in an explicit folder, or in that of the environment variable MARKETSCHED_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from marketsched.mechanisms.errors import MissingDataError
from marketsched.worlds.traces.columns import Column

if TYPE_CHECKING:
    import pandas as pd


VARIABLE = "MARKETSCHED_DATA"
HOW_TO_SET = f"give the folder of the trace files with --data DIR, or set {VARIABLE}; `marketsched traces` lists them"

Source = str | os.PathLike[str] | None  # a data folder, one file, or None: the folder in MARKETSCHED_DATA


def data_folder(folder: Source = None) -> Path:
    """Return the folder that holds the trace files.

    Parameters
    ----------
    folder : path, optional
        The folder; None: the one named by the environment variable ``MARKETSCHED_DATA``.

    Raises
    ------
    MissingDataError
        If no folder is named, or the one named is not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data_folder(folder) == Path(folder)
    True
    """
    named = folder if folder is not None else os.environ.get(VARIABLE) or None
    if named is None:
        raise MissingDataError(f"no data folder: {HOW_TO_SET}")
    path = Path(named)
    if not path.is_dir():
        origin = "" if folder is not None else f" (from {VARIABLE})"
        raise MissingDataError(f"{path}{origin}: no such folder: {HOW_TO_SET}")
    return path


def _locate(source: Source, *names: str) -> Path:
    """Return the path of a trace file, from the file itself or the data folder (see :func:`data_folder`).

    Of the ``names`` it goes by, the usual one is first; one that ends in ``.gz`` stands for the unpacked file as well.
    MissingDataError if there is no such folder, or none of the names in it.
    """
    if source is not None and Path(source).is_file():
        return Path(source)
    folder = data_folder(source)
    for name in names:
        for path in (folder / name, folder / name.removesuffix(".gz")):
            if path.is_file():
                return path
    raise MissingDataError(f"{folder / names[0]}: no such file: {HOW_TO_SET}")


@dataclass(frozen=True, slots=True)
class Trace:
    """One recorded file.

    ``files`` are the names it goes by, the usual one first (others: as it was published). ``columns`` are
    those of its table, ``about`` says what they mean; ``plain`` makes plain fields of a line that has others.
    A file that is no table of comma separated fields has a ``reader`` of its own, given the path. With ``any_order``
    the header of the file may name the columns in another order.

    Examples
    --------
    >>> from marketsched.worlds.traces.columns import seconds, whole
    >>> mine = Trace("mine", "jobs of my machine", ("mine.csv",), "CC0", "my lab", (whole("job"), seconds("submit_s")))
    >>> mine.file, [column.name for column in mine.columns]
    ('mine.csv', ['job', 'submit_s'])
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
    any_order: bool = False

    def __call__(self, source: Source = None) -> pd.DataFrame:
        """Return the whole table, as `read`."""
        return self.read(source)

    @property
    def file(self) -> str:
        """The usual name of the file."""
        return self.files[0]

    def path(self, source: Source = None) -> Path:
        """Return where the file is, or raise ``MissingDataError`` saying how to name its folder."""
        return _locate(source, *self.files)

    def read(self, source: Source = None) -> pd.DataFrame:
        """Return the whole table, with the dtypes of ``columns``, from a data folder or file; see ``about``.

        None: the folder named by ``MARKETSCHED_DATA``. MissingDataError if folder or file is not there; TraceError if
        the file is cut short, damaged or malformed: the message names file and line.
        """
        if self.reader is not None:
            return self.reader(self.path(source))
        from marketsched.worlds.traces.tables import read_table  # pandas: not to list the traces

        return read_table(self.path(source), self.columns, self.plain, self.any_order)

    def stream(self, source: Source = None, rows: int = 100_000) -> Iterator[pd.DataFrame]:
        """Yield the table in blocks of at most ``rows`` rows; one with a reader of its own comes as one block."""
        if self.reader is not None:
            yield self.read(source)
            return
        from marketsched.worlds.traces.tables import stream_table  # pandas, as above

        yield from stream_table(self.path(source), self.columns, rows, self.plain, self.any_order)
