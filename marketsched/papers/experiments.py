"""The experiments: a name for every table and figure of the papers. Each is beside the function that runs it."""

from __future__ import annotations

import difflib

from marketsched.mechanisms.errors import UnknownNameError
from marketsched.mechanisms.registry import get, names
from marketsched.papers.runs import REGISTERED, Experiment


def _all_experiments() -> dict[str, Experiment]:
    """Return the experiments of every paper by name; a paper's module registers its own when it is imported."""
    papers = [get("experiments", paper).__name__ for paper in names("experiments")]
    return {each.name: each for paper in papers for each in REGISTERED if each.play.__module__ == paper}


EXPERIMENTS = _all_experiments()


def experiment_of(name: str) -> Experiment:
    """Return the experiment of this name."""
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name.lower().replace(" ", "-"), EXPERIMENTS, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"expected one of {', '.join(EXPERIMENTS)}"
        raise UnknownNameError(f"experiment {name!r} is unknown: {hint}")
    return EXPERIMENTS[name]
