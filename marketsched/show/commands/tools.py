"""Code shared by all commands: options, exit statuses, and one clear line for each error."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from marketsched import config
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError, shortened
from marketsched.mechanisms.registry import get, mechanism_names, names
from marketsched.mechanisms.signatures import parameters_of
from marketsched.results.output import KEPT, check_target
from marketsched.results.output import file_name as file_name

if TYPE_CHECKING:
    from marketsched.results.result import Result

REPORTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
WIDEST = 160  # letters of a line, where no terminal is


def known_mechanisms(begun: str) -> list[str]:
    """Return the mechanisms that a shell may complete ``begun`` to."""
    earlier, comma, last = begun.rpartition(",")
    return [f"{earlier}{comma}{name}" for name in mechanism_names() if name.startswith(last)]


def known_scenarios(begun: str) -> list[str]:
    """Return the built-in scenarios that a shell may complete ``begun`` to."""
    return [name for name in config.scenario_file.scenario_names() if name.startswith(begun)]


DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of recorded traces (default: MARKETSCHED_DATA).", show_default=False),
]
SeedOption = Annotated[int, typer.Option(help="Root of all randomness.", min=0)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print figures as JSON.")]
OutOption = Annotated[
    Path | None,
    typer.Option(help="Folder for the results (default: a new one under runs).", show_default=False),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace earlier results in that folder.")]
NodesOption = Annotated[
    int | None,
    typer.Option("--nodes", help="Of a log: the number of nodes there were.", min=1, show_default=False),
]
DaysOption = Annotated[
    float | None,
    typer.Option(
        help="Of a log: its last so many days (default: its last 10,000 jobs; compare: all).", show_default=False
    ),
]
PartitionOption = Annotated[
    str | None,
    typer.Option("--partition", help="Of a log: only the jobs of this partition or queue.", show_default=False),
]
MechanismOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        "-m",
        "--mechanisms",
        metavar="NAME[:KEY=VALUE],...",
        help="Names, separated by commas or each with its own -m; rules behind a colon, as in bid-price:buckets=4. "
        "See: marketsched mechanisms",
        show_default=False,
        autocompletion=known_mechanisms,
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        help="Of a table of text: which column is what, as in user=User,submit_s=Submit (docs/logs.md has the names).",
        metavar="NAME=COLUMN,...",
        show_default=False,
    ),
]
ZoneOption = Annotated[
    str | None,
    typer.Option(
        help="Of a table of text: the zone of times that name none. (default: UTC)",
        metavar="Europe/Berlin",
        show_default=False,
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Of a log in text or SWF: refuse rows that cannot be read; else they are counted."),
]
PROCESSES = "--workers", "--jobs"  # both names of the option: the second is the earlier one
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        help="Run on the Dask cluster with this scheduler (docs/scale.md).",
        metavar="TCP://HOST:PORT",
        show_default=False,
    ),
]
DetailsOption = Annotated[
    bool, typer.Option("--details", help="Print ratios, conditions of proofs and what was drawn, too.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change the scenario, as in mechanism.epsilon=0.1.", metavar="KEY=VALUE"),
]


def named_on_the_line(texts: list[str] | None) -> list[str] | None:
    """Return the mechanisms of ``--mechanism``; None without the option.

    Raises
    ------
    InvalidParameterError
        If the option names none.
    """
    if not texts:
        return None
    found = config.mechanism_text.mechanisms_in(texts)
    if not found:
        raise InvalidParameterError(place="--mechanism", value=",".join(texts), legal="names, separated by commas")
    return found


def one_mechanism(names: list[str] | None) -> list[str]:
    """Return the changes of a scenario that one mechanism of ``--mechanism`` stands for.

    Raises
    ------
    InvalidParameterError
        If there are several.
    """
    if names is None:
        return []
    if len(names) > 1:
        legal = "one, in a run of a market; `marketsched compare` takes several"
        raise InvalidParameterError(place="--mechanism", value=",".join(names), legal=legal)
    return config.mechanism_text.changes_for(names[0])


def log_changes(
    days: float | None,
    columns: str | None,
    strict: bool,
    nodes: int | None = None,
    changes: Sequence[str] | None = None,
    scenario: Mapping[str, Any] | None = None,
    zone: str | None = None,
    partition: str | None = None,
) -> list[str]:
    """Return ``changes`` of a scenario behind those of ``--days``, ``--columns``, ``--zone`` and so on.

    Raises
    ------
    InvalidParameterError
        If ``columns`` is not of the form ``name=column,...``, a change sets again what an option has set, or the
        ``scenario``, as plain data, has no number of nodes to be set.
    """
    if nodes is not None and scenario is not None:
        _check_nodes(nodes, scenario.get("workload"))
    found = [] if days is None else [f"workload.days={days!r}"]
    found += [] if nodes is None else [f"workload.capacity={nodes}"]
    if columns is not None:
        pairs = [pair.partition("=") for pair in columns.split(",")]
        if not all(name.strip() and column.strip() for name, _, column in pairs):
            raise InvalidParameterError(place="--columns", value=columns, legal="name=column,..., as in user=User")
        named = {name.strip(): column.strip() for name, _, column in pairs}
        found.append(f"workload.columns={json.dumps(named)}")
    found += ["workload.strict=true"] if strict else []
    found += [] if zone is None else [f"workload.zone={json.dumps(zone)}"]
    found += [] if partition is None else [f"workload.partition={json.dumps(partition)}"]
    set_by_options = {each.partition("=")[0] for each in found}
    for each in changes or []:
        key = each.partition("=")[0]
        if key in set_by_options:
            option = "--nodes" if key == "workload.capacity" else f"--{key.removeprefix('workload.')}"
            raise InvalidParameterError(f"--set {each} and {option} set the same: expected one of them")
    return [*found, *(changes or [])]


def _check_nodes(nodes: int, workload: object) -> None:
    """Refuse ``--nodes`` where the workload does not take them, in words that do not speak of its keys."""
    kind = workload.get("kind") if isinstance(workload, Mapping) else None
    if not isinstance(kind, str) or kind not in names("workload"):
        return  # which is refused with the whole scenario
    made = get("workload", kind)
    taken = getattr(made, "model_fields", None) or parameters_of(made)
    if "capacity" not in taken:
        own = "cluster" in taken
        legal = "--set workload.cluster.groups.0.nodes=N" if own else "a workload with a key `capacity`"
        raise InvalidParameterError(f"--nodes {nodes}: the workload {kind} has no such number", legal=legal)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn every error of the user's into one line on standard error and exit status 2."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(REPORTED) from None
    except MarketschedError as error:
        stop(str(error), BAD_INPUT)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error), BAD_INPUT)
    except MemoryError as error:
        stop(f"not enough memory: {error}", BAD_INPUT)
    except KeyboardInterrupt:
        kept = "the finished parts of a comparison or an audit are kept for the same command"
        stop(f"interrupted: no result is written; {kept}", INTERRUPTED)


def stop(message: str, status: int) -> NoReturn:
    """Say ``message`` in one line on standard error, and leave with ``status``."""
    typer.echo(f"marketsched: {shortened(' '.join(message.split()))}", err=True)
    raise typer.Exit(status)


def target_folder(out: Path | None, name: str, force: bool) -> Path:
    """Return the folder for results: ``out``, or ``runs/name`` with ``-2``, ``-3``, ... if that is there.

    Raises
    ------
    InvalidParameterError
        If it may not be written: known before any work is done.
    """
    folder = out if out is not None else _free_folder(Path("runs") / name, force)
    check_target(folder, force=force)
    return folder


def finish(result: Result, folder: Path, force: bool, as_json: bool, details: bool = False) -> None:
    """Save a result, print it, and say where it is; leave with a status of its own if it was interrupted."""
    result.save(folder, force=force)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2, allow_nan=False))
    else:
        view = result.view()
        print_view(view)
        if details:
            for part in getattr(view, "details", ()):
                print_view(part)
        elif getattr(view, "details", ()):
            typer.echo("more with --details, and on the page of `marketsched report`")
    typer.echo(f"written to {folder}", err=as_json)
    if not result.complete:
        again = f"; the same command goes on from there (into this folder with --force), with what lies in {KEPT}"
        again = f"{again} beside it" if result.kept else ""
        stop(f"interrupted {result.how_far}: {folder} is marked INCOMPLETE{again}", INTERRUPTED)


def _free_folder(folder: Path, force: bool) -> Path:
    """Return ``folder``, or with ``-2``, ``-3``, ... behind its name if there is one already."""
    number, free = 1, folder
    while free.exists() and not force:
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def print_view(view: Any) -> None:
    """Print what rich can render; where no terminal states a width, 110 characters wide, and as wide as tables need."""
    from rich.console import Console
    from rich.measure import Measurement

    from marketsched.results.views import WordTable

    console = Console(highlight=False)
    if not console.is_terminal:
        wide = console.options.update(max_width=WIDEST)
        tables = [part for part in getattr(view, "renderables", (view,)) if isinstance(part, WordTable)]
        console.width = max(console.width, 110, *(Measurement.get(console, wide, part).maximum for part in tables))
    console.print(view)


@contextmanager
def progress_bar() -> Iterator[Any]:
    """Give a function of (done, total, what) that shows a bar on standard error, or lines if that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    if not sys.stderr.isatty():
        yield _lines_of_progress()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


LINE_EVERY_S = 10.0  # of progress, where there is no terminal


def _so_far(done: float, total: float | None) -> str:
    """Show how much is done: a count, or a share where the total is 1."""
    if not total:
        return ""
    return f"{done:.0%}: " if total == 1.0 else f"{done:,} of {total:,}: "


def _lines_of_progress() -> Callable[[float, float | None, str], None]:
    """Return a function of (done, total, what) that prints a line on standard error every ten seconds, and one at once.

    With ``MARKETSCHED_PROGRESS=off`` in the environment it prints none.
    """
    last = math.inf if os.environ.get("MARKETSCHED_PROGRESS") == "off" else -math.inf

    def tell(done: float, total: float | None, what: str) -> None:
        nonlocal last
        if last == -math.inf and (done or total != 1):  # arguments are checked: their errors are one line
            compiled = "what runs for the first time on a machine is compiled, some seconds"
            typer.echo(f"marketsched: begun ({compiled})", err=True)
            last = time.monotonic()
        elif last > -math.inf and time.monotonic() - last >= LINE_EVERY_S:
            last = time.monotonic()
            typer.echo(f"marketsched: {_so_far(done, total)}{what}", err=True)

    return tell
