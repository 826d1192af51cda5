"""A result in a notebook: its summary as a table, and its figure, small."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape

from marketsched.results.result import Result
from marketsched.results.views import ShownTable, frame_table, parts_of_view

DPI = 60  # of a figure 12 inches wide: 720 pixels
MOST_ROWS = 12  # of a table that no view shows


def notebook_html(result: Result, drawn: bool) -> str:
    """Return headline, tables, remarks and figure of a result as a piece of HTML; every word is escaped."""
    head, tables, notes = parts_of_view(result.view())
    answer, *more = (head or repr(result)).splitlines()
    found = [f"<p><b>{escape(answer)}</b></p>", *(f"<p>{escape(line)}</p>" for line in more)]
    if not tables and result.tables:
        tables = [frame_table("", result.to_frame().head(MOST_ROWS))]
    found += [_table(table) for table in tables]
    if notes:
        found.append("<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>")
    if not result.complete:
        found.append(f"<p>INTERRUPTED {escape(result.how_far)}</p>")
    picture = _picture(result) if drawn else ""
    return "<div>" + "\n".join(found) + picture + "</div>"


def _table(table: ShownTable) -> str:
    def line(cells: Iterable[str], tag: str) -> str:
        sides = ("right" if numeric else "left" for numeric in table.numeric)
        fields = (f'<{tag} style="text-align:{side}">{escape(x)}</{tag}>' for side, x in zip(sides, cells, strict=True))
        return f"<tr>{''.join(fields)}</tr>"

    title = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    return f"<table>{title}{line(table.columns, 'th')}{''.join(line(row, 'td') for row in table.rows)}</table>"


def _picture(result: Result) -> str:
    buffer = io.BytesIO()
    result.plot().savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="figure" style="max-width:100%" src="data:image/png;base64,{data}">'
