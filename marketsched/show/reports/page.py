"""A folder of results as one page of HTML that needs nothing else: no network, no scripts, no other files.

Figures are data URIs, fonts are the reader's own, and the page's own policy forbids its browser to
ask anybody for anything. What folders hold is data: every word of it is escaped. Equal folders give
equal bytes; the page holds no date and no path.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.output import whole_file
from marketsched.show.reports.parts import Parts, as_we_write, parts_of
from marketsched.show.reports.reading import KINDS, Results, data_uri, read_results
from marketsched.show.reports.tables import ReportTable, told

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATE, STYLE = "report.jinja", "report.css"
PAGE = "report.html"  # what a report is called if nobody says otherwise
MARK = '<meta name="generator" content="marketsched report">'
# Entries of a manifest with a place of their own on the page.
ELSEWHERE = {"versions", "cases", "durations", "kind", "format", "name", "scenario", "complete", "files", "expected"}


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a folder of results, whole or not at all, and return where it is.

    Parameters
    ----------
    folder : path
        What a run, comparison, audit, sweep or reproduction has written.
    out : path, optional
        File to write; without it ``report.html`` in the folder. An earlier report is replaced.

    Raises
    ------
    InvalidParameterError
        If ``folder`` is no such folder or a file in it is damaged, or ``out`` is there and no report.
    OSError
        If the disk does not take it; nothing is left then.
    """
    target = Path(out) if out is not None else Path(folder) / PAGE
    if target.exists() and not target.is_dir() and not _is_report(target):
        raise InvalidParameterError(f"{target} is there and no report: expected another name")
    page = report_page(folder)
    with whole_file(target) as partial:
        partial.write_text(page, encoding="utf-8", newline="\n")
    return target


def _is_report(path: Path) -> bool:
    """Whether a file was written by us (a device or pipe is not one)."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MARK.encode() in file.read(1000)


def report_page(folder: str | Path) -> str:
    """Return the page of a folder of results.

    Raises
    ------
    InvalidParameterError
        If it is no such folder, or a file in it is damaged.
    """
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined

    from marketsched import __version__

    found = read_results(Path(folder))
    parts = parts_of(found)
    with as_we_write(found):
        facts, figures = _facts(found), _figures(found, parts)
    rooms = files("marketsched.show.reports")
    style = "\n" + rooms.joinpath(STYLE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["rows"] = _folded
    environment.filters["verdict"] = _verdict_class
    page = environment.from_string(rooms.joinpath(TEMPLATE).read_text(encoding="utf-8")).render(
        style=style,
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        kind=KINDS[found.kind],
        parts=parts,
        incomplete=found.incomplete,
        figures=figures,
        facts=facts,
        versions=[(str(name), told(each)) for name, each in found.meta["versions"].items()],
        files=_files(found),
        version=__version__,
    )
    return page if page.endswith("\n") else page + "\n"


def _folded(table: ReportTable) -> str:
    """Say how many rows a folded table has."""
    return table.note or f"{len(table.rows):,} rows"


def _verdict_class(words: str) -> str:
    """Return the class of a cell with a verdict; a number of its reason may follow."""
    classes = {"reproduced": "good", "same direction": "half", "not decided": "open"}
    return next((name for verdict, name in classes.items() if words.startswith(verdict)), "bad")


def _figures(found: Results, parts: Parts) -> list[dict[str, str]]:
    """Return the figures as data URIs: drawn here first, then the folder's main one, then others."""
    figures = [{"title": title, "uri": data_uri("image/svg+xml", _svg(drawn))} for title, drawn in parts.figures]
    names = found.names("*.png", "*.svg")
    for name in sorted(names, key=lambda name: (not name.startswith("figure."), name)):
        figures.append({"title": name, "uri": found.picture(name)})
    return figures


def _svg(figure: Figure) -> bytes:
    """Return a figure as SVG, without a date and with names that do not change."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "marketsched"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _facts(found: Results) -> list[tuple[str, str]]:
    """Return what the manifest says besides versions: seeds, sizes, seconds."""
    facts = [("complete", "no" if found.incomplete else "yes")]
    for name, value in found.meta.items():
        if name in ELSEWHERE or value == []:
            continue
        if name == "seeds" and isinstance(value, list):
            words = _seeds(value)
        elif name == "seed":
            words = str(value)
        else:
            words = told(value)
        facts.append((str(name).replace("_", " "), words))
    if "durations" in found.meta:
        facts.append(("seconds, all runs", told(float(sum(each["seconds"] for each in found.meta["durations"])))))
    return facts


def _seeds(seeds: list[Any]) -> str:
    """Return seeds in words: a range if they are one.

    Examples
    --------
    >>> _seeds([0, 1, 2, 3]), _seeds([3, 5])
    ('0 to 3', '3, 5')
    """
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds)


def _files(found: Results) -> Iterable[tuple[str, str, str]]:
    """Return (name, rows, bytes) of the files that a reader may open; reports are not among them."""
    for name in found.names("*"):
        if not name.endswith(".html"):
            rows = f"{found.rows(name):,}" if name.endswith(".parquet") else ""
            yield name, rows, f"{(found.path / name).stat().st_size:,}"
