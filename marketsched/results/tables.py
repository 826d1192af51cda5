"""Tables of a result, the long ones made on first use, and written in parts."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd

PART_ROWS = 2**18  # of a long table, written at once: some 30 MB of events


class LongTable(Protocol):
    """A table that is not made yet."""

    def __len__(self) -> int:
        """Return its number of rows."""
        ...

    def frame(self, begin: int = 0, end: int | None = None, columns: Container[str] | None = None) -> pd.DataFrame:
        """Return rows ``begin .. end - 1``; None: all that follow. Only ``columns``, if they are given."""
        ...


class Tables(Mapping[str, "pd.DataFrame"]):
    """Data frames by name; a long table becomes one when it is looked up.

    Parameters
    ----------
    tables : mapping of str to DataFrame or LongTable
        In the order in which they are listed.
    """

    def __init__(self, tables: Mapping[str, pd.DataFrame | LongTable]) -> None:
        self._tables: dict[str, Any] = dict(tables)

    def __getitem__(self, name: str) -> pd.DataFrame:
        found = self._tables[name]
        if hasattr(found, "frame"):
            found = self._tables[name] = found.frame()
        made: pd.DataFrame = found
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def rows(self, name: str) -> int:
        """Return the number of rows of a table."""
        return len(self._tables[name])

    def __reduce__(self) -> tuple[Any, ...]:
        return Tables, (dict(self),)  # another process has no use for the log behind a long table


def parts_of(
    tables: Mapping[str, pd.DataFrame], name: str, columns: Sequence[str] | None = None
) -> Iterator[pd.DataFrame]:
    """Yield a table in parts, one after the other; one part if it is a data frame, or short.

    ``columns``: of them alone those that it has, in the order of the table; None: all.
    """
    table: Any = tables._tables[name] if isinstance(tables, Tables) else tables[name]
    part = getattr(table, "frame", None)
    if part is None:
        yield table if columns is None else table[[each for each in table if each in columns]]
        return
    for begin in range(0, max(len(table), 1), PART_ROWS):
        yield part(begin, begin + PART_ROWS, columns)


def columns_of(tables: Mapping[str, pd.DataFrame], name: str, wanted: Sequence[str]) -> pd.DataFrame:
    """Return those of the ``wanted`` columns that a table has; of a long one no others are made."""
    import pandas as pd

    return pd.concat(list(parts_of(tables, name, wanted)), ignore_index=True)
