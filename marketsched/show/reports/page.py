"""A folder of results as one page of HTML that needs nothing else: no network, no scripts, no other files.

Figures are data URIs, fonts are the reader's own, and the page's own policy forbids its browser to
need a network. What folders hold is data: every word of it is escaped. Equal folders give
equal bytes; the page holds no date and no path.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched import __version__
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.results.kinds import kind_of
from marketsched.results.output import INCOMPLETE, PAGE, is_page, whole_file
from marketsched.results.result import Result, load, read_text
from marketsched.results.views import ShownTable, frame_table, pairs_table, parts_of_view, summary_table, value_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TEMPLATE, STYLE = "report.jinja", "report.css"
OPEN_LINES = 40  # a longer document is folded
FEW_NOTES = 4  # more are folded
PNG_HEAD, PNG_TAIL = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
# Entries of a manifest with a place of their own on the page.
ELSEWHERE = {"versions", "cases", "durations", "format", "name", "scenario", "complete", "expected", "headlines"}


@dataclass(frozen=True, slots=True)
class _Document:
    """A text shown as it is, folded if it is long."""

    title: str
    text: str

    @property
    def short(self) -> bool:
        """Whether it is shown at once."""
        return self.text.count("\n") <= OPEN_LINES


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a folder of results, whole or not at all, and return where it is.

    Parameters
    ----------
    folder : path
        A folder written by a run, comparison, audit, sweep or reproduction.
    out : path, optional
        File to write; without it ``report.html`` in the folder. An earlier report is replaced.

    Raises
    ------
    InvalidParameterError
        If ``folder`` is no such folder or a file in it is damaged, or ``out`` is there and no report.
    OSError
        If the disk does not take it; nothing is left then.

    Examples
    --------
    >>> write_report("runs/stochastic-mix-7")  # doctest: +SKIP
    PosixPath('runs/stochastic-mix-7/report.html')
    """
    target = Path(out) if out is not None else Path(folder) / PAGE
    if target.exists() and not target.is_dir() and not is_page(target):
        raise InvalidParameterError(f"{target} is there and no report: expected another name")
    page = report_page(folder)
    with whole_file(target) as partial:
        partial.write_text(page, encoding="utf-8", newline="\n")
    return target


def report_page(folder: str | Path) -> str:
    """Return the page of a folder of results.

    Raises
    ------
    InvalidParameterError
        If it is no such folder, or a file in it is damaged.
    """
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined

    path = Path(folder)
    found = load(path)
    with _as_we_write(found, path):
        parts = _parts(found, path)
    rooms = files("marketsched.show.reports")
    style = "\n" + rooms.joinpath(STYLE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["rows"] = _folded
    environment.filters["verdict"] = _verdict_class
    page = environment.from_string(rooms.joinpath(TEMPLATE).read_text(encoding="utf-8")).render(
        style=style,
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        kind=kind_of(found.kind).title,
        few_notes=FEW_NOTES,
        parts=parts,
        versions=[(str(name), value_text(each)) for name, each in found.meta["versions"].items()],
        version=__version__,
    )
    return page if page.endswith("\n") else page + "\n"


@contextmanager
def _as_we_write(found: Result, path: Path) -> Iterator[None]:
    """Turn what surprises us in a folder into one clear line."""
    try:
        yield
    except MarketschedError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        made = found.meta["versions"]["marketsched"]
        raise InvalidParameterError(
            f"{path} is damaged, or of another version (made with {made}): {type(error).__name__}: {error}"
        ) from error


def _parts(found: Result, path: Path) -> dict[str, Any]:
    """Return what stands on the page, by the names of the template."""
    look = kind_of(found.kind)
    chapters = look.chapters(found, path)
    view = look.view(found) if chapters is None else None
    head, tables, notes = parts_of_view(view, details=True)
    if chapters is not None:
        head, tables, notes = chapters.head, list(chapters.tables), list(chapters.notes)
    elif view is None:  # of a kind nothing is known of: what is there
        tables = [frame_table(name, table) for name, table in found.tables.items()]
        tables += [frame_table("summary", found.summary)] if found.compares else []
    return {
        "name": look.name(found),
        "head": head,
        "tables": tables,
        "notes": notes,
        "sections": [_section(title, path / name, each) for title, name, each in (chapters.parts if chapters else ())],
        "details": [_detail(title, each, look.by) for title, each in look.details(found).items()]
        if head or view
        else [],
        "documents": [_Document(title, text) for title, text in look.documents(found).items()],
        "incomplete": _incomplete(found, path),
        "figures": _figures(found, path, drawn=chapters is None),
        "facts": _facts(found),
        "files": list(_files(path)),
    }


def _section(title: str, folder: Path, found: Result) -> dict[str, Any]:
    """Return a chapter: what the template shows of a result in a folder of its own."""
    with _as_we_write(found, folder):
        head, tables, notes = parts_of_view(found.view(), details=True)
        picture = {"title": folder.name, "uri": _picture(folder, "figure.png")}
    return {"title": title, "head": head, "figure": picture, "tables": tables, "notes": notes}


def _detail(title: str, each: Any, by: tuple[str, ...]) -> ShownTable:
    if isinstance(each, Mapping):
        return pairs_table(title, each.items())
    return summary_table(title, each, by if title == "All figures" else ())


def _incomplete(found: Result, path: Path) -> str | None:
    """Say why something is missing; None: nothing is."""
    if (path / INCOMPLETE).is_file():
        return read_text(path / INCOMPLETE).strip() or "something is missing"
    return None if found.complete else "interrupted: what is here is finished, the rest is missing"


def _names(path: Path, *patterns: str) -> list[str]:
    """Return the names of visible files that match a pattern, in order."""
    names = sorted(each.name for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def _folded(table: ShownTable) -> str:
    """Say how many rows a folded table has."""
    return table.note or f"{len(table.rows):,} rows"


def _verdict_class(words: str) -> str:
    """Return the class of a cell with a verdict; a number of its reason may follow."""
    classes = {"reproduced": "good", "same direction": "good", "direction only": "half", "not decided": "open"}
    return next((name for verdict, name in classes.items() if words.startswith(verdict)), "bad")


def _figures(found: Result, path: Path, drawn: bool) -> list[dict[str, str]]:
    """Return the figures as data URIs: those of the folder, the main one first; else, where asked, ``drawn`` here."""
    names = sorted(_names(path, "*.png", "*.svg"), key=lambda name: (not name.startswith("figure."), name))
    if names or not drawn:
        return [{"title": name, "uri": _picture(path, name)} for name in names]
    made = kind_of(found.kind).figures(found)
    return [{"title": title, "uri": _data_uri("image/svg+xml", _svg(each))} for title, each in made.items()]


def _picture(path: Path, name: str) -> str:
    """Return a PNG or SVG picture as a data URI.

    Raises
    ------
    InvalidParameterError
        If it is missing or damaged.
    """
    try:
        content = (path / name).read_bytes()
    except FileNotFoundError:
        raise InvalidParameterError(f"{path} has no {name}: expected all files of the results") from None
    if name.endswith(".svg"):
        sound, kind = b"<svg" in content and b"</svg>" in content, "image/svg+xml"
    else:
        sound, kind = content.startswith(PNG_HEAD) and content.endswith(PNG_TAIL), "image/png"
    if not sound:
        raise InvalidParameterError(f"{path / name} is damaged: expected a {name[-3:].upper()} picture")
    return _data_uri(kind, content)


def _data_uri(kind: str, content: bytes) -> str:
    """Return content as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _svg(figure: Figure) -> bytes:
    """Return a figure as SVG, without a date and with names that do not change."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "marketsched"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _facts(found: Result) -> list[tuple[str, str]]:
    """Return what the manifest says besides versions: seeds, sizes, seconds."""
    facts = [("complete", "yes" if found.complete else "no")]
    for name, value in found.meta.items():
        if name in ELSEWHERE or value == []:
            continue
        if name == "seeds" and isinstance(value, list):
            words = _seeds(value)
        elif name == "seed":
            words = str(value)
        else:
            words = value_text(value)
        facts.append((str(name).replace("_", " "), words))
    if "durations" in found.meta:
        facts.append(("seconds, all runs", value_text(float(sum(each["seconds"] for each in found.meta["durations"])))))
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


def _files(path: Path) -> Iterable[tuple[str, str, str]]:
    """Return (name, rows, bytes) of the files that a reader may open; reports are not among them."""
    import pyarrow.parquet as pq

    for name in _names(path, "*"):
        if not name.endswith(".html"):
            rows = f"{pq.read_metadata(path / name).num_rows:,}" if name.endswith(".parquet") else ""
            yield name, rows, f"{(path / name).stat().st_size:,}"
