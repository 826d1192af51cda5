"""The evaluation of the ESDP paper: Figs. 2 to 4 and 6 to 13; Fig. 5, computing time, is in `paper_esdp_times`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from marketsched.study.papers.claims import Claim, Kind, Row, ratio_row
from marketsched.study.papers.runs import (
    Bench,
    Found,
    curve_panel,
    key_panel,
    leads,
    rises,
    stacked,
    totals,
)

LEAD = "esdp"
HAUF, LCF, LWTF = BASELINES = ("highest-utility-first", "lowest-cost-first", "longest-waiting-first")
POLICIES = (LEAD, *BASELINES)
NAME = "esdp-default"
INSTANCE = "cluster.instance"
SLOW = "with the paper's g ESDP explores for long: it gets ahead later than in the paper"
IDLE = f"capacity that ESDP plans for ports without a job lies idle; {SLOW}"
WHOLE = "Table 3's capacity is of the whole cluster: a few jobs fill it, whoever else is there"
MORE = f"more channels take longer to explore, and {WHOLE}"
ALWAYS = "Section 4.3 (whatever the settings)"


def figure_2(bench: Bench) -> Found:
    """Average utility over time and ESDP's gains: Figs. 2, 3 and 4."""
    slots = bench.length(4000, 8000)
    found = bench.compared(NAME, [], POLICIES, slots)
    why = "the paper's are the largest gains along one run ('up to'), here the gain over all slots of every seed"
    rows = []
    for policy, gain in zip(BASELINES, (0.73, 0.36, 0.28), strict=True):
        words = f"ESDP / {policy}, utility of {slots} slots"
        claim = Claim(words, "Section 4.1, Fig. 2", "number", 1 + gain, 1.0, 0.005, why)
        rows.append(ratio_row(claim, totals(found, LEAD), totals(found, policy)))
    curves = found.curves.pivot_table(index="slot", columns=["policy", "seed"], values="average_reward")
    early, quarter = (curves.index[int(np.searchsorted(curves.index, slots / part))] for part in (20, 4))
    whens = (early, quarter, slots)
    at = {when: {p: np.asarray(curves[p].loc[when], dtype=float) for p in POLICIES} for when in whens}
    first, later, end = (at[when][LEAD] for when in whens)
    claim = Claim(f"{HAUF} / ESDP, average utility so far at slot {early}", "Section 4.1", "above", 1.0, 1.0)
    rows.append(ratio_row(claim, at[early][HAUF], first))
    ahead = {when: own[LEAD] - own[HAUF] for when, own in at.items()}
    text = f"ESDP less {HAUF}, average utility at the end less that at a quarter of the slots, share of ESDP's"
    rows.append(rises(text, "Section 4.1, Fig. 3", ahead[quarter], ahead[slots], end))
    text = "ESDP, average utility at the end less that at a quarter of the slots, share of it"
    rows.append(rises(text, "Fig. 4", later, end, end))
    text = "ESDP, rise of the average utility up to a quarter of the slots less that after it, share of the last"
    rows.append(rises(text, "Fig. 4", end - later, later - first, end, why=SLOW))
    best = np.max([at[slots][policy] - at[early][policy] for policy in BASELINES], axis=0)
    text = f"highest rise of a baseline's average utility from slot {early} to the end less ESDP's, share of ESDP's"
    rows.append(rises(text, "Fig. 4", end - first, best, end, falls=True))
    panel = curve_panel(found, "average utility so far", POLICIES, "utility per slot")
    return Found(rows, [panel], f"{slots} slots", found.runs)


def _over(
    bench: Bench, key: str, words: str, values: Sequence[Any], source: str, slots: int, why: str = SLOW
) -> tuple[Found, Callable[[Any, str], Any]]:
    """Compare for each value of a key; return a finding with the row that ESDP leads at each, and the totals."""
    found = {value: bench.compared(NAME, [f"{key}={value}"], POLICIES, slots) for value in values}
    rows: list[Row] = [
        leads(f"best baseline / ESDP, {words} {value}", source, each, LEAD, BASELINES, why)
        for value, each in found.items()
    ]
    panel = key_panel(f"effect of {words}", words, values, list(found.values()), "utility per slot")
    made = Found(rows, [panel], f"{slots} slots", stacked(words, values, list(found.values())))
    return made, lambda value, policy: totals(found[value], policy)


def figure_6(bench: Bench) -> Found:
    """More capacity: a larger solution space."""
    values, slots = (2, 4, 8), bench.length(1000, 2000)
    made, total = _over(bench, f"{INSTANCE}.capacity", "capacity", values, f"Fig. 6, {ALWAYS}", slots)
    scale = total(8, LEAD)
    for policy in POLICIES:
        text = f"{policy}, utility at capacity 8 less that at 2, share of ESDP's"
        made.rows.append(rises(text, "Fig. 6", total(2, policy), total(8, policy), scale))
    growth = {policy: total(8, policy) - total(2, policy) for policy in POLICIES}
    best = np.max([growth[policy] for policy in BASELINES], axis=0)
    text = "growth of ESDP less the highest growth of a baseline, share of ESDP's utility"
    made.rows.append(rises(text, "Fig. 6", best, growth[LEAD], scale, why=SLOW))
    return made


def figure_7(bench: Bench) -> Found:
    """The relaxation delta: little effect, read as within 5 %."""
    values, slots = ("log", "loglog", "logloglog"), bench.length(2000, 2000)
    rows: list[Row] = []
    kind: Kind
    policies = [f"{LEAD}:slack={each}" for each in values]
    found = bench.compared(NAME, [], policies, slots)
    for policy in policies[1:]:
        words = f"{policy} / {policies[0]}, utility (paper: little effect, read as within 5 %)"
        for kind, end in (("at least", 0.95), ("at most", 1.05)):
            claim = Claim(f"{words}: {kind} {end}", "Section 4.2, Fig. 7", kind, end, 1.0)
            rows.append(ratio_row(claim, totals(found, policy), totals(found, policies[0])))
    return Found(rows, [curve_panel(found, "delta", policies, "utility per slot")], f"{slots} slots", found.runs)


def figure_8(bench: Bench) -> Found:
    """The exploration g: ln(t + 1) has an overwhelming advantage."""
    slots = bench.length(2000, 2000)
    policies = [f"{LEAD}:exploration={each}" for each in ("log", "paper", "loglog")]
    found = bench.compared(NAME, [], policies, slots)
    rows = [leads(f"{other} / {policies[0]}", "Fig. 8", found, policies[0], [other]) for other in policies[1:]]
    return Found(rows, [curve_panel(found, "g", policies, "utility per slot")], f"{slots} slots", found.runs)


def figure_9(bench: Bench) -> Found:
    """The arrival probability."""
    values, slots = (0.5, 0.8, 1.0), bench.length(1000, 2000)
    made, total = _over(bench, "cluster.arrivals.probability", "rho", values, f"Fig. 9, {ALWAYS}", slots, IDLE)
    for policy in POLICIES:
        text = f"{policy}, utility at rho = 0.8 less that at 0.5, share of ESDP's"
        made.rows.append(rises(text, "Fig. 9", total(0.5, policy), total(0.8, policy), total(0.8, LEAD), why=WHOLE))
    text = "ESDP, utility at rho = 1 less that at 0.8, share of it"
    why = "more present ports can only help who plans for all of them"
    made.rows.append(rises(text, "Fig. 9", total(0.8, LEAD), total(1.0, LEAD), total(0.8, LEAD), falls=True, why=why))
    return made


def figure_10(bench: Bench) -> Found:
    """Denser graphs."""
    slots = bench.length(1000, 2000)
    source = f"Fig. 10, {ALWAYS}"
    return _over(bench, f"{INSTANCE}.edge_probability", "density", (0.05, 0.1, 0.2), source, slots)[0]


def figure_11(bench: Bench) -> Found:
    """More job types."""
    values, slots = (4, 8, 16), bench.length(1000, 2000)
    made, total = _over(bench, f"{INSTANCE}.ports", "|L|", values, "Section 4.3, Fig. 11", slots)
    text = "esdp, utility with |L| = 16 less that with 4, share of it (as with |R|)"
    made.rows.append(rises(text, "Section 4.3, Fig. 11", total(4, LEAD), total(16, LEAD), total(16, LEAD), why=MORE))
    return made


def figure_12(bench: Bench) -> Found:
    """More servers."""
    values, slots = (20, 40, 80), bench.length(1000, 2000)
    made, total = _over(bench, f"{INSTANCE}.servers", "|R|", values, "Section 4.3, Fig. 12", slots)
    del made.rows[-1]  # the paper itself has HAUF ahead at 80
    claim = Claim(f"{HAUF} / ESDP, |R| = 80", "Section 4.3", "above", 1.0, 1.0)
    made.rows.append(ratio_row(claim, total(80, HAUF), total(80, LEAD)))
    for policy in POLICIES:
        text = f"{policy}, utility with |R| = 80 less that with 20, share of ESDP's"
        why = MORE if policy == LEAD else WHOLE
        made.rows.append(rises(text, "Fig. 12", total(20, policy), total(80, policy), total(80, LEAD), why=why))
    return made


def figure_13(bench: Bench) -> Found:
    """Longer horizons."""
    values = bench.pick([500, 1000, 2000], [1000, 2000, 4000, 8000])
    lengths = [bench.length(value, value) for value in values]
    found = [bench.compared(NAME, [], POLICIES, length) for length in lengths]
    rows = [
        leads(f"best baseline / ESDP, T = {value}", "Section 4.3, Fig. 13", each, LEAD, BASELINES, SLOW)
        for value, each in zip(values, found, strict=True)
    ]
    text = f"ESDP, average utility with T = {values[-1]} less that with {values[0]}, share of it"
    rows.append(rises(text, "Fig. 13", totals(found[0], LEAD), totals(found[-1], LEAD), totals(found[-1], LEAD)))
    panel = key_panel("effect of T", "slots", values, found, "utility per slot")
    return Found(rows, [panel], f"T = {lengths}", stacked("T", values, found))
