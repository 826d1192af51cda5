"""Ranges that stand in signatures: what is legal passes, all else is refused in one line, wherever it is given."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel

from marketsched.mechanisms import (
    DeadlineValue,
    InvalidParameterError,
    InvalidReportError,
    Menu,
    StatementOfWork,
)
from marketsched.mechanisms.legal import LARGEST_WHOLE, Amount, Count, Finite, Named, Share, Whole, check_fields, legal
from marketsched.mechanisms.signatures import parameters_of, takes_anything
from refusals import refused

if TYPE_CHECKING:
    import nowhere

NOT_NUMBERS = [True, np.True_, "1", None, [1], float("nan"), float("inf"), 1j]


@pytest.mark.parametrize("x", [1, 1.0, np.int32(1), np.float32(1.0)])
def test_numbers_of_python_and_numpy_are_taken_and_become_plain(x):
    assert (Whole(1)(x), type(Whole(1)(x))) == (1, int)
    assert (Finite("[0, inf)")(x), type(Finite("[0, inf)")(x))) == (1.0, float)


@pytest.mark.parametrize("x", NOT_NUMBERS, ids=repr)
def test_what_is_no_finite_number_is_refused(x):
    refused(lambda: Whole(0).check("n", x), place="n", legal="a whole number >= 0", error=InvalidParameterError)
    finite = Finite("[0, inf)")
    refused(lambda: finite.check("x", x, InvalidReportError), place="x", legal=">= 0", error=InvalidReportError)


@pytest.mark.parametrize(
    ("range_", "inside", "outside", "said"),
    [
        (Whole(1, 3), [1, 3], [0, 4, 2.5], "a whole number in [1, 3]"),
        (Whole(1), [LARGEST_WHOLE], [LARGEST_WHOLE + 1], f"a whole number in [1, {LARGEST_WHOLE}]"),
        (Whole(1), [1], [0, -(10**400)], "a whole number >= 1"),
        (Finite("[0, 1]"), [0, 1], [-1e-300, 1.0000001], "a finite number in [0, 1]"),
        (Finite("(0, 1)"), [1e-100, 0.5], [0, 1], "a finite number in (0, 1)"),
        (Finite("(0, inf)"), [1e-100, 1e100], [0, -1], "a finite number > 0"),
        (Finite("(0, inf)"), [], [1e-101, 1e101, 10**400], "a finite number in [1e-100, 1e+100]"),
        (Finite("[1, inf)"), [1, 1e100], [0.999], "a finite number >= 1"),
        (Finite("(-inf, 1)"), [-1e100, 0], [1, 2], "a finite number in (-inf, 1)"),
        (Named(("auto",), Finite("[0, 1]")), ["auto", 1], ["Auto", 2], "'auto' or a finite number in [0, 1]"),
    ],
)
def test_ranges_keep_both_ends(range_, inside, outside, said):
    assert [range_(x) for x in inside] == inside
    for x in outside:
        refused(lambda x=x: range_.check("x", x), place="x", legal=said)


@legal
def call(
    n: Count,
    /,
    share: Share,
    flag: bool = False,
    *,
    kind: Literal["a", "b"] = "a",
    most: Amount | None = None,
    **more: Any,
) -> list[Any]:
    return [n, share, flag, kind, most, more]


@dataclass(frozen=True)
class Record:
    n: Count
    share: Share = 0.5
    most: Amount | None = None

    def __post_init__(self):
        check_fields(self)


class Fields(BaseModel):
    n: Count
    share: Share = 0.5
    most: Amount | None = None


class Base:
    @legal
    def __init__(self, capacity: Count, *, kill: bool = True, price: Amount = 0.0): ...


class Mine(Base):
    @legal
    def __init__(self, capacity: Count, *, ratio: Share = 0.5, **of_base: Any):
        super().__init__(capacity, **of_base)


@pytest.mark.parametrize(
    ("given", "place"),
    [({"n": 0}, "n"), ({"n": 1, "share": 2}, "share"), ({"n": 1, "most": -1}, "most"), ({"n": 1, "most": "3"}, "most")],
)
def test_one_range_holds_in_calls_dataclasses_and_files(given, place):
    values = {"share": 0.5, **given}
    by_name = {name: each for name, each in values.items() if name != "n"}
    refusal = refused(lambda: call(values["n"], **by_name), place=place, seen=values[place])
    assert str(refused(lambda: Record(**given))) == str(refusal)
    with pytest.raises(ValueError) as in_a_file:
        Fields(**given)
    assert [(each["loc"], refusal.legal in each["msg"]) for each in in_a_file.value.errors()] == [((place,), True)]


def test_what_is_legal_arrives_in_its_proper_type_and_defaults_are_left_alone():
    assert call(np.int64(2), 1, np.True_, most=3, kind="b", x=1) == [2, 1.0, True, "b", 3.0, {"x": 1}]
    assert call(2, 0.5) == [2, 0.5, False, "a", None, {}]
    record = Record(2.0, 1)
    assert (record.n, type(record.n), type(record.share)) == (2, int, float)
    for wrong in ({"kind": "c"}, {"flag": 1}, {"kind": ["a"]}):
        refused(lambda wrong=wrong: call(1, 0.5, **wrong), place=next(iter(wrong)))


def test_what_a_constructor_passes_on_is_known_by_the_class_above():
    assert list(parameters_of(Mine)) == ["capacity", "kill", "price", "ratio"]
    assert not takes_anything(Mine) and takes_anything(call)
    refused(lambda: Mine(1, price=-1), place="price", seen=-1, legal=">= 0")
    refused(lambda: Mine(1, ratio=2, price=-1), place="ratio")


def test_names_that_only_type_checkers_know_are_of_no_range():
    def made(n: "Count", table: "nowhere.Table[int] | None", other: "Annotated[nowhere.Thing, 1]") -> "nowhere.X": ...

    assert [(name, each.range) for name, each in parameters_of(made).items()] == [
        ("n", Whole(1)),
        ("table", None),
        ("other", None),
    ]


def test_columns_of_a_statement_hold_whole_rounds():
    """A fractional round is refused, not cut; NaN gets the same clear line."""
    curve = DeadlineValue(4.0, 9)
    with pytest.raises(InvalidReportError, match=r"durations\[1\] = 2.5: expected a whole number"):
        StatementOfWork.from_arrays(1, 1, curve, [1, 2], [1, 2.5], [0.5, 0.5])
    with pytest.raises(InvalidReportError, match=r"arrivals\[0\] = nan: expected a whole number"):
        StatementOfWork.from_arrays(1, 1, curve, [float("nan"), 2], [1, 2], [0.5, 0.5])
    with pytest.raises(InvalidReportError, match="expected whole numbers"):
        StatementOfWork.from_arrays(1, 1, curve, [True, True], [1, 2], [0.5, 0.5])
    whole = StatementOfWork.from_arrays(1, 1, curve, [1.0, 2.0], np.array([1, 2]), [0.5, 0.5])
    assert whole == StatementOfWork(1, 1, curve, [(1, 1, 0.5), (2, 2, 0.5)])


def test_a_menu_knows_whole_rounds_only():
    menu = Menu(1, 3, np.array([[1.0, 2.0]]), np.array([[0.0, 0.5]]))
    assert menu.price([3, 4], 2).tolist() == [2.0, np.inf]
    for start, duration in ((3.7, 1), (3, 1.5), (float("nan"), 1), (3, float("inf"))):
        with pytest.raises(InvalidParameterError, match="expected whole rounds"):
            menu.price(start, duration)
        with pytest.raises(InvalidParameterError, match="expected whole rounds"):
            menu.failure(start, duration)
