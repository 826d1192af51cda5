"""What a run leaves on disk: tables, scenario, summary, figure, and how it came about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from marketsched.results.output import INCOMPLETE, META, whole_folder, write_json, write_table

if TYPE_CHECKING:
    from marketsched.agents.result import RunResult
    from marketsched.config.scenario import Scenario


def write_results(folder: Path, scenario: Scenario, result: RunResult, *, force: bool = False) -> None:
    """Write a run into ``folder``, whole or not at all.

    ``events.parquet``, ``jobs.parquet``, ``rounds.parquet`` (each with scenario name, seed and
    versions in its schema), ``scenario.yaml`` (resolved: it runs again), ``summary.json``,
    ``figure.png``, ``meta.json`` (seed, versions, seconds, whether the run is complete), and a file
    ``INCOMPLETE`` if it is not.

    Parameters
    ----------
    folder : Path
        Absent, empty, or (with ``force``) an earlier run.
    scenario : Scenario
        What was run.
    result : RunResult
        As :func:`marketsched.play.running.run` returns it.
    force : bool
        Replace an earlier run, whole.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.results.plots import run_figure, save_figure

    summary = dict(result.summary)
    meta = summary.pop("meta")
    complete = bool(summary["complete"])
    about = {"scenario": meta["scenario"], "seed": meta["seed"], "versions": meta["versions"], "complete": complete}
    with whole_folder(folder, force=force) as partial:
        for name, table in (("events", result.events), ("jobs", result.jobs), ("rounds", result.rounds)):
            write_table(table, partial / f"{name}.parquet", about)
        (partial / "scenario.yaml").write_text(scenario.to_yaml(), encoding="utf-8")
        write_json(summary, partial / "summary.json")
        figure = run_figure(
            result,
            capacity=summary["capacity"],
            round_seconds=meta["round_seconds"],
            title=f"{scenario.name}, seed {meta['seed']}",
        )
        save_figure(figure, partial / "figure.png")
        if not complete:
            text = (
                f"interrupted after round {summary['rounds']} of {summary['horizon']}; the tables hold these rounds\n"
            )
            (partial / INCOMPLETE).write_text(text, encoding="utf-8")
        write_json({**meta, "complete": complete, "rounds": summary["rounds"]}, partial / META)
