"""Waits, slowdowns and utilisation of a comparison on a log, means over seeds with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from rich.text import Text

from marketsched.results.paired_statistics import spread
from marketsched.results.result import Result
from marketsched.results.views import WordTable, amount, plain_table

OWNERS = {"half of\nthe users": 0.5, "nine in ten\nusers": 0.9}  # wait at most so long on average
CLASSES = {"0": "patient", "1": "middle", "2": "urgent"}  # jobs of a log
OF_RUNS = {
    "utilisation_open": "utilisation,\n%",
    "longest_wait_hours": "longest\nwait, h",
    "longest_overtaken_hours": "longest\novertaken, h",
    "wide_share": "value of the\nwidest 5 %, %",
}
MOST_USERS = 10  # that are shown


def waits_summary(result: Result) -> pd.DataFrame:
    """Return utilisation, slowdowns and waits with intervals over seeds.

    Parameters
    ----------
    result : Result
        Of kind ``mechanisms`` or ``loads``, with tables ``runs`` and ``waits``.

    Returns
    -------
    DataFrame
        One row per (load,) mechanism and figure. ``figure``: those of `OF_RUNS`; ``bounded_slowdown`` and
        ``wait_rounds``, of all and of each class, as in ``wait_rounds, class 2``; and the mean wait that a share of
        the owners is within, as in ``wait_rounds, owners 0.9``. ``mean``, ``low``, ``high``: over seeds, NaN where
        there is none.
    """
    by = ["load", "mechanism"] if "load" in result.tables["waits"] else ["mechanism"]
    figures = pd.concat([*_of_runs(result.runs, by), *_of_waits(result.tables["waits"], by)], ignore_index=True)
    confidence = result.meta["confidence"]
    rows = []
    for keys, own in figures.groupby([*by, "figure"], sort=False):
        mean, _, _, _, low, high = spread(own["value"], confidence)
        rows.append({**dict(zip([*by, "figure"], keys, strict=True)), "mean": mean, "low": low, "high": high})
    return pd.DataFrame(rows)


def _of_runs(runs: pd.DataFrame, by: list[str]) -> Iterable[pd.DataFrame]:
    played = runs[runs["welfare"].notna()]
    for name in OF_RUNS.keys() & played.columns:
        yield played[[*by, "seed"]].assign(figure=name, value=played[name])


def _of_waits(waits: pd.DataFrame, by: list[str]) -> Iterable[pd.DataFrame]:
    keys = [*by, "seed"]
    for name in ("bounded_slowdown", "wait_rounds"):
        everyone = waits[waits["by"] == "all"]
        yield everyone[keys].assign(figure=name, value=everyone[name])
        classes = waits[waits["by"] == "class"]
        yield classes[keys].assign(figure=f"{name}, class " + classes["name"], value=classes[name])
    owners = waits[(waits["by"] == "owner") & waits["wait_rounds"].notna()]
    for share in OWNERS.values():
        quantiles = owners.groupby(keys)["wait_rounds"].quantile(share).rename("value").reset_index()
        yield quantiles.assign(figure=f"wait_rounds, owners {share:g}")


def waits_view(result: Result) -> list[Text | WordTable]:
    """Return the tables of waits, slowdowns and utilisation, ready to print with rich; none without waits.

    Users have a table here where no rival is named; with one, `marketsched.results.versus_view` has it.
    """
    if "waits" not in result.tables:
        return []
    summary, length = waits_summary(result), round_length(result.meta)
    if "load" in summary:
        parts: list[Text | WordTable] = []
        for load, own in summary.groupby("load"):
            parts += [Text(f"\nload {load:g}", style="dim"), _first(own, length)]
        return parts
    users = (
        [] if "against" in result.tables else users_view(result.tables["waits"], length, result.meta["mechanisms"][0])
    )
    return [Text(""), _first(summary, length), *users]


def classes_view(result: Result) -> list[Text | WordTable]:
    """Return the table of waits by class of job and by how many of the users; nothing if no job waits."""
    if "waits" not in result.tables:
        return []
    summary = waits_summary(result)
    classes = sorted(x.rpartition(" ")[2] for x in summary["figure"].unique() if x.startswith("wait_rounds, class"))
    titles = {f"wait_rounds, class {each}": f"wait, {CLASSES.get(each, 'class ' + each)}" for each in classes}
    titles |= {f"wait_rounds, owners {share:g}": title for title, share in OWNERS.items()}
    return [
        Text("\nwaits by class of job, and the mean wait that so many users are within", style="dim"),
        _table(summary, titles, round_length(result.meta)),
    ]


def round_length(meta: Mapping[str, Any]) -> float | None:
    """Return the length of a round, s, where the result says it."""
    found = meta.get("round_seconds")
    return None if found is None else float(found)


def users_view(waits: pd.DataFrame, length: float | None, mechanism: str = "") -> list[Text | WordTable]:
    """Return a table by user: jobs, wait, payments and value, means over seeds.

    Parameters
    ----------
    waits : DataFrame
        As `waits_table`, perhaps of several seeds and mechanisms.
    length : float, optional
        Of a round, s.
    mechanism : str
        The one that is shown, of several.
    """
    own = waits[waits["by"] == "owner"]
    own = own[own["mechanism"] == mechanism] if "mechanism" in own else own
    figures = own.groupby("name")[["jobs", "completed", "wait_rounds", "paid", "value"]].mean()
    figures = figures.sort_values("jobs", ascending=False, kind="stable")
    if len(figures) < 2 or figures["jobs"].max() <= 1:
        return []
    unit, per = wait_unit(figures["wait_rounds"].max(), length)
    under = f" under {mechanism}" if mechanism else ""
    first = f"the {MOST_USERS} with most jobs of " if len(figures) > MOST_USERS else ""
    table = plain_table("jobs", "done", f"wait,\n{unit}", "paid,\ncredits", "worth,\ncredits", first="user", room=10)
    for user, row in figures.head(MOST_USERS).to_dict("index").items():
        wait = f"{per * row['wait_rounds']:,.1f}" if math.isfinite(row["wait_rounds"]) else "-"
        jobs, done = (amount(round(float(row[name]), 1)) for name in ("jobs", "completed"))
        table.add_row(str(user), jobs, done, wait, *(amount(round(float(row[name]), 2)) for name in ("paid", "value")))
    return [Text(f"\nby user{under}: {first}{len(figures):,}", style="dim"), table]


def wait_unit(longest: float, length: float | None) -> tuple[str, float]:
    """Return the unit that waits are shown in, and how many of it a round is."""
    if length is None:
        return "rounds", 1.0
    return ("hours", length / 3600) if longest * length >= 7200 else ("minutes", length / 60)


def _first(summary: pd.DataFrame, length: float | None) -> WordTable:
    first, *others = [(name, title) for name, title in OF_RUNS.items() if name in set(summary["figure"])]
    titles = dict([first, ("bounded_slowdown", "bounded\nslowdown"), ("wait_rounds", "wait"), *others])
    return _table(summary, titles, length)


def _table(summary: pd.DataFrame, titles: dict[str, str], length: float | None) -> WordTable:
    """Show some figures, a row for each mechanism."""
    waits = summary[summary["figure"].isin([name for name in titles if name.startswith("wait")])]["mean"]
    unit, per = wait_unit(waits.max(), length)
    scales = {
        name: per if name.startswith("wait") else 100 if name in ("utilisation_open", "wide_share") else 1
        for name in titles
    }
    named = [f"{title},\n{unit}" if name.startswith("wait") else title for name, title in titles.items()]
    cells = {(row.mechanism, row.figure): row for row in summary.itertuples()}
    table = plain_table(*named, room=10)
    for name in dict.fromkeys(summary["mechanism"]):
        table.add_row(name, *(_shown(cells.get((name, figure)), scales[figure]) for figure in titles))
    return table


def _shown(row: object, scale: float) -> str:
    mean, high = getattr(row, "mean", math.nan), getattr(row, "high", math.nan)
    if not math.isfinite(mean):
        return "-"
    half = scale * (high - mean)
    return f"{scale * mean:,.2f}" + (f" ± {half:,.2f}" if math.isfinite(half) else "")
