"""The evaluation of the OgaSched paper: Figs. 2 to 7 and Table 2.

The paper's increases are given here as what a baseline earns over what OgaSched earns, the inverse:
that ratio exists in seeds, too, in which a baseline's total is negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marketsched.cluster_comparing import ClusterComparison
from marketsched.experiments.paper_claims import Claim, Row, mean_row, ratio_row
from marketsched.experiments.paper_runs import (
    Array,
    Bench,
    Found,
    Line,
    Panel,
    best_of,
    curve_panel,
    key_panel,
    leads,
    mean_line,
    rises,
    stacked,
    totals,
)

LEAD = "ogasched"
BASELINES = ("drf", "fairness", "binpacking", "spreading")
POLICIES = (LEAD, *BASELINES)
NAME = "cluster-default"
INSTANCE = "cluster.instance"
ONLY = "only the family of instances is published, not the instance"
FAMILY = f"{ONLY}; on it the baselines hand out all there is and pay for it in overhead"
# Table 2 of the paper: average rewards of OgaSched, DRF, Fairness, BinPacking, Spreading.
TABLE_2 = {
    ("T", 1000): (2578.53, 2422.47, 2532.24, 2386.01, 2382.01),
    ("T", 2000): (2886.33, 2493.02, 2582.80, 2449.15, 2466.71),
    ("T", 5000): (2911.37, 2449.23, 2552.41, 2444.32, 2436.60),
    ("T", 10000): (3104.98, 2497.85, 2436.22, 2365.13, 2362.88),
    ("rho", 0.3): (1904.87, 1364.53, 1295.53, 1246.39, 1250.67),
    ("rho", 0.5): (2154.18, 2086.59, 1997.19, 1897.79, 1888.06),
    ("rho", 0.7): (3117.29, 2503.01, 2628.02, 2518.98, 2519.37),
    ("rho", 0.9): (2938.22, 2755.41, 2873.84, 2740.19, 2737.93),
    ("density", 2): (2816.18, 2417.08, 2501.54, 2374.31, 2382.87),
    ("density", 3): (3127.47, 2795.42, 2918.98, 2829.19, 2836.37),
}


def figure_2(bench: Bench) -> Found:
    """Average reward over time, and OgaSched's increase over the baselines."""
    slots = bench.length(2000, 8000)
    found = bench.compared(NAME, [], POLICIES, slots)
    rows = []
    for policy, increase in zip(BASELINES, (11.33, 7.75, 13.89, 13.44), strict=True):
        claim = Claim(
            f"{policy} / OgaSched, reward (paper: OgaSched +{increase} %)",
            "Section 4.1",
            "number",
            1 / (1 + increase / 100),
            1.0,
            rounding=5e-5,
            why=FAMILY,
        )
        rows.append(ratio_row(claim, totals(found, policy), totals(found, LEAD)))
    curves = found.curves.pivot_table(index="slot", columns=["policy", "seed"], values="average_reward")
    early = curves.index[int(np.searchsorted(curves.index, slots / 100))]
    late, first, quarter = (
        np.asarray(curves[LEAD].loc[at], dtype=float)
        for at in (slots, early, curves.index[int(np.searchsorted(curves.index, slots / 4))])
    )
    text = "OgaSched, average reward at the end less that at a quarter of the slots, share of it"
    rows.append(rises(text, "Fig. 2(a)", quarter, late, late))
    for policy in ("fairness", "drf"):
        claim = Claim(
            f"{policy} / OgaSched, average reward so far at slot {early}", "Fig. 2(b)", "above", 1.0, 1.0, why=FAMILY
        )
        rows.append(ratio_row(claim, np.asarray(curves[policy].loc[early], dtype=float), first))
    panel = curve_panel(found, "average reward so far", POLICIES, "reward per slot")
    return Found(rows, [panel], f"{slots} slots", found.runs)


def figure_3a(bench: Bench) -> Found:
    """More computing instances."""
    values, slots = bench.pick([32, 128, 256], [32, 64, 128, 256, 512, 1024]), bench.length(1000, 2000)
    found = [bench.compared(NAME, [f"{INSTANCE}.instances={r}"], POLICIES, slots) for r in values]
    rows = [
        leads(f"best baseline / OgaSched, |R| = {r}", "Fig. 3(a)", each, LEAD, BASELINES, FAMILY)
        for r, each in zip(values, found, strict=True)
    ]
    scale = totals(found[-1], LEAD)
    for policy in POLICIES:
        text = f"{policy}, reward with |R| = {values[-1]} less that with {values[0]}, share of OgaSched's"
        rows.append(rises(text, "Fig. 3(a)", totals(found[0], policy), totals(found[-1], policy), scale, why=ONLY))
    behind = [best_of(each, BASELINES) / totals(each, LEAD) for each in found]
    middle = values.index(128)
    for at, words in ((0, "first increases"), (-1, "then decreases")):
        claim = Claim(
            f"best baseline / OgaSched, |R| = {values[at]} less |R| = 128 (superiority {words})",
            "Fig. 3(a)",
            "above",
            0.0,
            0.0,
            why=ONLY,
        )
        rows.append(mean_row(claim, behind[at] - behind[middle]))
    panel = key_panel("effect of |R|", "instances", values, found, "reward per slot")
    return Found(rows, [panel], f"{slots} slots", stacked("instances", values, found))


def figure_3b(bench: Bench) -> Found:
    """More job types."""
    values, slots = bench.pick([5, 10, 20], [5, 10, 20, 40, 80]), bench.length(1000, 2000)
    found = [bench.compared(NAME, [f"{INSTANCE}.ports={n}"], POLICIES, slots) for n in values]
    rows = [
        leads(f"best baseline / OgaSched, |L| = {n}", "Fig. 3(b)", each, LEAD, BASELINES, FAMILY)
        for n, each in zip(values, found, strict=True)
    ]
    panel = key_panel("effect of |L|", "job types", values, found, "reward per slot")
    return Found(rows, [panel], f"{slots} slots", stacked("ports", values, found))


CONTENTION = (0.1, 1, 10, 20)


def figure_3c(bench: Bench) -> Found:
    """Fiercer contention."""
    slots = bench.length(1000, 2000)
    found = {c: bench.compared(NAME, [f"{INSTANCE}.contention={c}"], POLICIES, slots) for c in CONTENTION}
    rows = [
        leads(f"best baseline / OgaSched, contention {c}", "Fig. 3(c)", each, LEAD, BASELINES, FAMILY)
        for c, each in found.items()
    ]
    for policy in POLICIES:
        low, middle, high = (totals(found[c], policy) for c in (0.1, 1, 20))
        text = f"{policy}, reward at contention 1 less that at 0.1, share of OgaSched's"
        rows.append(rises(text, "Fig. 3(c)", low, middle, totals(found[1], LEAD), why=ONLY))
        text = f"{policy}, reward at contention 20 less that at 1, share of OgaSched's"
        rows.append(rises(text, "Fig. 3(c)", middle, high, totals(found[1], LEAD), falls=True, why=ONLY))
    panel = key_panel("effect of contention", "contention", CONTENTION, list(found.values()), "reward per slot")
    return Found(rows, [panel], f"{slots} slots", stacked("contention", CONTENTION, list(found.values())))


def figure_4(bench: Bench) -> Found:
    """Initial learning rate and decay."""
    slots = bench.length(1000, 2000)
    chosen = f"{LEAD}:step=25:decay=0.9999"
    others = [f"{LEAD}:step=0.01", f"{LEAD}:step=1000", f"{LEAD}:step=25:decay=0.99"]
    theory = LEAD
    found = bench.compared(NAME, [], [chosen, *others, theory], slots)
    rows = [
        leads(f"{other} / {chosen}", "Fig. 4", found, chosen, [other], "the best step depends on the instance")
        for other in others
    ]
    claim = Claim(f"{theory} (26) / {chosen}", "Section 4.1", "below", 1.0, 1.0, why=FAMILY)
    rows.append(ratio_row(claim, totals(found, theory), totals(found, chosen)))
    worst = np.min([totals(found, other) for other in others], axis=0)
    claim = Claim("reward of the worst step, share of the chosen one's", "Section 4.1", "below", 0.0, 0.0, why=FAMILY)
    rows.append(ratio_row(claim, worst, totals(found, chosen)))
    panel = curve_panel(found, "steps of OgaSched", found.meta["policies"], "reward per slot")
    return Found(rows, [panel], f"{slots} slots; decays above 1 are not offered", found.runs)


def figure_5(bench: Bench) -> Found:
    """A large cluster with small overheads."""
    ports, instances = (100, 1024) if bench.full else (30, 256)
    slots = bench.length(300, 10000)
    changes = [
        f"{INSTANCE}.ports={ports}",
        f"{INSTANCE}.instances={instances}",
        f"{INSTANCE}.contention=5",
        f"{INSTANCE}.overhead=[0.01,0.015]",
    ]
    found = bench.compared(NAME, changes, POLICIES, slots)
    why = f"{FAMILY}; here overheads are small, so that handing out all there is pays"
    rows = [leads(f"{policy} / OgaSched", "Fig. 5", found, LEAD, [policy], why) for policy in BASELINES]
    panel = curve_panel(found, "a large cluster", POLICIES, "reward per slot")
    return Found(rows, [panel], f"{ports} job types, {instances} instances, {slots} slots", found.runs)


def figure_6(bench: Bench) -> Found:
    """Gain and overhead under contention."""
    slots = bench.length(1000, 2000)
    found = [bench.compared(NAME, [f"{INSTANCE}.contention={c}"], POLICIES, slots) for c in CONTENTION]
    overhead = [totals(each, LEAD, "overhead") for each in found]
    text = "OgaSched, overhead at contention 20 less that at 1, share of it"
    rows = [rises(text, "Fig. 6", overhead[1], overhead[3], overhead[3])]
    claim = Claim("OgaSched, overhead at contention 20 over that at 1 (slowly: below 20)", "Fig. 6", "below", 20, 1.0)
    rows.append(ratio_row(claim, overhead[3], overhead[1]))
    panels = [
        Panel(name, "contention", f"{name} per slot", [_line(policy, name, found) for policy in POLICIES])
        for name in ("gain", "overhead")
    ]
    return Found(rows, panels, f"{slots} slots", stacked("contention", CONTENTION, found))


def _line(policy: str, name: str, found: Sequence[ClusterComparison]) -> Line:
    return mean_line(policy, CONTENTION, [totals(each, policy, name) for each in found])


def figure_7(bench: Bench) -> Found:
    """Utilities of one kind for every resource."""
    values, slots = ("linear", "poly", "log", "reciprocal"), bench.length(1000, 2000)
    found = {u: bench.compared(NAME, [f"{INSTANCE}.gain={u}"], POLICIES, slots) for u in values}
    rows = []
    for utility in values[1:]:
        for policy in (LEAD, "fairness"):
            claim = Claim(f"{policy}, reward with {utility} over linear utilities", "Fig. 7", "below", 1.0, 1.0)
            rows.append(ratio_row(claim, totals(found[utility], policy), totals(found["linear"], policy)))
    scale = totals(found["linear"], LEAD)  # with reciprocal utilities totals may be negative
    for utility, each in found.items():
        text = f"best baseline less OgaSched, {utility} utilities, share of OgaSched's with linear ones"
        best, own = best_of(each, BASELINES), totals(each, LEAD)
        rows.append(rises(text, "Fig. 7", own, best, scale, falls=True, why=ONLY))
    text = "fairness less OgaSched, reciprocal utilities, share of OgaSched's with linear ones"
    each = found["reciprocal"]
    rows.append(rises(text, "Section 4.2", totals(each, LEAD), totals(each, "fairness"), scale, falls=True, why=ONLY))
    panel = key_panel("utilities", "utility", values, list(found.values()), "reward per slot")
    return Found(rows, [panel], f"{slots} slots", stacked("gain", values, list(found.values())))


def table_2(bench: Bench) -> Found:
    """Horizon, arrival probability and density."""
    cases = [key for key in TABLE_2 if bench.full or key[0] != "T" or key[1] <= 2000]
    slots = bench.length(1000, 2000)
    keys = {"rho": "cluster.arrivals.probability", "density": f"{INSTANCE}.ports_per_instance"}
    rows: list[Row] = []
    found = []
    for key, value in cases:
        length = bench.length(int(value), int(value)) if key == "T" else slots
        each = bench.compared(NAME, [f"{keys[key]}={value}"] if key in keys else [], POLICIES, length)
        found.append(each)
        printed = TABLE_2[key, value]
        for policy, reward in zip(BASELINES, printed[1:], strict=True):
            claim = Claim(
                f"{policy} / OgaSched, {key} = {value}", "Table 2", "number", reward / printed[0], 1.0, 5e-6, FAMILY
            )
            rows.append(ratio_row(claim, totals(each, policy), totals(each, LEAD)))
    rows += _along(dict(zip(cases, [totals(each, LEAD) for each in found], strict=True)))
    names = [f"{key} {value}" for key, value in cases]
    panel = key_panel("Table 2", "setting", names, found, "reward per slot")
    return Found(rows, [panel], f"{slots} slots (T: its own); density 2.5 left out", stacked("setting", names, found))


def _along(own: dict[tuple[str, float], Array]) -> list[Row]:
    """Return how OgaSched's own rewards change from column to column."""
    rows = []
    for (key, value), before in own.items():
        after = next(((k, v) for k, v in own if k == key and v > value), None)
        if after is None:
            continue
        paper = TABLE_2[after][0] / TABLE_2[key, value][0]
        claim = Claim(
            f"OgaSched, average reward, {key} = {after[1]} over {value}", "Table 2", "number", paper, 1.0, 5e-6, ONLY
        )
        rows.append(ratio_row(claim, own[after], before))
    return rows
