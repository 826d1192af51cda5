"""Help in two pages: what most users want first, and the rest with ``--help-all``; and groups with a usual command."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

ALL = "--help-all"


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


def group_with(usual: str) -> type[TyperGroup]:
    """Return a class of groups in which the command ``usual`` need not be named."""

    class WithUsual(TyperGroup):
        """A group with a usual command."""

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            return super().parse_args(ctx, args if args and args[0] in self.commands else [usual, *args])

    return WithUsual
