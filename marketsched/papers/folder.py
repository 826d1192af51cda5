"""The folder of `marketsched reproduce --all`: a folder for each finished experiment, beside them the claims of all.

The common table and the manifest are written anew after each experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.papers.experiment_kind import headline, verdict_counts
from marketsched.papers.experiments import EXPERIMENTS
from marketsched.play.kept_results import difference, fingerprint
from marketsched.results.output import META, check_target, whole_file, write_json, write_table
from marketsched.results.result import Result, load, manifest

KIND = "reproduced"
TABLE, CSV = "table.parquet", "table.csv"
OURS = {META, TABLE, CSV, "summary.json", "report.html"}  # beside the folders of experiments
ASKED = ("full", "seed", "runs", "slots")  # what two runs must have in common to be the same


def kept(out: Path, asked: Mapping[str, Mapping[str, Any]], *, force: bool = False) -> dict[str, Result]:
    """Return the experiments that a folder holds already with the same version, seeds and sizes.

    ``asked`` has `ASKED` of each experiment by its name. With ``force`` all are to be run again. InvalidParameterError
    if the folder holds anything else, or an experiment of other sizes, seeds or another version.
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
    found: dict[str, Result] = {}
    for name, wanted in asked.items():
        folder = out / name
        if not force and (folder / META).is_file():
            differs = _difference(wanted, manifest(folder))  # before the tables: another version may have others
            if differs is not None:
                raise InvalidParameterError(f"{folder} has {differs}: expected a new --out, or --force to run it again")
            found[name] = load(folder)
    return found


def _difference(wanted: Mapping[str, Any], meta: Mapping[str, Any]) -> str | None:
    for key in ASKED:
        if meta.get(key) != wanted[key]:
            return f"{key} = {meta.get(key)} (here {wanted[key]})"
    return difference(fingerprint(), meta["versions"])


def overview(found: Sequence[Result], names: Sequence[str], asked: Mapping[str, Any]) -> Result:
    """Return the claims of the finished experiments, of all that were asked for, as one result."""
    headlines = {str(each.meta["experiment"]): headline(each.meta) for each in found}
    meta = {
        "complete": headlines.keys() >= set(names),
        "experiments": [*headlines],
        "missing": [name for name in names if name not in headlines],
        "headlines": headlines,
        **asked,
        "versions": dict(fingerprint()),
        "seconds": round(sum(each.meta["seconds"] for each in found), 3),
    }
    table = pd.concat([each.table for each in found], ignore_index=True)
    return Result(
        KIND, {"table": table}, meta=meta, texts={CSV: table.to_csv(index=False)}, outcome=verdict_counts(table)
    )


def write_overview(out: Path, found: Sequence[Result], names: Sequence[str], asked: Mapping[str, Any]) -> None:
    """Write an `overview` beside the folders of the experiments, file by file, the manifest last."""
    out.mkdir(parents=True, exist_ok=True)
    if not found:
        return
    all_of_them = overview(found, names, asked)
    with whole_file(out / TABLE) as partial:
        write_table(all_of_them.table, partial, {"seed": asked["seed"]})
    with whole_file(out / CSV) as partial:
        partial.write_text(all_of_them.texts[CSV], encoding="utf-8")
    with whole_file(out / "summary.json") as partial:
        write_json(all_of_them.outcome, partial)
    with whole_file(out / META) as partial:
        write_json({"kind": KIND, **all_of_them.meta}, partial)


def renew_overview(out: Path) -> None:
    """Write the common table and the manifest of a folder anew, if it has them."""
    if (out / META).is_file() and (meta := manifest(out)).get("kind") == KIND:
        names = [*meta["experiments"], *meta["missing"]]
        found = [load(out / name) for name in names if (out / name / META).is_file()]
        write_overview(out, found, names, {key: meta[key] for key in ASKED})
