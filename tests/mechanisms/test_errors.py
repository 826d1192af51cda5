import pickle

import numpy as np
import pytest

from marketsched.mechanisms import errors
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, MarketschedError, UnknownNameError

KINDS = MarketschedError.__subclasses__()


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_goes_to_another_process_with_its_fields(kind):
    error = kind(place="value", value=3, legal="less").at("jobs[1]").within("a.yaml")
    back = pickle.loads(pickle.dumps(error))
    assert str(back) == str(error) == "a.yaml: jobs[1].value = 3: expected less"
    assert (type(back), back.source, back.place, back.value, back.legal) == (kind, "a.yaml", "jobs[1].value", 3, "less")


def test_a_value_that_cannot_travel_stays_behind_and_its_message_goes_on():
    back = pickle.loads(pickle.dumps(InvalidParameterError(place="step", value=lambda t: t, legal="a number")))
    assert back.value is errors.UNSEEN
    assert "lambda" in str(back)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InvalidParameterError("what no field says"), "jobs[1]: what no field says"),
        (InvalidParameterError("is missing", place="name"), "jobs[1].name is missing"),
        (InvalidParameterError("is empty", place="", legal="one"), "jobs[1]: is empty: expected one"),
        (InvalidParameterError(value=2, legal="three"), "jobs[1]: 2: expected three"),
        (InvalidParameterError(place="[2]", value=2, legal="three"), "jobs[1][2] = 2: expected three"),
        (
            InvalidParameterError("too late", place="birth", value=2, legal="1"),
            "jobs[1].birth = 2: too late: expected 1",
        ),
        (InvalidParameterError(), "jobs[1]"),
    ],
)
def test_a_place_is_put_before_any_error(error, message):
    assert str(error.at("jobs[1]")) == message


def test_the_same_fault_as_another_kind():
    error = UnknownNameError(place="slack", value="x", legal="one of a, b").at("policy").turned(InvalidReportError)
    assert type(error) is InvalidReportError
    assert (str(error), error.legal) == ("policy.slack = 'x': expected one of a, b", "one of a, b")


def test_places_around_a_block_of_code():
    with pytest.raises(InvalidReportError) as caught, errors.placed("cluster.jobs", source="a.yaml"):
        raise InvalidReportError(place="value", value=1, legal="2")
    assert str(caught.value) == "a.yaml: cluster.jobs.value = 1: expected 2"


@pytest.mark.parametrize("name", ["digits", "negative", "text", "nested", "table"])
def test_whatever_was_seen_is_shown_in_a_short_line(name):
    x = {
        "digits": 10**5000,
        "negative": -(10**400),
        "text": "a" * 10**6,
        "nested": [[[[[[[[1]]]]]]]] * 1000,
        "table": {i: i for i in range(10**4)},
    }[name]
    assert len(str(InvalidParameterError(place="x", value=x, legal="less"))) < 400


def test_nested_values_are_shown_in_their_order_and_numbers_of_numpy_as_numbers():
    assert errors.shown({"b": np.float64(1.0), "a": (1, None)}) == "{'b': 1.0, 'a': (1, None)}"


def test_a_long_name_makes_no_long_message():
    error = InvalidParameterError(f"job = {'x' * 100_000!r} is unknown", legal="a job submitted before")
    assert len(str(error)) < 1010 and str(error).endswith("expected a job submitted before")
