"""What a caller may hand over by mistake, or change afterwards, leaves every statement and market as it was."""

import copy
import pickle

import numpy as np
import pytest

from marketsched.mechanisms import (
    DeadlineValue,
    EventError,
    ExactOracle,
    FirstCome,
    InvalidReportError,
    PostedPriceMechanism,
    PostedPricing,
    Requirement,
    StatementOfWork,
    TableValue,
)
from refusals import refused

SIZES = {"max_concurrency": 1, "max_duration": 3, "max_value": 9.0, "max_delay": 9}
CURVE = DeadlineValue(2.0, 9)


def markets():
    return [PostedPriceMechanism(2, 9, PostedPricing([0.5]), ExactOracle(), **SIZES), FirstCome(2, 9, **SIZES)]


def statement(**changes):
    columns = {"arrivals": [1, 2], "durations": [1, 2], "probabilities": [0.5, 0.5], **changes}
    return StatementOfWork.from_arrays(1, 1, CURVE, **columns)


def test_a_statement_keeps_none_of_the_callers_arrays():
    columns = {"arrivals": np.array([1, 2]), "durations": np.array([1, 2]), "probabilities": np.array([0.5, 0.5])}
    sow = statement(**columns)
    for array in columns.values():
        array[:] = 7
    assert sow == statement()


def test_a_table_of_values_cannot_be_changed_and_still_travels():
    given = {4: 8.0, 5: 6.5}
    curve = TableValue(given)
    with pytest.raises(TypeError):
        curve.values[4] = 100.0
    given[4] = 100.0
    assert curve.highest == 8.0 and repr(curve) == "TableValue(values={4: 8.0, 5: 6.5})"
    for other in (pickle.loads(pickle.dumps(curve)), copy.deepcopy(curve)):
        assert other == curve and hash(other) == hash(curve) and other(5) == 6.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probabilities": ["0.5", "0.5"]}, r"^probabilities = \['0.5', '0.5'\]: expected numbers in \[0, 1\]$"),
        ({"probabilities": [0.5j, 0.5]}, "^probabilities = .*: expected numbers"),
        ({"probabilities": [[0.5], [0.5, 0]]}, "^probabilities = .*: expected numbers"),
        (
            {"durations": np.array([1, 2**63], dtype=np.uint64)},
            r"^durations\[1\] = 9223372036854775808: expected a whole number in \[1, 2147483647\]$",
        ),
        ({"durations": [1, 1e300]}, r"^durations\[1\] = 1e\+300: expected a whole number"),
        ({"durations": [1, 10**400]}, "^durations = .*: expected whole numbers"),
        ({"arrivals": [-1, 2]}, r"^arrivals\[0\] = -1: expected a whole number in"),
    ],
)
def test_columns_that_are_no_numbers_or_too_large_are_named(changes, message):
    with pytest.raises(InvalidReportError, match=message):
        statement(**changes)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((1, 1, 0.5, [1]), r"signal = \[1\]: expected a number, a label, or None"),
        ((1, 1, 0.5, np.array([1])), "signal = "),
        ((1, 1, 0.5, ([1],)), "signal = "),
    ],
)
def test_points_out_of_range_are_named(fields, message):
    with pytest.raises(InvalidReportError, match=message):
        Requirement(*fields)
    refused(lambda: StatementOfWork(1, 1, CURVE, [fields]), "requirements[0].", error=InvalidReportError)


@pytest.mark.parametrize("market", markets(), ids=["posted", "first-come"])
def test_names_and_signals_that_cannot_be_looked_up_are_refused(market):
    with pytest.raises(InvalidReportError, match=r"^job = \['A'\]: expected a hashable name$"):
        market.submit(["A"], statement())
    market.submit("A", statement())
    for signal in ([1], np.array([1])):
        with pytest.raises(EventError, match="hashable signal"):
            market.arrive("A", signal)
    refused(lambda: market.arrive(["A"], 1), "expected a job submitted before", error=EventError)
    refused(lambda: market.complete(["A"]), "did not run", error=EventError)
    market.arrive("A", 1)  # nothing was changed before
