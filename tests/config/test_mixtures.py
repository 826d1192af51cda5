"""Mixtures of statements: what may be written, what is drawn, and the laws that each workload knows in advance."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from marketsched import Scenario
from marketsched.config.mixtures import moved
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.mechanisms.values import DeadlineValue, LinearValue, TableValue
from marketsched.worlds import Workload

SMALL = {
    "probability": 0.7,
    "concurrency": 1,
    "value": {"kind": "deadline", "value": 4, "deadline": 8},
    "requirements": [
        {"arrival": 2, "duration": 1, "probability": 0.5},
        {"arrival": 3, "duration": 2, "probability": 0.3},
    ],
}
LARGE = {
    "probability": 0.2,
    "concurrency": 2,
    "value": {"kind": "linear", "value": 8, "from": 4, "slope": 1, "deadline": 9},
    "requirements": [{"arrival": 2, "duration": 3, "probability": 1, "signal": "long"}],
}
NOTHING = {"probability": 0.1, "nothing": True}
ENTRY = {"name": "nightly", "birth": 2, "statements": [SMALL, LARGE, NOTHING]}


def market(*entries, **changes):
    """Return a scenario of these jobs."""
    workload = {
        "kind": "mixtures",
        "capacity": 24,
        "horizon": 40,
        "max_concurrency": 2,
        "max_duration": 4,
        "max_value": 8,
        "max_delay": 12,
        "jobs": [*entries],
    }
    mechanism = changes.pop("mechanism", {"pricing": {"kind": "posted", "prices": [0.5]}})
    return {"name": "mix", "workload": workload | changes, "mechanism": mechanism}


def built(*entries, seed=0, **changes):
    """Return the workload of one draw."""
    return Scenario.from_dict(market(*entries, **changes)).workload.build(np.random.default_rng(seed), None)


def happened(workload):
    """Return what was drawn, by name: statement, arrival, duration."""
    return {job.name: (job.tags["statement"], job.arrival, job.duration) for job in workload.jobs}


# -- reading and writing ------------------------------------------------------------------------


def test_a_mixture_round_trips():
    data = market(ENTRY | {"owner": "ops", "copies": 3, "every": 0.5}, ENTRY | {"name": "audit"})
    scenario = Scenario.from_dict(data)
    again = Scenario.from_dict(parse_yaml(scenario.to_yaml(), "x"))
    assert again == scenario
    assert parse_yaml(scenario.to_yaml(), "x") == parse_yaml(again.to_yaml(), "x")
    jobs = again.to_dict()["workload"]["jobs"]
    assert jobs[0]["statements"][2] == NOTHING and jobs[1]["copies"] == 1
    assert again.workload.build(np.random.default_rng(3), None) == scenario.workload.build(
        np.random.default_rng(3), None
    )


def test_names_are_distinct_copies_included():
    with pytest.raises(
        InvalidParameterError, match=r"workload.jobs\[1\].name = 'nightly': expected a name of its own$"
    ):
        Scenario.from_dict(market(ENTRY, ENTRY))
    clash = r"workload.jobs\[1\].name = 'nightly': copy 'nightly-2': expected a name of its own$"
    with pytest.raises(InvalidParameterError, match=clash):
        Scenario.from_dict(market(ENTRY | {"name": "nightly-2"}, ENTRY | {"copies": 2}))
    with pytest.raises(InvalidParameterError, match=r"workload.jobs = \[\]: expected at least 1 entry$"):
        Scenario.from_dict(market())


# -- what is drawn ------------------------------------------------------------------------------

N = 4000


@pytest.fixture(scope="module")
def many():
    return built(ENTRY | {"copies": N}, seed=11)


@pytest.mark.slow
def test_statements_and_what_happens_follow_the_law(many):
    """All cases together against their probabilities: a chi-square test that errs once in ten thousand."""
    cases = {(0, 2, 1): 0.35, (0, 3, 2): 0.21, (0, None, 1): 0.14, (1, 2, 3): 0.2, None: 0.1}
    found = Counter(happened(many).values())
    found[None] = N - len(many.jobs)
    assert set(found) == set(cases)
    assert chisquare([found[c] for c in cases], [N * p for p in cases.values()]).pvalue > 1e-4


def test_what_a_job_reports_is_what_was_drawn():
    workload = built(ENTRY | {"copies": 50}, seed=1)
    for job in workload.jobs:
        assert (job.owner, job.tags["group"]) == ("nightly", "nightly")
        assert job.truth.concurrency == (1, 2)[job.tags["statement"]]
        if job.tags["statement"] == 1:
            assert (job.arrival, job.duration, job.signal) == (2, 3, "long")
        elif job.arrival is not None:
            assert job.signal == job.duration
    assert {job.owner for job in built(ENTRY | {"owner": "ops"}, seed=1).jobs} == {"ops"}
    assert workload.notes["jobs that could appear"] == 50 > workload.notes["statements"] == len(workload.jobs)


def test_copies_are_moved_as_a_whole():
    workload = built(ENTRY | {"copies": 8, "every": 2})
    first = workload.laws[0]
    assert [law.birth for law in workload.laws] == [2, 4, 6, 8, 10, 12, 14, 16]
    for k, law in enumerate(workload.laws):
        for (sow, p), (sow_1, p_1) in zip(law.cases[:2], first.cases[:2], strict=True):
            assert p == p_1 and sow.law.group_signals == sow_1.law.group_signals
            assert (sow.law.arrivals - 2 * k).tolist() == sow_1.law.arrivals.tolist()
            assert sow.law.durations.tolist() == sow_1.law.durations.tolist()
            assert sow.value.table(2 * k, 20).tolist() == sow_1.value.table(0, 20).tolist()
        assert law.cases[2] == (None, 0.1)
    names = [f"nightly-{k}" for k in range(1, 9)]
    assert [job.name for job in workload.jobs] == [name for name in names if name in happened(workload)]


@given(
    st.sampled_from(
        [
            TableValue({3: 5.0, 5: 2.5, 8: 0.0}),
            DeadlineValue(3.0, 6),
            LinearValue(4.0, 3, 0.5, 9),
            LinearValue(4, 0, 3, 9),
        ]
    ),
    st.integers(0, 30),
)
def test_a_moved_statement_is_worth_the_same_later(value, rounds):
    sow = StatementOfWork(2, 1, value, [(2, 1, 0.5), (3, 2, 0.25, None)])
    later = moved(sow, rounds)
    assert later.value.table(rounds, 20).tolist() == value.table(0, 20).tolist()
    assert (later.law.arrivals - sow.law.arrivals).tolist() == [rounds] * 2 and later.birth == 2 + rounds
    assert moved(later, 0) == later and later.mass == sow.mass


def test_a_fraction_spreads_copies_evenly():
    births = [law.birth for law in built(ENTRY | {"copies": 7, "every": 0.5}).laws]
    assert births == [2, 2, 3, 3, 4, 4, 5]
    births = [law.birth for law in built(ENTRY | {"copies": 101, "every": 0.29}).laws]
    assert births[-1] == 2 + 29  # 100 * 0.29 is a little below 29 in floating point


def test_the_order_of_submission_is_that_of_births_then_of_the_file():
    late, early = ENTRY | {"name": "late", "birth": 2, "copies": 3, "every": 1}, ENTRY | {"name": "early", "birth": 2}
    certain = [SMALL | {"probability": 1}]
    first, second = (e | {"statements": certain} for e in (late, early))
    assert [job.name for job in built(first, second).jobs] == ["late-1", "early", "late-2", "late-3"]
    assert [job.name for job in built(second, first).jobs] == ["early", "late-1", "late-2", "late-3"]


def test_entries_do_not_move_each_others_draws():
    ten = ENTRY | {"copies": 10, "every": 1, "stream": "ten"}
    audit = ENTRY | {"name": "audit", "copies": 20}
    rare = [NOTHING | {"probability": 0.5}, SMALL | {"probability": 0.5}]
    reference = happened(built(ten, seed=5))
    assert len(set(reference.values())) > 1
    for entries in ([ten, audit], [audit, ten], [ten, audit | {"statements": rare}], [ten | {"copies": 15}, audit]):
        found = happened(built(*entries, seed=5))
        assert {name: found.get(name) for name in reference} == reference
    assert any(happened(built(ten, seed=seed)) != reference for seed in range(6, 9))


def test_copies_of_different_entries_differ_and_their_names_move_nothing():
    """Equal laws at different places, and of neighbouring streams, have draws of their own."""

    def rows(names, **more):
        drawn = happened(built(*[ENTRY | {"name": name, "copies": 60} | more for name in names], seed=2))
        return [[drawn.get(f"{name}-{i}") for i in range(1, 61)] for name in names]

    first, second, third = rows(("a", "b", "ab"))
    assert first != second != third != first and rows(("x", "y", "z")) == [first, second, third]
    assert rows(("a",), stream="s") == rows(("b",), stream="s") != rows(("b",), stream="ss")


def test_nobody_may_appear():
    rare = ENTRY | {"statements": [SMALL | {"probability": 0.0}, NOTHING | {"probability": 1.0}]}
    assert built(rare).jobs == () and len(built(rare).laws) == 1


@pytest.mark.parametrize(
    ("laws", "message"),
    [
        ([None], r"laws\[0\]: "),
        ([[(None, 1.0)]], r"laws\[0\]: no case has a statement of work"),
        ([[(StatementOfWork(1, 1, DeadlineValue(1.0, 3), [(1, 1, 1.0)]), 0.5)]], r"laws\[0\]: probabilities add up to"),
    ],
)
def test_a_workload_takes_laws_only(laws, message):
    sizes = {"capacity": 1, "birth_rounds": 1, "horizon": 3, "max_concurrency": 1, "max_duration": 1}
    with pytest.raises(InvalidParameterError, match=message):
        Workload("x", (), **sizes, max_value=1.0, max_delay=3, round_seconds=None, laws=laws)


# -- what is known in advance -------------------------------------------------------------------


def laws_of(scenario, seed=0, data=None):
    """Return a scenario's laws as its mechanism would get them, and the workload they are for."""
    workload = scenario.workload.build(np.random.default_rng(seed), data)
    return scenario.workload.statement_laws(workload, np.random.default_rng(seed), data), workload


def test_mixtures_know_their_own_laws():
    laws, workload = laws_of(Scenario.from_dict(market(ENTRY | {"copies": 30})))
    assert len(laws) == 30 > len(workload.jobs)  # also of those that drew nothing
    assert laws[0] == StatementLaw([(moved(sow, 0) if sow else None, p) for sow, p in workload.laws[0].cases])
    again, _ = laws_of(Scenario.from_dict(market(ENTRY | {"copies": 30})), seed=9)
    assert laws == again  # whatever is drawn


@pytest.mark.parametrize("kind", ["jobs", "synthetic-pipelines"])
def test_other_workloads_know_every_statement(kind):
    if kind == "jobs":
        data = market() | {"mechanism": {}}
        sow = {key: SMALL[key] for key in ("concurrency", "value", "requirements")}
        data["workload"] |= {"kind": "jobs", "jobs": [{"name": n, "birth": 2, **sow} for n in "ab"]}
    else:
        data = {"name": "x", "workload": {"kind": kind, "recurring_jobs": 10, "birth_rounds": 40}}
    laws, workload = laws_of(Scenario.from_dict(data))
    assert [law.cases for law in laws] == [((job.truth, 1.0),) for job in workload.jobs]
