"""Rules of value: a comparison of a log under several of them shows whether its lead holds where values are others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from marketsched.comparisons.comparing import compare
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import is_log
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.answers import question_of, rival_of
from marketsched.results.result import Result

VALUE_RULES: Mapping[str, Mapping[str, Any]] = {  # keys of `marketsched.worlds.logs.rule.LogRule`
    "falling, by class": {"deadlines": "none"},
    "falling, equal for every node-hour": {"deadlines": "none", "classes": "equal", "spread": 0.0},
    "falling, heavy tail": {"deadlines": "none", "spread": 2.0},
    "deadlines, slack 1": {"deadlines": "drawn", "slack": 1.0},
    "deadlines, slack 4": {"deadlines": "drawn", "slack": 4.0},
    "deadlines, slack 20": {"deadlines": "drawn", "slack": 20.0},
}
Tell = Callable[[int, int, str], None]
COLUMNS = ("mechanism", "welfare_share", "over_first_come", "over_rival")


def compare_values(
    base: Scenario, mechanisms: Sequence[str] | None = None, runs: int = 2, seed: int = 0, **options: Any
) -> Result:
    """Compare mechanisms on a log under each of `VALUE_RULES`.

    Parameters
    ----------
    base : Scenario
        Of a log.
    mechanisms, runs, seed, **options
        As of `marketsched.comparisons.comparing.compare`, without ``loads``.

    Returns
    -------
    Result
        The comparison under the first rule, with a table ``values``: one row per rule and mechanism, its share of the
        bound and its differences with their intervals. ``meta["values"]`` says under how many rules the sign of the
        first lead holds.

    Raises
    ------
    InvalidParameterError
        If the scenario is of no log, or loads are asked for.
    """
    if base.kind != "market" or not is_log({"workload": {"kind": base.workload.kind}}):
        raise InvalidParameterError("--values", legal="a log: other jobs have values of their own")
    if options.get("loads") is not None:
        raise InvalidParameterError("--values", legal="one load at a time, without --loads")
    found: list[Result] = []
    tell = options.pop("progress", None)
    for name, rule in VALUE_RULES.items():
        if tell is not None:
            options["progress"] = partial(_told, tell, len(found), name)
        changed = {**(base.workload.rule or {}), **rule}
        workload = base.workload.model_copy(update={"rule": changed})
        found.append(compare(base.model_copy(update={"workload": workload}), mechanisms, runs, seed, **options))
        if not found[-1].complete:
            break
    parts = []
    for name, result in zip(VALUE_RULES, found, strict=False):
        kept = [each for each in result.summary if str(each).startswith(COLUMNS)]
        parts.append(result.summary[kept].assign(rule=name))
    table = pd.concat(parts, ignore_index=True)
    table.insert(0, "rule", table.pop("rule"))
    first = found[0]
    meta = {**first.meta, "values": _words(table, first), "complete": found[-1].complete}
    kept_parts = [part for each in found for part in each.kept]
    return replace(first, tables={**first.tables, "values": table}, meta=meta, kept=kept_parts)


def _told(tell: Tell, before: int, name: str, done: int, total: int, step: str) -> None:
    """Tell the progress of one rule as that of all."""
    tell(before * total + done, len(VALUE_RULES) * total, f"{name}: {step}")


def _words(table: pd.DataFrame, first: Result) -> str:
    """Say under how many rules the first mechanism's difference to its rival has the sign of the first rule."""
    asked, rival = question_of(first.records(), first.meta), rival_of(first.meta)
    rows = table[table["mechanism"] == asked].set_index("rule")
    if rows.empty or not rows[rival.column].notna().all():
        return ""
    sign = rows[rival.column].iloc[0] > 0
    holds = (rows[rival.column] > 0) == sign
    clear = holds & (rows[f"{rival.column}_low"] * rows[f"{rival.column}_high"] > 0)
    more = f"{'more' if sign else 'less'} than {rival.name}"
    said = f"{asked} delivers {more} under {holds.sum()} of {len(rows)} rules of value"
    fails = "; ".join(f"{name} ({100 * rows[rival.column][name]:+.1f})" for name in rows.index[~holds])
    return f"{said}, clear of 0 under {clear.sum()}{f'; not under {fails}' if fails else ''}."
