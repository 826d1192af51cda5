"""What `marketsched run` and `marketsched compare` do with a cluster scenario."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from marketsched.show.commands.tools import INTERRUPTED, file_name, free_folder, print_view, progress_bar, stop


def run_one_cluster(
    content: Any, source: str, seed: int, out: Path | None, force: bool, data: Path | None, as_json: bool
) -> None:
    """Run every policy of a cluster scenario; print the summary, write tables and a figure."""
    from marketsched.clusters.results import write_cluster_run
    from marketsched.clusters.running import run_cluster
    from marketsched.clusters.scenario import ClusterScenario
    from marketsched.clusters.view import run_view
    from marketsched.results.output import check_target

    scenario = ClusterScenario.from_dict(content, source=source)
    folder = out if out is not None else free_folder(Path("runs") / f"{file_name(scenario.name)}-seed{seed}", force)
    check_target(folder, force=force)
    with progress_bar() as tell:
        found = run_cluster(scenario, seed, data=data, progress=tell, keep_interrupted=True)
    write_cluster_run(folder, found, force=force)
    if as_json:
        _print_json(found.to_dict())
    else:
        print_view(run_view(found))
    typer.echo(f"written to {folder}", err=as_json)
    if not found.complete:
        done, asked = len(found.summary), len(found.meta["policies"])
        what = f"after {done} of {asked} policies" if done < asked else "before the best fixed allocation was found"
        stop(f"interrupted {what}: {folder} is marked INCOMPLETE", INTERRUPTED)


def compare_clusters(
    content: Any,
    source: str,
    policies: Sequence[str] | None,
    runs: int,
    seed: int,
    optimum: bool,
    over: str | None,
    out: Path | None,
    force: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    """Compare policies over many seeds, and perhaps once for each value of a key of the scenario."""
    from marketsched.clusters.comparing import compare_cluster
    from marketsched.clusters.results import write_cluster_comparison
    from marketsched.clusters.scenario import ClusterScenario
    from marketsched.clusters.view import comparison_view
    from marketsched.results.output import check_target

    scenario = ClusterScenario.from_dict(content, source=source)
    folder = out if out is not None else free_folder(Path("runs") / f"{file_name(scenario.name)}-compared", force)
    check_target(folder, force=force)
    if over is not None:
        _sweep(content, source, policies, runs, seed, optimum, over, folder, force, data, as_json)
        return
    with progress_bar() as tell:
        found = compare_cluster(
            scenario, policies, runs, seed, data=data, optimum=optimum, progress=tell, keep_interrupted=True
        )
    write_cluster_comparison(folder, found, force=force)
    if as_json:
        _print_json(found.to_dict())
    else:
        print_view(comparison_view(found))
    typer.echo(f"written to {folder}", err=as_json)
    if not found.complete:
        asked = found.meta["runs_asked_for"]
        stop(f"interrupted after {found.meta['runs']} of {asked} seeds: {folder} is marked INCOMPLETE", INTERRUPTED)


def _sweep(
    content: Any,
    source: str,
    policies: Sequence[str] | None,
    runs: int,
    seed: int,
    optimum: bool,
    over: str,
    folder: Path,
    force: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    from marketsched.clusters.sweep_results import sweep_view, write_cluster_sweep
    from marketsched.clusters.sweeping import sweep_cluster, sweep_values

    key, values = sweep_values(over)
    with progress_bar() as tell:
        found = sweep_cluster(
            content,
            key,
            values,
            policies,
            runs,
            seed,
            source=source,
            data=data,
            optimum=optimum,
            progress=tell,
            keep_interrupted=True,
        )
    write_cluster_sweep(folder, found, force=force)
    if as_json:
        _print_json(found.to_dict())
    else:
        print_view(sweep_view(found))
    typer.echo(f"written to {folder}", err=as_json)
    if not found.complete:
        done, asked = len(found.meta["finished"]), len(found.meta["values"])
        stop(f"interrupted after {done} of {asked} values: {folder} is marked INCOMPLETE", INTERRUPTED)


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2, allow_nan=False))
