"""The experiments: a name for every table and figure of the papers. Each stands beside the function that runs it."""

from __future__ import annotations

import difflib

from marketsched.cores.papers import esdp, ogasched, opm
from marketsched.mechanisms.errors import UnknownNameError
from marketsched.papers import mechanism
from marketsched.papers.runs import REGISTERED, Experiment

EXPERIMENTS = {
    each.name: each
    for paper in (ogasched, mechanism, esdp, opm)
    for each in REGISTERED
    if each.play.__module__ == paper.__name__
}


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
