"""The evaluation of the OPM paper: Table I and Figs. 1 to 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps

import numpy as np
import pandas as pd

from marketsched.comparisons.comparing import Comparison
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
    "the load is read off Fig. 1b: under fair 3 % of the jobs, up to 2 % more or less, leave a tenth of their budget"
)
CHEAP = "costs against utilities follow from stays, which the paper does not state"
ALIKE = (
    "all machines follow one law here as in the paper's text, so that a machine's past says nothing that lasts: "
    "there is nothing to estimate"
)


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs come: per slot and 200 machines, half of them under light load as in the paper, and for how long.

    ``words`` are empty for the paper's load.
    """

    words: str
    heavy: float
    slots: int

    def length(self, bench: Bench) -> int:
        """Return the number of slots; at least so many that a job comes in."""
        return max(bench.length(self.slots, 50000), math.ceil(7.5 / self.heavy))

    def compared(self, bench: Bench, beta: float, policies: Sequence[str], *, light: bool = False) -> Comparison:
        """Return the policies in the worlds of all seeds."""
        machines = 1000 if bench.full else 200
        jobs = self.heavy * (0.5 if light else 1.0) * machines / 200
        sizes = [f"cluster.jobs.per_slot={jobs}", f"cluster.machines.machines={machines}"]
        return bench.compared(NAME, [f"cluster.jobs.exponent={beta}", *sizes], policies, self.length(bench))

    def sizes(self, bench: Bench) -> str:
        """Return the settings in words."""
        return f"{1000 if bench.full else 200} machines, {self.length(bench)} slots, {self.heavy:g} jobs a slot and 200"


# Fig. 1b: 3 % of the jobs spend less than 90 % of their budget under fair and under deadline-aware.
PINNED = Load("", 0.0075, 4000)
CROWDED = Load("133 times the load, 1,000 slots", 1.0, 1000)


def _both(play: Callable[[Bench, Load], Found]) -> Callable[[Bench], Found]:
    """Make an experiment of a function of a load: at that of Fig. 1b, and beside it where jobs crowd."""

    @wraps(play)
    def played(bench: Bench) -> Found:
        return beside(play(bench, PINNED), play(bench, CROWDED), CROWDED.words)

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


@experiment("opm-fig1", "OPM paper, Fig. 1", "cost over utility, and budgets spent")
@_both
def _figure_1(bench: Bench, at: Load) -> Found:
    """Jobs by cost over utility and by the share of the budget spent."""
    found = at.compared(bench, 0.5, POLICIES)
    rows, panels = [], []
    costs, budgets = {BLIND: 0.72, FAIR: 0.65, DEADLINE: 0.65}, {FAIR: 0.03, DEADLINE: 0.03}
    measures = (
        ("cost", "utility", 50.0, "cost below 50 times the utility", "Fig. 1a", costs, 0.9, CHEAP),
        ("cost", "budget", 0.9, "less than 90 % of the budget spent", "Fig. 1b", budgets, 0.2, PINNED_WHY),
    )
    for above, below, limit, words, source, others, own, why in measures:
        shares = {policy: _share(found, policy, above, below, limit) for policy in POLICIES}
        rows.append(
            mean_row(Claim(f"OPM, share of jobs with {words}", source, "above", own, own, why=why), shares[LEAD])
        )
        for policy, paper in others.items():
            text = f"share of jobs with {words}, OPM less {policy} (paper: more than {own:g} and {paper:g})"
            claim = Claim(
                text, source, "number", own - paper, 0.0, 0.005, f"{why}; {ALIKE}" if policy == BLIND else why
            )
            rows.append(mean_row(claim, shares[LEAD] - shares[policy]))
        best = np.max([shares[policy] for policy in POLICIES[1:]], axis=0)
        claim = Claim(f"share of jobs with {words}, OPM less the best other", source, "above", 0.0, 0.0, why=why)
        rows.append(mean_row(claim, shares[LEAD] - best))
        panels.append(_distributions(found.jobs, above, below, limit, source))
    for policy in (FAIR, DEADLINE):
        text, why = f"{policy}, share of jobs with less than 90 % of the budget spent", "the load is chosen by it"
        claim = Claim(text, "Fig. 1b", "number", 0.03, math.nan, 0.02, PINNED_WHY, why)
        rows.append(mean_row(claim, shares[policy]))
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
@_both
def _figure_3(bench: Bench, at: Load) -> Found:
    """The primal step against migrations."""
    steps = (0.6, 6)
    small, large = policies = [f"{LEAD}:primal_step={step}" for step in steps]
    found = at.compared(bench, 0.8, [*policies, FAIR])
    own = {policy: totals(found, policy) / totals(found, FAIR) for policy in policies}
    moved = {policy: totals(found, policy, "migrations") / found.meta["machines"] for policy in policies}
    drawn = f"{JOBS}; at the load of Fig. 1b half of the machines change hands in a slot, where jobs crowd nearly all"
    rows = []
    for policy, gain, share in ((small, 1.40, 0.20), (large, 1.17, 0.03)):
        claim = Claim(f"{policy} / fair, utility", "Section VI, Fig. 3a", "number", gain, 1.0, 0.005, JOBS)
        rows.append(ratio_row(claim, totals(found, policy), totals(found, FAIR)))
        claim = Claim(f"{policy}, share of machines migrated", "Fig. 3b", "number", share, math.nan, 0.005, drawn)
        rows.append(mean_row(claim, moved[policy]))
    for text, values, paper in (("OPM / fair", own, 0.17 - 0.40), ("migrations", moved, 0.03 - 0.20)):
        claim = Claim(f"{text}, step {steps[1]} less step {steps[0]}", "Fig. 3", "number", paper, 0.0, 0.01, drawn)
        rows.append(mean_row(claim, values[large] - values[small]))
    rate = [_mean_lines(text, steps, values) for text, values in (("OPM / fair", own), ("migrations", moved))]
    return Found(rows, [Panel("primal step", "step", "", rate)], at.sizes(bench), found.runs)


def _mean_lines(label: str, steps: tuple[float, ...], values: dict[str, Array]) -> Line:
    """Return means against the step."""
    return mean_line(label, steps, list(values.values()))
