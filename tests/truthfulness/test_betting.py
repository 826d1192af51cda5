"""The interval of the fresh score: it covers at every stopping time, whatever the distribution."""

import numpy as np
import pytest
from scipy.stats import binom

from draws import many
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.truthfulness.searches.betting import exceeds, mean_interval, worlds_left


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: np.where(rng.random(n) < 0.02, -5.0, 0.1),  # mean -0.002: rarely large losses
        lambda rng, n: rng.choice([-1.0, 1.0], size=n),
        lambda rng, n: np.where(rng.random(n) < 0.01, 4.9, -0.05),
    ],
)
def test_the_interval_covers_at_every_stopping_time(draw):
    """Looked at after 10, 20, 40, ... values, and stopped as soon as it seems to exclude the mean."""
    rng = np.random.default_rng(5)
    mean = draw(np.random.default_rng(0), 2_000_000).mean()
    wrong, n = 0, many(120)
    for _ in range(n):
        x = draw(rng, 1280)
        for k in (10, 20, 40, 80, 160, 320, 640, 1280):
            low, high = mean_interval(x[:k], -5.0, 5.0, 0.9)
            assert low <= x[:k].mean() <= high
            if not low <= mean <= high:
                wrong += 1
                break
    assert binom.sf(wrong - 1, n, 0.1) > 1e-3


def test_students_interval_would_fail_where_this_one_does_not():
    """A loss of 5 in one world of a hundred, not seen in 50: Student excludes the true mean, with width 0."""
    x = np.full(50, 0.04)
    low, _ = mean_interval(x, -5.0, 5.0, 0.99)
    assert x.std() == 0.0 and low < 0.04 - 0.01 * 5.04


def test_the_interval_shrinks_to_the_mean():
    rng = np.random.default_rng(0)
    widths = []
    for n in (100, 10_000):
        x = rng.uniform(-1, 1, n)
        low, high = mean_interval(x, -5.0, 5.0, 0.99)
        widths.append(high - low)
    assert widths[1] < 0.06 < widths[0]  # Student: 0.03 and 0.30
    assert mean_interval([], -5.0, 5.0, 0.99) == (-5.0, 5.0)
    with pytest.raises(InvalidParameterError, match=r"values in \[6.0, 6.0\]: expected them in \[-5.0, 5.0\]"):
        mean_interval([6.0], -5.0, 5.0, 0.99)


def test_worlds_left_come_near_what_bets_need():
    """Of gains that go on as they did: between half and twice what is then needed, on the median of 20 samples."""
    rng = np.random.default_rng(3)
    for mean, sd, low in ((0.3, 0.1, -2.0), (1.0, 1.0, -10.0), (0.5, 2.0, -6.0)):
        ratios = []
        for _ in range(20):
            x = np.maximum(low, rng.normal(mean, sd, 1000))
            needed = next(n for n in range(10, 1001, 10) if exceeds(x[None, :n], low, 1e-3)[0])
            ratios.append((20 + worlds_left(x[:20], low, 1e-3)) / needed)
        assert 0.5 < np.median(ratios) < 2.0
    assert worlds_left([], -1.0, 0.01) == worlds_left([-0.5, -0.2], -1.0, 0.01) == np.inf
