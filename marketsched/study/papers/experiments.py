"""The experiments: a name for every table and figure of the papers, and what runs it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass

from marketsched.mechanisms.errors import UnknownNameError
from marketsched.study.papers.runs import Bench, Found

SEEDS = 20


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure: its name here, its name in the paper, what it shows, and what runs it."""

    name: str
    place: str
    shows: str
    run: str  # module:function of this package
    runs: int = SEEDS  # seeds by default
    timed: bool = False  # measures time: figures differ from run to run and machine to machine

    def function(self) -> Callable[[Bench], Found]:
        """Return what runs it."""
        module, name = self.run.split(":")
        found: Callable[[Bench], Found] = getattr(importlib.import_module(f"marketsched.study.papers.{module}"), name)
        return found


OGA, MECH, ESDP, OPM = "OgaSched paper", "mechanism paper", "ESDP paper", "OPM paper"
_E = Experiment
_ALL = (
    _E(
        "ogasched-fig2",
        f"{OGA}, Fig. 2",
        "average reward over time, gains over the baselines",
        "ogasched:figure_2",
    ),
    _E("ogasched-fig3a", f"{OGA}, Fig. 3(a)", "number of instances", "ogasched:figure_3a"),
    _E("ogasched-fig3b", f"{OGA}, Fig. 3(b)", "number of job types", "ogasched:figure_3b"),
    _E("ogasched-fig3c", f"{OGA}, Fig. 3(c)", "contention", "ogasched:figure_3c"),
    _E("ogasched-fig4", f"{OGA}, Fig. 4", "learning rate and decay", "ogasched:figure_4"),
    _E("ogasched-fig5", f"{OGA}, Fig. 5", "a large cluster", "ogasched:figure_5"),
    _E("ogasched-fig6", f"{OGA}, Fig. 6", "gain and overhead under contention", "ogasched:figure_6"),
    _E("ogasched-fig7", f"{OGA}, Fig. 7", "kinds of utilities", "ogasched:figure_7"),
    _E("ogasched-table2", f"{OGA}, Table 2", "horizon, arrival probability, density", "ogasched_table:table_2"),
    _E(
        "mechanism-truthfulness",
        f"{MECH}, Theorem 3.2",
        "certificates and a search for lies that pay",
        "mechanism:truthfulness",
        3,
    ),
    _E(
        "mechanism-ratio",
        f"{MECH}, Theorems 4.1, 5.1, 5.2",
        "best welfare over welfare, against the constants",
        "mechanism:ratio",
    ),
    _E(
        "mechanism-lemma43",
        f"{MECH}, Lemma 4.3",
        "how often failures exceed delta, against (17)",
        "mechanism:lemma_43",
        40,
    ),
    _E(
        "mechanism-sampling",
        f"{MECH}, Lemma F.1",
        "estimates of failure probabilities, against (28)",
        "mechanism:sampling",
    ),
    _E("mechanism-toy", f"{MECH}, Section 1.1", "reservations against statements of work", "mechanism:toy"),
    _E(
        "esdp-fig2",
        f"{ESDP}, Figs. 2 to 4",
        "average utility over time, gains over the baselines",
        "esdp:figure_2",
    ),
    _E("esdp-fig5", f"{ESDP}, Fig. 5", "computing time of a slot", "esdp_times:figure_5", timed=True),
    _E("esdp-fig6", f"{ESDP}, Fig. 6", "capacity", "esdp:figure_6"),
    _E("esdp-fig7", f"{ESDP}, Fig. 7", "the relaxation delta", "esdp:figure_7"),
    _E("esdp-fig8", f"{ESDP}, Fig. 8", "the exploration g", "esdp:figure_8"),
    _E("esdp-fig9", f"{ESDP}, Fig. 9", "arrival probability", "esdp:figure_9"),
    _E("esdp-fig10", f"{ESDP}, Fig. 10", "density of the graph", "esdp:figure_10"),
    _E("esdp-fig11", f"{ESDP}, Fig. 11", "number of job types", "esdp:figure_11"),
    _E("esdp-fig12", f"{ESDP}, Fig. 12", "number of servers", "esdp:figure_12"),
    _E("esdp-fig13", f"{ESDP}, Fig. 13", "horizon", "esdp:figure_13"),
    _E("opm-table1", f"{OPM}, Table I", "utility under all schemes", "opm:table_1"),
    _E("opm-fig1", f"{OPM}, Fig. 1", "cost over utility, and budgets spent", "opm:figure_1"),
    _E("opm-fig2", f"{OPM}, Fig. 2", "utility functions under heavy and light load", "opm:figure_2"),
    _E("opm-fig3", f"{OPM}, Fig. 3", "primal step, utility and migrations", "opm:figure_3"),
)
EXPERIMENTS = {each.name: each for each in _ALL}


def experiment_of(name: str) -> Experiment:
    """Return the experiment of this name.

    Raises
    ------
    UnknownNameError
        If there is none; the message names those that are nearest.
    """
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name.lower().replace(" ", "-"), EXPERIMENTS, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"expected one of {', '.join(EXPERIMENTS)}"
        raise UnknownNameError(f"experiment {name!r} is unknown: {hint}")
    return EXPERIMENTS[name]
