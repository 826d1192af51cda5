"""A folder of two experiments, as `marketsched reproduce --all` writes it."""

import math

import pandas as pd

from marketsched.papers.claims import Claim, exact_row, mean_row
from marketsched.papers.experiment_kind import verdict_counts
from marketsched.papers.folder import write_overview
from marketsched.papers.runs import Line, Panel, lines_table
from marketsched.results.result import Result, versions


def write_reproduction(folder, missing=()):
    """Write two experiments, one of each kind of verdict, as `reproduce --all` does."""
    panel = Panel("a panel", "x", "y", [Line("line", [1, 2], [0.5, 0.7])])
    rows = (
        exact_row(Claim("share <b>", "Fig. 1", "at most", 1.0, 1.0), 0.5),
        mean_row(Claim("level", "Fig. 1", "number", 0.2, math.nan, why="known [sic]"), [0.8, 0.9]),
        mean_row(Claim("gain", "Table 2", "number", 0.1, 0.0), [0.150, 0.151]),
    )
    meta = {
        "full": False,
        "seed": 0,
        "runs": 2,
        "slots": None,
        "sizes": "16 slots",
        "seconds": 1.0,
        "versions": versions(),
    }
    made = [
        _result("esdp-fig8", "ESDP paper, Fig. 8", "g", rows, panel, pd.DataFrame({"seed": [0, 1]}), meta),
        _result("opm-fig3", "OPM paper, Fig. 3", "steps", rows[:1], panel, pd.DataFrame(), meta),
    ]
    for each in made:
        each.save(folder / each.meta["experiment"])
    asked = {"full": False, "seed": 0, "runs": 2, "slots": None}
    write_overview(folder, made, [*(each.meta["experiment"] for each in made), *missing], asked)
    return folder


def _result(name, place, shows, rows, panel, runs, meta):
    table = pd.DataFrame([row.to_dict() for row in rows])
    table.insert(0, "experiment", name)
    tables = {"table": table, "lines": lines_table([panel]), "runs": runs}
    about = {"experiment": name, "place": place, "shows": shows, **meta}
    return Result("experiment", tables, meta=about, outcome=verdict_counts(table))
