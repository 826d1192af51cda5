"""The command `marketsched audit published`: lies to the policies of all cores, in the worlds of docs/allocation.md."""

from __future__ import annotations

from typing import Annotated

import typer

from marketsched.show.commands.audit import status_of_lies
from marketsched.show.commands.tools import (
    ForceOption,
    JsonOption,
    MechanismOption,
    OutOption,
    SeedOption,
    finish,
    named_on_the_line,
    one_line_errors,
    progress_bar,
    target_folder,
)


def audit_published(
    policies: MechanismOption = None,
    confidence: Annotated[float, typer.Option(help="Of findings.")] = 0.99,
    worlds: Annotated[int, typer.Option(help="Fresh worlds on which lies are scored.", min=20)] = 20,
    search_worlds: Annotated[int, typer.Option(help="Worlds in which lies are searched.", min=4)] = 4,
    seed: SeedOption = 0,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Search all cores' policies for lies that pay, in the worlds of docs/allocation.md; exit status 3 if one does."""
    with one_line_errors():
        from marketsched.cores.audit.core_audit import audit_published as audit  # not for --help

        folder = target_folder(out, "published-audited", force)
        with progress_bar() as tell:
            lies = audit(
                named_on_the_line(policies),
                seed=seed,
                search_worlds=search_worlds,
                fresh_worlds=worlds,
                confidence=confidence,
                progress=lambda what, plays: tell(0.0, 1.0, f"{what}: {plays} games"),
            )
        finish(lies, folder, force, as_json)
        raise typer.Exit(status_of_lies(lies.lies))
