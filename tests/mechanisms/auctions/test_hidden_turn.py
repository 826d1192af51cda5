"""The stop of a run of hidden duration is the best for its owner: compared with every stop, by the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.auctions.hidden_turn import best_stops
from marketsched.mechanisms.auctions.waiting_job import WaitingJob

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
    lambda days: law_of(StatementOfWork(1, 1, DeadlineValue(1.0, 9), [(1, d, 1 / len(days), None) for d in days]), 1)
)


def law_of(sow, arrival):
    return WaitingJob("", 0, sow).come(arrival, None, LAST).law


def brought(curve, law, start, cost, rounds, end):
    """What a run is expected to bring that may take so many rounds, outcome by outcome; ``end``: T + 1."""
    total = 0.0
    for d, p in zip(*law, strict=True):
        if d <= rounds and start + d <= end:
            total += p * ((curve(start + d) if start + d <= LAST else 0.0) - cost * d)
        elif start + rounds < end:
            total -= p * cost * rounds
    return total


@given(curves(), laws, st.integers(1, 6), st.sampled_from(COSTS), st.integers(LAST, 20))
def test_no_stop_brings_more(curve, law, first, cost, end):
    found = best_stops(curve, law, first, LAST, end, cost)
    assert found.surplus.size == found.rounds.size == max(0, LAST - law.durations[0] - first + 1)
    for start, (surplus, rounds) in enumerate(zip(*found, strict=True), first):
        every = [brought(curve, law, start, cost, n, end) for n in range(end - start + 1)]
        assert surplus == pytest.approx(max(every), abs=1e-12)
        assert every[rounds] == pytest.approx(surplus, abs=1e-12)


def test_a_case_that_a_report_excludes_has_all_its_durations_in_order():
    sow = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(1, 1, 0.1, None), (1, 4, 0.3, None), (2, 1, 0.6, None)])
    law = law_of(sow, 3)
    assert law.durations.tolist() == [1, 4] and law.weights.tolist() == pytest.approx([0.7, 0.3])
    assert law_of(sow, 1).mean == pytest.approx(3.25)
