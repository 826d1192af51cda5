"""Owners' reports: each lie says what its name says, and every report is legal."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.agents.lies import (
    DelaySubmission,
    InflateConcurrency,
    PublicInformation,
    ScaleDuration,
    ScaleValue,
    ShiftDeadline,
    Strategy,
    Truthful,
    submission_delay,
)
from marketsched.agents.lies.finer import AddDuration
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, LinearValue, TableValue

PUBLIC = PublicInformation(capacity=10, horizon=40, max_delay=15, max_concurrency=4, max_duration=6, max_value=12.0)


@dataclass(frozen=True)
class Hyperbola:
    """A value curve of a user's own: scale / completion until ``end``."""

    scale: float
    end: int

    @property
    def highest(self) -> float:
        return self.scale

    @property
    def last(self) -> int:
        return self.end

    def __call__(self, completion):
        times = np.asarray(completion, dtype=np.float64)
        values = np.where(times <= self.end, self.scale / np.maximum(times, 1.0), 0.0)
        return float(values) if times.ndim == 0 else values

    def table(self, first: int, count: int):
        return self(np.arange(first, first + count))


curves = st.one_of(
    st.builds(
        lambda first, values: TableValue({first + i: v for i, v in enumerate(sorted(values, reverse=True))}),
        st.integers(0, 20),
        st.lists(st.floats(0, 12), min_size=1, max_size=8),
    ),
    st.builds(DeadlineValue, st.floats(0, 12), st.integers(0, 40)),
    st.builds(LinearValue, st.floats(0, 12), st.integers(0, 40), st.floats(0, 5), st.integers(0, 40)),
    st.builds(Hyperbola, st.floats(0, 12), st.integers(0, 40)),
)


@st.composite
def statements(draw):
    birth = draw(st.integers(1, 12))
    points = draw(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)), min_size=1, max_size=5))
    hidden = draw(st.booleans())
    share = 1.0 / len(points)
    law = [(birth + wait, d, share, None) if hidden else (birth + wait, d, share) for wait, d in points]
    return StatementOfWork(birth, draw(st.integers(1, 4)), draw(curves), law)


lies = st.one_of(
    st.just(Truthful()),
    st.builds(ScaleValue, st.floats(0, 1e6)),
    st.builds(ShiftDeadline, st.integers(-60, 60)),
    st.builds(ScaleDuration, st.floats(1e-6, 1e6)),
    st.builds(InflateConcurrency, st.integers(-9, 9)),
    st.builds(DelaySubmission, st.integers(0, 30)),
)


@given(truth=statements(), lie=lies)
def test_every_report_is_legal_pure_and_born_when_it_is_submitted(truth, lie):
    before = repr(truth)
    report = lie.report(truth, PUBLIC)
    assert repr(truth) == before
    assert report == lie.report(truth, PUBLIC)
    assert report.birth == truth.birth + submission_delay(lie)
    assert 1 <= report.concurrency <= PUBLIC.max_concurrency
    assert report.law.durations.max() <= PUBLIC.max_duration
    assert report.law.arrivals.min() >= report.birth
    assert report.mass == pytest.approx(truth.mass)
    values = report.value.table(report.birth + 1, PUBLIC.max_delay + 5)
    assert values.max() <= PUBLIC.max_value
    assert isinstance(lie, Strategy)


@given(truth=statements(), factor=st.floats(0, 20))
def test_scaled_values_are_the_true_ones_times_the_factor_up_to_the_limit(truth, factor):
    report = ScaleValue(factor).report(truth, PUBLIC)
    relevant = np.arange(truth.birth + 1, truth.birth + PUBLIC.max_delay)
    expected = np.minimum(factor * np.asarray(truth.value(relevant)), PUBLIC.max_value)
    np.testing.assert_allclose(report.value(relevant), expected, rtol=1e-12, atol=1e-12)
    assert report.requirements == truth.requirements
    assert report.concurrency == truth.concurrency


@given(truth=statements(), rounds=st.integers(-20, 20))
def test_shifted_curve_has_the_value_of_the_shifted_time(truth, rounds):
    report = ShiftDeadline(rounds).report(truth, PUBLIC)
    # A table says nothing before its first time, and a curve of a user's own nothing before birth + 1.
    earliest = min(truth.value.values) if isinstance(truth.value, TableValue) else truth.birth + 1
    relevant = np.arange(max(earliest, earliest + rounds, truth.birth + 1), truth.birth + PUBLIC.max_delay)
    np.testing.assert_allclose(report.value(relevant), truth.value(relevant - rounds), rtol=1e-12, atol=1e-12)


def test_a_table_moved_later_keeps_its_highest_value_for_the_earlier_times():
    truth = StatementOfWork(1, 1, TableValue({4: 8.0, 5: 6.5}), [(2, 2, 1.0)])
    assert ShiftDeadline(2).report(truth, PUBLIC).value == TableValue({4: 8.0, 5: 8.0, 6: 8.0, 7: 6.5})
    assert ShiftDeadline(-2).report(truth, PUBLIC).value == TableValue({2: 8.0, 3: 6.5})


def test_delay_floors_arrivals_and_does_not_invent_value():
    truth = StatementOfWork(2, 1, DeadlineValue(5.0, 30), [(2, 1, 0.25), (4, 1, 0.25), (9, 1, 0.5)])
    late = DelaySubmission(3).report(truth, PUBLIC)
    assert late.birth == 5
    assert [(r.arrival, r.probability) for r in late.requirements] == [(5, 0.5), (9, 0.5)]
    # True value is 0 from birth + max_delay = 17 on; the late report must not claim more.
    assert late.value(16) == 5.0
    assert late.value(17) == 0.0


@pytest.mark.parametrize(
    ("lie", "argument"),
    [
        (ScaleValue, -1.0),
        (ScaleValue, float("nan")),
        (ScaleValue, "2"),
        (ScaleDuration, 0.0),
        (ScaleDuration, float("inf")),
        (ShiftDeadline, 1.5),
        (InflateConcurrency, True),
        (DelaySubmission, -1),
    ],
)
def test_impossible_parameters_are_refused_by_name(lie, argument):
    with pytest.raises(InvalidParameterError, match=f"{lie.__name__} .* expected"):
        lie(argument)


LAW = StatementOfWork(6, 3, DeadlineValue(4.0, 30), [(6, 1, 0.25), (8, 5, 0.5)])  # a quarter of such jobs never come


def test_a_new_case_is_a_legal_one():
    for rounds in (-4, -5, 2):  # a case that there is, no round, and one too many
        with pytest.raises(InvalidReportError, match="expected a legal duration that the law does not have"):
            AddDuration(rounds, 0.5).report(LAW, PUBLIC)


def test_public_information_has_the_limits_of_the_mechanism():
    sizes = {"max_concurrency": 2, "max_duration": 3, "max_value": 5.0, "max_delay": 9}
    found = PublicInformation.of(get_mechanism("first-come", capacity=4, horizon=9, **sizes), 4, 8, 9)
    assert (found.horizon, found.max_concurrency, found.max_duration, found.max_value) == (8, 2, 3, 5.0)
    assert found.widest == 2 and replace(found, max_concurrency=None).widest == 4
    assert replace(found, max_concurrency=7).widest == 4
    with pytest.raises(InvalidParameterError, match="at most the mechanism's last round 9"):
        PublicInformation.of(get_mechanism("first-come", capacity=4, horizon=9, **sizes), 4, 10, 9)
