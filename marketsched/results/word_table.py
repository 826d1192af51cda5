"""A table of words: a kind of result builds it, and a terminal, a page or a notebook shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table of words for a page or a notebook. ``numeric``: per column, whether it is aligned to the right."""

    title: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(slots=True)
class WordColumn:
    """A column: its title, and how a terminal lays it out (the options of `rich.table.Column`)."""

    title: str
    justify: Literal["left", "right"] = "left"
    no_wrap: bool = False
    overflow: Literal["fold", "ellipsis"] = "ellipsis"
    min_width: int | None = None
    style: str = ""


@dataclass(slots=True)
class WordTable:
    """Columns and rows of words, without lines. Words are shown as they are: brackets are no markup."""

    columns: list[WordColumn] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    padding: tuple[int, int, int, int] = (0, 1, 0, 1)

    def add_column(self, title: str, **look: Any) -> None:
        """Add a column behind the others; ``look`` as the fields of `WordColumn`."""
        self.columns.append(WordColumn(title, **look))

    def add_row(self, *cells: str) -> None:
        """Add a row below the others; cells that are left out are blank."""
        self.rows.append((*cells, *[""] * (len(self.columns) - len(cells))))

    def told(self) -> list[int]:
        """Return the places of the columns that say something: those of dashes alone do not."""
        return [
            i for i in range(len(self.columns)) if not i or {row[i] for row in self.rows} - {"", "-"} or self._blank(i)
        ]

    def _blank(self, place: int) -> bool:
        return not any(row[place] for row in self.rows)  # part of the layout

    def shown(self) -> ShownTable:
        """Return the table for a page or a notebook; columns without a word are left out."""
        kept = [i for i in self.told() if not self._blank(i)]
        titles = tuple(self.columns[i].title.replace("\n", " ") for i in kept)
        numeric = tuple(self.columns[i].justify == "right" for i in kept)
        return ShownTable("", titles, numeric, tuple(tuple(row[i] for i in kept) for row in self.rows))

    def __rich__(self) -> Table:
        """Return the table for a terminal."""
        table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim", padding=self.padding)
        kept = self.told()
        for column in (self.columns[i] for i in kept):
            table.add_column(
                Text(column.title),
                justify=column.justify,
                no_wrap=column.no_wrap,
                overflow=column.overflow,
                min_width=column.min_width,
                style=column.style,
            )
        for row in self.rows:
            table.add_row(*(Text(row[i]) for i in kept))
        return table
