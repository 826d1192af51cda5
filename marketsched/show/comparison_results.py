"""What a comparison leaves on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from marketsched.results.output import INCOMPLETE, META, whole_folder, write_json, write_table

if TYPE_CHECKING:
    from marketsched.study.comparisons.comparing import Comparison


def write_comparison(folder: Path, comparison: Comparison, *, force: bool = False) -> None:
    """Write a comparison into ``folder``, whole or not at all.

    ``runs.parquet`` (one row per seed and mechanism), ``summary.parquet`` and ``summary.json`` (one
    row per mechanism), ``scenario.yaml``, ``figure.png``, ``meta.json`` (mechanisms, seeds, versions,
    seconds), and a file ``INCOMPLETE`` if it was interrupted.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.results.panels import save_figure
    from marketsched.show.comparison_plot import comparison_figure

    meta = {**comparison.meta, "complete": comparison.complete}
    about = {name: meta[name] for name in ("scenario", "seed", "runs", "versions", "complete")}
    with whole_folder(folder, force=force) as partial:
        write_table(comparison.runs, partial / "runs.parquet", about)
        write_table(comparison.summary, partial / "summary.parquet", about)
        (partial / "scenario.yaml").write_text(comparison.scenario.to_yaml(), encoding="utf-8")
        write_json(comparison.to_dict()["mechanisms"], partial / "summary.json")
        save_figure(comparison_figure(comparison), partial / "figure.png")
        if not comparison.complete:
            text = f"interrupted after {meta['runs']} of {meta['runs_asked_for']} seeds; the tables hold these\n"
            (partial / INCOMPLETE).write_text(text, encoding="utf-8")
        write_json(meta, partial / META)
