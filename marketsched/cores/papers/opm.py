"""The evaluation of the OPM paper: Table I and Figs. 1 to 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps

import numpy as np
import pandas as pd

from marketsched.comparisons.comparing import Comparison
from marketsched.mechanisms.allocation.opm.primal_dual import theory_steps
from marketsched.papers.claims import CheckedClaim, Claim, mean_row, ratio_row
from marketsched.papers.runs import (
    Array,
    Bench,
    Found,
    Line,
    Panel,
    beside,
    experiment,
    key_panel,
    leads,
    mean_line,
    stacked,
    totals,
)

LEAD, BLIND, FAIR, DEADLINE = POLICIES = ("opm", "opm:estimate=false", "fair", "deadline-aware")
NAME = "opm-default"
JOBS = "jobs are drawn here, in the paper recorded; their stays are not stated"
PINNED_WHY = (
    "the load is read off Fig. 1b: under fair and deadline-aware 3 % of the jobs, up to 2 % more or less, leave a "
    "tenth of their budget"
)
KEPT, CALM = "one uniform number a machine kept for all draws", "a hundredth of Theorem 3's dual step"
CHEAP = "costs against utilities follow from stays, which the paper does not state"
ALIKE = (
    "all machines follow one law here as in the paper's text, so that a machine's past says nothing that lasts: "
    "there is nothing to estimate"
)


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs come a slot and 1,000 machines, half of them under light load as in the paper; and the sizes.

    ``words`` are empty for the paper's load.
    """

    words: str
    heavy: float
    machines: int
    slots: int

    def length(self, bench: Bench) -> int:
        """Return the number of slots; at least so many that a few jobs come in."""
        return max(bench.length(self.slots, 50000), math.ceil(8 / self.per_slot(bench)))

    def wide(self, bench: Bench) -> int:
        """Return the number of machines."""
        return 1000 if bench.full else self.machines

    def per_slot(self, bench: Bench) -> float:
        """Return the jobs a slot under heavy load."""
        return self.heavy * self.wide(bench) / 1000

    def compared(self, bench: Bench, beta: float, policies: Sequence[str], *, light: bool = False) -> Comparison:
        """Return the policies in the worlds of all seeds."""
        jobs = self.per_slot(bench) * (0.5 if light else 1.0)
        sizes = [f"cluster.jobs.per_slot={jobs:g}", f"cluster.machines.machines={self.wide(bench)}"]
        return bench.compared(NAME, [f"cluster.jobs.exponent={beta}", *sizes], policies, self.length(bench))

    def sizes(self, bench: Bench) -> str:
        """Return the settings in words."""
        return f"{self.wide(bench)} machines, {self.length(bench)} slots, {self.per_slot(bench):g} jobs a slot"


# Fig. 1b: 3 % of the jobs spend less than 90 % of their budget under fair and under deadline-aware.
PINNED = Load("", 0.054, 1000, 4000)
CROWDED = Load("93 times the load", 5.0, 200, 1000)
SPARSE = Load("0.46 times the load", 0.025, 200, 4000)


def _both(play: Callable[[Bench, Load], Found]) -> Callable[[Bench], Found]:
    """Make an experiment of a function of a load: at that of Fig. 1b, and beside it where jobs crowd."""

    @wraps(play)
    def played(bench: Bench) -> Found:
        return beside(play(bench, PINNED), {CROWDED.words: play(bench, CROWDED)})

    return played


# Table I of the paper: utilities of OPM, without estimation, fair, deadline-aware. Fair at 0.7 is printed as
# 1.29e5; the text (30 %) has 1.29e6.
TABLE_1 = {0.5: (2.23, 2.06, 2.02, 2.00), 0.6: (6.18, 5.67, 5.09, 5.08), 0.7: (1.71, 1.54, 1.29, 1.28)}


@experiment("opm-table1", "OPM paper, Table I", "utility under all schemes")
@_both
def _table_1(bench: Bench, at: Load) -> Found:
    """Utility under all schemes."""
    found = {beta: at.compared(bench, beta, POLICIES) for beta in TABLE_1}
    rows = []
    for beta, each in found.items():
        printed = TABLE_1[beta]
        for policy, utility in zip(POLICIES[1:], printed[1:], strict=True):
            (paper, rounding), why = _ratio(printed[0], utility), ALIKE if policy == BLIND else JOBS
            claim = Claim(f"OPM / {policy}, utility, beta = {beta}", "Table I", "number", paper, 1.0, rounding, why)
            rows.append(ratio_row(claim, totals(each, LEAD), totals(each, policy)))
    gains = {beta: totals(each, LEAD) / totals(each, FAIR) for beta, each in found.items()}
    (low, open_low), (high, open_high) = (_ratio(TABLE_1[beta][0], TABLE_1[beta][2]) for beta in (0.5, 0.7))
    text = "OPM / fair, utility, beta = 0.7 less 0.5"
    claim = Claim(text, "Section VI, Table I", "number", high - low, 0.0, open_low + open_high, JOBS)
    rows.append(mean_row(claim, gains[0.7] - gains[0.5]))
    panel = key_panel("utility", "beta", list(found), list(found.values()), "utility per slot")
    return Found(rows, [panel], at.sizes(bench), stacked("beta", list(found), list(found.values())))


def _ratio(above: float, below: float) -> tuple[float, float]:
    """Return the ratio of two printed numbers, and how much their three digits leave open."""
    return above / below, above / below * 0.005 * (1 / above + 1 / below)


def _share(found: Comparison, policy: str, above: str, below: str, limit: float) -> Array:
    """Return the share of jobs with ``above / below`` under a limit, seed by seed; jobs without work left out."""
    jobs = found.jobs[(found.jobs["policy"] == policy) & (found.jobs[below] > 0)]
    under = (jobs[above] / jobs[below] < limit).groupby(jobs["seed"]).mean()
    return np.asarray(under.sort_index(), dtype=np.float64)


def _costs(found: Comparison, policy: str) -> Array:
    """Return what all jobs spent, seed by seed."""
    own = found.jobs[found.jobs["policy"] == policy]
    return np.asarray(own.groupby("seed")["cost"].sum().sort_index(), dtype=np.float64)


@experiment("opm-fig1", "OPM paper, Fig. 1", "cost over utility, and budgets spent")
@_both
def _figure_1(bench: Bench, at: Load) -> Found:
    """Jobs by cost over utility and by the share of the budget spent."""
    found = at.compared(bench, 0.5, POLICIES)
    rows, panels = [], []
    costs, budgets = {BLIND: 0.72, FAIR: 0.65, DEADLINE: 0.65}, {FAIR: 0.03, DEADLINE: 0.03}
    pinned = (PINNED_WHY, "the load is chosen by it")
    measures = (
        ("cost", "utility", 50.0, "cost below 50 times the utility", "Fig. 1a", costs, 0.9, 0.005, (CHEAP, "")),
        ("cost", "budget", 0.9, "less than 90 % of the budget spent", "Fig. 1b", budgets, 0.2, 0.02, pinned),
    )
    for above, below, limit, words, source, others, own, rounding, (why, setting) in measures:
        shares = {policy: _share(found, policy, above, below, limit) for policy in POLICIES}
        rows.append(
            mean_row(Claim(f"OPM, share of jobs with {words}", source, "above", own, own, why=why), shares[LEAD])
        )
        for policy, paper in others.items():
            text, because = f"{policy}, share of jobs with {words}", f"{why}; {ALIKE}" if policy == BLIND else why
            claim = Claim(text, source, "number", paper, math.nan, rounding, because, setting)
            rows.append(mean_row(claim, shares[policy]))
        best = np.max([shares[policy] for policy in POLICIES[1:]], axis=0)
        claim = Claim(f"share of jobs with {words}, OPM less the best other", source, "above", 0.0, 0.0, why=why)
        rows.append(mean_row(claim, shares[LEAD] - best))
        panels.append(_distributions(found.jobs, above, below, limit, source))
    for policy in (FAIR, DEADLINE):
        claim = Claim(f"OPM / {policy}, cost of all jobs", "Section I (less computation costs)", "below", 1.0, 1.0)
        rows.append(ratio_row(claim, _costs(found, LEAD), _costs(found, policy)))
    return Found(rows, panels, at.sizes(bench), found.runs)


def _distributions(jobs: pd.DataFrame, above: str, below: str, limit: float, source: str) -> Panel:
    """Return the distribution over jobs of all seeds, up to four times the limit."""
    lines = []
    for policy in POLICIES:
        own = jobs[(jobs["policy"] == policy) & (jobs[below] > 0)]
        ratio = np.sort(np.asarray(own[above] / own[below]))
        x = np.linspace(0, min(4 * limit, 100), 200) if limit > 1 else np.linspace(0, 1.1, 200)
        lines.append(Line(policy, x.tolist(), (np.searchsorted(ratio, x) / max(ratio.size, 1)).tolist()))
    return Panel(source, f"{above} / {below}", "share of jobs", lines)


@experiment("opm-fig2", "OPM paper, Fig. 2", "utility functions under heavy and light load")
@_both
def _figure_2(bench: Bench, at: Load) -> Found:
    """OPM over fair under heavy and light load."""
    betas = bench.pick([0.5, 0.7, 0.9], [0.5, 0.6, 0.7, 0.8, 0.9])
    rows: list[CheckedClaim] = []
    panels, tables = [], []
    gains = {}
    for words, paper in (("heavy", 1.47), ("light", 1.56)):
        found = {beta: at.compared(bench, beta, POLICIES, light=words == "light") for beta in betas}
        for beta, each in found.items():
            gains[words, beta] = totals(each, LEAD) / totals(each, FAIR)
            text = f"best baseline / OPM, utility, beta = {beta}, {words} load"
            rows.append(leads(text, "Fig. 2", each, LEAD, [FAIR, DEADLINE], JOBS))
        claim = Claim(f"OPM / fair, utility, beta = 0.9, {words} load", "Section VI", "number", paper, 1.0, 0.005, JOBS)
        rows.append(ratio_row(claim, totals(found[0.9], LEAD), totals(found[0.9], FAIR)))
        panels.append(key_panel(f"{words} load", "beta", betas, list(found.values()), "utility per slot"))
        tables.append(stacked("beta", betas, list(found.values())).assign(load=words))
    text = "OPM / fair at beta = 0.9, light less heavy load"
    claim = Claim(text, "Section VI", "number", 0.09, 0.0, 0.01, JOBS)
    rows.append(mean_row(claim, gains["light", 0.9] - gains["heavy", 0.9]))
    return Found(rows, panels, at.sizes(bench), pd.concat(tables, ignore_index=True))


@experiment("opm-fig3", "OPM paper, Fig. 3", "primal step, utility and migrations")
def _figure_3(bench: Bench) -> Found:
    """The primal step against migrations, at the load of Fig. 1b, where jobs crowd, and at about half the load."""
    return beside(_steps(bench, PINNED), {at.words: _steps(bench, at) for at in (CROWDED, SPARSE)})


def _steps(bench: Bench, at: Load) -> Found:
    """Compare two primal steps; and, with the small one, what holds machines where they are."""
    steps = (0.6, 6)
    small, large = policies = [f"{LEAD}:primal_step={step}" for step in steps]
    calm = f"{small}:dual_step={theory_steps(at.wide(bench), at.length(bench))[1] / 100:.2g}"
    held = {f"{small}:redraw=false": KEPT, calm: CALM, f"{calm}:redraw=false": f"{KEPT}, {CALM}"}
    found = at.compared(bench, 0.8, [*policies, *held, FAIR])
    own = {policy: totals(found, policy) / totals(found, FAIR) for policy in policies}
    moved = {policy: totals(found, policy, "migrations") / found.meta["machines"] for policy in (*policies, *held)}
    kept, slow, both = (float(moved[policy].mean()) for policy in held)
    swing = (
        f"{JOBS}; shares swing from slot to slot: {kept:.2f} of the machines move with {KEPT}, {slow:.2f} with {CALM}, "
        f"{both:.2f} with both"
    )
    rows = []
    for policy, gain, share in ((small, 1.40, 0.20), (large, 1.17, 0.03)):
        claim = Claim(f"{policy} / fair, utility", "Section VI, Fig. 3a", "number", gain, 1.0, 0.005, JOBS)
        rows.append(ratio_row(claim, totals(found, policy), totals(found, FAIR)))
        claim = Claim(f"{policy}, share of machines migrated", "Fig. 3b", "number", share, math.nan, 0.005, swing)
        rows.append(mean_row(claim, moved[policy]))
    for text, values, paper in (("OPM / fair", own, 0.17 - 0.40), ("migrations", moved, 0.03 - 0.20)):
        claim = Claim(f"{text}, step {steps[1]} less step {steps[0]}", "Fig. 3", "number", paper, 0.0, 0.01, swing)
        rows.append(mean_row(claim, values[large] - values[small]))
    for policy, words in held.items():
        text = f"{policy}, share of machines migrated"
        rows.append(mean_row(Claim(text, "Fig. 3b", "number", 0.20, math.nan, 0.005, swing, words), moved[policy]))
    drawn = (("OPM / fair", own), ("migrations", {policy: moved[policy] for policy in policies}))
    rate = [_mean_lines(text, steps, values) for text, values in drawn]
    return Found(rows, [Panel("primal step", "step", "", rate)], at.sizes(bench), found.runs)


def _mean_lines(label: str, steps: tuple[float, ...], values: dict[str, Array]) -> Line:
    """Return means against the step."""
    return mean_line(label, steps, list(values.values()))
