"""The command `marketsched mechanisms`: the mechanisms, one line each."""

from __future__ import annotations

import csv
import inspect
import re
from pathlib import Path
from typing import Annotated, Any

import typer

import marketsched.mechanisms
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import get, mechanism_names, promises_of, standing_of, truth_of
from marketsched.mechanisms.signatures import Parameter, parameters_of
from marketsched.show.commands.tools import known_mechanisms, one_line_errors, print_view

LEGEND = (
    "truth is best for each job: proved (on average over its own duration; in part; up to a regret, if others report "
    "truly); no, this lie is known to pay; unknown, `marketsched audit` searches for one. The other columns are seen "
    "in plays at default parameters (docs/rules.md): what moves jobs (values, announced durations, owners); whether a "
    "run is taken back, a start is final at arrival, equal jobs start in order, a wide job starts among narrow ones, "
    "somebody pays, nodes may differ. `marketsched mechanisms NAME` says what one promises and needs, and how it works."
)
RULES = Path(marketsched.mechanisms.__file__).with_name("rules.csv")

SEE_MODULE = re.compile(r" \(see the module[^)]*\)\.?(?=\.?$)", re.MULTILINE)
ELSEWHERE = re.compile(r"(?:As (?:for|of|in)|See) (?:[\w.]+\.)?(\w+)\b")


def mechanisms(
    name: Annotated[
        str | None,
        typer.Argument(help="Describe this one.", show_default=False, autocompletion=known_mechanisms),
    ] = None,
) -> None:
    """List the mechanisms, or describe one with its parameters. Those that installed packages add are listed, too."""
    with one_line_errors():
        if name is not None:
            for each in _described(name):
                print_view(each)
            return
        from marketsched.results.views import WordTable

        with RULES.open(newline="", encoding="utf-8") as lines:
            heads, *rows = csv.reader(lines)
        played = {row[0]: row[3:] for row in rows}
        table = WordTable()
        for head in heads:
            table.add_column(head, no_wrap=head == "rule")
        for each in mechanism_names():
            try:
                table.add_row(each, *truth_of(each), *played.get(each, ()))
            except InvalidParameterError as error:  # a plug-in that cannot be loaded hides no other
                table.add_row(each, "broken", str(error))
        print_view(table)
        typer.echo(LEGEND)


def _described(name: str) -> list[Any]:
    """Return the rules of a mechanism in prose, its parameters, its promises, and how it is named in a command."""
    from rich.table import Table
    from rich.text import Text

    from marketsched.mechanisms.limits import GIVEN, SIZES  # numpy, which the list of names is printed without

    given = {*SIZES, *GIVEN, "history", "rng"}  # by the market, not by a command
    maker = get("mechanism", name)
    prose, texts = _explained(maker)
    table = Table("KEY", "legal", "default", "", box=None, header_style="dim", pad_edge=False)
    table.columns[0].no_wrap = True
    for key, each in parameters_of(maker).items():
        if key not in given:
            table.add_row(*map(Text, (key, _legal(each), _default(each), texts.get(key, ""))))
    promises, needs = promises_of(name), standing_of(name).needs
    use = f"Use: marketsched run SCENARIO -m {name}"
    return [
        Text(f"{prose}\n"),
        *([table, Text("")] if table.row_count else []),
        *([Text(f"Promises at its default parameters: {promises}.\n")] if promises else []),
        *([Text(f"Needs to know: {needs}.\n")] if needs else []),
        Text(f"{use}, with parameters -m {name}:KEY=VALUE" if table.row_count else use),
    ]


def _explained(maker: object) -> tuple[str, dict[str, str]]:
    """Return the prose of a class or function, and what its docstring says of each parameter.

    Where it sends the reader on, to its module or to another class, what stands there is taken.
    """
    prose, texts = _parts(inspect.getdoc(maker) or "(not described)")
    for key, text in texts.items():
        found = ELSEWHERE.match(text)
        home, above = inspect.getmodule(maker), {each.__name__: each for each in getattr(maker, "__mro__", ())}
        named = getattr(home, found[1], getattr(marketsched.mechanisms, found[1], None)) if found else None
        other = above.get(found[1], named) if found else None
        if inspect.isclass(other):
            texts[key] = _parts(inspect.getdoc(other) or "")[1].get(key, text)
            maker, prose = (maker, prose) if inspect.isclass(maker) else (other, f"{prose} (see the module).")
    if SEE_MODULE.search(prose):
        of_module = _parts(inspect.getdoc(inspect.getmodule(maker)) or "")[0]
        prose = f"{SEE_MODULE.sub('', prose)}\n\n{of_module}"
    return prose, texts


def _parts(text: str) -> tuple[str, dict[str, str]]:
    """Return the prose of a docstring, and what it says of each parameter; other sections are left out."""
    sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", text.replace("`", ""), flags=re.MULTILINE)
    found: dict[str, str] = {}
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        for head, said in re.findall(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n?)*)", body, re.MULTILINE):
            if title == "Parameters":
                found |= dict.fromkeys(head.partition(" : ")[0].split(", "), " ".join(said.split()))
    prose = re.sub(r"\n  +(?=\w)", " ", sections[0].replace(":math:", ""))
    return re.sub(r"(?<!\n)\n(?=[^\s*])", " ", prose).strip(), found


def _legal(parameter: Parameter) -> str:
    """Return what is legal for a parameter, in the words of an error about it."""
    if parameter.range is None:
        return ""
    try:
        parameter.range(object())
    except ValueError as fault:
        return str(fault)
    return ""


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "(needed)"
    return "-" if parameter.default is None else str(parameter.default)
