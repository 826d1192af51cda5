"""Misreports: what is reported, how large the lie is, what it is called, and that it comes back from a file."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_markets import tiny_market
from draws import many
from marketsched.agents.lies import (
    KINDS,
    Combination,
    DelaySubmission,
    InflateConcurrency,
    LeaveOut,
    PublicInformation,
    ScaleDuration,
    ScaleValue,
    Truthful,
    misreport_from,
)
from marketsched.config.strict_yaml import dump_yaml, parse_yaml
from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.truthfulness.searches.families import Family, default_families, interleaved
from marketsched.truthfulness.searches.own_lies import FixedReport, OwnLie, misreport_of
from refusals import refused

PUBLIC = PublicInformation(8, 40, 12, max_concurrency=4, max_duration=6, max_value=20.0)
LAW = [(3, 2, 0.5), (4, 4, 0.25), (6, 1, 0.125)]
TRUTH = StatementOfWork(2, 2, LinearValue(8.0, 6, 1.0, 11), LAW)
HIDDEN = StatementOfWork(2, 1, DeadlineValue(5.0, 9), [(3, 1, 0.5, None), (3, 4, 0.5, None)])
CERTAIN = StatementOfWork(1, 1, TableValue({4: 6.0, 5: 3.0}), [(2, 2, 1.0)])


def members(truth):
    return [member for family in default_families(truth, PUBLIC) for member in family.members]


def reported(misreport, truth=TRUTH):
    return misreport.report(truth, PUBLIC)


def probabilities(misreport, truth=TRUTH):
    return {(r.arrival, r.duration): r.probability for r in reported(misreport, truth).requirements}


# --- what every misreport keeps ---------------------------------------------------------------------


@pytest.mark.parametrize("truth", [TRUTH, HIDDEN, CERTAIN], ids=["revealed", "hidden", "certain"])
def test_every_member_of_the_families_is_legal_or_refused_and_comes_back_from_yaml(truth):
    kinds = set()
    for misreport in members(truth):
        again = misreport_from(parse_yaml(dump_yaml(misreport.data()), "a file"))
        assert again == misreport and hash(again) == hash(misreport)
        assert misreport.words(truth) == again.words(truth)
        kinds.add(misreport.kind)
        try:
            conduct = misreport.conduct(truth, truth, PUBLIC)
        except InvalidReportError:
            continue
        for statement in conduct.statements:
            assert statement.report.birth == statement.round
            assert statement.report.concurrency <= PUBLIC.max_concurrency
            assert statement.report.law.durations.max() <= PUBLIC.max_duration
            assert statement.report.value.highest <= PUBLIC.max_value
    assert len(kinds) >= 10


def test_all_kinds_are_met_and_known_by_name():
    met = {m.kind for truth in (TRUTH, HIDDEN, CERTAIN) for m in members(truth)}
    cluster, jobs = tiny_market(0)
    public = replace(PUBLIC, cluster=cluster)
    met |= {m.kind for f in default_families(TRUTH, replace(PUBLIC, others=(CERTAIN,))) for m in f.members}
    met |= {m.kind for job in jobs for f in default_families(job.truth, public) for m in f.members}
    beside = {"truthful", "statement", "delay-submission", "withdraw-twin"}
    assert met | beside == {lie.kind for lie in KINDS.values()} and not met & beside


# --- inside the model -------------------------------------------------------------------------------


def test_a_search_clips_no_nodes():
    assert reported(InflateConcurrency(2)).concurrency == 4
    for more in (3, -2):
        assert reported(InflateConcurrency(more)).concurrency == (4 if more > 0 else 1)  # an owner in a market
        for lie in (InflateConcurrency(more), Combination((ScaleValue(0.5), InflateConcurrency(more)))):
            with pytest.raises(InvalidReportError, match=f"concurrency = {2 + more}: expected one that the market"):
                lie.conduct(TRUTH, TRUTH, PUBLIC)  # the search


def test_a_combination_applies_one_part_after_the_other():
    both = Combination((LeaveOut((1,)), ScaleDuration(2.0), InflateConcurrency(1)))
    assert probabilities(both) == {(3, 4): 0.5, (6, 2): 0.125}
    assert reported(both).concurrency == 3
    assert both.distance(TRUTH, PUBLIC) == pytest.approx(0.25 + 1.0 + 0.5)
    assert both.with_values({"1.f": 3.0}).parts[1] == ScaleDuration(3.0)
    late = Combination((ScaleValue(0.5), DelaySubmission(3)))
    (statement,) = late.conduct(TRUTH, TRUTH, PUBLIC).statements
    assert (statement.round, statement.report.value.highest) == (5, 4.0)
    assert both.inside_model and not late.inside_model
    with pytest.raises(InvalidParameterError, match="only the last of them beyond the model"):
        Combination((DelaySubmission(3), ScaleValue(0.5)))


@settings(max_examples=many(60))
@given(
    st.lists(
        st.tuples(st.integers(2, 9), st.integers(1, 6), st.integers(1, 20)),
        min_size=1,
        max_size=6,
        unique_by=lambda row: row[:2],
    ),
    st.booleans(),
    st.integers(1, 4),
)
def test_no_member_ever_breaks_a_law(rows, revealed, nodes):
    """Whatever is reported is a statement of work with mass at most 1, and no other error ever comes up."""
    total = sum(weight for *_, weight in rows) + 1
    points = [(a, d, w / total, d if revealed else None) for a, d, w in rows]
    truth = StatementOfWork(2, nodes, DeadlineValue(7.0, 12), points)
    for misreport in members(truth):
        try:
            statements = misreport.conduct(truth, truth, PUBLIC).statements
        except InvalidReportError:
            continue
        for statement in statements:
            assert statement.report.law.probabilities.sum() <= 1 + 1e-9


# --- in words, as data, and a user's own --------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "nonsense"}, "misreport kind = 'nonsense': expected one of add-dummy-shape, add-duration"),
        ({"kind": "scale-value"}, "'scale-value' has no fields: expected factor"),
        ({"kind": "scale-value", "factor": 0.5, "x": 1}, "'scale-value' has factor, x: expected factor"),
        ({"kind": "scale-value", "factor": -1}, "factor = -1: expected a finite number >= 0"),
        ({"kind": "combination", "parts": 3}, "combination has parts: expected a list of parts"),
        ("scale-value", "misreport kind = 'scale-value': expected one of"),
    ],
)
def test_data_that_is_no_misreport(data, message):
    with pytest.raises(InvalidParameterError, match=message):
        misreport_from(data)


def test_a_fixed_report_comes_back_from_its_data():
    fixed = FixedReport(HIDDEN)
    again = misreport_from(parse_yaml(dump_yaml(fixed.data()), "a file"))
    assert again == fixed and again.report(HIDDEN, PUBLIC) == HIDDEN
    refused(lambda: fixed.report(CERTAIN, PUBLIC), "birth = 2: expected the true birth 1", error=InvalidReportError)


def test_a_users_strategy_is_a_misreport():
    class Half:
        def report(self, truth, public):
            return ScaleValue(0.5).report(truth, public)

    class Nonsense:
        delay = 2

        def report(self, truth, public):
            return 7

    half, nonsense = misreport_of(Half()), misreport_of(Nonsense())
    assert isinstance(half, OwnLie) and half.inside_model and not nonsense.inside_model
    assert reported(half) == reported(ScaleValue(0.5))
    refused(lambda: reported(nonsense), "the strategy returned 7: expected a StatementOfWork", error=InvalidReportError)
    refused(lambda: misreport_of(3), "expected a Misreport, or something with report", error=InvalidParameterError)


def test_families_are_gone_through_side_by_side():
    one, two = Family("one", (ScaleValue(0.5), ScaleValue(0.7))), Family("two", (InflateConcurrency(1),))
    assert [m for _, m in interleaved([one, two])] == [ScaleValue(0.5), InflateConcurrency(1), ScaleValue(0.7)]
    assert Family.of(0, ScaleValue(0.5)).members == (ScaleValue(0.5),)
    assert Truthful().report(TRUTH, PUBLIC) is TRUTH
