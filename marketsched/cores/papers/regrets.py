"""Theorems of the cores' papers, measured: how regret grows, its share of bounds, OPM's fit; and Algorithm 1."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from marketsched.comparisons.comparing import Comparison
from marketsched.config.scenario import Scenario
from marketsched.cores.papers.ogasched import INSTANCE, TABLE_1, THEORY
from marketsched.cores.papers.ogasched import NAME as OGASCHED
from marketsched.cores.papers.opm_growth import WholeHorizonGrowth, whole_horizon_growth
from marketsched.mechanisms.allocation.esdp.probability import all_ports_bound
from marketsched.mechanisms.allocation.oga.printed_projection import printed_projection
from marketsched.mechanisms.allocation.opm.jobs import PowerUtility
from marketsched.mechanisms.allocation.regret import fitted_growth
from marketsched.mechanisms.allocation.slot_loop import slot_by_slot
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.papers.claims import CheckedClaim, Claim, exact_row, interval_row, mean, ratio
from marketsched.papers.runs import Array, Bench, Found, Line, Panel, experiment, mean_line, uncounted

SHORT = "the theorem is about long horizons"
PROVEN = "ogasched:step=theorem"
DENSE = "every port at every instance"
LEAST = 200  # slots, or there are no four horizons to fit
AGAIN = "the claim about the exponent once more, doubling by doubling"
NOT_LIPSCHITZ = "X^0.5 has no Lipschitz constant, by which (24) and (101) are multiplied; no slack beside multipliers"
OPEN = "O(.) leaves a constant open: 1 here"
DELTA = 0.05  # of OPM's Theorem 2, which holds with probability 1 - delta


def _regrets(found: Comparison, policy: str) -> tuple[list[int], Array]:
    """Return horizons, and regrets by seed and horizon."""
    table = found.tables["regrets"]
    own = table[table["policy"] == policy].pivot(index="seed", columns="slots", values="regret")
    return [int(slots) for slots in own.columns], own.to_numpy(dtype=np.float64)


def _exponent(claim: Claim, horizons: list[int], regrets: Array) -> CheckedClaim:
    """Return the row of the x of regret ~ T^x; without an interval where a regret is not positive."""
    try:
        fit = fitted_growth(horizons, regrets)
    except InvalidParameterError:
        return interval_row(claim, math.nan, math.nan, math.nan, len(regrets))
    return interval_row(claim, fit.exponent, fit.low, fit.high, len(regrets))


def _panel(title: str, lines: dict[str, tuple[list[int], Array]], y: str = "regret") -> Panel:
    drawn = [mean_line(label, horizons, list(values.T)) for label, (horizons, values) in lines.items()]
    return Panel(title, "slots", y, drawn)


@experiment("ogasched-theorem1", "OgaSched paper, Theorem 1", "regret against the best fixed allocation")
def _ogasched(bench: Bench) -> Found:
    """How regret grows, and its share of the bound OgaSched (14): with the step of its proof, (26), and Table 1's."""
    slots = max(bench.length(2000, 8000), LEAST)
    rows: list[CheckedClaim] = []
    lines, tables = {}, []
    beside_of = {THEORY.lead: "step (26), which has no proven bound", TABLE_1.lead: "Table 1's step, which has none"}
    for at, policies in ((TABLE_1, [PROVEN, THEORY.lead, TABLE_1.lead]), (THEORY, [PROVEN, THEORY.lead])):
        found = bench.compared(OGASCHED, at.changes, policies, slots, growth=True)
        tables.append(found.tables["regrets"].assign(setting=at.words))
        for policy in policies:
            horizons, regrets = _regrets(found, policy)
            beside = "; ".join(each for each in (beside_of.get(policy, ""), DENSE if at is THEORY else "") if each)
            best = found.runs[found.runs["policy"] == policy].sort_values("seed")
            text = f"{policy}, exponent x of regret ~ T^x (regret is {best['regret_share'].mean():.1%} of y*'s reward)"
            rows.append(_exponent(Claim(text, "Theorem 1", "at most", 0.5, 0.0, 0.0, SHORT, beside), horizons, regrets))
            if policy != TABLE_1.lead:
                text, share = f"{policy}, regret as a share of the bound OgaSched (14)", best["regret_over_bound"]
                rows.append(mean(text, "Theorem 1", "at most", 1.0, share.to_numpy(), setting=beside))
            lines[f"{policy}{', complete graph' if at is THEORY else ''}"] = horizons, regrets
    rows.append(_over_types(bench, slots))
    return Found(rows, [_panel("regret to y*", lines)], f"{slots} slots", pd.concat(tables, ignore_index=True))


def _over_types(bench: Bench, slots: int) -> CheckedClaim:
    """Return how regret grows with the number of job types on a complete graph, on which (14) grows like its root."""
    types, regrets = (5, 10, 20), []
    for number in types:
        found = bench.compared(OGASCHED, [f"{INSTANCE}.ports={number}"], [PROVEN], slots, growth=True)
        regrets.append(_regrets(found, PROVEN)[1][:, -1])
    text = f"{PROVEN}, exponent x of regret ~ |L|^x, complete graph"
    claim = Claim(text, "Theorem 1, Section 1 (sublinear in |L|: its root)", "at most", 0.5, 0.0)
    return _exponent(claim, list(types), np.array(regrets).T)


@experiment("ogasched-algorithm1", "OgaSched paper, Algorithm 1", "the projection as printed, and the exact one")
def _algorithm_1(bench: Bench) -> Found:
    """In how many columns (an instance and a type) of OgaSched's steps the printed procedure does not project."""
    slots = bench.length(20, 20)
    shares = []
    for seed in bench.seeds:
        bench.tell(f"seed {seed}")
        world = Scenario.load(OGASCHED).with_changes(*TABLE_1.changes).cluster.world(seed)
        cluster, columns = world.cluster, world.cluster.layout.columns
        choice = Scenario.load(OGASCHED).cluster.choices([TABLE_1.lead])[0]
        policy, environment = world.policy(choice, slots), world.environment()
        differs = outside = seen = 0
        for decision, outcome in slot_by_slot(policy, environment, slots):
            gradient = cluster.gradient(outcome.feedback[0], cluster.layout.to_dense(np.asarray(decision)))
            ahead = np.asarray(decision) + policy.last_step * cluster.layout.to_channels(gradient)
            exact = cluster.layout.to_channels(cluster.project(cluster.layout.to_dense(ahead)))
            for column, capacity in enumerate(cluster.capacities.ravel().tolist()):
                own = slice(columns[column], columns[column + 1])
                printed = printed_projection(ahead[own], cluster.bounds[own], capacity)
                slack = 1e-9 * max(1.0, capacity)
                differs += bool(np.abs(printed - exact[own]).max(initial=0.0) > slack)
                outside += bool((printed > cluster.bounds[own] + slack).any())
                seen += 1
        shares.append((differs / seen, outside / seen))
    apart, over = np.array(shares).T
    rows = []
    for text, values, setting in (
        ("is not the projection", apart, ""),
        ("gives a port more than it requires", over, "some of the columns of the row before"),
    ):
        words = f"share of columns in which Algorithm 1 as printed {text}"
        rows.append(mean(words, "Section 3.2", "at most", 0.0, values, setting=setting))
    seeds = bench.seeds
    lines = [Line("not the projection", seeds, apart.tolist()), Line("more than required", seeds, over.tolist())]
    runs = pd.DataFrame({"seed": seeds, "not_projected": apart, "over_requirement": over})
    return Found(rows, [Panel("Algorithm 1", "seed", "share of columns", lines)], f"{slots} slots", runs)


@experiment("esdp-theorem2", "ESDP paper, Theorems 1 and 2", "regret, doubling by doubling")
def _esdp(bench: Bench) -> Found:
    """Regret added by each doubling, which stays level if it grows like ln T; and how likely Theorem 1 is to hold."""
    slots = max(bench.length(4000, 8000), LEAST)
    policies = ["esdp", "esdp:exploration=log:arrivals=plan"]
    found = bench.compared("esdp-default", [], policies, slots, growth=True)
    rows: list[CheckedClaim] = []
    lines = {}
    for policy in policies:
        beside = "" if policy == "esdp" else "g = ln(t + 1), planned over the ports that have a job"
        horizons, regrets = lines[policy] = _regrets(found, policy)
        logs = np.log(horizons)
        own = float(np.polyfit(logs, np.log(logs), 1)[0])  # that of ln T itself, at these horizons
        text = f"{policy}, exponent x of regret ~ T^x, against that of ln T"
        rows.append(_exponent(Claim(text, "Theorem 2", "at most", own, 0.0, 0.0, SHORT, beside), horizons, regrets))
        added = np.diff(regrets, axis=1)
        for k in range(1, added.shape[1]):
            text = f"{policy}, regret from {horizons[k]} to {horizons[k + 1]} slots over that of the doubling before"
            more = {"why": SHORT, "setting": beside}
            row = ratio(text, "Theorem 2 (ln T: level)", "at most", 1.0, added[:, k], added[:, k - 1], **more)
            rows.append(uncounted(row, AGAIN))
    why = "the derivation of ESDP (35) from ESDP (34) leaves out the mean by which the exponent is divided"
    for ports, chance, words in ((8, 0.9, ""), (10, 0.5, "ten ports that have a job half of the time")):
        text = f"probability that all of {ports} ports have a job, each with {chance:g}; at most ESDP (35)"
        bound = all_ports_bound([chance] * ports)
        claim = Claim(text, "Theorems 1 and 2", "at most", bound, 0.0, why=why, setting=words)
        rows.append(exact_row(claim, chance**ports))
    return Found(rows, [_panel("regret to the oracle", lines)], f"{slots} slots", found.tables["regrets"])


@experiment("opm-theorem2", "OPM paper, Theorems 2 and 3, Corollary 1", "regret and fit of one job, and of five")
def _opm(bench: Bench) -> Found:
    """Regret and fit, jobs for the whole horizon and budgets kept by the multipliers alone: OPS, and OPM with five."""
    longest = max(bench.length(4000, 16000), LEAST)
    horizons = [longest // part for part in (16, 4, 1)]
    rng = np.random.default_rng(np.random.SeedSequence([bench.first, 2]))
    prices, rates = rng.uniform(0.3, 1.0, 10), rng.uniform(0.1, 1.0, 10)
    cases = (
        ("OPS", "Theorem 2", "Theorem 2, with the constants of Theorem 3", [1.5]),
        ("OPM, five jobs", "Corollary 1", "Theorem 3", [0.3] * 5),  # as much together
    )
    rows: list[CheckedClaim] = []
    regrets, fits, tables = {}, {}, []
    for label, source, fit_source, budgets in cases:
        bench.tell(label)
        grown = whole_horizon_growth(
            prices, rates, budgets, PowerUtility(3.0, 0.5), horizons, seeds=bench.runs, confidence=DELTA, rng=rng
        )
        text = f"{label}, exponent x of regret ~ T^x (the logarithm in OPM (24) adds to 1/2)"
        own = float(np.polyfit(np.log(horizons), np.log(grown.regret_scales), 1)[0])
        claim = Claim(text, source, "at most", own, 0.0, 0.0, SHORT, NOT_LIPSCHITZ)
        rows.append(_exponent(claim, horizons, grown.regrets))
        more = 0.0 if len(budgets) == 1 else len(budgets) * prices.size * np.sqrt(horizons) / 2  # of OPM (101)
        share = grown.regrets / (grown.regret_scales + more)
        text, setting = f"{label}, regret over the function inside O(.), T = {longest}", f"{NOT_LIPSCHITZ}; {OPEN}"
        rows.append(mean(text, source, "at most", 1.0, share[:, -1], setting=setting))
        text = f"{label}, Fit_T over its bound OPM (74), the largest of T = {', '.join(map(str, horizons))}"
        rows.append(mean(text, fit_source, "at most", 1.0, (grown.fits / grown.fit_bounds).max(axis=1)))
        regrets[label], fits[label] = (horizons, grown.regrets), (horizons, grown.fits)
        tables.append(_points(label, bench.first, horizons, grown))
    panels = [_panel("regret", regrets), _panel("fit", fits, "Fit_T, credits")]
    sizes = f"10 machines, up to {longest} slots, delta = {DELTA:g}"
    return Found(rows, panels, sizes, pd.concat(tables, ignore_index=True))


def _points(label: str, first: int, slots: list[int], grown: WholeHorizonGrowth) -> pd.DataFrame:
    """Return a row for each seed and horizon."""
    seeds, horizons = (x.ravel() for x in np.indices(grown.regrets.shape))
    columns = {"seed": first + seeds, "slots": np.array(slots)[horizons]}
    return pd.DataFrame({"policy": label, **columns, "regret": grown.regrets.ravel(), "fit": grown.fits.ravel()})
