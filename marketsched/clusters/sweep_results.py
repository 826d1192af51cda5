"""What a sweep over a key of a cluster scenario prints, and leaves on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from marketsched.clusters.view import cell, decimals, figure
from marketsched.results.output import INCOMPLETE, META, whole_folder, write_json, write_table
from marketsched.results.views import percent

if TYPE_CHECKING:
    from marketsched.study.comparisons.over import Compared


def sweep_view(found: Compared) -> Group:
    """Return the table of a sweep, ready to print with rich: one line per value and policy."""
    meta, words = found.meta, found.scenario.cluster.labels
    columns = [column for column in words.columns if column.kind != "total"]  # there is little room
    state = "" if found.complete else f", INTERRUPTED after {len(meta['finished'])} of {len(meta['values'])} values"
    head = Text(f"{meta['scenario']} over {meta['key']}, {meta['runs']} seeds for each value{state}", style="bold")
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column(meta["key"].rpartition(".")[2], overflow="fold", min_width=4)
    table.add_column("", overflow="fold", min_width=10)
    table.add_column("observes", no_wrap=True, min_width=8)
    for title in (
        f"{words.goal}\na slot",
        *(column.title for column in columns),
        f"{meta['lead']}\nover this",
        "± sd",
        f"{words.star} over\nthis",
        f"regret,\n% of {words.star}",
    ):
        table.add_column(Text(title), justify="right", no_wrap=True)
    last = None
    for row in found.records():
        table.add_row(
            str(row["value"]) if row["value"] != last else "",
            row["policy"],
            row["observes"],
            figure(row["reward_per_slot"]),
            *(cell(column, row[column.shown], 1) for column in columns),
            decimals(row["ratio"]),
            decimals(row["ratio_deviation"]),
            decimals(row["reference_ratio"]),
            percent(row["regret_share"]) if row["regret_share"] == row["regret_share"] else "-",
        )
        last = row["value"]
    return Group(head, table)


def write_cluster_sweep(folder: Path, found: Compared, *, force: bool = False) -> None:
    """Write a sweep into ``folder``, whole or not at all.

    ``runs.parquet`` (one row per value, seed and policy), ``summary.parquet`` and ``summary.json`` (one
    row per value and policy), ``scenario.yaml`` (before any value is set), ``figure.png``,
    ``gain-overhead.png`` (or another pair of measures), ``meta.json``, and a file ``INCOMPLETE`` if it was interrupted.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.clusters.sweep_plots import gain_overhead_figure, sweep_figure, utility_figure
    from marketsched.results.panels import save_figure

    meta = {**found.meta, "complete": found.complete}
    about = {name: meta[name] for name in ("scenario", "key", "seed", "runs", "versions", "complete")}
    key, name, words = meta["key"].rpartition(".")[2], meta["scenario"], found.scenario.cluster.labels
    drawn = (
        utility_figure(found.runs, title=f"{name}: utilities")
        if key == "gain"
        else sweep_figure(found.runs, key=key, title=f"{name}: effect of {key}", goal=words.goal, star=words.star)
    )
    with whole_folder(folder, force=force) as partial:
        # Values may be numbers and words at once; a column on disk is of one kind.
        for title, table in (("runs", found.runs), ("summary", found.summary)):
            write_table(table.assign(value=table["value"].map(str)), partial / f"{title}.parquet", about)
        (partial / "scenario.yaml").write_text(found.scenario.to_yaml(), encoding="utf-8")
        write_json(found.to_dict()["policies"], partial / "summary.json")
        save_figure(drawn, partial / "figure.png")
        if words.pair:
            told = " and ".join(words.pair)
            pictured = gain_overhead_figure(found.runs, key=key, title=f"{name}: {told}", pair=words.pair)
            save_figure(pictured, partial / f"{'-'.join(words.pair)}.png")
        if not found.complete:
            text = f"interrupted after {len(meta['finished'])} of {len(meta['values'])} values; the tables hold these\n"
            (partial / INCOMPLETE).write_text(text, encoding="utf-8")
        write_json(meta, partial / META)
