"""What one experiment has found, and the folders it is kept in: written whole or not at all, and read again.

A folder of ``reproduce --all`` holds a folder for each finished experiment, and beside them the claims
of all in one table and a manifest. Both are written anew after each experiment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.output import META, check_target, plain, whole_file, whole_folder, write_json, write_table
from marketsched.study.fingerprint import difference, fingerprint
from marketsched.study.papers.claims import VERDICTS, Row
from marketsched.study.papers.experiments import EXPERIMENTS
from marketsched.study.papers.runs import Line, Panel

KIND = "reproduced"  # what the manifest of all experiments calls itself
TABLE, PANELS, RUNS = "table.parquet", "panels.json", "runs.parquet"
OURS = {META, TABLE, "table.csv", "report.html"}  # beside the folders of experiments
ASKED = ("full", "seed", "runs", "slots")  # what two runs must have in common to be the same


@dataclass(frozen=True, slots=True, eq=False)
class Reproduced:
    """One experiment that was run.

    ``table`` has one row per claim: ``experiment, quantity, source, claim, paper, value, low, high,
    least, most, seeds, neutral, rounding, verdict, reason, why``; ``runs`` what it was computed from.
    """

    name: str
    place: str
    shows: str
    rows: tuple[Row, ...]
    panels: tuple[Panel, ...]
    runs: pd.DataFrame
    meta: dict[str, Any] = field(repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """One row per claim."""
        table = pd.DataFrame([row.to_dict() for row in self.rows])
        table.insert(0, "experiment", self.name)
        return table

    def verdicts(self) -> dict[str, int]:
        """Return how many claims have which verdict."""
        return {word: sum(row.verdict == word for row in self.rows) for word in VERDICTS}

    def figure(self) -> Any:
        """Return the picture, a matplotlib figure."""
        from marketsched.study.papers.figure import experiment_figure

        return experiment_figure(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the runs as plain data, NaN as None."""
        rows = [row.to_dict() for row in self.rows]
        found: dict[str, Any] = plain({"experiment": self.name, "place": self.place, "claims": rows, "meta": self.meta})
        return found


def write_reproduced(folder: Path, made: Reproduced, *, force: bool = False) -> None:
    """Write the table (CSV, Parquet), runs, panels, figure and ``meta.json`` into ``folder``, whole or not at all."""
    from marketsched.results.panels import save_figure

    about = {"experiment": made.name, "seed": made.meta["seed"], "runs": made.meta["runs"]}
    with whole_folder(folder, force=force) as partial:
        write_table(made.table, partial / TABLE, about)
        made.table.to_csv(partial / "table.csv", index=False)
        if not made.runs.empty:
            write_table(made.runs, partial / RUNS, about)
        (partial / PANELS).write_text(json.dumps([asdict(panel) for panel in made.panels]) + "\n", encoding="utf-8")
        save_figure(made.figure(), partial / "figure.png")
        write_json({"experiment": made.name, "place": made.place, "shows": made.shows, **made.meta}, partial / META)


def read_reproduced(folder: Path) -> Reproduced:
    """Return what `write_reproduced` has written.

    Raises
    ------
    InvalidParameterError
        If a file is missing or damaged.
    """
    try:
        meta = _manifest(folder)
        table = pd.read_parquet(folder / TABLE)
        records: Any = table.to_dict(orient="records")
        rows = tuple(Row.from_dict(row) for row in records)
        panels = tuple(_panel(each) for each in json.loads((folder / PANELS).read_text(encoding="utf-8")))
        runs = pd.read_parquet(folder / RUNS) if (folder / RUNS).is_file() else pd.DataFrame()
        name, place, shows = (meta.pop(key) for key in ("experiment", "place", "shows"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder, error) from error
    return Reproduced(name, place, shows, rows, panels, runs, meta)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from error
    if not isinstance(meta, dict):
        raise _damaged(folder, TypeError(f"{META} holds no object"))
    return meta


def _damaged(folder: Path, error: Exception) -> InvalidParameterError:
    what = f"{type(error).__name__}: {error}"
    return InvalidParameterError(f"{folder} is damaged ({what}): expected an experiment, or --force")


def _panel(data: Mapping[str, Any]) -> Panel:
    return Panel(**{**data, "lines": [Line(**line) for line in data["lines"]]})


def kept(out: Path, asked: Mapping[str, Mapping[str, Any]], *, force: bool = False) -> dict[str, Reproduced]:
    """Return the experiments that a folder holds already, as they were asked for.

    Parameters
    ----------
    out : Path
        Folder of all experiments; may be absent.
    asked : mapping of str to mapping
        `ASKED` of each experiment, by its name.
    force : bool
        All are to be run again: the folder is only looked at.

    Raises
    ------
    InvalidParameterError
        If the folder holds anything else, or an experiment of other sizes, seeds or another version.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise InvalidParameterError(f"{out} is not a folder: expected a new or empty folder")
    for name in asked:
        if force or not (out / name / META).is_file():
            check_target(out / name, force=force)
    if not out.is_dir():
        return {}
    strange = sorted(
        p.name for p in out.iterdir() if not p.name.startswith(".") and p.name not in OURS | {*EXPERIMENTS}
    )
    if strange:
        raise InvalidParameterError(f"{out} holds {strange[0]}, which is no experiment: expected a new or empty folder")
    found: dict[str, Reproduced] = {}
    for name, wanted in asked.items():
        folder = out / name
        if not force and (folder / META).is_file():
            differs = _difference(wanted, _manifest(folder))  # before the tables: another version may have others
            if differs is not None:
                raise InvalidParameterError(f"{folder} has {differs}: expected a new --out, or --force to run it again")
            found[name] = read_reproduced(folder)
    return found


def _difference(wanted: Mapping[str, Any], meta: Mapping[str, Any]) -> str | None:
    for key in ASKED:
        if meta.get(key) != wanted[key]:
            return f"{key} = {meta.get(key)} (here {wanted[key]})"
    return difference(fingerprint(), meta.get("versions", {}))


def write_overview(out: Path, found: Sequence[Reproduced], names: Sequence[str], asked: Mapping[str, Any]) -> None:
    """Write the claims of all finished experiments as one table, and the manifest.

    Parameters
    ----------
    out : Path
        Folder of all experiments.
    found : sequence of Reproduced
        Finished.
    names : sequence of str
        All that were asked for.
    asked : mapping
        What was asked for: ``full``, ``seed``, ``runs``, ``slots``.
    """
    done = {each.name for each in found}
    meta = {
        "kind": KIND,
        "complete": done.issuperset(names),
        "experiments": [each.name for each in found],
        "missing": [name for name in names if name not in done],
        **asked,
        "verdicts": {word: sum(each.verdicts()[word] for each in found) for word in VERDICTS},
        "versions": dict(fingerprint()),
        "seconds": round(sum(each.meta["seconds"] for each in found), 3),
    }
    out.mkdir(parents=True, exist_ok=True)
    if found:
        table = pd.concat([each.table for each in found], ignore_index=True)
        with whole_file(out / TABLE) as partial:
            write_table(table, partial, {"seed": asked["seed"]})
        with whole_file(out / "table.csv") as partial:
            table.to_csv(partial, index=False)
    with whole_file(out / META) as partial:
        write_json(meta, partial)


def renew_overview(out: Path) -> None:
    """Write the common table and the manifest of a folder anew, if it has them."""
    meta = _manifest(out) if (out / META).is_file() else {}
    if meta.get("kind") == KIND:
        names = [*meta["experiments"], *meta["missing"]]
        found = [read_reproduced(out / name) for name in names if (out / name / META).is_file()]
        write_overview(out, found, names, {key: meta[key] for key in ASKED})
