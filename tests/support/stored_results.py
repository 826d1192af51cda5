"""Results with few rows, one folder each in ``tests/golden/results``: what every kind of result is printed from.

Tables are CSV, whose heads name the types of columns (``i`` integer, ``I`` integer or nothing, ``f`` and ``F`` float,
``b`` yes or no, ``s`` text or nothing, else text), beside ``meta.json``, ``summary.json`` of a single run, and texts.
"""

import csv
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from marketsched.results.result import Result, load

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "results"


def stored(name: str, folder: Path) -> Result:
    """Return the result of a golden folder, as it is loaded from a folder with Parquet tables."""
    for path in (FOLDER / name).iterdir():
        if path.suffix == ".csv":
            table(path.read_text()).to_parquet(folder / f"{path.stem}.parquet")
        elif path.is_dir():
            shutil.copytree(path, folder / path.name)
        elif path.name != "page.txt":
            shutil.copy(path, folder)
    return load(folder)


def table(text: str) -> pd.DataFrame:
    """Return a table of text with the types that its head names."""
    head, *rows = csv.reader(io.StringIO(text))
    columns: dict[str, Any] = {}
    for (name, _, kind), values in zip((each.rpartition(":") for each in head), zip(*rows, strict=True), strict=True):
        if kind in ("f", "F"):
            columns[name] = np.array([float(x or "nan") for x in values], dtype="float32" if kind == "F" else "float64")
        elif kind in ("i", "I"):
            columns[name] = pd.array([int(x) if x else None for x in values], dtype="int64" if kind == "i" else "Int64")
        elif kind == "b":
            columns[name] = np.array([x == "yes" for x in values])
        else:
            columns[name] = pd.array([x or None for x in values] if kind == "s" else values, dtype="str")
    return pd.DataFrame(columns)
