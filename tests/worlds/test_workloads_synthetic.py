"""The market without data: its parameters, its figures over seeds, and reality drawn from the laws."""

import numpy as np
import pytest

from draws import many
from marketsched.worlds import SyntheticParameters, synthetic_pipelines
from marketsched.worlds.synthetic import POINTS, WEIGHTS, draw_pipelines, merged, run_rounds, start_rounds

SEEDS = range(many(8, least=4))


@pytest.fixture(scope="module")
def markets():
    return [synthetic_pipelines(rng=np.random.default_rng(seed)) for seed in SEEDS]


def test_the_seven_points_are_a_fair_normal_law():
    assert WEIGHTS.sum() == pytest.approx(1) and WEIGHTS @ POINTS == pytest.approx(0)
    assert 0.6 < WEIGHTS @ POINTS**2 < 1  # the tails are cut


def test_figures_over_seeds(markets):
    """4,418 +- 162 statements, about 112 nodes, load .85, peak 1.7: known means over ten seeds."""
    error = np.sqrt(1 / len(SEEDS) + 1 / 10)  # of the difference of two means, for a deviation of 1
    assert np.mean([len(m.jobs) for m in markets]) == pytest.approx(4418, abs=4 * 162 * error)
    assert np.std([len(m.jobs) for m in markets], ddof=1) == pytest.approx(162, rel=0.6)
    assert np.mean([m.capacity for m in markets]) == pytest.approx(112, abs=4 * 10 * error)
    assert np.mean([m.load for m in markets]) == pytest.approx(0.85, abs=0.01)
    assert np.mean([m.peak for m in markets]) == pytest.approx(1.7, abs=0.1)


def test_statements_expected():
    """400 jobs * 288 rounds * E[1 / period] = 4,460: births are stationary over the window."""
    rate = 0.25 / 12 + 0.2 / 24 + 0.25 / 36 + 0.15 / 72 + 0.15 / 288
    counts = [
        len(synthetic_pipelines(rng=np.random.default_rng(s), parameters=SyntheticParameters(40, 288)).jobs)
        for s in range(many(40))
    ]
    expected, error = 40 * 288 * rate, np.std(counts, ddof=1) / np.sqrt(many(40))
    assert abs(np.mean(counts) - expected) < 4 * error


@pytest.mark.slow
def test_every_job_keeps_the_announced_limits(markets):
    for market in markets[:3]:
        assert (market.max_concurrency, market.max_duration, market.max_value) == (2, 48, 3840.0)
        assert market.max_delay == 3 + 48 + 48 + 2 and market.horizon == 288 + market.max_delay
        births = [job.truth.birth for job in market.jobs]
        assert births == sorted(births) and births[0] >= 1 and births[-1] <= market.birth_rounds == 288
        assert len({job.name for job in market.jobs}) == len(market.jobs)
        for job in market.jobs:
            law = job.truth.law
            assert law.arrivals.size <= 49 and job.truth.mass == pytest.approx(1)
            assert law.arrivals.min() >= job.truth.birth and law.durations.max() <= 48
            assert 1 <= job.truth.value.highest <= market.max_value
            assert job.truth.value.last == job.tags["deadline"] <= job.truth.birth + market.max_delay - 1
            assert job.tags["deadline"] <= market.horizon
            assert job.tags["covered"] and job.signal == job.duration
            assert ((law.arrivals == job.arrival) & (law.durations == job.duration)).any()


def test_leads_and_slacks(markets):
    lead = {"free": 3, "middle": 12, "production": 36}
    slack = {"free": 48, "middle": 6, "production": 1}
    for job in markets[0].jobs:
        law, band = job.truth.law, job.tags["band"]
        marginal = np.bincount(law.durations, weights=law.probabilities)
        longest = int(np.searchsorted(np.cumsum(marginal), 0.95 - 1e-9))
        assert job.tags["deadline"] == job.truth.birth + lead[band] + longest + 1 + slack[band]
        mean = float(law.durations @ law.probabilities)
        assert job.truth.value.highest == pytest.approx(
            max(1, job.tags["value_density"] * job.truth.concurrency * mean)
        )


def test_shares_of_the_pipelines():
    n = 40_000
    parameters = SyntheticParameters(recurring_jobs=n)
    pipes = draw_pipelines(parameters, *np.random.default_rng(0).spawn(2))
    near = {"abs": 4 * np.sqrt(0.25 / n)}
    assert [np.mean(pipes.band == k) for k in range(3)] == [pytest.approx(p, **near) for p in (0.4, 0.3, 0.3)]
    assert np.mean(pipes.nodes == 1) == pytest.approx(0.8, **near) and set(pipes.nodes) == {1, 2}
    for period, share in zip((12, 24, 36, 72, 288), (0.25, 0.2, 0.25, 0.15, 0.15), strict=True):
        assert np.mean(pipes.period == period) == pytest.approx(share, **near)
    assert np.mean(pipes.phase % 12 == 0) == pytest.approx(0.6 + 0.4 / 12, **near)
    assert (pipes.phase >= 0).all() and (pipes.phase < pipes.period).all()
    daily = pipes.phase[pipes.period == 288]
    assert set(daily[daily % 12 == 0] // 12) == set(range(24))
    assert pipes.median_s[pipes.band == 0].min() == 1200 and pipes.median_s[pipes.band == 2].max() == 1440
    middle = np.log(pipes.median_s[pipes.band == 1] / 600)
    assert (middle.mean(), middle.std()) == (pytest.approx(0, abs=0.06), pytest.approx(1.3, abs=0.05))
    assert np.median(pipes.variation) == pytest.approx(0.3, rel=0.03)
    assert np.median(pipes.jitter_s) == pytest.approx(60, rel=0.05)
    assert np.median(pipes.density[pipes.band == 1]) == pytest.approx(6, rel=0.03)
    assert pipes.density.min() >= 1 and pipes.density.max() == 40


def test_a_run_law_by_hand():
    """Median 10 min, variation .3: sigma .2936, points 375, 461, 526, 600, 685, 781, 960 s."""
    law = merged(run_rounds(np.array([600.0]), np.array([0.3]), SyntheticParameters())[0])
    assert law.values.tolist() == [2, 3, 4]
    assert law.probabilities == pytest.approx([0.08 + 0.16 + 0.18 + 0.16, 0.18 + 0.16, 0.08])


def test_a_start_law_by_hand():
    """200 s of jitter: 320 s either way is a round, 180 s is one too (nearest), 90 s is none."""
    parameters = SyntheticParameters()
    announced_early, at_once = start_rounds(np.array([12, 0]), np.array([200.0, 200.0]), parameters)
    law = merged(announced_early)
    assert law.values.tolist() == [11, 12, 13]
    assert law.probabilities == pytest.approx([0.08 + 0.16, 0.18 + 0.16 + 0.18, 0.16 + 0.08])
    law = merged(at_once)  # not before it is announced
    assert law.values.tolist() == [0, 1] and law.probabilities == pytest.approx([0.76, 0.24])


@pytest.mark.slow
def test_reality_is_drawn_from_the_laws(markets):
    """The probability integral of what happened is uniform: chi-square over ten cells, 1 in 1e6."""
    cells = np.zeros(10)
    rng = np.random.default_rng(1)
    jobs = [job for market in markets for job in market.jobs]
    for job in jobs:
        law = job.truth.law
        (point,) = np.flatnonzero((law.arrivals == job.arrival) & (law.durations == job.duration))
        below = law.probabilities[:point].sum()
        cells[min(int(10 * (below + rng.random() * law.probabilities[point])), 9)] += 1
    expected = len(jobs) / 10
    assert ((cells - expected) ** 2 / expected).sum() < 45.1  # 9 degrees of freedom


def test_same_seed_same_market(markets):
    again = synthetic_pipelines(rng=np.random.default_rng(SEEDS[0]))
    assert again == markets[0] != markets[1]


def test_streams_are_apart():
    """Another number of draws for reality leaves the jobs and their values alone."""
    shorter = SyntheticParameters(recurring_jobs=30, birth_rounds=100)
    longer = SyntheticParameters(recurring_jobs=30, birth_rounds=200)
    one, two = (synthetic_pipelines(rng=np.random.default_rng(4), parameters=p) for p in (shorter, longer))
    births = {job.name: job.truth for job in two.jobs}
    assert one.jobs and all(births[job.name] == job.truth for job in one.jobs)


def test_hidden_durations_and_a_capacity_of_ones_own():
    parameters = SyntheticParameters(recurring_jobs=20, capacity=9, durations="hidden")
    market = synthetic_pipelines(rng=np.random.default_rng(4), parameters=parameters)
    assert market.capacity == 9
    assert all(job.signal is None and set(job.truth.law.group_signals) == {None} for job in market.jobs)
