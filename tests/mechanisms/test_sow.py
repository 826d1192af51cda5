"""Statements that move in time."""

import pickle

import pytest

from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import LAST_REPORTED
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue

CURVE = DeadlineValue(8.0, 90)


@pytest.mark.parametrize("revealed", [True, False])
def test_a_moved_statement_is_the_one_made_there(revealed):
    law = ([3, 3, 4, 9], [2, 5, 5, 1], [0.1, 0.2, 0.3, 0.1])
    moved = StatementOfWork.from_arrays(2, 3, DeadlineValue(1.0, 7), *law, revealed=revealed).moved(42, CURVE)
    there = StatementOfWork.from_arrays(42, 3, CURVE, [a + 40 for a in law[0]], *law[1:], revealed=revealed)
    assert moved == there and pickle.loads(pickle.dumps(moved)) == there
    assert moved.revealed == revealed
    assert moved.law.group_arrivals.tolist() == there.law.group_arrivals.tolist()
    with pytest.raises(ValueError, match="read-only"):
        moved.law.arrivals[0] = 1


@pytest.mark.parametrize(
    ("birth", "value", "legal"),
    [(0, CURVE, "birth"), (LAST_REPORTED, CURVE, "arrival"), (3, "much", "a value curve"), (2.5, CURVE, "birth")],
)
def test_it_moves_nowhere_that_no_statement_may_be(birth, value, legal):
    with pytest.raises(InvalidReportError, match=legal):
        StatementOfWork(1, 1, CURVE, [(2, 1, 1.0)]).moved(birth, value)


@pytest.mark.parametrize("revealed", [True, False])
def test_moved_twice_and_pickled_it_is_the_same(revealed):
    one = StatementOfWork.from_arrays(
        3, 2, DeadlineValue(8.0, 20), [4, 6, 4], [5, 2, 1], [0.2, 0.3, 0.4], revealed=revealed
    )
    once, twice = (
        one.moved(13, DeadlineValue(8.0, 30)),
        one.moved(5, DeadlineValue(8.0, 22)).moved(13, DeadlineValue(8.0, 30)),
    )
    assert once == twice == pickle.loads(pickle.dumps(twice)) != one
    assert twice.law.arrivals.tolist() == [14, 14, 16] and twice.durations.tolist() == [1, 5, 2]
    assert twice.span == one.span == (1, 5) and twice.revealed is revealed and twice.mass == one.mass
    with pytest.raises(ValueError, match="read-only"):
        twice.law.arrivals[0] = 1
