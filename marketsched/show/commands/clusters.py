"""How `marketsched run` and `marketsched compare` end with a cluster scenario: files, figures, exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marketsched.show.commands.tools import INTERRUPTED, print_view, stop

if TYPE_CHECKING:
    from marketsched.play.policies import ClusterRun
    from marketsched.study.comparisons.comparing import Comparison
    from marketsched.study.comparisons.over import Compared


def finish_policies(folder: Path, found: ClusterRun, force: bool, as_json: bool) -> None:
    """Write and print a run of policies."""
    from marketsched.clusters.results import write_cluster_run
    from marketsched.clusters.view import run_view

    write_cluster_run(folder, found, force=force)
    done, asked = len(found.summary), len(found.meta["policies"])
    what = f"after {done} of {asked} policies" if done < asked else "before the best fixed allocation was found"
    _finish(found, run_view, folder, as_json, what)


def finish_comparison(folder: Path, found: Comparison, force: bool, as_json: bool) -> None:
    """Write and print a comparison of policies."""
    from marketsched.clusters.results import write_cluster_comparison
    from marketsched.clusters.view import comparison_view

    write_cluster_comparison(folder, found, force=force)
    what = f"after {found.meta['runs']} of {found.meta['runs_asked_for']} seeds"
    _finish(found, comparison_view, folder, as_json, what)


def finish_over(folder: Path, found: Compared, force: bool, as_json: bool) -> None:
    """Write and print comparisons for several values of a key."""
    from marketsched.clusters.sweep_results import sweep_view, write_cluster_sweep

    write_cluster_sweep(folder, found, force=force)
    what = f"after {len(found.meta['finished'])} of {len(found.meta['values'])} values"
    _finish(found, sweep_view, folder, as_json, what)


def _finish(found: Any, view: Any, folder: Path, as_json: bool, interrupted: str) -> None:
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print_view(view(found))
    typer.echo(f"written to {folder}", err=as_json)
    if not found.complete:
        stop(f"interrupted {interrupted}: {folder} is marked INCOMPLETE", INTERRUPTED)
