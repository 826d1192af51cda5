"""Every key of every kind of scenario with nasty values: a legal one plays, any other is refused in one line."""

import random

import pytest

from bad_inputs import KINDS, NASTY, Case, Ending, as_it_stands, attempt, cases, complaint
from draws import many

CASE = Case("jobs", "workload.capacity", "minus one", "")
LINE = "marketsched: bad.yaml: workload.capacity = -1: expected a whole number >= 1\n"


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", [*KINDS, "events"])
def test_every_bad_input_ends_in_one_line_soon_and_within_memory(kind):
    """Some of each kind, the same every time; `python tests/support/bad_inputs.py` tries them all."""
    unchanged = as_it_stands(kind)
    assert (unchanged.status, "Traceback" in unchanged.err) == (0, False), unchanged
    tried = random.Random(0).sample(list(cases(kind)), many(72))
    assert [f"{case}: {wrong}" for case in tried if (wrong := complaint(case, attempt(case)))] == []


def test_the_corpus_holds_every_key_and_every_value():
    found = list(cases("opm"))
    assert {case.value for case in found} == set(NASTY)
    assert {"name", "cluster.core", "cluster.machines.up.0", "cluster.jobs.exponent"} <= {case.place for case in found}


@pytest.mark.parametrize(
    ("ending", "wrong"),
    [
        (Ending(2, "", LINE, 0.1), ""),
        (Ending(0, "played", "", 0.1), ""),
        (Ending("endless", "", "", 20.0), "endless"),
        (Ending("killed by SIGSEGV", "", "", 0.1), "killed by SIGSEGV"),
        (Ending(99, "", "Traceback: OverflowError: too large", 0.1), "Traceback: OverflowError: too large"),
        (Ending(1, "", LINE, 0.1), "status 1"),
        (Ending(2, "", LINE + LINE, 0.1), "2 lines"),
        (Ending(2, "", LINE.replace("capacity", "size"), 0.1), "capacity is not named"),
        (Ending(2, "", LINE.replace("expected a whole number >= 1", "wrong"), 0.1), "no legal range"),
        (Ending(2, "", LINE.replace("-1", "1" * 5000), 0.1), "a line of"),
    ],
)
def test_what_is_wrong_with_an_ending_is_seen(ending, wrong):
    assert (wrong in complaint(CASE, ending)) if wrong else complaint(CASE, ending) == ""
