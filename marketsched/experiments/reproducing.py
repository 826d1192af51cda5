"""Every table and figure of the four papers as a named experiment: paper's number, ours, spread, verdict."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from marketsched.experiments.paper_runs import Bench, Found, Panel
from marketsched.mechanisms.checks import whole_parameter
from marketsched.mechanisms.errors import UnknownNameError
from marketsched.running import checked_seed, versions

if TYPE_CHECKING:
    from marketsched.experiments.paper_claims import Row

Progress = Callable[[int, int, str], None]  # experiments finished, experiments in all, what is being run
SEEDS = 20


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure: its name here, its name in the paper, what it shows, and what runs it."""

    name: str
    place: str
    shows: str
    run: str  # module:function of this package
    runs: int = SEEDS  # seeds by default

    def function(self) -> Callable[[Bench], Found]:
        """Return what runs it."""
        module, name = self.run.split(":")
        found: Callable[[Bench], Found] = getattr(importlib.import_module(f"marketsched.experiments.{module}"), name)
        return found


OGA, MECH, ESDP, OPM = "OgaSched paper", "mechanism paper", "ESDP paper", "OPM paper"
_E = Experiment
_ALL = (
    _E(
        "ogasched-fig2",
        f"{OGA}, Fig. 2",
        "average reward over time, gains over the baselines",
        "paper_ogasched:figure_2",
    ),
    _E("ogasched-fig3a", f"{OGA}, Fig. 3(a)", "number of instances", "paper_ogasched:figure_3a"),
    _E("ogasched-fig3b", f"{OGA}, Fig. 3(b)", "number of job types", "paper_ogasched:figure_3b"),
    _E("ogasched-fig3c", f"{OGA}, Fig. 3(c)", "contention", "paper_ogasched:figure_3c"),
    _E("ogasched-fig4", f"{OGA}, Fig. 4", "learning rate and decay", "paper_ogasched:figure_4"),
    _E("ogasched-fig5", f"{OGA}, Fig. 5", "a large cluster", "paper_ogasched:figure_5"),
    _E("ogasched-fig6", f"{OGA}, Fig. 6", "gain and overhead under contention", "paper_ogasched:figure_6"),
    _E("ogasched-fig7", f"{OGA}, Fig. 7", "kinds of utilities", "paper_ogasched:figure_7"),
    _E("ogasched-table2", f"{OGA}, Table 2", "horizon, arrival probability, density", "paper_ogasched:table_2"),
    _E(
        "mechanism-truthfulness",
        f"{MECH}, Theorem 3.1",
        "certificates and a search for lies that pay",
        "paper_mechanism:truthfulness",
        3,
    ),
    _E(
        "mechanism-ratio",
        f"{MECH}, Theorems 4.1, 5.1, 5.2",
        "best welfare over welfare, against the constants",
        "paper_mechanism:ratio",
    ),
    _E(
        "mechanism-lemma43",
        f"{MECH}, Lemma 4.3",
        "how often failures exceed delta, against (17)",
        "paper_mechanism:lemma_43",
        40,
    ),
    _E(
        "mechanism-sampling",
        f"{MECH}, Section 3",
        "estimates of failure probabilities, against (28)",
        "paper_mechanism:sampling",
    ),
    _E("mechanism-toy", f"{MECH}, Section 1.1", "reservations against statements of work", "paper_mechanism:toy"),
    _E(
        "esdp-fig2",
        f"{ESDP}, Figs. 2 to 4",
        "average utility over time, gains over the baselines",
        "paper_esdp:figure_2",
    ),
    _E("esdp-fig6", f"{ESDP}, Fig. 6", "capacity", "paper_esdp:figure_6"),
    _E("esdp-fig7", f"{ESDP}, Fig. 7", "the relaxation delta", "paper_esdp:figure_7"),
    _E("esdp-fig8", f"{ESDP}, Fig. 8", "the exploration g", "paper_esdp:figure_8"),
    _E("esdp-fig9", f"{ESDP}, Fig. 9", "arrival probability", "paper_esdp:figure_9"),
    _E("esdp-fig10", f"{ESDP}, Fig. 10", "density of the graph", "paper_esdp:figure_10"),
    _E("esdp-fig11", f"{ESDP}, Fig. 11", "number of job types", "paper_esdp:figure_11"),
    _E("esdp-fig12", f"{ESDP}, Fig. 12", "number of servers", "paper_esdp:figure_12"),
    _E("esdp-fig13", f"{ESDP}, Fig. 13", "horizon", "paper_esdp:figure_13"),
    _E("opm-table1", f"{OPM}, Table I", "utility under all schemes", "paper_opm:table_1"),
    _E("opm-fig1", f"{OPM}, Fig. 1", "cost over utility, and budgets spent", "paper_opm:figure_1"),
    _E("opm-fig2", f"{OPM}, Fig. 2", "utility functions under heavy and light load", "paper_opm:figure_2"),
    _E("opm-fig3", f"{OPM}, Fig. 3", "primal step, utility and migrations", "paper_opm:figure_3"),
)
EXPERIMENTS = {each.name: each for each in _ALL}


@dataclass(frozen=True, slots=True, eq=False)
class Reproduced:
    """One experiment that was run.

    ``table`` has one row per claim: ``experiment, quantity, source, claim, paper, value, low, high,
    least, most, seeds, verdict, reason``; ``runs`` what it was computed from.
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
        words = ("reproduced", "same direction", "not reproduced")
        return {word: sum(row.verdict == word for row in self.rows) for word in words}

    def figure(self) -> Any:
        """Return the picture, a matplotlib figure."""
        from marketsched.experiments.paper_figures import experiment_figure

        return experiment_figure(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the runs as plain data, NaN as None."""
        from marketsched.output import plain

        rows = [row.to_dict() for row in self.rows]
        found: dict[str, Any] = plain({"experiment": self.name, "place": self.place, "claims": rows, "meta": self.meta})
        return found


def experiment_of(name: str) -> Experiment:
    """Return the experiment of this name.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    if name not in EXPERIMENTS:
        raise UnknownNameError(f"experiment {name!r} is unknown: expected one of {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def reproduce(
    name: str,
    *,
    full: bool = False,
    runs: int | None = None,
    slots: int | None = None,
    seed: int = 0,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
    bench: Bench | None = None,
) -> Reproduced:
    """Run one table or figure of a paper, and hold it against the paper's numbers.

    Parameters
    ----------
    name : str
        As listed by ``marketsched reproduce --list``.
    full : bool
        The paper's sizes; may take hours.
    runs : int, optional
        Seeds ``seed .. seed + runs - 1``, at least 2; None: 20, or what the experiment says.
    slots : int, optional
        In place of the experiment's own number of slots.
    seed : int
        The first seed, >= 0.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    out : path, optional
        Folder for table, figure and runs; None: nothing is written.
    force : bool
        Replace earlier results in that folder.
    progress : function of str, optional
        Told what is being run.
    bench : Bench, optional
        One that an earlier experiment has used: what it ran need not be run again.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a number or the name is at fault.
    OSError
        If results cannot be written.

    Examples
    --------
    >>> found = reproduce("mechanism-toy", runs=2)
    >>> found.table["verdict"].iloc[0]
    'reproduced'
    """
    chosen = experiment_of(name)
    n_runs = chosen.runs if runs is None else whole_parameter("runs", runs, 2)
    length = None if slots is None else whole_parameter("slots", slots, 8)
    if out is not None:
        from marketsched.output import check_target

        check_target(Path(out), force=force)
    used = Bench(full, n_runs, checked_seed(seed), length, data) if bench is None else bench
    used.runs = n_runs
    used.tell = progress or (lambda what: None)
    began = time.perf_counter()
    found = chosen.function()(used)
    meta = {
        "full": used.full,
        "seed": used.first,
        "runs": n_runs,
        "sizes": found.sizes,
        "confidence": 0.95,
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    made = Reproduced(name, chosen.place, chosen.shows, tuple(found.rows), tuple(found.panels), found.runs, meta)
    if out is not None:
        write_reproduced(Path(out), made, force=force)
    return made


def reproduce_all(
    names: Sequence[str],
    *,
    full: bool = False,
    runs: int | None = None,
    slots: int | None = None,
    seed: int = 0,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> list[Reproduced]:
    """Run several experiments; each is written, with a folder of its own in ``out``, as soon as it is finished."""
    for name in names:
        experiment_of(name)
    bench = Bench(full, SEEDS, checked_seed(seed), None if slots is None else whole_parameter("slots", slots, 8), data)
    found = []
    for i, name in enumerate(names):

        def tell(what: str, i: int = i, name: str = name) -> None:
            if progress is not None:
                progress(i, len(names), f"{name}: {what}")

        folder = None if out is None else Path(out) / name
        found.append(reproduce(name, runs=runs, out=folder, force=force, progress=tell, bench=bench))
    return found


def write_reproduced(folder: Path, made: Reproduced, *, force: bool = False) -> None:
    """Write the table (CSV, Parquet), the runs, the figure and ``meta.json`` into ``folder``, whole or not at all."""
    from marketsched.output import whole_folder, write_json, write_table
    from marketsched.plots import save_figure

    about = {"experiment": made.name, "seed": made.meta["seed"], "runs": made.meta["runs"]}
    with whole_folder(folder, force=force) as partial:
        write_table(made.table, partial / "table.parquet", about)
        made.table.to_csv(partial / "table.csv", index=False)
        if not made.runs.empty:
            write_table(made.runs, partial / "runs.parquet", about)
        save_figure(made.figure(), partial / "figure.png")
        write_json({"experiment": made.name, "place": made.place, **made.meta}, partial / "meta.json")
