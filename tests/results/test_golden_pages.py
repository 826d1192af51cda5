"""What each kind of result prints and draws, from a stored folder, is the text beside it.

Each folder of ``tests/golden/results`` is a result with few rows: tables as CSV, whose heads name the types of columns
(``i`` integer, ``I`` integer or nothing, ``f`` and ``F`` float, ``b`` yes or no, ``s`` text or nothing, else text),
``meta.json``, ``summary.json`` of a single run, and ``page.txt``, the text that is compared. Figures are made by hand,
so that every sentence occurs.
After a change that is meant to change a page, ``GOLDEN=write pytest tests/results/test_golden_pages.py`` writes the
texts anew; then read what changed (``git diff tests/golden/results``), as a user would.
"""

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedFormatter, FuncFormatter
from rich.console import Console, Group

from marketsched.results.audit_kind import AuditKind
from marketsched.results.conduct_kind import ConductKind
from marketsched.results.hard_kind import HardKind
from marketsched.results.html import notebook_html
from marketsched.results.kinds import ResultKind, kind_of
from marketsched.results.learning_kind import LearningKind
from marketsched.results.loads_kind import LoadsKind
from marketsched.results.market_kind import MarketKind
from marketsched.results.mechanisms_kind import MechanismsKind
from marketsched.results.output import META, plain
from marketsched.results.result import Result, load
from marketsched.results.sweep_kind import SweepKind
from marketsched.results.views import parts_of_view

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "results"
WIDTH = 110  # of the page that commands print
KINDS: dict[str, type[ResultKind]] = {
    "audit": AuditKind,
    "conduct": ConductKind,
    "conduct-value": ConductKind,
    "hard": HardKind,
    "learning": LearningKind,
    "loads": LoadsKind,
    "market": MarketKind,
    "market-cluster": MarketKind,
    "market-log": MarketKind,
    "mechanisms": MechanismsKind,
    "mechanisms-cluster": MechanismsKind,
    "mechanisms-log": MechanismsKind,
    "notes": ResultKind,
    "sweep": SweepKind,
    "sweep-killed": SweepKind,
}


def stored(name: str, folder: Path) -> Result:
    """Return the result of a golden folder, as it is loaded from a folder with Parquet tables."""
    for path in (FOLDER / name).iterdir():
        if path.suffix == ".csv":
            table(path.read_text()).to_parquet(folder / f"{path.stem}.parquet")
        elif path.is_dir():
            shutil.copytree(path, folder / path.name)
        elif path.name != "page.txt":
            shutil.copy(path, folder)
    return load(folder)


def table(text: str) -> pd.DataFrame:
    """Return a table of text with the types that its head names."""
    head, *rows = csv.reader(io.StringIO(text))
    columns: dict[str, Any] = {}
    for (name, _, kind), values in zip((each.rpartition(":") for each in head), zip(*rows, strict=True), strict=True):
        if kind in ("f", "F"):
            columns[name] = np.array([float(x or "nan") for x in values], dtype="float32" if kind == "F" else "float64")
        elif kind in ("i", "I"):
            columns[name] = pd.array([int(x) if x else None for x in values], dtype="int64" if kind == "i" else "Int64")
        elif kind == "b":
            columns[name] = np.array([x == "yes" for x in values])
        else:
            columns[name] = pd.array([x or None for x in values] if kind == "s" else values, dtype="str")
    return pd.DataFrame(columns)


def page(result: Result) -> str:
    """Return everything that a reader sees of a result, as text."""
    kind, parts = kind_of(result.kind), []
    view = kind.view(result)
    parts += [f"{kind.name(result)} ({kind.title}; {result!r})", printed(view)]
    if more := getattr(view, "details", ()):
        parts += ["with --details:", printed(Group(*more))]
    rows, data = plain(result.records()), plain(kind.data(result))
    known = {**(rows[0] if result.outcome else {}), kind.compared: rows, "meta": plain(result.meta)}
    own = {name: value for name, value in data.items() if name not in known or known[name] != value}
    parts += [f"--json: {', '.join(data)}", *(f"  {name}: {json.dumps(x)}" for name, x in own.items())]
    summary = plain(kind.summary_data(result))
    parts += [] if summary in (rows, data, rows[0] if rows else rows) else [f"summary.json: {json.dumps(summary)}"]
    for title, shown in kind.details(result).items():
        frame = isinstance(shown, pd.DataFrame)
        about = f"{len(shown)} rows; {', '.join(map(str, shown))}" if frame else f"{len(shown)} figures"
        parts.append(f"folded: {title}: {about}")
    for title, text in kind.documents(result).items():
        parts.append(f"document: {title}: {' / '.join(text.split(chr(10)))}")
    if result.kind in ("notes", "hard"):  # tables that no view shows, and those of one
        parts += ["in a notebook:", notebook_html(result, drawn=False)]
    for name, figure in kind.figures(result).items():
        parts += [f"\nfigure {name!r}:", *described(figure)]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines()) + "\n"


def printed(view: Group | None) -> str:
    if view is None:
        return ""
    console = Console(width=WIDTH, highlight=False, record=True, file=io.StringIO())
    console.print(view)
    return console.export_text()


def described(figure: Figure) -> Iterator[str]:
    """Say what a figure has on it, in words and numbers of four digits."""
    yield f"  {short(figure.get_size_inches())} inches"
    yield from (f"  text: {text.get_text()}" for text in figure.texts)
    yield from (f"  legend: {words(legend)}" for legend in figure.legends)
    for number, axes in enumerate((each for each in figure.axes if each.get_visible()), 1):
        yield f"  panel {number}: {axes.get_title(loc='left')}"
        yield from (f"    {line}" for line in of_panel(axes))


def of_panel(axes: Axes) -> Iterator[str]:
    for name, axis, ends in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        shown = isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter)
        labels = " | ".join(" ".join(each.get_text().split()) for each in axis.get_ticklabels()) if shown else ""
        scale = "" if axis.get_scale() == "linear" else f", {axis.get_scale()}"
        yield f"{name} {short(ends)}{scale}: {' '.join(axis.label.get_text().split())}" + (labels and f" [{labels}]")
    for line in axes.lines:
        look = f"{to_hex(line.get_color())} {line.get_linestyle()}{line.get_marker()}".replace("None", "")
        yield f"line {look}: {short(line.get_xdata())}; {short(line.get_ydata())}"
    for patch in (each for each in axes.patches if isinstance(each, Rectangle)):
        corner, size = (patch.get_x(), patch.get_y()), (patch.get_width(), patch.get_height())
        yield f"bar {to_hex(patch.get_facecolor())}: at {short(corner)}, size {short(size)}"
    for found in axes.collections:
        if isinstance(found, QuadMesh):
            continue  # of a colour bar
        spans = found.get_segments() if isinstance(found, LineCollection) else [p.vertices for p in found.get_paths()]
        colours = found.get_color() if isinstance(found, LineCollection) else found.get_facecolor()
        yield f"{type(found).__name__} {to_hex(colours[0])}: {' | '.join(short(span) for span in spans)}"
    for image in axes.images:
        pixels = np.asarray(image.get_array().filled(np.nan) if hasattr(image.get_array(), "filled") else 0)
        pixels = pixels if pixels.ndim else np.asarray(image.get_array())
        yield f"image over {short(image.get_extent())}, {image.origin}: {' | '.join(short(row) for row in pixels)}"
    yield from (f"text at {short(text.get_position())}: {text.get_text()!r}" for text in axes.texts)
    if axes.get_legend():
        yield f"legend: {words(axes.get_legend())}"


def words(legend: Any) -> str:
    return " | ".join(text.get_text() for text in legend.get_texts())


def short(numbers: Any) -> str:
    """Write numbers with four digits, points of a line as ``x,y``."""
    array = np.asarray(numbers, dtype=np.float64)
    if array.ndim == 2:
        return " ".join(",".join(f"{x + 0.0:.4g}" for x in row) for row in array)
    return " ".join(f"{x + 0.0:.4g}" for x in array)


@pytest.mark.parametrize("name", KINDS)
def test_a_stored_result_prints_and_draws_its_page(name, tmp_path):
    result = stored(name, tmp_path)
    assert type(kind_of(result.kind)) is KINDS[name]
    found = page(result)
    if os.environ.get("GOLDEN") == "write":
        (FOLDER / name / "page.txt").write_text(found)
    assert found == (FOLDER / name / "page.txt").read_text()


def test_every_folder_has_its_page():
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(KINDS)
    assert all((FOLDER / name / META).is_file() for name in KINDS) and parts_of_view(None) == ("", [], [])
