"""The stop of a run of hidden duration is the best for its owner: compared with every stop, by the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.auctions.hidden_turn import duration_law, last_completion, surplus_of_starts

LAST = 12
COSTS = (0.0, 0.4, 1.0, 2.5)


@st.composite
def curves(draw):
    worth, time = float(draw(st.integers(0, 9))), draw(st.integers(1, 11))
    kind = draw(st.integers(0, 2))
    if kind == 0:
        return DeadlineValue(worth, time)
    if kind == 1:
        return LinearValue(worth, time, draw(st.sampled_from([0.5, 1.0])), 12)
    times = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True))
    values = sorted(draw(st.lists(st.integers(0, 9), min_size=len(times), max_size=len(times))), reverse=True)
    return TableValue(dict(zip(sorted(times), map(float, values), strict=True)))  # worth nothing between its times


laws = st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True).map(
    lambda days: duration_law(
        StatementOfWork(1, 1, DeadlineValue(1.0, 9), [(1, d, 1 / len(days), None) for d in days]), 1, None
    )
)


def brought(curve, law, start, cost, stop):
    """What a run is expected to bring that is stopped after completions at ``stop``."""
    gains = [p * (curve(start + d) - cost * d) for d, p in zip(*law, strict=True) if start + d <= min(stop, LAST)]
    return sum(gains)


@given(curves(), laws, st.integers(1, 6), st.sampled_from(COSTS))
def test_no_stop_brings_more(curve, law, first, cost):
    surplus = surplus_of_starts(curve, law, first, LAST, cost)
    assert surplus.size == max(0, LAST - law.durations[0] - first + 1)
    for start, found in enumerate(surplus, first):
        best = max(brought(curve, law, start, cost, stop) for stop in range(start, LAST + 1))
        assert found == pytest.approx(best, abs=1e-12)
        if best > 0:
            stop = last_completion(curve, law, start, LAST, cost)
            assert brought(curve, law, start, cost, stop) == pytest.approx(best, abs=1e-12)


@given(curves(), laws, st.integers(1, 6), st.sampled_from(COSTS))
def test_where_values_fall_no_stop_brings_more_whatever_the_duration(curve, law, start, cost):
    values = [curve(f) for f in range(start, LAST + 1)]
    if (np.diff(values) > 0).any():
        return
    stop = last_completion(curve, law, start, LAST, cost)
    for d in range(1, LAST - start + 1):
        gain = curve(start + d) - cost * d
        assert gain >= -1e-12 if start + d <= stop else gain <= 1e-12


def test_a_case_that_a_report_excludes_has_all_its_durations_in_order():
    sow = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(1, 1, 0.1, None), (1, 4, 0.3, None), (2, 1, 0.6, None)])
    law = duration_law(sow, 3, None)
    assert law.durations.tolist() == [1, 4] and law.weights.tolist() == pytest.approx([0.7, 0.3])
    assert duration_law(sow, 1, None).mean == pytest.approx(3.25)
