"""The labels of a core: its goal, its reference, and the figures of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """A figure beside the goal. ``kind``: ``slot``, shown per slot; ``total``, as it is; ``share``, in per cent."""

    name: str
    title: str
    kind: Literal["slot", "total", "share"] = "slot"

    @property
    def shown(self) -> str:
        """Column of a summary over seeds."""
        return f"{self.name}_per_slot" if self.kind == "slot" else self.name


@dataclass(frozen=True, slots=True)
class CoreLabels:
    """How one core is spoken of.

    Attributes
    ----------
    goal : str
        What policies maximise.
    star, reference : str
        The reference in short and in full.
    remark : str
        Description of the reference; ``{gap}`` is replaced by its certified gap in per cent.
    seeds : str
        Description of the draws of each seed.
    world, sizes : str
        The world of the first seed in long and in short; names of ``meta`` in braces.
    columns : tuple of Column
        Figures beside the goal.
    bound : str
        Name of the theory's bound on regret.
    grows : bool
        Whether growth of regret is measured at shorter horizons.
    pair : tuple of str
        Two measures that a sweep draws beside each other; empty: none.
    baseline : str
        Name of the policy whose total divides all others, if it takes part; empty: none.
    """

    goal: str
    star: str
    reference: str
    remark: str
    seeds: str
    world: str
    sizes: str
    columns: tuple[FigureColumn, ...]
    bound: str = ""
    grows: bool = True
    pair: tuple[str, ...] = ()
    baseline: str = ""


OGASCHED = CoreLabels(
    goal="reward",
    star="y*",
    reference="best fixed allocation",
    remark="y* is the best allocation in hindsight that never changes, certified to {gap} %; a policy that "
    "sees the arrivals may beat it",
    seeds="a cluster and arrivals",
    world="{ports:,} ports, {instances:,} instances, {types} resources, {channels:,} channels, {slots:,} slots, "
    "{jobs_per_slot:.3g} jobs a slot",
    sizes="{ports:,} ports, {instances:,} instances, {types} resources, {slots:,} slots",
    columns=(FigureColumn("gain", "gain"), FigureColumn("overhead", "overhead")),
    bound="OgaSched (14)",
    pair=("gain", "overhead"),
)

ESDP = CoreLabels(
    goal="utility",
    star="oracle",
    reference="oracle of the true means",
    remark="the oracle knows the true mean of every channel and uses the best ones of each slot, exactly; regret is "
    "that of mean utilities, ESDP (6)",
    seeds="arrivals, utilities and (where they are drawn) channels",
    world="{ports:,} ports, {servers:,} servers, {types} resources, {channels:,} channels, {slots:,} slots, "
    "{jobs_per_slot:.3g} jobs a slot; utility: {scaling}",
    sizes="{ports:,} ports, {channels:,} channels, {types} resources, {slots:,} slots",
    columns=(FigureColumn("used", "channels\nused"),),
)

OPM = CoreLabels(
    goal="utility",
    star="optimum",
    reference="optimum at mean rates",
    remark="the optimum is that of OPM (6): jobs known, every machine always at its mean rate, shares instead of whole "
    "machines; its objective found to {gap} %. Regret is OPM (6). A policy that observes the machines may beat it",
    seeds="jobs, speeds and (where they are drawn) machines",
    world="{machines:,} machines, {jobs:,} jobs, {open_jobs:.3g} of them in the cluster on average, {slots:,} slots; "
    "machines available {available:.1%} of the time, prices {lowest_price:.3g} to {highest_price:.3g}",
    sizes="{machines:,} machines, {jobs:,} jobs, {slots:,} slots",
    columns=(
        FigureColumn("work", "work"),
        FigureColumn("cost", "cost"),
        FigureColumn("budget_share", "budget\nspent, %", "share"),
        FigureColumn("fit", "Fit_T", "total"),
        FigureColumn("migrations", "migra-\ntions"),
    ),
    grows=False,
    pair=("work", "migrations"),
    baseline="fair",
)

LABELS = {"ogasched": OGASCHED, "esdp": ESDP, "opm": OPM}  # by the name of the core
