"""The store of sample paths: loads are the sum of the drawn outcomes, whatever happened before."""

import numpy as np
import pytest
from scipy import stats

from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    ExponentialPricing,
    InvalidParameterError,
    InvalidReportError,
    MonteCarloOracle,
    PostedPriceMechanism,
    StatementOfWork,
)
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.posted import draws, path_kernels, sample_paths
from marketsched.mechanisms.posted.residual import ResidualJob
from refusals import refused

LIMITS = MarketLimits(6, 60, max_concurrency=3, max_duration=5, max_value=100.0, max_delay=14)


def random_law(rng, now):
    """A report with up to twelve points; hidden durations half of the time, missing mass too."""
    n = int(rng.integers(1, 13))
    weights = rng.random(n)
    weights *= rng.choice([1.0, 0.7]) / weights.sum()
    sow = StatementOfWork.from_arrays(
        now,
        int(rng.integers(1, 4)),
        DeadlineValue(1.0, 99),
        now + rng.integers(0, 5, n),
        rng.integers(1, 6, n),
        weights,
        revealed=bool(rng.integers(2)),
    )
    starts = sow.law.group_arrivals + rng.integers(0, 4, sow.law.group_arrivals.size)
    starts[rng.random(starts.size) < 0.15] = -1
    return sow, starts


class RandomHistory:
    """Drive oracles through the same random but legal history."""

    def __init__(self, seed, oracles, rule):
        self.rng = np.random.default_rng(seed)
        self.oracles = oracles
        for oracle in oracles:
            oracle.attach(LIMITS, np.random.default_rng(seed), rule)
        self.now = 1
        self.names = 0
        self.waiting, self.started = {}, {}

    def tell(self, method, *arguments):
        for oracle in self.oracles:
            getattr(oracle, method)(*arguments)

    def round(self, submissions):
        """Play one round: submissions, arrivals, some removals, completions."""
        rng = self.rng
        for _ in range(submissions):
            sow, starts = random_law(rng, self.now)
            self.tell("submitted", self.names, self.names, sow.concurrency, sow.law, starts)
            self.waiting[self.names] = (sow.law, starts)
            self.names += 1
        ready = []
        for job, (law, starts) in list(self.waiting.items()):
            cases = np.flatnonzero(law.group_arrivals == self.now)
            if not cases.size or rng.random() < 0.5:
                continue
            group = int(rng.choice(cases))
            del self.waiting[job]
            points = slice(law.offsets[group], law.offsets[group + 1])
            if starts[group] < 0:
                self.tell("removed", job)
            else:
                ready.append((job, group, int(starts[group])))
                end = starts[group] + int(rng.choice(law.durations[points])) + (rng.random() < 0.1)
                self.started[job] = min(int(end), int(starts[group]) + 5)
        if ready:
            self.tell("arrived", ready)
        if self.waiting and rng.random() < 0.2:
            job = int(rng.choice(list(self.waiting)))
            del self.waiting[job]
            self.tell("removed", job)
        self.now += 1
        self.tell("advanced", self.now)
        for job, end in list(self.started.items()):
            if end <= self.now:
                del self.started[job]
                self.tell("removed", job)


def loads_from_draws(oracle):
    """Rebuild the loads of all paths from the drawn outcomes alone, in order of submission."""
    paths = oracle._paths
    loads = np.zeros((paths.n_paths, paths.window), int)
    for slot in paths._slot_of.values():
        row = paths._slots[slot]
        for path in range(paths.n_paths):
            first, last = paths._points[:, row[path_kernels.OFFSET] + int(paths.draws[slot, path])]
            if first < 0:
                continue
            for t in range(max(first, oracle.now), last + 1):
                loads[path, t - oracle.now] += row[path_kernels.WIDTH]
                if oracle.eviction == "running" and loads[path, t - oracle.now] > 6:
                    break
    return loads


@pytest.mark.long_after(8)
@pytest.mark.slow
@pytest.mark.parametrize("rule", ["all", "running"])
@pytest.mark.parametrize("refresh", [0.0, 0.4, "round", "submission"])
def test_loads_stay_the_sum_of_the_draws(rule, refresh):
    oracle = MonteCarloOracle(70, refresh)
    history = RandomHistory(5, [oracle], rule)
    for _ in range(25):
        history.round(int(history.rng.integers(0, 3)))
        oracle.failure_table(2)
        paths = oracle._paths
        rows = np.arange(oracle.now, oracle.now + paths.window) % paths.window
        lanes = paths.loads[:, rows, :].transpose(0, 2, 1).reshape(-1, paths.window)
        np.testing.assert_array_equal(lanes[:70], loads_from_draws(oracle))
        assert not lanes[70:].any()
        assert (paths.row_tops[rows] >= lanes.max(axis=0)).all()


def test_draws_do_not_depend_on_a_report():
    """Two markets that differ in one report draw every other job alike."""
    draws = []
    for weights in ([0.5, 0.5], [0.1, 0.9]):
        oracle = MonteCarloOracle(500, rng=3)
        oracle.attach(LIMITS, np.random.default_rng(0))
        lied = StatementOfWork(1, 1, DeadlineValue(1.0, 9), [(1, 1, weights[0]), (4, 2, weights[1])])
        other = StatementOfWork(1, 2, DeadlineValue(1.0, 9), [(2, 1, 0.3), (3, 3, 0.6)])
        oracle.submitted("liar", 0, 1, lied.law, lied.law.group_arrivals)
        oracle.submitted("other", 1, 2, other.law, other.law.group_arrivals)
        for now in (2, 3):
            oracle.advanced(now)
            oracle._settle()
        draws.append(oracle._paths.draws[oracle._paths._slot_of["other"], :500].copy())
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("refresh", [0.2, "round", "submission"])
@pytest.mark.parametrize("rule", ["all", "running"])
def test_jobs_that_did_not_arrive_in_time_can_be_forgotten(rule, refresh, monkeypatch):
    """The tables are those of an oracle that follows them for ever, which has ever more to follow."""

    def tables():
        oracle = MonteCarloOracle(150, refresh, rng=2)
        history, seen = RandomHistory(23, [oracle], rule), []
        for _ in range(25):
            history.round(2)
            seen.append(oracle.at_rest().failure_table(2))
            seen.append(oracle.failure_table(2))
        return seen, len(oracle._paths._slot_of)

    found, followed = tables()
    monkeypatch.setattr(ResidualJob, "never_runs", False)
    wanted, more = tables()
    np.testing.assert_array_equal(found, wanted)
    assert followed < more


def test_uniform_numbers_are_uniform_and_unrelated_between_jobs_and_rounds():
    streams = [path_kernels._stream(np.uint64(77), order, draws.stamp_of(now, 1)) for order in (0, 1) for now in (1, 2)]
    numbers = np.array([[path_kernels._uniform(np.uint64(s), path) for path in range(20_000)] for s in streams])
    for row in numbers:
        assert stats.kstest(row, "uniform").pvalue > 1e-4
    correlations = np.corrcoef(numbers)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(20_000)


def test_drawing_follows_the_law_also_with_empty_points_and_missing_mass():
    sow = StatementOfWork(
        1, 1, DeadlineValue(1.0, 9), [(1, 1, 0.0), (1, 2, 0.25), (2, 1, 0.0), (3, 1, 0.35), (4, 1, 0.0)]
    )
    oracle = MonteCarloOracle(100_000, rng=5)
    oracle.attach(LIMITS, np.random.default_rng(0))
    oracle.submitted("job", 0, 1, sow.law, sow.law.group_arrivals)
    drawn = oracle._paths.draws[oracle._paths._slot_of["job"], :100_000]
    seen = np.bincount(drawn, minlength=6)
    assert (seen[[0, 2, 4]] == 0).all()
    assert stats.chisquare(seen[[1, 3, 5]], 100_000 * np.array([0.25, 0.35, 0.4])).pvalue > 1e-4


def test_an_oracle_serves_one_market():
    oracle = ExactOracle()
    oracle.attach(LIMITS, np.random.default_rng(0))
    refused(lambda: oracle.attach(LIMITS, np.random.default_rng(0)), "another mechanism", error=InvalidParameterError)


def test_a_report_too_large_to_draw_from_changes_nothing():
    limits = {"max_concurrency": 1, "max_duration": 300, "max_value": 9.0, "max_delay": 800}
    market = PostedPriceMechanism(5, 999, ExponentialPricing(), MonteCarloOracle(10, rng=0), **limits)
    arrivals, durations = (x.ravel() for x in np.meshgrid(np.arange(1, 301), np.arange(1, 301)))
    large = StatementOfWork.from_arrays(1, 1, DeadlineValue(2.0, 500), arrivals, durations, np.full(90_000, 1e-5))
    refused(lambda: market.submit("large", large), "90000 points", error=InvalidReportError)
    assert market.committed(1, 999).sum() == 0
    assert market.submit("large", StatementOfWork(1, 1, DeadlineValue(2.0, 5), [(1, 1, 1.0)])).start(1, 1) == 1


@pytest.mark.parametrize("weights", [[0.25, 0.5, 0.25], [0.97] + [0.03 / 30] * 30, [0.0, 0.4, 0.0, 0.6, 0.0]])
def test_a_draw_is_the_point_in_which_its_number_falls(weights):
    """Even laws, and one with thirty points in one bucket of the guide; narrowed, and with the last point as limit."""
    law, points = np.zeros(len(weights) + 2), np.zeros((2, len(weights) + 2), np.int64)
    guide = np.zeros(sample_paths.BUCKETS_PER_POINT * len(weights), np.uint16)
    rounds = np.arange(len(weights))
    steps = sample_paths.law_kernel(rounds, rounds, np.array(weights), points, law, guide, 0, 0, guide.size)
    np.testing.assert_array_equal(law[1:-1], np.cumsum(weights))
    targets, points = np.random.default_rng(5).random(path_kernels.LANES), np.zeros(path_kernels.LANES, np.uint16)
    for low, high in ((0, len(weights)), (1, len(weights)), (1, len(weights) - 1)):
        within = law[low] + targets * (law[high] - law[low])
        path_kernels._find_points(law, law[low], high, guide, steps, within - law[low], points)
        expected = np.searchsorted(law[:-1], law[low] + (within - law[low]), side="right") - 1
        np.testing.assert_array_equal(points, np.minimum(expected, high - 1))
