"""Failure probabilities: the definition, its two closed forms, and both oracles of the package."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from draws import many
from marketsched.mechanisms import (
    EventKind,
    ExactOracle,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)
from reference.bridge import mechanism, play
from reference.failures import FailureTable, Residual, Run, failure_by_simulation, failure_without_replay
from reference.market import Market
from reference.markets import Kind, SeededSource, SmallMarket, TrueJob, seeded_market
from reference.replay import report_of, settings_of

RULES = ["all", "running"]
HORIZON = 9


def random_history(seed):
    """Up to five earlier jobs with two or three outcomes each, and a newcomer, in round 2 of 9."""
    source = SeededSource(seed)
    jobs = []
    for _ in range(source.integer(0, 5)):
        n = source.integer(1, 3)
        outcomes = []
        for _ in range(n):
            start = None if source.integer(0, 4) == 0 else source.integer(0, 7)  # some run since before
            outcomes.append((1 / n, start, source.integer(1, 4)))
        jobs.append(Residual(source.integer(1, 3), tuple(outcomes)))
    newcomer = Run(source.integer(1, 3), source.integer(2, 8), source.integer(1, 4))
    return jobs, newcomer, 3 + source.integer(0, 2)


# --- the definition and its closed forms (the package plays no part) --------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_free_capacity_tells_what_playing_with_the_newcomer_tells(rule):
    """(6) is (5); under ``running`` with R_t taken before anybody is removed in round t."""
    uncertain = 0
    for seed in range(many(3000)):
        jobs, new, capacity = random_history(seed)
        around = {"now": 2, "horizon": HORIZON, "capacity": capacity, "eviction": rule}
        played = failure_by_simulation(jobs, new, **around)
        table = FailureTable.of(jobs, **around)
        assert table.failure(new.start, new.concurrency, new.duration) == pytest.approx(played, abs=1e-12)
        uncertain += 0.01 < played < 0.99
    assert uncertain > many(500)


def test_no_replay_is_needed_under_the_rule_of_the_paper():
    """(6') is (5)."""
    for seed in range(many(3000)):
        jobs, new, capacity = random_history(seed)
        played = failure_by_simulation(jobs, new, now=2, horizon=HORIZON, capacity=capacity, eviction="all")
        short = failure_without_replay(jobs, new, now=2, horizon=HORIZON, capacity=capacity)
        assert short == pytest.approx(played, abs=1e-12)


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


@pytest.mark.parametrize("make", [ExactOracle, lambda: MonteCarloOracle(samples=10, rng=np.random.default_rng(0))])
def test_the_latest_of_those_counted_goes_first_under_the_running_rule(make):
    """Two nodes; 1, 2 and 1 wanted in round 1: the third job goes, then the second, though a gap is left."""
    oracle = make()
    market = PostedPriceMechanism(
        2,
        4,
        PostedPricing(prices=[0.0]),
        oracle,
        max_concurrency=2,
        max_duration=1,
        max_value=4.0,
        max_delay=4,
        epsilon=-0.5,
        threshold=1.0,
        eviction="running",
    )
    for name, width in (("first", 1), ("second", 2)):
        market.submit(name, StatementOfWork(1, width, TableValue({2: 4.0}), [(1, 1, 1.0)]))
    assert oracle.failure_table(1)[:2, 0].tolist() == [1.0, 0.0]
    market.submit("third", StatementOfWork(1, 1, TableValue({2: 4.0}), [(1, 1, 1.0)]))
    for name in ("first", "second", "third"):
        market.arrive(name, 1)
    events = [(event.kind, event.job) for event in market.advance()]
    assert events == [(EventKind.CANCEL, "third"), (EventKind.CANCEL, "second"), (EventKind.START, "first")]


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
