"""What an owner submits again once the job is there."""

import pytest

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.resubmission import covered, resubmission, second_statement
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from refusals import refused

VALUE = DeadlineValue(5.0, 20)
POINTS = [(2, 3, 0.2), (2, 4, 0.1), (3, 4, 0.3)]


def job(points, arrival, duration, signal):
    return Job("j", "ann", StatementOfWork(1, 2, VALUE, points), arrival, duration, signal)


def test_revealed_the_job_is_now_known():
    again = resubmission(job(POINTS, 5, 7, 7), now=6)
    assert again == StatementOfWork(6, 2, VALUE, [(6, 7, 1.0)])


def test_hidden_the_marginal_law_is_kept():
    hidden = [(*point, None) for point in POINTS]
    again = resubmission(job(hidden, 5, 7, None), now=6)
    assert [(r.arrival, r.duration, r.signal) for r in again.requirements] == [(6, 3, None), (6, 4, None)]
    assert [r.probability for r in again.requirements] == pytest.approx([1 / 3, 2 / 3])  # .2 and .4 of .6
    assert again.mass == pytest.approx(1)


def test_any_other_signal_is_taken_into_account():
    labelled = [(2, 3, 0.2, "short"), (2, 4, 0.1, "long"), (3, 9, 0.3, "long")]
    again = resubmission(job(labelled, 5, 9, "long"), now=5)
    assert [(r.duration, r.signal) for r in again.requirements] == [(4, "long"), (9, "long")]
    assert [r.probability for r in again.requirements] == pytest.approx([0.25, 0.75])
    unknown = resubmission(job(labelled, 5, 9, "odd"), now=5)
    assert [(r.duration, r.signal) for r in unknown.requirements] == [(3, "odd"), (4, "odd"), (9, "odd")]


@pytest.mark.parametrize(
    ("arrival", "duration", "signal", "expected"),
    [(2, 3, 3, True), (2, 4, 4, True), (3, 3, 3, False), (4, 4, 4, False), (None, 3, None, True)],
)
def test_covered_when_revealed(arrival, duration, signal, expected):
    assert covered(job(POINTS, arrival, duration, signal)) is expected


@pytest.mark.parametrize(("arrival", "expected"), [(2, True), (3, True), (4, False)])
def test_covered_when_hidden_looks_at_the_arrival_alone(arrival, expected):
    assert covered(job([(*point, None) for point in POINTS], arrival, 99, None)) is expected


def test_a_resubmission_is_covered_by_what_happens():
    for points, signal in ((POINTS, 7), ([(*p, None) for p in POINTS], None)):
        again = resubmission(job(points, 5, 7, signal), now=6)
        assert covered(Job("j+", "ann", again, 6, 7, signal))


def test_bad_calls():
    refused(lambda: resubmission(job(POINTS, None, 3, 3), now=6), "'j' never arrives", error=InvalidParameterError)
    with pytest.raises(InvalidParameterError, match=r"arrived in round 5: now = 4: expected a whole number >= 5"):
        resubmission(job(POINTS, 5, 3, 3), now=4)
    with pytest.raises(InvalidParameterError, match="has no mass"):
        resubmission(job([(2, 3, 0.0, None)], 5, 3, None), now=6)


def test_a_second_statement_agrees_to_what_the_first_did():
    terms = {"restarts": False, "patience": 3, "checkpoint": 2}
    truth = StatementOfWork(1, 2, VALUE, POINTS, **terms)
    public = PublicInformation(capacity=5, horizon=30, max_delay=25)
    second = second_statement(Job("j", "ann", truth, 5, 7, 7), 6, public)
    assert second.birth == 6 and second.terms == terms
