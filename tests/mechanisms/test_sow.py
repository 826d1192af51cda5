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
