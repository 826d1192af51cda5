"""The mechanism paper's market with hidden durations: its Theorems 3.2 and 5.1 in the markets G1 and G3.

Numbers of gaps are those of docs/mathematics.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.loop import Fate, MarketLoop
from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    LaunchPlan,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
    get_mechanism,
)
from marketsched.mechanisms.posted.guarantees import price_ends, relaxed_ratio
from marketsched.papers.claims import Claim, exact_row, mean
from marketsched.papers.runs import Bench, Found, Line, Panel, experiment

STATED = "the theorem is stated for hidden durations, too; its proof needs them revealed"
LONGEST, NODES, ROUNDS, G3_SEEDS = 8, 8, 120, 5  # of G3


def _two_nodes(prices: list[float], max_value: float) -> PostedPriceMechanism:
    limits: dict[str, Any] = {"max_concurrency": 2, "max_duration": 2, "max_delay": 6}
    posted = PostedPricing(prices=prices)
    return PostedPriceMechanism(2, 6, posted, ExactOracle(), max_value=max_value, epsilon=-0.5, **limits)


def g1_market() -> PostedPriceMechanism:
    """Return the market of G1: two nodes, an earlier job that runs in round 2, prices 1, 4 and 100."""
    market = _two_nodes([1.0, 4.0, 100.0], 10.0)
    market.submit("earlier", StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(2, 1, 1.0)]))
    return market


def g1_report(concurrency: int = 1, signals: tuple[int | None, int | None] = (None, None)) -> StatementOfWork:
    """Return the statement of G1's owner: ready in round 1 for one or two rounds, worth 10 if done after one.

    ``signals``: what is seen of the two durations at arrival; None: nothing, they are hidden.
    """
    rows = [(1, 1, 0.5, signals[0]), (1, 2, 0.5, signals[1])]
    return StatementOfWork(1, concurrency, TableValue({2: 10.0}), rows)


def drawn_market(seed: int) -> tuple[PostedPriceMechanism, StatementOfWork]:
    """Return a small market with hidden durations, and the true statement of an owner of one node.

    Two nodes, posted prices that rise, up to three earlier jobs of one node; the owner's job is ready in round 1 for
    one or two rounds, and worth more if it is done after one.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, 32]))
    market = _two_nodes(np.cumsum(rng.uniform(0.0, 2.0, 6)).tolist(), 20.0)
    for i in range(int(rng.integers(1, 4))):
        likely, ready = float(rng.uniform(0.2, 1.0)), int(rng.integers(1, 4))
        law = [(ready, int(rng.integers(1, 3)), likely)]
        market.submit(f"earlier-{i}", StatementOfWork(1, 1, DeadlineValue(20.0, 6), law))
    early = float(rng.uniform(2.0, 12.0))
    late, short = early * float(rng.uniform(0.0, 0.6)), float(rng.uniform(0.2, 0.8))
    return market, StatementOfWork(1, 1, TableValue({2: early, 3: late}), [(1, 1, short), (1, 2, 1.0 - short)])


def utility(market: PostedPriceMechanism, truth: StatementOfWork, width: int) -> float:
    """Return the owner's exact expected utility if it declares ``width`` nodes; the statement is submitted."""
    menu = market.menu(width)
    cases = [(row.probability, start, row.duration) for row in truth.requirements for start in range(1, 5)]
    terms = [[float(np.asarray(of(start, each))) for of in (menu.price, menu.failure)] for _, start, each in cases]
    plan = market.submit("owner", StatementOfWork(truth.birth, width, truth.value, truth.requirements))
    return sum(
        probability * (1.0 - failure) * (float(truth.value(start + duration)) - price)
        for (probability, start, duration), (price, failure) in zip(cases, terms, strict=True)
        if start == _start(plan, truth)
    )


def _start(plan: LaunchPlan, truth: StatementOfWork) -> int | None:
    return plan.start(truth.requirements[0].arrival, truth.requirements[0].signal)


def useful_share(seed: int, mechanism: str) -> float:
    """Return what a mechanism earns in G3 over the best schedule in hindsight.

    Each round more jobs are born than there are nodes, ready at once, one node each. A job takes one round with
    probability 1/8, else eight, which nobody sees; it is worth 1 if it is done in its first round. In hindsight every
    node runs a short job in every round.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, 33]))
    limits = {"max_concurrency": 1, "max_duration": LONGEST, "max_delay": 2 * LONGEST}
    market = MarketLoop(get_mechanism(mechanism, capacity=NODES, horizon=ROUNDS, max_value=1.0, rng=rng, **limits))
    done = 0
    for now in range(1, ROUNDS + 1):
        law = [(now, 1, 1 / LONGEST), (now, LONGEST, 1 - 1 / LONGEST)]
        for i in range(NODES):
            length = 1 if rng.random() < 1 / LONGEST else LONGEST
            market.submit(f"{now}-{i}", StatementOfWork(now, 1, DeadlineValue(1.0, now + 1), law), Fate(now, length), 1)
        done += sum(event.completion == now + 1 and _born(event.job) == now for event in market.clear())
    return done / (NODES * ROUNDS)


def _born(name: object) -> int:
    return int(str(name).partition("-")[0])


@experiment("mechanism-hidden", "mechanism paper, Theorems 3.2 and 5.1", "hidden durations: declaring nodes, ratio")
def _hidden(bench: Bench) -> Found:
    """What declaring more nodes than needed gains where durations are hidden, and what the ratio is there (G1, G3)."""
    earned = {width: utility(g1_market(), g1_report(), width) for width in (1, 2)}
    text = f"market G1: gain of declaring two nodes where one is needed, credits (the truth earns {earned[1]:g})"
    rows = [exact_row(Claim(text, "Theorem 3.2", "at most", 0.0, 0.0, why=STATED), earned[2] - earned[1])]
    seeds = bench.seeds
    gains, truths = [], []
    for seed in seeds:
        bench.tell(f"seed {seed}")
        own = []
        for world in range(seed * 20, seed * 20 + 20):
            market, truth = drawn_market(world)
            honest = utility(market, truth, 1)
            wide, again = drawn_market(world)
            own.append((honest, utility(wide, again, 2) - honest))
        table = np.array(own)
        truths.append(float(table[:, 0].mean()))
        gains.append((float((table[:, 1] > 1e-9).mean()), float(np.maximum(table[:, 1], 0.0).max())))
    paying, largest = np.array(gains).T
    text = "drawn markets: share in which declaring two nodes pays"
    rows.append(mean(text, "Theorem 3.2", "at most", 0.0, paying, why=STATED))
    text = f"drawn markets: largest gain of twenty, credits (the truth earns {np.mean(truths):.2f} on average)"
    sized = "the size of the gains of the row before"
    rows.append(mean(text, "Theorem 3.2", "at most", 0.0, largest, why=STATED, setting=sized))
    low, high = price_ends(1, LONGEST, 1.0)
    bound = relaxed_ratio(low, high)
    for name, words in (
        ("exponential", ""),
        ("first-come", "first come, first served at price 0, which stops a job at its deadline"),
    ):
        bench.tell(f"G3, {name}")
        shares = [useful_share(seed, name) for seed in seeds[:G3_SEEDS]]
        text = f"market G3: welfare of {name} over the best in hindsight, durations 1 or {LONGEST} hidden"
        rows.append(mean(text, "Theorem 5.1", "at least", 1.0 / bound, shares, why=STATED, setting=words))
    line = Line("two nodes declared", seeds, largest.tolist())
    panel = Panel("hidden durations", "seed", "largest gain, credits", [line])
    runs = pd.DataFrame({"seed": seeds, "share_paying": paying, "largest_gain": largest})
    return Found(rows, [panel], f"20 markets a seed; G3: {NODES} nodes, {ROUNDS} rounds, {G3_SEEDS} seeds", runs)
