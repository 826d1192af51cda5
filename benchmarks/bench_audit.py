"""Audits: certificates, and the plays of a search.

Certificates: the cost of one, against what the submission it speaks of costs the mechanism itself. Size: 250
active jobs over 122 rounds ahead, runs of up to 48 rounds on up to 4 nodes, 1,000 paths. A submission with
``refresh="submission"`` draws as many fresh paths as a certificate does. Both are timed on a copy of the market
just after an earlier submission: the certificate then asks for the mechanism's own estimates first, which draws
the paths the submission would have drawn (and finds drawn later), and for its own paths beside them.
``..._alone`` leaves the former out: a certificate in a market whose estimates are there.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice, product

import numpy as np

from harness import Row, Timed, benchmark, time_interleaved
from marketsched.config.named_mechanisms import named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import (
    DeadlineValue,
    ExponentialPricing,
    MonteCarloOracle,
    PostedPriceMechanism,
    StatementOfWork,
)
from marketsched.truthfulness import MarketAtHand, Worlds, certify
from marketsched.truthfulness.searches.evaluation import Candidate, prepared
from marketsched.truthfulness.searches.families import default_families, interleaved
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand
from marketsched.truthfulness.situations.true_owners import Played

JOBS, PATHS = 250, 1_000
DELAY, LONGEST, WIDEST = 122, 48, 4
TOP = 7_680.0  # V_max, credits


def _statement(rng: np.random.Generator, *, revealed: bool) -> StatementOfWork:
    """Return a job as a prediction gives it: 3 arrivals x 5 durations, two hours ahead, some hours of slack."""
    typical = int(rng.integers(2, 25))
    durations = np.unique(np.clip(np.rint(typical * np.array([0.8, 0.9, 1.0, 1.2, 1.6])), 1, LONGEST).astype(int))
    arrivals = int(rng.integers(20, 60)) + np.arange(3)
    points = [x.ravel() for x in np.meshgrid(arrivals, durations, indexing="ij")]
    weights = rng.random(points[0].size)
    width = int(rng.integers(1, WIDEST + 1))
    value = float(width * typical * rng.uniform(0.1, 4.0))
    deadline = int(arrivals[-1] + durations[-1] + rng.integers(2, 30))
    return StatementOfWork.from_arrays(
        1, width, DeadlineValue(value, deadline), points[0], points[1], weights / weights.sum(), revealed=revealed
    )


def market(load: float, *, revealed: bool) -> PostedPriceMechanism:
    """Return a market in which ``JOBS`` jobs are planned; ``load``: of the rounds they need, without any choice."""
    rng = np.random.default_rng(11)
    jobs = [_statement(rng, revealed=revealed) for _ in range(JOBS)]
    work = sum(s.concurrency * float(s.law.durations @ s.law.probabilities) for s in jobs)
    mechanism = PostedPriceMechanism(
        round(work / 60 / load),
        720,
        ExponentialPricing(floor=0.001, ceiling=20.0),
        MonteCarloOracle(PATHS, "submission"),
        max_concurrency=WIDEST,
        max_duration=LONGEST,
        max_value=TOP,
        max_delay=DELAY,
        epsilon=0.05 if revealed else -0.3,
        threshold=0.05,
        rng=3,
    )
    for name, sow in enumerate(jobs):
        mechanism.submit(name, sow)
    return mechanism


def submit(owner: StatementOfWork, given: PostedPriceMechanism) -> None:
    """Submit the truth."""
    given.submit("owner", owner)


def audit(owner: StatementOfWork, given: PostedPriceMechanism) -> None:
    """Certify the owner."""
    certify(given, owner, samples=PATHS, exact=False, rng=1)


@benchmark
def certificates() -> Iterator[Row]:
    """One owner's certificate over one submission: durations revealed and hidden, from light load to heavy."""
    worst = 0.0
    for revealed in (True, False):
        for load in (0.5, 0.85, 1.5):
            mechanism = market(load, revealed=revealed)
            ready = copy.deepcopy(mechanism)
            ready.menu(1)
            totals = [0.0, 0.0, 0.0]
            owners = [_statement(np.random.default_rng([5, k]), revealed=revealed) for k in range(5)]
            for owner in owners:
                times = time_interleaved(
                    [
                        Timed(partial(audit, owner), partial(copy.deepcopy, mechanism)),
                        Timed(partial(submit, owner), partial(copy.deepcopy, mechanism)),
                        partial(audit, owner, ready),
                    ],
                    rounds=3,
                    shortest=0.0,
                )
                totals = [total + seconds for total, seconds in zip(totals, times, strict=True)]
            regime = f"{'revealed' if revealed else 'hidden'}_at_load_{load}"
            worst = max(worst, totals[0] / totals[1])
            yield Row(f"certificate.ms_{regime}", totals[0] / len(owners) * 1e3, "ms")
            yield Row(f"certificate.over_submit_{regime}", totals[0] / totals[1], "x")
            yield Row(f"certificate.over_submit_{regime}_alone", totals[2] / totals[1], "x")
    yield Row("certificate.over_submit", worst, "x", at_most=3)


LIES, WORLDS = 40, 5
SEARCHED = ("first-come", "bid-price", "posted-price")


@benchmark
def plays() -> Iterator[Row]:
    """Plays a second of a search for the lies of one owner: 40 lies of all families, in 5 worlds each.

    Whole plays, from a copy of the market at the owner's turn to the end of its job, stand beside them.
    """
    for mechanism in SEARCHED:
        market = MarketAtHand.of(named_mechanisms(Scenario.load("stochastic-mix"), [mechanism])[0].scenario)
        name = next(job.name for job in market.setup.jobs[250:] if job.arrival is not None)
        _ = market.owners([name])[0].truthful  # compiles
        short = _each(market.owners([name])[0])
        market.shortens = market.settles = False
        whole = _each(market.owners([name])[0])
        assert short[1] == whole[1], "short plays end otherwise"
        yield Row(f"audit.plays_per_second_stochastic-mix_{mechanism}", len(short[1]) / short[0], "1/s")
        if (
            mechanism != "posted-price"
        ):  # with posted prices a report is planned at submission, and nothing is sure before the end
            yield Row(f"audit.whole_over_short_play_{mechanism}", whole[0] / short[0], "x", at_least=1.5)


def _each(owner: OwnerAtHand) -> tuple[float, list[Played]]:
    """Return the processor time of all plays, in seconds, and how each of them ended."""
    worlds, families = Worlds(owner), interleaved(default_families(owner.truth, owner.public))
    made = (prepared(owner, lie) for _, lie in families)
    lies = list(islice((each.conduct for each in made if isinstance(each, Candidate)), LIES))
    seeds = [seed for seed in range(4 * WORLDS) if worlds.world(seed).own.arrival is not None]
    begin = time.process_time()
    ended = [worlds.play(conduct, seed) for seed, conduct in product(seeds[:WORLDS], lies)]
    return time.process_time() - begin, ended
