"""What a finite mechanism and its prior may be given: what is refused is named, and what is kept cannot change."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from marketsched.finite import audit_finite
from marketsched.mechanisms import InvalidParameterError, TooLargeError
from marketsched.mechanisms.finite import FiniteMechanism, expected_externality, second_price, unit_demand_vcg
from refusals import refused


def test_probabilities_of_the_only_outcome_are_no_indices():
    sure = FiniteMechanism([[1], [2]], [[1]], utilities=[[[5]], [[6]]])
    assert sure.lottery.tolist() == [[1]] and audit_finite(sure, "uniform").expected_welfare == 11
    assert FiniteMechanism([[1], [2]], [[0]], utilities=[[[5]], [[6]]]).choice.tolist() == [0]


def given(**changes):
    """Return what makes a correct mechanism of 2 owners, with changes."""
    made = {
        "types": [[1, 2], [3, 8]],
        "outcome": [[0, 1], [1, 0]],
        "payments": np.zeros((4, 2), dtype=int),
        "utilities": [[[0, 1], [2, 3]], [[0, 1], [2, 3]]],
        "outcomes": None,
    }
    return {**made, **changes}


def raising(*arguments):
    raise KeyError("nothing there")


BAD = {
    "no owner": (given(types=[]), r"types = \[\]: expected the types of at least one owner"),
    "no types": (given(types=[[1, 2], []]), r"types\[1\] = \(\): expected at least one type"),
    "types are no list": (given(types=5), r"types = 5: expected a list"),
    "utility is NaN": (
        given(utilities=[[[0, 1], [2, float("nan")]], [[0, 1], [2, 3]]]),
        r"utilities\[0\]\[1, 1\] = nan",
    ),
    "utility is infinite": (
        given(utilities=[np.array([[0, 1], [2, np.inf]]), [[0, 1], [2, 3]]]),
        r"utilities\[0\]\[1, 1\] = inf",
    ),
    "utility is text": (given(utilities=[[[0, "1"], [2, 3]], [[0, 1], [2, 3]]]), r"utilities\[0\]\[0, 1\] = '1'"),
    "utilities of one owner": (
        given(utilities=[[[0, 1], [2, 3]]]),
        "utilities has 1 entries: expected one for each of 2",
    ),
    "utilities of another shape": (given(utilities=[[[0, 1]], [[0, 1], [2, 3]]]), r"utilities\[0\] has shape \(1, 2\)"),
    "utilities ragged": (given(utilities=[[[0, 1], [2, 3]], [[0, 1], [2]]]), r"utilities\[1\] has "),
    "utilities raise": (given(utilities=raising, outcomes=2), r"utilities\(0, 1, 0\) raised KeyError: 'nothing there'"),
    "no outcomes": (given(utilities=raising), "outcomes is missing"),
    "outcomes empty": (given(utilities=raising, outcomes=0), "outcomes = .*: expected at least one outcome"),
    "outcome out of range": (
        given(outcome=[[0, 1], [2, 0]]),
        r"outcome\(\(2, 3\)\) = 2: expected a whole number in \[0, 1\]",
    ),
    "outcome negative": (given(outcome=lambda p: -1), r"outcome\(\(1, 3\)\) = -1: expected a whole number in \[0, 1\]"),
    "outcome is half": (given(outcome=lambda p: 0.5), r"outcome\(\(1, 3\)\) = 0.5"),
    "outcome of another shape": (given(outcome=[0, 1, 1]), r"outcome has shape \(3,\): expected \(2, 2\)"),
    "outcome raises": (given(outcome=raising), r"outcome\(\(1, 3\)\) raised KeyError: 'nothing there'"),
    "outcome changes its kind": (
        given(outcome=lambda p: 0 if p == (1, 3) else [0, 1]),
        r"outcome\(\(1, 8\)\) = \[0, 1\]",
    ),
    "lottery too long": (given(outcome=lambda p: [1, 0, 0]), r"outcome\(\(1, 3\)\) = \[1, 0, 0\]"),
    "lottery adds up to 2": (
        given(outcome=lambda p: [1, 1]),
        r"outcome\(\(1, 3\)\) = \[1, 1\]: expected probabilities",
    ),
    "lottery negative": (given(outcome=lambda p: [2, -1]), r"outcome\(\(1, 3\)\) = \[2, -1\]: expected probabilities"),
    "payments of another shape": (given(payments=[1, 2]), r"payments has shape \(2,\): expected \(2, 2, 2\)"),
    "payments of one owner": (given(payments=lambda p: (1,)), r"payments\(\(1, 3\)\) = \(1,\): expected 2 numbers"),
    "payments are NaN": (given(payments=lambda p: (1, float("nan"))), r"payments\(\(1, 3\)\)\[1\] = nan"),
    "payments array is NaN": (given(payments=np.full((4, 2), np.nan)), r"payments\[0, 0\] = nan"),
    "outcome is a name": (given(outcome=lambda p: "sold"), r"outcome\(\(1, 3\)\) = 'sold': expected a finite number"),
    "outcome is NaN": (given(outcome=lambda p: float("nan")), r"outcome\(\(1, 3\)\) = nan"),
    "payments raise": (given(payments=raising), r"payments\(\(1, 3\)\) raised KeyError"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_with_place_and_what_is_legal(case):
    arguments, message = BAD[case]
    with pytest.raises(InvalidParameterError, match=message):
        FiniteMechanism(**arguments)
    FiniteMechanism(**given())  # the rest of it is legal


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("even", "prior = 'even'"),
        (0.5, "prior = 0.5"),
        ([[0.5, 0.5]], "prior has 1 entries: expected one for each of 2"),
        ([[0.5, 0.5], [1]], r"prior\[1\] has shape \(1,\)"),
        ([[0.5, 0.4], [1, 0]], r"prior\[0\] adds up to 0.9"),
        ([[Fraction(1, 3), Fraction(1, 3)], [1, 0]], r"prior\[0\] adds up to 2/3"),
        ([[1.5, -0.5], [1, 0]], r"prior\[0\]\[1\] = -0.5: expected a probability"),
        (np.ones((2, 3)) / 6, r"prior has shape \(2, 3\)"),
        (np.array([[0.5, 0.5], [np.nan, 0]]), r"prior\[1, 0\] = nan"),
    ],
)
def test_a_prior_that_is_none_is_named(prior, message):
    with pytest.raises(InvalidParameterError, match=message):
        audit_finite(FiniteMechanism(**given()), prior)


def test_a_table_too_large_is_refused_with_its_size_before_any_function_is_asked():
    with pytest.raises(
        TooLargeError, match=re.escape("100000000 profiles x 100 = 10000000000 cells: expected at most 10")
    ):
        FiniteMechanism([range(100)] * 4, raising, utilities=[np.zeros((100, 2))] * 4)
    refused(lambda: second_price([range(100)] * 5), "cells", error=TooLargeError)
    with pytest.raises(TooLargeError, match="x 101 = 1010000000 cells"):  # lotteries are the widest table
        FiniteMechanism(
            [range(100)] * 3 + [range(10)],
            lambda p: [1] + [0] * 100,
            utilities=[np.zeros((m, 101)) for m in (100, 100, 100, 10)],
        )


def test_other_bad_arguments():
    refused(lambda: audit_finite(5), place="mechanism", seen=5, legal="a FiniteMechanism", error=InvalidParameterError)
    with pytest.raises(InvalidParameterError, match="tolerance = -1"):
        audit_finite(FiniteMechanism(**given()), tolerance=-1)
    refused(lambda: second_price([[1], [-1]]), "values[1]", error=InvalidParameterError)
    refused(lambda: unit_demand_vcg([[(1, 2), (1,)]]), place="types[0][1]", seen=(1,), error=InvalidParameterError)
    refused(lambda: expected_externality([[1]], [[[1]]], [[1]]), "at least two owners", error=InvalidParameterError)
    with pytest.raises(InvalidParameterError, match="independent"):
        expected_externality([[1]] * 2, [[[1]]] * 2, np.ones((1, 1)))


@pytest.mark.parametrize("worth", [0, 1, 10**12, 10**30])
def test_probabilities_with_long_denominators_stay_exact(worth):
    tiny = Fraction(1, 3**50)
    mechanism = FiniteMechanism(
        [[0, 1]], [[1 - tiny, tiny], [tiny, 1 - tiny]], utilities=[[[0, worth], [0, 2 * worth]]]
    )
    audit = audit_finite(mechanism, [[tiny, 1 - tiny]])
    assert audit.dominant_gain == worth * (1 - 2 * tiny) and audit.worst_utility.utility == worth * tiny
    assert audit.expected_welfare == tiny * tiny * worth + (1 - tiny) * (1 - tiny) * 2 * worth


def test_a_mechanism_keeps_what_it_was_given():
    tables, payments = [np.array([[0, 1], [2, 3]])] * 2, np.zeros((4, 2))
    mechanism = FiniteMechanism(np.array([[1, 2], [3, 8]]), np.zeros(4, dtype=int), payments, utilities=tables)
    payments[0], tables[0][0] = 9, 9
    assert mechanism.payments.max() == 0 and mechanism.utilities[0].tolist() == [[0, 1], [2, 3]]
    assert mechanism.types == ((1, 2), (3, 8)) and type(mechanism.types[0][0]) is int
    with pytest.raises(ValueError, match="read-only"):
        mechanism.payments[0] = 1


def test_profiles_are_in_the_order_of_product():
    mechanism = FiniteMechanism(**given())
    assert [mechanism.profile(k) for k in range(4)] == list(product([1, 2], [3, 8]))
    assert mechanism.probabilities().tolist() == [[1, 0], [0, 1], [0, 1], [1, 0]]
