"""What each kind of result prints and draws, from a stored folder, is the text beside it.

The folders are those of `stored_results`; ``page.txt`` in each is the text that is compared. Figures are made by hand,
so that every sentence occurs, but for those on more rows than a page holds: these follow by themselves. After a
change that is meant to change a page, ``GOLDEN=write pytest tests/results/test_golden_pages.py`` writes the texts anew;
then read what changed (``git diff tests/golden/results``), as a user would.
"""

import io
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, FuncFormatter
from rich.console import Console, Group

from marketsched.results.audit_kind import AuditKind
from marketsched.results.conduct_kind import ConductKind
from marketsched.results.html import notebook_html
from marketsched.results.kinds import ResultKind, kind_of
from marketsched.results.learning_kind import LearningKind
from marketsched.results.loads_kind import LoadsKind
from marketsched.results.market_kind import MarketKind
from marketsched.results.mechanisms_figure import FAR, MOST, bounds_figure, differences_figure, drawn_names
from marketsched.results.mechanisms_kind import MechanismsKind
from marketsched.results.output import META, plain
from marketsched.results.owners_view import MOST_PANELS, owners_figure, owners_view
from marketsched.results.panels import OKABE_ITO, look, short
from marketsched.results.pools_figure import MOST_RESOURCES, SMOOTHED, pools_figure
from marketsched.results.pools_view import pools_view
from marketsched.results.result import Result
from marketsched.results.schedules_figure import WINDOW, gantt_figure
from marketsched.results.sweep_kind import MOST_DRAWN, MOST_GROUPS, SweepKind, sweep_figure, sweep_table
from marketsched.results.views import parts_of_view
from marketsched.results.waits_view import MOST_USERS, users_view, wait_unit
from stored_results import FOLDER, stored

WIDTH, NARROW = 110, 80  # of the page that commands print, and of a terminal into which it has to fit
KINDS: dict[str, type[ResultKind]] = {
    "audit": AuditKind,
    "conduct": ConductKind,
    "conduct-value": ConductKind,
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


def page(result: Result) -> str:
    """Return everything that a reader sees of a result, as text."""
    kind, parts = kind_of(result.kind), []
    view = kind.view(result)
    assert all(len(line) <= NARROW for line in printed(view, NARROW).splitlines())
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
    if result.kind == "notes":  # tables that no view shows, and those of one
        parts += ["in a notebook:", notebook_html(result, drawn=False)]
    for name, figure in kind.figures(result).items():
        parts += [f"\nfigure {name!r}:", *described(figure)]
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines()) + "\n"


def printed(view: Group | None, width: int = WIDTH) -> str:
    if view is None:
        return ""
    console = Console(width=width, highlight=False, record=True, file=io.StringIO())
    console.print(view)
    return console.export_text()


def described(figure: Figure) -> Iterator[str]:
    """Say what a figure has on it, in words and numbers of four digits."""
    yield f"  {rounded(figure.get_size_inches())} inches"
    yield from (f"  {written(text)}" for text in figure.texts)
    yield from (f"  legend: {words(legend)}" for legend in figure.legends)
    for number, axes in enumerate((each for each in figure.axes if each.get_visible()), 1):
        yield f"  panel {number} over {rounded(axes.get_position().extents)}: {axes.get_title(loc='left')}"
        yield from (f"    {line}" for line in of_panel(axes))


def of_panel(axes: Axes) -> Iterator[str]:
    for name, axis, ends in (("x", axes.xaxis, axes.get_xlim()), ("y", axes.yaxis, axes.get_ylim())):
        low, high = sorted(ends)
        ticks = [f"{x + 0.0:.4g}" for x in axis.get_majorticklocs() if low <= x <= high]
        if isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter):
            ticks = [" ".join(each.get_text().split()) for each in axis.get_ticklabels()]
        scale = "" if axis.get_scale() == "linear" else f", {axis.get_scale()}"
        yield f"{name} {rounded(ends)}{scale}: {' '.join(axis.label.get_text().split())} [{' | '.join(ticks)}]"
    for line in axes.lines:
        yield f"line {drawn(line)}: {rounded(line.get_xdata())}; {rounded(line.get_ydata())}"
    for patch in (each for each in axes.patches if isinstance(each, Rectangle)):
        corner, size = (patch.get_x(), patch.get_y()), (patch.get_width(), patch.get_height())
        yield f"bar {to_hex(patch.get_facecolor())}: at {rounded(corner)}, size {rounded(size)}"
    for found in axes.collections:
        if isinstance(found, QuadMesh):
            continue  # of a colour bar
        spans = found.get_segments() if isinstance(found, LineCollection) else [p.vertices for p in found.get_paths()]
        colours = found.get_color() if isinstance(found, LineCollection) else found.get_facecolor()
        yield f"{type(found).__name__} {to_hex(colours[0])}: {' | '.join(rounded(span) for span in spans)}"
    for image in axes.images:
        pixels = np.asarray(image.get_array().filled(np.nan) if hasattr(image.get_array(), "filled") else 0)
        pixels = pixels if pixels.ndim else np.asarray(image.get_array())
        yield f"image over {rounded(image.get_extent())}, {image.origin}: {' | '.join(rounded(row) for row in pixels)}"
    yield from (written(text) for text in axes.texts)
    if axes.get_legend():
        yield f"legend: {words(axes.get_legend())}"


def drawn(line: Line2D) -> str:
    """Say how a line looks: colour, dashes and width, marker and its size, what lies above others."""
    dashes, marker = line.get_linestyle(), line.get_marker()
    look = [to_hex(line.get_color()), *([] if dashes == "None" else [f"{dashes}{line.get_linewidth():g}"])]
    look += [] if marker == "None" else [f"{marker}{line.get_markersize():g} {to_hex(line.get_markerfacecolor())}"]
    return " ".join(
        [*look, f"above {line.get_zorder():g}", *([f"alpha {line.get_alpha():g}"] if line.get_alpha() else [])]
    )


def written(text: Text) -> str:
    return f"text {text.get_fontsize():g} at {rounded(text.get_position())}: {text.get_text()!r}"


def words(legend: Any) -> str:
    handles = (f" {drawn(each)}" if isinstance(each, Line2D) else "" for each in legend.legend_handles)
    texts = (text.get_text() for text in legend.get_texts())
    return f"{legend._fontsize:g}, {legend._ncols} across, " + " | ".join(
        f"{text}{look}" for text, look in zip(texts, handles, strict=True)
    )


def rounded(numbers: Any) -> str:
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


# -- of many, a page shows so many ------------------------------------------------------------------------


def many_mechanisms(**more):
    """Return ten mechanisms, of which the first, which is asked about, is the second worst, after first come."""
    names = ["asked", *(f"m{i}" for i in range(8)), "first-come"]
    over = np.array([0.05, *(0.1 + 0.01 * i for i in range(8)), 0.0])
    figures = {"over_first_come": over, "over_first_come_low": over - 0.02, "over_first_come_high": over + 0.03}
    figures |= {
        "ratio_low": 1.5,
        "ratio_high": 2.0,
        "interval_low": 1.25,
        "interval_high": 2.5,
        "promised_ratio": np.nan,
    }
    figures |= {"promise_holds": True, "welfare_share": 0.5, "revenue_share": 0.25}
    meta = {"scenario": "ten", "runs": 4, "confidence": 0.95}
    return Result("mechanisms", {}, pd.DataFrame({"mechanism": names, **figures, **more}), meta)


def test_the_best_mechanisms_are_drawn_and_those_of_the_answer():
    result = many_mechanisms()
    shown = ["m7", "m6", "m5", "m4", "asked", "first-come"]
    assert len(shown) == MOST and drawn_names(result) == shown
    (panel,) = (figure := differences_figure(result, "seeds 0 to 3")).axes
    assert [label.get_text() for label in panel.get_yticklabels()] == shown
    assert figure.texts[1].get_text() == "seeds 0 to 3; lines: 95% intervals; 4 more in the table"


def test_a_promise_far_off_is_a_note_and_a_near_one_a_mark():
    near, far = FAR * 2.5, FAR * 2.5 + 0.1  # times the widest end that is drawn
    promises = [near, far, *[np.nan] * 8]
    left = bounds_figure(many_mechanisms(promised_ratio=promises, promise_holds=[True, False, *[True] * 8])).axes[0]
    (mark,) = [line for line in left.lines if line.get_marker() == "D"]
    assert mark.get_xdata() == [near] and mark.get_markerfacecolor() == mark.get_color()
    notes = [text.get_text() for text in left.texts if "›" in text.get_text()]
    assert notes == ["would be 7.6 › (conditions not met)"] and left.get_xlim()[1] == pytest.approx(
        1 + 1.3 * (near - 1)
    )


def test_owners_under_several_loads():
    loads, names = range(1, MOST_PANELS + 3), ["mine", "theirs", "other"]
    rows = [
        {"mechanism": m, "load": float(x), "owner": o, "jobs": jobs, "own": own + x / 100}
        for m in names for x in loads for o, jobs, own in (("ann", 9, 0.5), ("bob", 5, 0.25), ("eve", 4, 0.9))
    ]  # fmt: skip
    figure = owners_figure(pd.DataFrame(rows), "many", "seed 0", ["mine", "theirs"])
    assert len(figure.axes) == MOST_PANELS and figure.texts[1].get_text() == "seed 0; grey: 1 more"
    for at, axes in zip(loads, figure.axes, strict=False):
        grey, *colours, _ = axes.lines
        assert [line.get_color() for line in colours] == [look(i)["color"] for i in range(2)] != [grey.get_color()]
        for line in (grey, *colours):  # two owners with five jobs or more, in the middle of their halves
            assert line.get_xdata() == pytest.approx([25, 75]) and line.get_ydata() == pytest.approx([25 + at, 50 + at])
    alone = pd.DataFrame(rows)[lambda table: table["owner"] != "bob"]
    assert owners_figure(alone, "few", "seed 0", names) is None
    nobody = {f"{name}{end}": np.nan for name in ("own", "own_q10", "own_worst") for end in ("", "_low", "_high")}
    assert owners_view([{"mechanism": "mine", **nobody}]) == []


def test_pools_of_many_resources_and_rounds():
    """Those that are used most, from the first; of 450 rounds, means of three."""
    rounds, names = 450, [f"r{i}" for i in range(MOST_RESOURCES + 2)]
    wave = 5 + 4 * np.sin(np.arange(rounds) / 20)
    parts = [
        pd.DataFrame(
            {"round": range(1, rounds + 1), "pool": "a", "resource": name, "used": wave * (i + 1) / 10, "size": 10.0}
        )
        for i, name in enumerate(names)
    ]
    pools = pd.concat(parts).assign(price=0.0, fragmented=np.nan)
    figure = pools_figure(pools, title="many", round_seconds=1800.0)
    assert [axes.get_title(loc="left") for axes in figure.axes] == names[::-1][:MOST_RESOURCES]
    (line,) = figure.axes[0].lines
    assert len(line.get_xdata()) == rounds / 3 <= SMOOTHED
    assert line.get_xdata()[:2] == pytest.approx([1.0, 2.5])  # hours: rounds 1 to 3, 4 to 6
    assert line.get_ydata() == pytest.approx(wave.reshape(-1, 3).mean(axis=1) * 0.06)


def test_a_mechanism_that_refused_has_no_figures_of_its_pools():
    rows = [
        {"pool": "a", "resource": r, "mechanism": "mine", "in_use": x, "income": 2.0}
        for r, x in (("cpu", 0.5), ("gpu", 0.6))
    ]
    pools = pd.DataFrame(rows).assign(fragmented=np.nan, price=np.nan)
    result = Result("mechanisms", {"pools": pools}, meta={"mechanisms": ["mine", "refused"]})
    assert pools_view(result)[1].rows == [("a: gpu in use", "60.0 %", "-"), ("a: income, credits", "2", "-")]
    assert [row[0] for row in pools_view(result, whole=True)[1].rows][:2] == ["a: cpu in use", "a: gpu in use"]


def test_of_a_long_log_a_chart_shows_the_rounds_in_which_most_nodes_wait():
    """Three jobs of a node wait from round 301 on; one before and one after find a node at once."""
    arrivals, starts = np.array([10, 301, 301, 301, 700]), np.array([10, 302, 330, 350, 700])
    jobs = pd.DataFrame({"mechanism": "mine", "job": [*"abcde"], "class": 2, "nodes": 1, "arrival": arrivals})
    jobs = jobs.assign(start=starts, end=starts + 20, completed=True, bounded_slowdown=2.0, taken_back=False)
    about = {"seed": 0, "round_seconds": None, "capacity": 1, "rounds": 900, "last_birth": 800}
    figure = gantt_figure(jobs, about, "long")
    assert figure.texts[1].get_text() == f"seed 0, {WINDOW} rounds in which jobs for most nodes wait"
    (image,) = figure.axes[0].images
    first, last = image.get_extent()[:2]
    assert first < 301 and last >= 349 and last - first == WINDOW and image.get_array().shape[:2] == (1, WINDOW)
    busy = (np.asarray(image.get_array()) < 1).any(axis=2)[0]  # a node that is free is white
    rounds = np.arange(first + 1, last + 1)
    assert (busy == [any(s <= t < s + 20 for s in starts) for t in rounds]).all()


def test_a_sweep_of_more_cases_than_a_page_holds():
    labels = {case: f"case {case}" for case in range(MOST_GROUPS + 1)}
    rows = [{"case": c, "status": "done", "seed": s, "welfare": c + s, "error": None} for c in labels for s in (0, 1)]
    table, how = sweep_table(pd.DataFrame(rows), labels)
    assert len(table.rows) == MOST_GROUPS and how.endswith("; the first 200 of 201 lines")
    assert table.rows[3] == ("case 3", "2", "3.5 ± 6.4", "3 ± 0")
    rows = rows[: 2 * (MOST_DRAWN + 1)]
    of = {case: pd.DataFrame(rows[: 2 * case]) for case in (MOST_DRAWN, MOST_DRAWN + 1)}
    assert sweep_figure(of[MOST_DRAWN], labels) is not None and sweep_figure(of[MOST_DRAWN + 1], labels) is None


def test_users_with_most_jobs_come_first_and_waits_have_a_unit_that_suits_them():
    users = pd.DataFrame(
        {"by": "owner", "name": [f"u{i}" for i in range(MOST_USERS + 2)], "jobs": range(1, MOST_USERS + 3)}
    )
    users = users.assign(completed=1, wait_rounds=3.0, paid=0.126, value=2.0)
    both = pd.concat([users.assign(mechanism="mine"), users.assign(mechanism="theirs", wait_rounds=9.0)])
    title, table = users_view(both, None, "mine")
    assert title.plain == "\nby user under mine: the 10 with most jobs of 12"
    assert [row[0] for row in table.rows] == [f"u{i}" for i in range(MOST_USERS + 1, 1, -1)]
    assert table.rows[0] == ("u11", "12", "1", "3.0", "0.13", "2")
    assert users_view(users.assign(jobs=1), None) == users_view(users[:1], None) == []
    assert len(users_view(users[:2], None)) == 2  # one job, and two
    assert wait_unit(9.0, None) == ("rounds", 1.0)
    assert wait_unit(119.9, 60.0) == ("minutes", 1.0) and wait_unit(120.0, 60.0) == ("hours", 1 / 60)


def test_looks_come_again_with_other_dashes_and_ticks_are_short():
    looks = [(look(i)["color"], look(i)["linestyle"]) for i in range(2 * len(OKABE_ITO))]
    assert len(set(looks)) == len(looks) and [colour for colour, _ in looks] == [*OKABE_ITO] * 2
    shown = {
        0: "0",
        0.1: "0.1",
        99999: "99,999",
        1e5: "100 k",
        2.5e6: "2.5 M",
        1e9: "1 G",
        -2e5: "-200 k",
        0.0123: "0.012",
    }
    assert {x: short(x) for x in shown} == shown
