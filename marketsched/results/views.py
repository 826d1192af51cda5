"""Numbers and tables as a person reads them, on a terminal, on a page and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text


def percent(x: float) -> str:
    """Show a share: 0.1234 as ``12.3 %``."""
    return f"{100 * x:.1f} %"


def amount(x: float) -> str:
    """Show a number with three or more digits: ``337,632``, ``11.7``, ``0.001``."""
    return f"{x:,.0f}" if abs(x) >= 1000 or x == round(x) else f"{x:.3g}"


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
    if low is None or not math.isfinite(low):
        return "nothing earned"
    high = math.inf if high is None else high  # a saved infinity
    return f"{high:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} .. {high:.3f}"


def plain_table(*titles: str, first: str = "", room: int = 0, **look: Any) -> Table:
    """Return an empty table without lines: a column of names, then figures to the right.

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
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    names: dict[str, Any] = {"overflow": "fold", "min_width": room} if room else {}
    table.add_column(Text(first), **names)
    for title in titles:
        table.add_column(Text(title), justify="right", **(look or {"no_wrap": True}))  # Text: brackets are no markup
    return table


def flat(data: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested mappings, with dots between levels."""
    leaves: list[tuple[str, Any]] = []
    for key, value in data.items():
        leaves += flat(value, f"{above}{key}.") if isinstance(value, Mapping) else [(f"{above}{key}", value)]
    return leaves


def parts_of_view(view: Any) -> tuple[str, list[tuple[list[str], list[bool], list[list[str]]]], list[str]]:
    """Return headline, tables and remarks of what a command prints.

    A table is its titles, per column whether it is aligned to the right, and its rows; columns without
    a word are left out.
    """
    head, tables, notes = "", [], []
    for part in view.renderables if view is not None else ():
        if isinstance(part, Table):
            columns = [(column, [str(each) for each in column.cells]) for column in part.columns]
            kept = [(column, cells) for column, cells in columns if any(cells)]
            titles = [str(column.header).replace("\n", " ") for column, _ in kept]
            rows = [list(row) for row in zip(*(cells for _, cells in kept), strict=True)]
            tables.append((titles, [column.justify == "right" for column, _ in kept], rows))
        elif isinstance(part, Text) and part.plain:
            if head or part.plain.startswith("- "):
                notes.append(part.plain.removeprefix("- "))
            else:
                head = part.plain
    return head, tables, notes
