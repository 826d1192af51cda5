"""A result in a notebook: its summary as a table, and its figure, small."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

from marketsched.results.kinds import kind_of
from marketsched.results.views import parts_of_view

if TYPE_CHECKING:
    from marketsched.results.result import Result

DPI = 60  # of a figure 12 inches wide: 720 pixels
MOST_ROWS = 12  # of a table that no view shows


def notebook_html(result: Result) -> str:
    """Return headline, tables, remarks and figure of a result as a piece of HTML; every word is escaped."""
    head, tables, notes = parts_of_view(result.view())
    found = [f"<p><b>{escape(head or repr(result))}</b></p>"]
    for titles, right, rows in tables:
        found.append(_table([titles], right, "th") + _table(rows, right, "td") + "</table>")
    if not tables and result.tables:
        frame = result.to_frame()
        found.append(frame.head(MOST_ROWS).to_html(border=0, index=False))
    if notes:
        found.append("<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>")
    if not result.complete:
        found.append(f"<p>INTERRUPTED {escape(result.how_far)}</p>")
    picture = _picture(result)
    return "<div>" + "\n".join(found) + picture + "</div>"


def _table(rows: list[list[str]], right: list[bool], cell: str) -> str:
    lines = []
    for row in rows:
        cells = zip(row, right, strict=True)
        told = (f'<{cell} style="text-align:{"right" if to else "left"}">{escape(word)}</{cell}>' for word, to in cells)
        lines.append(f"<tr>{''.join(told)}</tr>")
    return ("<table>" if cell == "th" else "") + "".join(lines)


def _picture(result: Result) -> str:
    if not kind_of(result.kind).figures(result):
        return ""
    buffer = io.BytesIO()
    result.plot().savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="figure" style="max-width:100%" src="data:image/png;base64,{data}">'
