"""The command `marketsched audit finite`: an auction of one item with finitely many values, audited exactly."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from marketsched import finite as exact
from marketsched.mechanisms import finite as single_item
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.show.commands.tools import JsonOption, one_line_errors

LIES_PAY = 3  # exit status
RULES = ("first-price", "second-price")


def finite(
    rule: Annotated[str, typer.Argument(help=f"One of {', '.join(RULES)}.", autocompletion=lambda: list(RULES))],
    owners: Annotated[int, typer.Option(help="Owners that bid.", min=1)] = 2,
    values: Annotated[int, typer.Option(help="Values 0, 1, ... of each, equally likely.", min=2)] = 4,
    reserve: Annotated[int, typer.Option(help="Reports below it do not win.", min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Audit an auction of one item exactly: every owner, value, report and profile; exit status 3 if a lie pays.

    Mechanisms of one's own, as tables, are audited in Python: marketsched.audit_finite (docs/finite.md).
    """
    with one_line_errors():
        rules = dict(zip(RULES, (single_item.first_price, single_item.second_price), strict=True))
        if rule not in rules:
            raise InvalidParameterError(place="rule", value=rule, legal=f"one of {', '.join(RULES)}")
        found = exact.audit_finite(rules[rule]([range(values)] * owners, reserve), "uniform")
        typer.echo(json.dumps(found.to_dict(), indent=2, default=str) if as_json else repr(found))
    if not found.is_dominant:
        raise typer.Exit(LIES_PAY)
