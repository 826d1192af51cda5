"""Arrays: what a whole table of rows is reduced to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from marketsched.mechanisms.arrays import distinct_rows

TABLES = hnp.arrays(np.int64, st.tuples(st.integers(0, 12), st.integers(1, 4)), elements=st.integers(-1, 1))


@given(TABLES)
def test_distinct_rows_are_those_of_numpy(rows):
    wanted, which = np.unique(rows, axis=0, return_inverse=True)
    found, place = distinct_rows(rows)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(place, which.ravel())
