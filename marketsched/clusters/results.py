"""What a cluster run and a comparison of policies leave on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched.results.output import INCOMPLETE, META, whole_folder, write_json, write_table

if TYPE_CHECKING:
    import pandas as pd

    from marketsched.play.policies import ClusterRun
    from marketsched.study.comparisons.comparing import Comparison


def write_cluster_run(folder: Path, run: ClusterRun, *, force: bool = False) -> None:
    """Write a run into ``folder``, whole or not at all.

    ``slots.parquet`` (one row per policy and slot), ``summary.parquet`` and ``summary.json`` (one row
    per policy), ``scenario.yaml`` (resolved: it runs again), ``figure.png``, ``meta.json``, and a file
    ``INCOMPLETE`` if it was interrupted. Where jobs are told apart ``jobs.parquet`` (one row per policy
    and job) and ``jobs.png``.

    Parameters
    ----------
    folder : Path
        Absent, empty, or (with ``force``) earlier results.
    run : ClusterRun
        As :func:`marketsched.play.running.run` returns it.
    force : bool
        Replace earlier results, whole.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.clusters.plots import run_figure
    from marketsched.results.panels import save_figure

    meta = {**run.meta, "complete": run.complete}
    about = {name: meta[name] for name in ("scenario", "seed", "versions", "complete")}
    with whole_folder(folder, force=force) as partial:
        write_table(run.slots, partial / "slots.parquet", about)
        write_table(run.summary, partial / "summary.parquet", about)
        (partial / "scenario.yaml").write_text(run.scenario.to_yaml(), encoding="utf-8")
        write_json(run.to_dict()["policies"], partial / "summary.json")
        save_figure(run_figure(run), partial / "figure.png")
        _write_jobs(run.jobs, f"{meta['scenario']}, seed {meta['seed']}", meta["lead"], partial, about)
        if not run.complete:
            text = f"interrupted after {len(run.summary)} of {len(meta['policies'])} policies; the tables hold these\n"
            (partial / INCOMPLETE).write_text(text, encoding="utf-8")
        write_json(meta, partial / META)


def _write_jobs(jobs: pd.DataFrame, title: str, lead: str, partial: Path, about: dict[str, Any]) -> None:
    """Write what became of single jobs, if they are told apart."""
    from marketsched.clusters.job_plots import jobs_figure
    from marketsched.results.panels import save_figure

    if not jobs.empty:
        write_table(jobs, partial / "jobs.parquet", about)
        save_figure(jobs_figure(jobs, title=title, lead=lead), partial / "jobs.png")


def write_cluster_comparison(folder: Path, found: Comparison, *, force: bool = False) -> None:
    """Write a comparison into ``folder``, whole or not at all.

    ``runs.parquet`` (one row per seed and policy), ``curves.parquet`` (reward so far, at most 400 slots
    per seed and policy), ``regrets.parquet`` (per seed, policy and horizon, if growth was asked
    for), ``summary.parquet`` and ``summary.json`` (one row per policy), ``scenario.yaml``,
    ``figure.png``, ``meta.json``, and a file ``INCOMPLETE`` if it was interrupted. Where jobs are told
    apart ``jobs.parquet`` (one row per seed, policy and job) and ``jobs.png``; ``migrations.png`` if
    policies differ in their primal step.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.clusters.job_plots import migration_figure, steps_of
    from marketsched.clusters.plots import comparison_figure
    from marketsched.results.panels import save_figure

    meta = {**found.meta, "complete": found.complete}
    about = {name: meta[name] for name in ("scenario", "seed", "runs", "versions", "complete")}
    tables = {"runs": found.runs, "curves": found.curves, "regrets": found.regrets, "summary": found.summary}
    with whole_folder(folder, force=force) as partial:
        for name, table in tables.items():
            if not table.empty:
                write_table(table, partial / f"{name}.parquet", about)
        seeds = f"{meta['runs']} seeds" if meta["runs"] > 1 else "one seed"
        _write_jobs(found.jobs, f"{meta['scenario']}, {seeds}", meta["lead"], partial, about)
        if steps_of(found.runs):
            words = found.scenario.cluster.labels
            pictured = migration_figure(found.runs, title=f"{meta['scenario']}, {seeds}", baseline=words.baseline)
            save_figure(pictured, partial / "migrations.png")
        (partial / "scenario.yaml").write_text(found.scenario.to_yaml(), encoding="utf-8")
        write_json(found.to_dict()["policies"], partial / "summary.json")
        save_figure(comparison_figure(found), partial / "figure.png")
        if not found.complete:
            text = f"interrupted after {meta['runs']} of {meta['runs_asked_for']} seeds; the tables hold these\n"
            (partial / INCOMPLETE).write_text(text, encoding="utf-8")
        write_json(meta, partial / META)
