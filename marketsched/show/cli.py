"""The command line: help in two pages, and commands that are loaded when they are asked for.

A command that the registry names is a function of Typer's, or an app with commands of its own. A name of two words,
such as ``audit finite``, is a command of that group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group_from_info
from typer.models import TyperInfo

from marketsched import __version__
from marketsched.mechanisms.errors import MarketschedError
from marketsched.mechanisms.registry import get, names

ALL = "--help-all"
REPLACED = {  # words of a command that is gone: the command that does the same now
    "live serve --public": "`--public` is now `--behind-proxy`: a reverse proxy alone may reach it (docs/live.md)",
    "benchmark": "`marketsched benchmark` is gone: `compare` scores mechanisms, and `audit` measures lies",
    "compare --adversary": "`--adversary` is gone: `marketsched sweep` varies a market, and `compare` scores it",
    "traces series": "`marketsched traces series` is gone: read a file with `marketsched.worlds.traces.get_trace`",
}
F = TypeVar("F", bound=Callable[..., Any])
_SETTINGS: dict[Callable[..., Any], dict[str, Any]] = {}


def first_page(*shown: str) -> type[TyperCommand]:
    """Return a class of commands whose help shows these parameters, and all others with ``--help-all``.

    Parameters
    ----------
    *shown : str
        Names of parameters of the command's function; its arguments are always shown.
    """

    class Paged(TyperCommand):
        """A command with two pages of help."""

        whole = False

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if ALL in args:
                self.whole, args = True, ["--help"]
            return super().parse_args(ctx, args)

        def format_options(self, ctx: Any, formatter: Any) -> None:
            arguments, options = [], []
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                if record is None:
                    continue
                if parameter.param_type_name == "argument":
                    arguments.append(record)
                elif self.whole or parameter.name in (*shown, "help"):
                    options.append(record)
            if arguments:
                with formatter.section("Arguments"):
                    formatter.write_dl(arguments)
            with formatter.section("Options"):
                formatter.write_dl([*options, *([] if self.whole else [(ALL, "Show every option and exit.")])])

    return Paged


def with_settings(**settings: Any) -> Callable[[F], F]:
    """Give a command that the registry names its settings: those of `typer.Typer.command`."""

    def add(command: F) -> F:
        _SETTINGS[command] = settings
        return command

    return add


def registered_group(prefix: str = "", usual: str | None = None) -> type[TyperGroup]:
    """Return a class of groups that have their own commands, and those of the registry whose names begin with a prefix.

    ``usual`` is a command that need not be named.
    """

    class Registered(TyperGroup):
        """A group that loads a command when it is asked for."""

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            for words, line in REPLACED.items() if not prefix else ():
                if args[:1] == words.split()[:1] and set(words.split()) <= set(args):
                    typer.echo(f"marketsched: {line}", err=True)
                    raise typer.Exit(2)
            if usual is not None and (not args or args[0] not in self.list_commands(ctx)):
                args = [usual, *args]
            return super().parse_args(ctx, args)

        def list_commands(self, ctx: Any) -> list[str]:
            found = [name.removeprefix(prefix) for name in names("command") if name.startswith(prefix)]
            return list(dict.fromkeys([*super().list_commands(ctx), *(name for name in found if " " not in name)]))

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in self.commands and cmd_name in self.list_commands(ctx):
                try:
                    self.commands[cmd_name] = _loaded(cmd_name, get("command", prefix + cmd_name))
                except MarketschedError as error:  # a plug-in that is broken: the other commands are there
                    typer.echo(f"marketsched: {error}", err=True)
            return super().get_command(ctx, cmd_name)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args[0] not in (known := self.list_commands(ctx)):
                for name in known:  # those that are loaded can be meant
                    self.get_command(ctx, name)
            return super().resolve_command(ctx, args)

    return Registered


def _loaded(name: str, made: Any) -> Any:
    """Return the command or group that Typer makes of a function or an app."""
    if isinstance(made, typer.Typer):
        info = TyperInfo(made, name=name)
        return get_group_from_info(info, pretty_exceptions_short=False, suggest_commands=True, rich_markup_mode=None)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command(name, **_SETTINGS.get(made, {}))(made)
    return get_command(alone)


# What a newcomer types next; the \b at its head keeps click from filling its lines.
NEXT_STEPS = """\b
Start here: marketsched run synthetic-pipelines -m bid-price --set workload.utilisation=1.25
More:       marketsched scenarios                       what there is to run
            marketsched mechanisms                      the mechanisms, and what is proven about each
            marketsched compare LOG.swf                 your log under several of them
            marketsched audit synthetic-pipelines       who could gain by lying?
            marketsched learn                           do owners learn to tell the truth?
Worked examples: README.md and examples/README.md in the source."""

app = typer.Typer(
    help="Truthful markets for cluster jobs whose arrival and duration are uncertain.",
    epilog=NEXT_STEPS,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=registered_group(),
    add_completion=True,
    no_args_is_help=False,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Truthful markets for cluster jobs whose arrival and duration are uncertain."""
    if version:
        typer.echo(f"marketsched {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
