"""The failure-table kernel against the definition (6'), one path at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from draws import many
from marketsched.mechanisms.posted import failure_table as kernels
from marketsched.mechanisms.posted.failure_table import failure_counts
from path_blocks import in_blocks


def counts_by_definition(loads, n_starts, n_durations, soft, hard):
    """Apply (6') to every path and launch; ``loads``: (paths, rounds)."""
    paths, rounds = loads.shape
    counts = np.zeros((n_starts, n_durations), dtype=int)
    for path in range(paths):
        for s in range(n_starts):
            lost = any(loads[path, t] > hard for t in range(min(s, rounds)))
            for d in range(1, n_durations + 1):
                counts[s, d - 1] += lost or any(loads[path, t] > soft for t in range(s, min(s + d, rounds)))
    return counts


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
@pytest.mark.parametrize(("paths", "highest"), [(1, 6), (63, 9), (130, 12), (64, 30)])
def test_counts_are_those_of_the_definition(dtype, paths, highest):
    rng = np.random.default_rng(paths)
    loads = rng.integers(0, highest, (paths, 11)).astype(dtype)
    ring, tops = in_blocks(loads, first_row=7)
    for soft, hard in ((5, 7), (5, 5), (0, 3), (40, 44), (5, 10**9)):
        found = failure_counts(ring, tops, 7, 11, 8, 4, soft=soft, hard=hard)
        np.testing.assert_array_equal(found, counts_by_definition(loads, 8, 4, soft, hard))


@settings(deadline=None, max_examples=many(200))
@given(
    arrays(np.int16, st.tuples(st.integers(1, 70), st.integers(2, 9)), elements=st.integers(0, 7)),
    st.integers(0, 6),
    st.integers(0, 3),
    st.integers(0, 8),
)
def test_any_loads(loads, soft, above, first_row):
    first_row %= loads.shape[1]
    ring, tops = in_blocks(loads, first_row)
    found = failure_counts(ring, tops, first_row, loads.shape[1], loads.shape[1], 3, soft=soft, hard=soft + above)
    np.testing.assert_array_equal(found, counts_by_definition(loads, loads.shape[1], 3, soft, soft + above))


@pytest.mark.parametrize("word", [1, 2, 1 << 63, (1 << 63) | 1, 0xFFFFFFFFFFFFFFFF, 0xF0])
def test_bit_helpers_agree_with_their_plain_forms(word):
    from numba import njit

    compiled = njit(lambda w: (kernels._count(w), kernels._lowest(w)))
    plain = (kernels._count(np.uint64(word)), kernels._lowest(np.uint64(word)))
    assert compiled(np.uint64(word)) == plain == (word.bit_count(), (word & -word).bit_length() - 1)
