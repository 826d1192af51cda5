"""The statements of the mechanism paper, measured: truthfulness, ratios, Lemma 4.3, sampling, and its toy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from marketsched.comparisons.comparing import compare
from marketsched.mechanisms.posted.guarantees import failure_tail, overload_probability, sample_size
from marketsched.papers.claims import CONFIDENCE, CheckedClaim, Claim, exact_row, interval_row, mean
from marketsched.papers.markets import (
    HORIZON,
    best_reservations,
    failure_share,
    night_shift,
    sampling_error,
    toy_scenario,
    toy_values,
)
from marketsched.papers.runs import Bench, Found, Line, Panel, experiment, uncounted
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.searches.betting import mean_interval

CONTROL = "a control: the paper says nothing about it"
SURE = "99 % confidence"
OUTSIDE = "outside the theorem's conditions"
OWNERS, PLAYS = 10, 2000  # of each mechanism, in the short experiment


@experiment(
    "mechanism-truthfulness", "mechanism paper, Theorem 3.2", "certificates and a search for lies that pay", seeds=3
)
def _truthfulness(bench: Bench) -> Found:
    owners, plays = (100, 40_000) if bench.full else (OWNERS, PLAYS)
    names, tables = ("exponential:epsilon=0.1", "pay-as-bid"), []
    for seed in bench.seeds:
        bench.tell(f"seed {seed}")
        found = audit(night_shift(certain=False), names, owners=owners, plays=plays, seed=seed, data=bench.data)
        tables.append(found.summary.assign(seed=seed))
    table = pd.concat(tables, ignore_index=True)
    own, other = (table[table["mechanism"] == name] for name in names)
    rows = [
        _largest("posted prices: largest certificate of an owner's gain, credits", own, "regret_upper", "at most"),
        _largest("posted prices: largest confirmed gain from a lie, credits", own, "regret_lower", "at most"),
        uncounted(
            _largest("pay-as-bid: largest confirmed gain from a lie, credits", other, "regret_lower", "above"), CONTROL
        ),
    ]
    x = table["seed"].unique().tolist()
    lines = [
        Line("posted prices: certificate", x, own["regret_upper"].tolist()),
        Line("posted prices: confirmed lie", x, own["regret_lower"].tolist()),
        Line("pay-as-bid: confirmed lie", x, other["regret_lower"].tolist()),
    ]
    text = f"241 jobs on 24 nodes, {owners} owners certified and {plays:,} plays of search per mechanism, {SURE}"
    kept = ["seed", "mechanism", "regret_lower", "regret_upper", "certified_owners", "searched_owners", "plays", "lie"]
    return Found(rows, [Panel("gain from lying", "seed", "credits", lines)], text, table[kept])


def _largest(text: str, table: pd.DataFrame, column: str, kind: Any) -> CheckedClaim:
    claim = Claim(text, "Theorem 3.2", kind, 0.0, 0.0, why="a short search may find nothing")
    return exact_row(claim, float(table[column].to_numpy().max()), len(table))  # NaN, where one was not audited


@experiment(
    "mechanism-ratio", "mechanism paper, Theorems 4.1, 5.1, 5.2", "best welfare over welfare, against the constants"
)
def _ratio(bench: Bench) -> Found:
    rows: list[CheckedClaim] = []
    tables = []
    cases = (
        ("arrivals certain", True, ("exponential",), "Theorem 5.1"),
        ("arrivals uncertain", False, ("exponential:epsilon=0.1",), "Theorem 4.1"),
        ("laws known", False, ("stochastic:pricing.kind=stochastic",), "Theorem 5.2, (27)"),
    )
    for words, certain, names, theorem in cases:
        found = compare(
            night_shift(certain=certain),
            names,
            runs=bench.runs,
            seed=bench.first,
            optimum_seconds=5.0,
            progress=lambda done, total, what, words=words: bench.tell(f"{words}: {done} of {total}, {what}"),  # type: ignore[misc]
        )
        row = found.summary.iloc[0]
        held = "" if row["promise_holds"] else OUTSIDE
        text = f"{row['mechanism'].partition(':')[0]}, {words}: E[OPT] / E[welfare]"
        claim = Claim(text, theorem, "at most", float(row["promised_ratio"]), 1.0, setting=held)
        rows.append(interval_row(claim, row["ratio_high"], row["interval_low"], row["interval_high"], bench.runs))
        tables.append(found.runs.assign(case=words))
    labels = [case[0] for case in cases]
    lines = [
        Line("measured", labels, *([getattr(row.measured, end) for row in rows] for end in ("value", "low", "high"))),
        Line("constant", labels, [row.claim.value for row in rows]),
    ]
    panel = Panel("ratio", "market", "E[OPT] / E[welfare]", lines, log=True)
    return Found(rows, [panel], "241 jobs on 24 nodes, 60 rounds", pd.concat(tables, ignore_index=True))


@experiment(
    "mechanism-lemma43", "mechanism paper, Lemma 4.3", "how often failures exceed delta, against (17)", seeds=40
)
def _lemma_43(bench: Bench) -> Found:
    """How often a submission meets a failure probability above delta, against (17)."""
    capacity, delay, delta = (400, 20, 0.05) if bench.full else (100, 10, 0.2)
    rows: list[CheckedClaim] = []
    tables, lines = [], []
    for epsilon, capped in ((0.3, True), (0.4, False)):
        found = []
        for seed in bench.seeds:
            bench.tell(f"epsilon {epsilon}, seed {seed}")
            found.append(failure_share(seed, capacity, delay, epsilon, delta, capped=capped))
        table = pd.DataFrame(found, columns=["share", "usage"]).assign(epsilon=epsilon, capped=capped)
        bound = failure_tail(overload_probability(capacity, 1, epsilon), delay, delta)
        text = f"share of submissions that meet a failure probability above {delta:g}, epsilon = {epsilon:g}"
        claim = Claim(text, "Lemma 4.3, (17)", "at most", bound, 0.0)
        if not capped:
            claim = Claim(f"usage not capped: {text}", "(17)", "above", bound, 0.0, setting=CONTROL)
        rows.append(_share_row(claim, table["share"].to_numpy()))
        if capped:
            text = f"premise: highest expected usage of a round over C', epsilon = {epsilon:g}"
            premise = Claim(text, "Section 4", "at most", 1.0, 0.0, setting="a premise of the lemma")
            rows.append(exact_row(premise, round(float(table["usage"].max()), 9), bench.runs))
        label = f"epsilon = {epsilon:g}" + ("" if capped else ", not capped")
        seeds = bench.seeds
        lines.append(Line(label, seeds, table["share"].tolist()))
        lines.append(Line(f"bound (17), {label}", seeds, [bound] * len(seeds)))
        tables.append(table)
    panel = Panel("Lemma 4.3", "seed", "share of submissions", lines)
    return Found(rows, [panel], f"{capacity} nodes, {HORIZON} rounds", pd.concat(tables, ignore_index=True))


def _share_row(claim: Claim, shares: NDArray[np.float64]) -> CheckedClaim:
    """Return the row of a mean share; its interval holds for rare events, too, which Student's does not."""
    low, high = mean_interval(shares, 0.0, 1.0, CONFIDENCE)
    return interval_row(claim, float(shares.mean()), low, high, shares.size)


@experiment("mechanism-sampling", "mechanism paper, Lemma F.1", "estimates of failure probabilities, against (28)")
def _sampling(bench: Bench) -> Found:
    eta, markets = 0.1, 40 if bench.full else 10
    rows: list[CheckedClaim] = []
    points = []
    for gamma in (0.1, 0.05):
        samples = sample_size(gamma, eta, max_delay=4, max_duration=2)
        bench.tell(f"gamma {gamma}: {samples} samples")
        seeds = range(bench.first * markets, (bench.first + bench.runs) * markets)
        errors = np.array([sampling_error(seed, samples) for seed in seeds])
        over = int((errors > gamma).sum())
        interval = stats.binomtest(over, errors.size).proportion_ci(CONFIDENCE, method="exact")
        text = f"share of estimated tables off by more than {gamma:g}, {samples} samples"
        claim = Claim(text, "Lemma F.1, (28)", "at most", eta, 0.0)
        rows.append(interval_row(claim, over / errors.size, interval.low, interval.high, errors.size))
        shares = np.arange(1, errors.size + 1) / errors.size
        points.append(Line(f"{samples} samples", np.sort(errors).tolist(), shares.tolist()))
    panel = Panel("largest error of a table", "error", "share of tables", points)
    return Found(rows, [panel], f"{markets} markets a seed, eta = {eta:g}", pd.DataFrame())


@experiment("mechanism-toy", "mechanism paper, Section 1.1", "reservations against statements of work")
def _toy(bench: Bench) -> Found:
    rounds = 8
    probability, value = toy_values(rounds)
    by_blocks = best_reservations(probability, value)
    whole = float(probability @ value)
    source = "Section 1.1 (numbers reconstructed)"
    needed = next(k for k, best in enumerate(by_blocks, 1) if best > whole - 1e-9)
    claim = Claim("reserved blocks that the utility of one launched slot needs", source, "at least", rounds, 0.0)
    rows = [exact_row(claim, needed)]
    text, setting = "value of one reserved block over that of one launched slot", "follows from the row before"
    claim = Claim(text, source, "below", 1.0, 1.0, setting=setting)
    rows.append(exact_row(claim, by_blocks[0] / whole))
    jobs, nodes = (160, 20) if bench.full else (80, 10)
    names = ("exponential", "first-come")
    found = compare(
        toy_scenario(rounds, jobs, nodes),
        names,
        runs=bench.runs,
        seed=bench.first,
        optimum_seconds=0.0,
        progress=lambda done, total, what: bench.tell(f"{done} of {total}, {what}"),
    )
    reserved = jobs * by_blocks[0]  # as many slots as jobs, and no further block is worth more than the first
    for name in names:
        welfare = found.runs[found.runs["mechanism"] == name]["welfare"].to_numpy()
        text = f"{jobs} such jobs on {nodes} nodes: welfare of {name} over the best with reservations"
        setting = CONTROL if name == "first-come" else ""
        rows.append(mean(text, source, "above", 1.0, welfare / reserved, neutral=1.0, setting=setting))
    blocks = list(range(1, rounds + 1))
    lines = [Line("reserved blocks", blocks, by_blocks), Line("statement of work, 1 slot", blocks, [whole] * rounds)]
    panel = Panel("one job", "reserved blocks", "expected value, credits", lines)
    return Found(rows, [panel], f"{rounds} rounds", found.runs)
