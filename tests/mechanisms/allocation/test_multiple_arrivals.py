"""Several jobs per port: the formula of section 3.4 on the copied cluster, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import PortCopies, RecordedArrivals, small_integer_instance
from marketsched.mechanisms.allocation.port_copies import CopiedArrivals
from naive_allocation import naive_reward


@settings(deadline=None, max_examples=many(60))
@given(st.integers(0, 2**32), st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any))
def test_the_reward_is_the_formulas(seed, most):
    rng = np.random.default_rng(seed)
    cluster = small_integer_instance(rng, n_ports=3)
    copies = PortCopies(most)
    copied = copies.replicate(cluster)
    assert copied.n_ports == sum(most)
    y = copied.project(rng.uniform(0, 3, (copies.n_copies, cluster.n_instances, cluster.n_types)))
    counts = rng.integers(0, np.array(most) + 1)
    expected = naive_reward(copied, [j < counts[port] for port in range(3) for j in range(most[port])], y)
    assert copied.reward(copies.presence(counts), y) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    gain, overhead = copied.gain_and_overhead(copies.presence(counts), y)
    assert (gain - overhead).sum() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert not (gain - overhead)[counts[copies.ports] == 0].any()
    assert (y.sum(axis=0) <= cluster.capacities + 1e-9).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PortCopies([0, 0]), "a port to which jobs can come"),
        (lambda: PortCopies([]), "a port to which jobs can come"),
        (lambda: PortCopies([1, -1]), r"most\[1\] = -1"),
        (lambda: PortCopies([1, 2]).presence([2, 1]), r"counts\[0\] = 2: expected at most 1"),
        (lambda: PortCopies([1, 2]).presence([1]), "counts has shape"),
        (lambda: PortCopies([1, 2]).replicate(small_integer_instance(np.random.default_rng(0))), "4 ports: expected 2"),
        (lambda: CopiedArrivals(RecordedArrivals([[2, 1]]), PortCopies([1, 2])), r"counts\[0\] = 2"),
        (lambda: CopiedArrivals(RecordedArrivals([[1]]), PortCopies([1, 2])), "1 ports: expected 2"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make()
