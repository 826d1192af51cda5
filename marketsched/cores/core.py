"""The allocation cores, one description each: play, comparison, results, figures and audits are the same for all.

What stands here are names and words; what is large is named as text, so that a command imports its own core alone. The
section of a core draws its world (`marketsched.cores.worlds`), which makes environments, policies and games of owners.
"""

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
class Core:
    """One allocation core."""

    name: str  # as a scenario writes it
    section: str  # class of its section ``cluster``, as ``module:class``
    given: tuple[str, ...]  # what it gives to a policy that takes it
    payments: tuple[str, ...]  # what owners can be charged by; ``none`` first
    goal: str  # what policies maximise
    star: str  # the reference in short and in full
    reference: str
    remark: str  # description of the reference; ``{gap}`` is replaced by its certified gap in per cent
    seeds: str  # description of the draws of each seed
    world: str  # the world of the first seed in long and in short; names of ``meta`` in braces
    sizes: str
    columns: tuple[FigureColumn, ...]  # figures beside the goal
    bound: str = ""  # name of the theory's bound on regret
    grows: bool = True  # whether growth of regret is measured at shorter horizons
    pair: tuple[str, ...] = ()  # two measures that a sweep draws beside each other; empty: none
    baseline: str = ""  # name of the policy whose total divides all others, if it takes part; empty: none
    # whether the goal's sum over slots counts against the reference; else column ``earned`` alone does
    summed: bool = True


OGASCHED = Core(
    name="ogasched",
    section="marketsched.cores.sections.ogasched:OgaSchedCluster",
    given=("cluster", "horizon", "rng"),
    payments=("none", "capacity prices"),
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

ESDP = Core(
    name="esdp",
    section="marketsched.cores.sections.esdp:EsdpCluster",
    given=("channels", "requests", "capacities", "ports", "n_ports", "costs", "memory_limit", "rng"),
    payments=("none", "displaced utility"),
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

OPM = Core(
    name="opm",
    section="marketsched.cores.sections.opm:OpmCluster",
    given=("prices", "horizon", "rates", "capacities", "rng"),
    payments=("none", "displaced work", "spending"),
    goal="utility",
    star="optimum",
    reference="optimum at mean rates",
    remark="the optimum is that of OPM (6): jobs known, every machine always at its mean rate, shares instead of whole "
    "machines; its objective found to {gap} %. Regret counts as it does, a job's utility of its work a slot times its "
    "slots; the utility shown is that of all work (P1), another figure. A policy that observes the machines may beat "
    "it",
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
    summed=False,
)

CORES = {core.name: core for core in (OGASCHED, ESDP, OPM)}
DEFAULT = OGASCHED.name  # of a section, and of a policy, that names none
