"""Failure probabilities: the definition, its two closed forms, and both oracles of the package."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from draws import many
from marketsched.mechanisms import (
    ExactOracle,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from reference.bridge import mechanism, play
from reference.failures import FailureTable
from reference.market import Market
from reference.markets import Kind, SmallMarket, TrueJob, seeded_market
from reference.replay import report_of, settings_of

RULES = ["all", "running"]


# --- the definition and its closed forms (the package plays no part) --------------------------------


@pytest.mark.parametrize(("probability", "announced"), [(0.025, 0.0), (0.0251, 0.0251)])
def test_the_automatic_threshold_of_an_exact_oracle(probability, announced):
    """eps/(2 V_max) = .2/8; an estimate equal to it counts as 0."""
    market = PostedPriceMechanism(
        2,
        4,
        PostedPricing(prices=[0.0]),
        ExactOracle(),
        max_concurrency=1,
        max_duration=1,
        max_value=4.0,
        max_delay=4,
        epsilon=0.2,
        threshold="auto",
    )
    for name in ("first", "second"):
        law = [(1, 1, probability if name == "first" else 1.0)]
        market.submit(name, StatementOfWork(1, 1, TableValue({2: 4.0}), law))
    assert market.menu(1).failure(1, 1) == pytest.approx(announced, abs=1e-15)


# --- the package's oracles on random markets --------------------------------------------------------


class Lockstep:
    """The reference market, fed what the package's market is fed, asked at every submission."""

    def __init__(self, market: SmallMarket, **changes) -> None:
        self.config = market.config | changes
        self.reference = Market(settings_of(self.config))
        self.histories = 0

    def before(self, job: TrueJob) -> FailureTable:
        """Return the true failure probabilities for a job that is about to be submitted."""
        self._to(job.birth)
        self.histories += 1
        return self.reference.failures()

    def after(self, job: TrueJob) -> None:
        self.reference.submit(job.name, report_of(job.sow, job.birth, self.reference.settings))

    def _to(self, t: int) -> None:
        while self.reference.round < t:
            self._arrivals()
            self.reference.clear()

    def _arrivals(self) -> None:
        for job in self.jobs:
            if job.arrival == self.reference.round:
                found = self.reference.job(job.name)
                if found is not None and not found.arrive_seen:
                    self.reference.arrive(found, job.signal, job.duration)

    def run(self, market: SmallMarket, oracle, look) -> None:
        """Play the market; call ``look(oracle, job, true table)`` before every submission."""
        self.jobs = market.jobs
        product = mechanism(self.config, oracle=oracle)
        play(
            product,
            market.jobs,
            before=lambda job, sow: look(oracle, job, self.before(job)),
            after=lambda job, sow, plan: self.after(job),
        )


def assert_exact(oracle, job, truth, settings):
    """Hold the whole table of every concurrency against the enumeration."""
    for c in range(1, settings.max_concurrency + 1):
        table = oracle.failure_table(c)
        for i, k in np.ndindex(table.shape):
            wanted = truth.failure(job.birth + i, c, k + 1)
            assert table[i, k] == pytest.approx(wanted, abs=1e-9), (job.name, job.birth + i, c, k + 1)


def exact_agreement(rule, seeds):
    histories = 0
    for seed in seeds:
        market = seeded_market(seed, Kind(evictions=(rule,)))
        pair = Lockstep(market)
        pair.run(market, ExactOracle(), lambda o, j, f, s=pair.reference.settings: assert_exact(o, j, f, s))
        histories += pair.histories
    return histories


@pytest.mark.parametrize("rule", RULES)
def test_exact_oracle_is_the_definition(rule):
    assert exact_agreement(rule, range(many(60))) > many(200)


class Sampling:
    """Monte Carlo against exact on many histories, with plans that ignore the estimates."""

    def __init__(self, samples, refresh, eta=0.05):
        self.samples, self.refresh, self.eta = samples, refresh, eta
        self.found = []  # (worst error over gamma, standardised error of one cell) of each table

    def run(self, seeds, rule):
        for seed in seeds:
            market = seeded_market(seed, Kind(evictions=(rule,)))
            market = replace(market, config=market.config | {"threshold": 1.0})
            oracle = MonteCarloOracle(self.samples, self.refresh, rng=np.random.default_rng(seed))
            self.of_market = []
            Lockstep(market).run(market, oracle, self.look)
            self.found += self.of_market if self.refresh == "submission" else self.of_market[-1:]

    def look(self, oracle, job, truth):
        c = job.sow["concurrency"]
        table = oracle.failure_table(c)
        wanted = np.array(
            [[truth.failure(job.birth + i, c, k + 1) for k in range(table.shape[1])] for i in range(len(table))]
        )
        assert np.abs(table - wanted)[(wanted == 0) | (wanted > 1 - 1e-12)].max(initial=0.0) < 1e-9
        inside = (wanted > 0.01) & (wanted < 0.99)
        if not inside.any():
            return  # nothing random: no estimate can be wrong
        gamma = math.sqrt(math.log(2 * table.size / self.eta) / (2 * self.samples))  # (28)
        i, k = np.argwhere(inside)[job.birth % inside.sum()]
        f = wanted[i, k]
        score = (table[i, k] - f) / math.sqrt(f * (1 - f) / self.samples)
        self.of_market.append((np.abs(table - wanted).max() / gamma, score))

    def check(self, at_least):
        errors, scores = np.array(self.found).T
        assert errors.size >= at_least
        # Each table exceeds gamma with probability at most eta: more than this has probability 1e-6.
        assert (errors > 1).sum() <= binom.isf(1e-6, errors.size, self.eta)
        assert (errors > 0.1).mean() > 0.5  # a bound ten times sharper does not hold
        # One cell of each table, standardised: mean 0, variance 1, fourth moment at most 3 + 1/(.01 n);
        # the tables are independent: five standard deviations.
        assert abs(scores.mean()) < 5 / math.sqrt(scores.size)
        assert abs(np.mean(scores**2) - 1) < 5 * math.sqrt((2 + 100 / self.samples) / scores.size)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("rule", RULES)
def test_fresh_paths_estimate_within_gamma(rule):
    sampling = Sampling(400, "submission")
    sampling.run(range(many(200)), rule)
    sampling.check(at_least=many(200))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("refresh", ["round", 0.0, 0.25])
def test_kept_paths_follow_the_law_of_what_is_left(refresh, rule):
    sampling = Sampling(400, refresh)
    sampling.run(range(many(200)), rule)
    sampling.check(at_least=many(60))
