"""Waits, slowdowns and utilisation of a comparison on a log, means over seeds with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd
from rich.table import Table
from rich.text import Text

from marketsched.results.paired_statistics import spread
from marketsched.results.result import Result
from marketsched.results.views import plain_table

OWNERS = {"half of the\nowners wait": 0.5, "nine in ten\nowners wait": 0.9}  # at most so many rounds on average


def waits_summary(result: Result) -> pd.DataFrame:
    """Return utilisation, slowdowns and waits with intervals over seeds.

    Parameters
    ----------
    result : Result
        Of kind ``mechanisms`` or ``loads``, with tables ``runs`` and ``waits``.

    Returns
    -------
    DataFrame
        One row per (load,) mechanism and figure. ``figure``: ``utilisation``; ``bounded_slowdown`` and ``wait_rounds``,
        of all and of each class, as in ``wait_rounds, class 2``; and the mean wait that a share of the owners is
        within, as in ``wait_rounds, owners 0.9``. ``mean``, ``low``, ``high``: over seeds, NaN where there is none.
    """
    by = ["load", "mechanism"] if "load" in result.tables["waits"] else ["mechanism"]
    figures = pd.concat([_of_runs(result.runs, by), *_of_waits(result.tables["waits"], by)], ignore_index=True)
    confidence = result.meta["confidence"]
    rows = []
    for keys, own in figures.groupby([*by, "figure"], sort=False):
        mean, _, _, _, low, high = spread(own["value"], confidence)
        rows.append({**dict(zip([*by, "figure"], keys, strict=True)), "mean": mean, "low": low, "high": high})
    return pd.DataFrame(rows)


def _of_runs(runs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    played = runs[runs["welfare"].notna()]
    return played[[*by, "seed"]].assign(figure="utilisation", value=played["utilisation"])


def _of_waits(waits: pd.DataFrame, by: list[str]) -> Iterable[pd.DataFrame]:
    keys = [*by, "seed"]
    for name in ("bounded_slowdown", "wait_rounds"):
        everybody = waits[waits["by"] == "all"]
        yield everybody[keys].assign(figure=name, value=everybody[name])
        classes = waits[waits["by"] == "class"]
        yield classes[keys].assign(figure=f"{name}, class " + classes["name"], value=classes[name])
    owners = waits[(waits["by"] == "owner") & waits["wait_rounds"].notna()]
    for share in OWNERS.values():
        quantiles = owners.groupby(keys)["wait_rounds"].quantile(share).rename("value").reset_index()
        yield quantiles.assign(figure=f"wait_rounds, owners {share:g}")


def waits_view(result: Result) -> list[Text | Table]:
    """Return the tables of waits, slowdowns and utilisation, ready to print with rich; nothing where nobody waits."""
    if "waits" not in result.tables:
        return []
    summary = waits_summary(result)
    if "load" in summary:
        parts: list[Text | Table] = []
        for load, own in summary.groupby("load"):
            parts += [Text(f"\nload {load:g}", style="dim"), _first(own)]
        return parts
    classes = sorted(x.rpartition(" ")[2] for x in summary["figure"].unique() if x.startswith("wait_rounds, class"))
    titles = {f"wait_rounds, class {each}": f"wait of\nclass {each}" for each in classes}
    titles |= {f"wait_rounds, owners {share:g}": title for title, share in OWNERS.items()}
    return [Text(""), _first(summary), Text(""), _table(summary, titles)]


def _first(summary: pd.DataFrame) -> Table:
    titles = {"utilisation": "utilisation,\n%", "bounded_slowdown": "bounded\nslowdown", "wait_rounds": "wait,\nrounds"}
    return _table(summary, titles)


def _table(summary: pd.DataFrame, titles: dict[str, str]) -> Table:
    """Show some figures, a row for each mechanism."""
    table = plain_table(*titles.values(), room=10)
    cells = {(row.mechanism, row.figure): row for row in summary.itertuples()}
    for name in dict.fromkeys(summary["mechanism"]):
        table.add_row(name, *(_shown(cells.get((name, figure)), figure) for figure in titles))
    return table


def _shown(row: object, figure: str) -> str:
    mean, high = getattr(row, "mean", math.nan), getattr(row, "high", math.nan)
    if not math.isfinite(mean):
        return "-"
    scale = 100 if figure == "utilisation" else 1
    half = scale * (high - mean)
    return f"{scale * mean:,.2f}" + (f" ± {half:,.2f}" if math.isfinite(half) else "")
