"""What owners learned, as a person reads it, and what it leaves on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched.results.output import INCOMPLETE, META, whole_folder, write_json, write_table

if TYPE_CHECKING:
    from rich.console import Group

    from marketsched.study.learning.curves import LearningCurves

COLUMNS = {
    "truth_share": "tells the\ntruth",
    "factor": "reported /\ntrue value",
    "gain_of_truth": "truth would\nearn more",
    "distance": "distance to\nequilibrium",
    "welfare_share": "welfare /\nbound",
    "truthful_welfare_share": "the same,\nall truthful",
    "revenue_share": "revenue /\nbound",
}


def learning_data(found: LearningCurves) -> dict[str, Any]:
    """Return mean and interval of every figure by mechanism, as plain data."""
    rows = found.summary.to_dict(orient="records")
    by_mechanism: dict[str, Any] = {}
    for row in rows:
        figures = by_mechanism.setdefault(row["mechanism"], {"rule": row["rule"]})
        figures[row["figure"]] = {name: row[name] for name in ("mean", "low", "high")}
    return by_mechanism


def write_learning(folder: Path, found: LearningCurves, *, force: bool = False) -> None:
    """Write what was learned into ``folder``, whole or not at all.

    ``curves.parquet`` (one row per mechanism and point of its curve), ``runs.parquet`` (one row per
    mechanism and seed), ``summary.parquet`` (one row per mechanism and figure) and ``summary.json``,
    ``figure.png``, ``meta.json`` (mechanisms, sizes, seeds, versions, seconds), and a file
    ``INCOMPLETE`` if it was interrupted.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.play.running import versions
    from marketsched.results.panels import save_figure
    from marketsched.show.learning_plot import learning_figure

    meta = {"kind": "learning", "name": "what owners learn", **found.meta}
    meta |= {"versions": versions(), "complete": found.complete}
    about = {name: meta[name] for name in ("learner", "seeds", "versions", "complete")}
    with whole_folder(folder, force=force) as partial:
        write_table(found.curves, partial / "curves.parquet", about)
        write_table(found.runs, partial / "runs.parquet", about)
        write_table(found.summary, partial / "summary.parquet", about)
        write_json(learning_data(found), partial / "summary.json")
        save_figure(learning_figure(found), partial / "figure.png")
        if not found.complete:
            (partial / INCOMPLETE).write_text(_how_far(found) + "; the tables hold these\n", encoding="utf-8")
        write_json(meta, partial / META)


def learning_view(found: LearningCurves) -> Group:
    """Return the table and remarks of what was learned, ready to print with rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    meta = found.meta
    state = "" if found.complete else f", {_how_far(found).upper()}"
    sizes = f"{meta['owners']} owners, {meta['nodes']} nodes, {meta['episodes']} days, {len(meta['seeds'])} seeds"
    head = Text(f"what owners learn to report ({meta['learner']}): {sizes}{state}", style="bold")
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column("", overflow="fold", min_width=10)
    for title in COLUMNS.values():
        table.add_column(Text(title), justify="right", no_wrap=True)
    for mechanism, figures in learning_data(found).items():
        cells = [(figures[name]["mean"], figures[name]["high"]) for name in COLUMNS]
        table.add_row(mechanism, *(f"{mean:.3f}\n+- {high - mean:.3f}" for mean, high in cells))
    return Group(head, table, *(Text(f"- {remark}") for remark in _remarks(meta)))


def _remarks(meta: dict[str, Any]) -> Iterator[str]:
    yield f"of the last {meta['learned']:.0%} of the days; +- half of the {meta['confidence']:.0%} interval over seeds"
    yield "truth would earn more, distance to a coarse correlated equilibrium: credits per owner and day"
    yield "bound: on the welfare of the best schedule of the day in hindsight"


def _how_far(found: LearningCurves) -> str:
    return f"interrupted after {len(found.meta['seeds'])} of {found.meta['seeds_asked_for']} seeds"
