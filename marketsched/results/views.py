"""Numbers and tables as a person reads them, on a terminal, on a page and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 200  # of a table on the page; the file holds all
ACROSS = 8  # columns from which on a table of few rows is turned on its side


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

    def shown_columns(self) -> list[int]:
        """Return the places of the columns that say something: those of dashes alone do not."""
        return [
            i for i in range(len(self.columns)) if not i or {row[i] for row in self.rows} - {"", "-"} or self._blank(i)
        ]

    def _blank(self, place: int) -> bool:
        return not any(row[place] for row in self.rows)  # part of the layout

    def shown(self) -> ShownTable:
        """Return the table for a page or a notebook; columns without a word are left out."""
        kept = [i for i in self.shown_columns() if not self._blank(i)]
        titles = tuple(self.columns[i].title.replace("\n", " ") for i in kept)
        numeric = tuple(self.columns[i].justify == "right" for i in kept)
        return ShownTable("", titles, numeric, tuple(tuple(row[i] for i in kept) for row in self.rows))

    def __rich__(self) -> Table:
        """Return the table for a terminal."""
        table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim", padding=self.padding)
        kept = self.shown_columns()
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


class View(Group):
    """The printed output of a command.

    Parameters
    ----------
    *parts : Text or Table
        Always printed.
    details : iterable of Text or Table
        Printed after them with ``--details``, and on the page of a report.
    """

    def __init__(self, *parts: Any, details: Iterable[Any] = ()) -> None:
        super().__init__(*parts)
        self.details = tuple(details)


WARNING = "NOTE: "
FIRST_OF_LOG = (  # the rest with --details
    "source", "nodes", "load", "round", "rule", "values", "deadlines", "rows left out", "jobs left out",
    "runs left out: wider", "runs cut",
)  # fmt: skip
MADE = ("rule", "values (made up)")  # one of these stands in the notes of a market that was made of a log


def log_remarks(meta: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Say of a market made by a rule, as those of logs are, what of its jobs was drawn, chosen or left out.

    Returns
    -------
    first, more : list of str
        Remarks for every reader, and further ones; `warnings_of` has what stands above all.
    """
    notes = {what: found for what, found in (meta.get("workload") or {}).items() if what != "warnings"}
    first_notes = notes.items() if any(made in notes for made in MADE) else ()
    first = [f"{what}: {found}" for what, found in first_notes if what.startswith(FIRST_OF_LOG)]
    return first, [f"{what}: {found}" for what, found in first_notes if not what.startswith(FIRST_OF_LOG)]


def warnings_of(meta: Mapping[str, Any]) -> list[Text]:
    """Return what was not honoured of a log, or is made up, a line each: to be shown above the answer."""
    notes = str((meta.get("workload") or {}).get("warnings", ""))
    return [Text(f"{WARNING}{line}", style="yellow") for line in notes.splitlines()]


def percent(x: float) -> str:
    """Show a share: 0.1234 as ``12.3 %``."""
    return f"{100 * x:.1f} %"


def amount(x: float) -> str:
    """Show a number with three or more digits: ``337,632``, ``11.7``, ``0.001``."""
    return f"{x:,.0f}" if abs(x) >= 999.5 or x == round(x) else f"{x:.3g}"


def exact_amount(x: float) -> str:
    """Show a number that is known exactly, with up to ten digits: ``2``, ``0.012349``, ``1,234.5``.

    One that has more is rounded down (`shown_whole` tells): the printed gain of a lie is then a lower bound.
    """
    return f"{x:,.10g}" if shown_whole(x) else at_least(x, 10)


def shown_whole(x: float) -> bool:
    """Tell whether ten digits say all of a number, up to what its last operations have rounded (1e-14 of it)."""
    return not math.isfinite(x) or abs(float(f"{x:.10g}") - x) <= 1e-14 * abs(x)


def at_least(x: float, digits: int = 3) -> str:
    """Show a lower bound, rounded down: ``0.012349`` as ``0.0123``, ``0.99996`` as ``0.999``."""
    return _one_sided(x, digits, ROUND_FLOOR)


def at_most(x: float, digits: int = 3) -> str:
    """Show an upper bound, rounded up: ``0.012349`` as ``0.0124``; ``-`` where there is none."""
    return _one_sided(x, digits, ROUND_CEILING)


MOST_PLACES = 4  # of a share in per cent: more tell rounding from rounding


def at_least_percent(share: float) -> str:
    """Show a share that is a lower bound: ``0.1239`` as ``12.3 %``; near all, with up to four decimals.

    What rounding has taken from it (1e-12 of it) is no reason to show less: a fifth is ``20.0 %``.
    """
    if not math.isfinite(share):
        return "-"
    exact, places = Decimal(float(share)) * 100, 1
    exact = min(exact * (1 + Decimal("1e-12")), max(exact, Decimal(100)))
    while 99 < exact < 100 and places < MOST_PLACES and exact.quantize(Decimal(1).scaleb(-places)) >= 100:
        places += 1
    return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_FLOOR)} %"


def _one_sided(x: float, digits: int, rounding: str) -> str:
    """Return ``x`` with so many digits, rounded one way; digits before the point are all kept."""
    if not math.isfinite(x):
        return "-"
    exact = Decimal(float(x))
    if not exact:
        return "0"
    place = min(exact.adjusted() + 1 - digits, 0)
    shown = exact.quantize(Decimal(1).scaleb(place), rounding)
    text = f"{shown:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number(x: float) -> str:
    """Show a number with four digits or more; ``-`` where there is none."""
    if not math.isfinite(x):
        return "-"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def decimals(x: float) -> str:
    """Show a ratio; ``-`` where there is none."""
    return f"{x:.3f}" if math.isfinite(x) else "-"


def ratio_text(low: float | None, high: float | None) -> str:
    """Show a ratio that is known to lie between two: one number if they agree to three digits."""
    if low is None or math.isnan(low):
        return "no bound"
    if not math.isfinite(low):
        return "nothing earned"
    high = math.inf if high is None else high  # a saved infinity
    return f"{high:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} .. {high:.3f}"


def plain_table(*titles: str, first: str = "", room: int = 0, **look: Any) -> WordTable:
    """Return an empty table without lines: a column of names, then figures to the right.

    Columns that get nothing but dashes are not shown.

    Parameters
    ----------
    *titles : str
        Of the columns of figures.
    first : str
        Title of the names.
    room : int
        Letters that names have at least; 0: names are never broken.
    **look
        Of the columns of figures, in place of ``no_wrap=True``.
    """
    table = WordTable()
    table.add_column(first, **({"overflow": "fold", "min_width": room} if room else {}))
    for title in titles:
        table.add_column(title, justify="right", **(look or {"no_wrap": True}))
    return table


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures: its title, and what a row shows there."""

    title: str
    cell: Callable[[Mapping[str, Any]], str]


def table_of(rows: Iterable[Mapping[str, Any]], name: Column, columns: Sequence[Column], **look: Any) -> WordTable:
    """Return a table as `plain_table` lays it out, with a row for each of ``rows``; ``look`` as there.

    Examples
    --------
    >>> seats = Column("seats", lambda row: str(row["n"]))
    >>> table_of([{"who": "ann", "n": 3}], Column("", lambda row: row["who"]), [seats]).rows
    [('ann', '3')]
    """
    table = plain_table(*(column.title for column in columns), first=name.title, **{"room": 10, **look})
    for row in rows:
        table.add_row(name.cell(row), *(column.cell(row) for column in columns))
    return table


def value_text(value: Any) -> str:
    """Return a value as a reader likes it: four digits, ``-`` for missing values.

    Examples
    --------
    >>> value_text(1234567.8), value_text(0.123456), value_text(True), value_text(None), value_text([1, 2])
    ('1,234,568', '0.1235', 'yes', '-', '1, 2')
    """
    if hasattr(value, "item"):
        value = value.item() if getattr(value, "size", 1) == 1 else value.tolist()
    if value is None or type(value).__name__ == "NAType" or value != value:  # NA of pandas has no truth value
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "infinite" if value > 0 else "-infinite"
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {value_text(each)}" for key, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(value_text(each) for each in value)
    return str(value)


def cell(name: str, value: Any) -> str:
    """Return a cell of the column ``name``: seeds and ordinals are names, without commas."""
    whole = isinstance(value, int) or (hasattr(value, "dtype") and value.dtype.kind == "i")
    return str(value) if whole and name in {"seed", "case", "value"} else value_text(value)


def frame_table(title: str, frame: pd.DataFrame) -> ShownTable:
    """Return the first rows of a data frame; its note says how many there are if not all are shown."""
    shown = frame.head(MOST_ROWS)
    names = [str(name) for name in frame.columns]
    values = [shown[name].tolist() for name in frame.columns]
    rows = tuple(tuple(cell(name, x) for name, x in zip(names, row, strict=True)) for row in zip(*values, strict=True))
    numeric = tuple(frame[name].dtype.kind in "iufb" for name in frame.columns)
    note = f"the first {MOST_ROWS:,} of {len(frame):,} rows" if len(frame) > MOST_ROWS else ""
    return ShownTable(title, tuple(names), numeric, rows, note)


def _turned_table(title: str, frame: pd.DataFrame, by: Sequence[str]) -> ShownTable:
    """Return a data frame of few rows with a line for each of its columns; ``by`` names the rows."""
    heads = tuple(", ".join(cell(name, row[name]) for name in by) for row in frame[list(by)].to_dict(orient="records"))
    lines = []
    for name in frame.columns:
        if name not in by and frame[name].notna().any():
            lines.append((str(name), *(cell(str(name), value) for value in frame[name].tolist())))
    return ShownTable(title, ("", *heads), (False, *(True for _ in heads)), tuple(lines))


def summary_table(title: str, frame: pd.DataFrame, by: Sequence[str]) -> ShownTable:
    """Return all figures of a summary, turned on its side if it has many columns and few rows."""
    by = [name for name in by if name in frame]
    if by and len(frame) <= ACROSS < len(frame.columns):
        return _turned_table(title, frame, by)
    return frame_table(title, frame)


def pairs_table(title: str, pairs: Iterable[tuple[str, Any]]) -> ShownTable:
    """Return names and values, one pair a line."""
    rows = tuple((name, cell(name, value)) for name, value in pairs)
    return ShownTable(title, ("", ""), (False, True), rows)


def flat(data: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested mappings, with dots between levels.

    Examples
    --------
    >>> flat({"welfare": 4.0, "bounds": {"dual": 5.0}})
    [('welfare', 4.0), ('bounds.dual', 5.0)]
    """
    leaves: list[tuple[str, Any]] = []
    for key, value in data.items():
        leaves += flat(value, f"{above}{key}.") if isinstance(value, Mapping) else [(f"{above}{key}", value)]
    return leaves


def parts_of_view(view: Any, details: bool = False) -> tuple[str, list[ShownTable], list[str]]:
    """Return headline, tables and remarks of a command's output.

    A page and a notebook then have the terminal's content: the same rows, the same roundings. A page says what
    ``--details`` adds, too. A line right above a table is its title.
    """
    head, tables, notes, title = "", [], [], ""
    parts = list(view.renderables) if view is not None else []
    for part in [*parts, *(getattr(view, "details", ()) if details else ())]:
        if isinstance(part, WordTable):
            tables.append(replace(part.shown(), title=title))
            title = ""
        elif isinstance(part, Text) and part.plain.strip():
            notes += [title] if title else []
            title = ""
            if part.plain.startswith(WARNING):
                notes.append(part.plain)
            elif not head and not part.plain.startswith("- "):
                head = part.plain
            elif part.plain.startswith("\n"):
                title = part.plain.strip()
            else:
                notes.append(part.plain.removeprefix("- "))
    notes += [title] if title else []
    return head, tables, notes
