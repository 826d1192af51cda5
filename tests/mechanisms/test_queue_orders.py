"""Classes of jobs by the thirds that their wall times fall into."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms.schedulers import queue_orders


@given(walls=st.lists(st.integers(1, 9), max_size=9), wall=st.integers(1, 9))
def test_a_class_is_the_third_of_the_wall_times_before(walls, wall):
    """Who is longer than two thirds of them is patient, 0; who is shorter than two thirds urgent, 2."""
    seen = np.bincount(np.array(walls, int), minlength=10)
    below = sum(3 * (each < wall) + 1.5 * (each == wall) for each in walls)
    expected = 1 if not walls else 2 if below < len(walls) else 1 if below < 2 * len(walls) else 0
    assert queue_orders._class_kernel(seen, wall) == expected
