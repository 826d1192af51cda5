"""What certificates rest on: fresh paths, joint failures on them, and confidence bounds of means."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from certificate_moments import moment
from draws import many
from marketsched.mechanisms import ExactOracle, MonteCarloOracle
from marketsched.mechanisms.posted import failure_table as kernels
from marketsched.mechanisms.posted.failure_table import Launches, joint_failures
from marketsched.truthfulness.certificates import bands
from marketsched.truthfulness.certificates.bands import (
    lower_means,
    rough_lower_means,
    rough_upper_means,
    share_at_least,
    upper_means,
)
from path_blocks import in_blocks
from reference.markets import Kind

ANY = Kind(faithful=True, external=False, max_jobs=5)

# --- joint failures ----------------------------------------------------------------------------------


def fails(loads, s, d, soft, hard):
    """(6') on one path."""
    return any(x > hard for x in loads[:s]) or any(x > soft for x in loads[s : s + d])


@st.composite
def path_questions(draw):
    rounds = draw(st.integers(2, 9))
    paths = draw(st.sampled_from([1, 3, 64, 70]))
    loads = np.array(draw(st.lists(st.integers(0, 7), min_size=paths * rounds, max_size=paths * rounds)), np.int16)
    durations = np.array(sorted(draw(st.sets(st.integers(1, 4), min_size=1))), np.int64)
    n_starts = draw(st.integers(1, 5))
    points = draw(
        st.lists(st.tuples(st.integers(-1, n_starts - 1), st.integers(0, durations.size - 1)), min_size=1, max_size=4)
    )
    softs = np.array(draw(st.lists(st.integers(0, 7), min_size=1, max_size=3)), np.int64)
    return (
        loads.reshape(paths, rounds),
        draw(st.integers(0, 3)),
        n_starts,
        durations,
        points,
        softs,
        draw(st.integers(3, 9)),
    )


@pytest.mark.parametrize("form", ["compiled", "python"])
@settings(max_examples=many(60))
@given(question=path_questions(), first_row=st.integers(0, 8))
def test_joint_failures_are_those_of_the_definition(form, question, first_row):
    loads, first, n_starts, durations, points, softs, hard = question
    softs = np.minimum(softs, hard)
    anchors, lengths = (np.array(x, np.int64) for x in zip(*points, strict=True))
    ring, tops = in_blocks(loads, first_row % loads.shape[1])
    compiled = kernels._joint_kernel
    try:
        if form == "python":
            kernels._joint_kernel = getattr(compiled, "py_func", compiled)
        alone, both = joint_failures(
            ring,
            tops,
            first_row % loads.shape[1],
            first,
            n_starts,
            Launches(durations, anchors, lengths),
            softs=softs,
            hard=hard,
        )
    finally:
        kernels._joint_kernel = compiled
    for (w, soft), i in product(enumerate(softs), range(n_starts)):
        for m, d in enumerate(durations):
            assert alone[w, m, i] == sum(fails(path, first + i, d, soft, hard) for path in loads)
        for k, (anchor, m) in enumerate(points):
            d = durations[m]
            expected = (
                0
                if anchor < 0
                else sum(
                    fails(path, first + i, d, soft, hard) and fails(path, first + anchor, d, softs[0], hard)
                    for path in loads
                )
            )
            assert both[w, k, i] == expected


# --- fresh paths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("oracle", ["exact", "monte-carlo"])
def test_fresh_paths_follow_the_true_law(oracle):
    """Every count within an exact binomial interval; all of them together wrong with probability 1e-6."""
    asked, samples = [], 2000
    for seed in range(many(150)):
        own = ExactOracle() if oracle == "exact" else MonteCarloOracle(64, 0.1, rng=seed)
        found = moment(seed, ANY, oracle=own) if oracle == "exact" else moment(seed, ANY, oracle=own, threshold=1.0)
        if found is None:
            continue
        view = found.market.inspect()
        paths = view.fresh_paths(samples, np.random.default_rng(seed))
        for c in range(1, found.settings.max_concurrency + 1):
            n_starts, n_durations = found.settings.max_delay, found.settings.max_duration
            counts = paths.counts(c, n_starts, n_durations)
            exact = view.exact_failures(c, n_starts, n_durations)
            inside = np.add.outer(np.arange(n_starts), np.arange(n_durations)) + view.now <= found.settings.horizon
            asked += zip(counts[inside].tolist(), exact[inside].tolist(), strict=True)
    assert sum(0 < p < 1 for _, p in asked) > many(300)
    for count, p in asked:
        if p < 1e-12 or p > 1 - 1e-12:
            assert count == round(p) * samples
        else:
            assert min(binom.cdf(count, samples, p), binom.sf(count - 1, samples, p)) > 1e-6 / 2 / len(asked)


def test_fresh_paths_are_not_those_of_the_estimates():
    """Not even when mechanism and auditor were given the same seed."""
    own = MonteCarloOracle(640, "submission", rng=5)
    found = moment(3, ANY, oracle=own, threshold=1.0)
    found.market.menu(1)
    kept = own._paths.draws.copy()
    fresh = found.market.inspect().fresh_paths(640, np.random.default_rng(5))
    rows = own._paths.loads.transpose(1, 0, 2).reshape(own._paths.window, -1)
    others = fresh.loads.transpose(1, 0, 2).reshape(own._paths.window, -1)
    several = [t for t, row in enumerate(rows) if len(np.unique(row)) > 1]
    assert several
    for t in several:
        assert (rows[t] != others[t]).any()
    np.testing.assert_array_equal(own._paths.draws, kept)


def test_exact_oracle_beside_another_agrees_with_the_plain_implementation():
    for seed in range(30):
        found = moment(seed, ANY, oracle=MonteCarloOracle(64, rng=seed), threshold=1.0)
        if found is None:
            continue
        table = found.market.inspect().exact_failures(1, 4, found.settings.max_duration)
        for i, k in np.ndindex(*table.shape):
            assert table[i, k] == pytest.approx(found.failures.failure(found.truth.birth + i, 1, k + 1), abs=1e-12)


# --- bounds of means ---------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [1, 7, 40, 300])
@pytest.mark.parametrize("failure", [0.2, 0.01, 1e-5])
def test_bounds_of_a_mean_hold_for_every_probability(samples, failure):
    """Exactly, by summing the binomial law: the bound is wrong with at most the stated probability."""
    counts = np.arange(samples + 1)
    upper, lower = upper_means(counts / samples, samples, failure), lower_means(counts / samples, samples, failure)
    assert (np.diff(upper) >= 0).all() and (np.diff(lower) >= 0).all()
    for p in np.r_[np.linspace(0.001, 0.999, 97), 1e-4, 1 - 1e-4]:
        law = binom.pmf(counts, samples, p)
        assert law[upper < p].sum() <= failure * (1 + 1e-9)
        assert law[lower > p].sum() <= failure * (1 + 1e-9)
    assert (rough_upper_means(counts / samples, samples, failure) >= upper - 1e-12).all()
    assert (rough_lower_means(counts / samples, samples, failure) <= lower + 1e-12).all()


def test_bounds_of_a_mean_hold_for_variables_between_0_and_1():
    """A third of them 0, a third 0.3, a third 1: all sums of six values."""
    values = np.array([0.0, 0.3, 1.0])
    means = np.array([sum(values[list(x)]) / 6 for x in product(range(3), repeat=6)])
    wrong = (upper_means(means, 6, 0.1) < values.mean()).mean(), (lower_means(means, 6, 0.1) > values.mean()).mean()
    assert max(wrong) <= 0.1


def test_a_bound_at_half_the_distance_would_not_hold(monkeypatch):
    """The check above sees a band that is too narrow."""
    real = bands._bounds_kernel
    monkeypatch.setattr(bands, "_bounds_kernel", lambda m, distance, up, out: real(m, distance / 2, up, out))
    counts = np.arange(301)
    upper = upper_means(counts / 300, 300, 0.01)
    wrong = [binom.pmf(counts, 300, p)[upper < p].sum() for p in np.linspace(0.001, 0.999, 97)]
    assert max(wrong) > 0.01


def test_bounds_are_exact_without_failures():
    assert upper_means(0.0, 500, 0.02) == pytest.approx(1 - 0.02 ** (1 / 500), rel=1e-12)
    assert lower_means(1.0, 500, 0.02) == pytest.approx(0.02 ** (1 / 500), rel=1e-12)
    assert lower_means(0.0, 500, 0.02) == 0.0 and upper_means(1.0, 500, 0.02) == 1.0


@pytest.mark.parametrize(("successes", "trials"), [(0, 5), (5, 5), (3, 9), (458, 459), (459, 459)])
def test_shares_are_those_of_clopper_and_pearson(successes, trials):
    interval = binomtest(successes, trials).proportion_ci(0.98, method="exact")  # two-sided: 0.99 on either side
    assert share_at_least(successes, trials, 0.99) == pytest.approx(interval.low, abs=1e-12)
