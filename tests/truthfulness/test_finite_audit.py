"""The exact audit of finite mechanisms: against plain loops, on mechanisms with known answers, and with faults."""

import re
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from draws import many
from marketsched import FiniteMechanism, audit_finite
from marketsched.mechanisms import InvalidParameterError, TooLargeError
from marketsched.mechanisms.finite import (
    bundle_vcg,
    clarke_vcg,
    expected_externality,
    first_price,
    second_price,
    unit_demand_vcg,
)
from naive_finite import audited, changed, figures, mechanism_of, random_priors, random_tables, utility

NUMBERS = {
    "ints": lambda rng: lambda: int(rng.integers(-9, 10)),
    "fractions": lambda rng: lambda: Fraction(int(rng.integers(-9, 10)), int(rng.integers(1, 8))),
    "huge": lambda rng: lambda: int(rng.integers(-9, 10)) * 10**25 + int(rng.integers(-9, 10)),
    "beyond int64 in sums": lambda rng: lambda: int(rng.integers(-(2**52), 2**52)) * 2**10,
}


@pytest.mark.parametrize("lotteries", [False, True], ids=["deterministic", "lotteries"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_figures_are_those_of_plain_loops_exactly(kind, lotteries):
    rng = np.random.default_rng(len(kind))
    for _ in range(many(60)):
        tables = random_tables(rng, NUMBERS[kind](rng), lotteries=lotteries)
        mechanism = mechanism_of(*tables, lotteries=lotteries)
        marginals, joint = random_priors(rng, tables[0])
        for prior, chance in (
            (marginals, lambda p, m=marginals: prod(m[i][k] for i, k in enumerate(p))),
            (joint, lambda p, j=joint: j[p]),
        ):
            audit = audit_finite(mechanism, prior)
            assert audit.is_exact and audit.tolerance == 0
            assert figures(audit) == audited(tables, chance)


def test_floating_point_is_close_to_plain_loops():
    rng = np.random.default_rng(1)
    for _ in range(many(60)):
        tables = random_tables(rng, lambda: float(rng.normal()), lotteries=True)
        audit = audit_finite(mechanism_of(*tables, lotteries=True), "uniform")
        assert not audit.is_exact
        n = prod(tables[0])
        expected = audited(tables, lambda p, n=n: 1 / n)
        found = figures(audit)
        assert {k: v for k, v in found.items() if v is not None} == pytest.approx(
            {k: float(v) for k, v in expected.items() if v is not None}, rel=1e-9, abs=1e-12
        )


def test_a_lie_that_is_named_gains_what_it_says_when_it_is_played():
    rng = np.random.default_rng(2)
    for _ in range(many(60)):
        tables = random_tables(rng, NUMBERS["fractions"](rng), lotteries=True)
        audit = audit_finite(mechanism_of(*tables, lotteries=True), "uniform")
        lie, pair, both = audit.dominant_lie, audit.pair_lie, audit.both_lie
        if lie is not None:
            true, report = lie.true_type - 10, lie.report - 10
            profile = [k - 10 for k in lie.others]
            profile = (*profile[: lie.owner], true, *profile[lie.owner :])
            gain = utility(tables, lie.owner, true, changed(profile, lie.owner, report))
            assert gain - utility(tables, lie.owner, true, profile) == lie.gain == audit.dominant_gain > 0
        for found, figure, of in ((pair, audit.pair_gain, sum), (both, audit.both_gain, min)):
            if found is None:
                assert figure == (0 if len(tables[0]) > 1 else None)
                continue
            others = iter(found.others)
            types = dict(zip(found.owners, found.true_types, strict=True))
            profile = tuple(types.get(i, None) or next(others) for i in range(len(tables[0])))
            profile = tuple(k - 10 for k in profile)
            lied = profile
            for i, report in zip(found.owners, found.reports, strict=True):
                lied = changed(lied, i, report - 10)
            gains = [
                utility(tables, i, profile[i], lied) - utility(tables, i, profile[i], profile) for i in found.owners
            ]
            assert gains == list(found.gains)
            assert figure == of(gains) > 0 and found.total == sum(gains)


@pytest.mark.parametrize(("n", "m"), [(1, 4), (2, 8), (3, 5)])
def test_first_price_gains_the_whole_price_and_second_price_nothing(n, m):
    pay_as_bid, vickrey = first_price([range(m)] * n), second_price([range(m)] * n, reserve=2)
    audit = audit_finite(pay_as_bid, "uniform")
    assert (
        audit.dominant_gain == m - 1
        and audit.is_efficient
        and audit.has_no_deficit
        and audit.both_gain == (0 if n > 1 else None)
    )
    audit = audit_finite(vickrey, "uniform")
    assert audit.is_dominant and audit.is_bayesian and audit.is_rational and audit.dominant_lie is None
    assert audit.worst_loss == 1 and audit.worst_loss_at == (0,) * (n - 1) + (1,)  # a value below the reserve
    assert audit.both_gain == (0 if n > 1 else None)


def test_second_price_and_first_price_with_values_in_fractions_and_one_in_floats():
    exact = audit_finite(second_price([[Fraction(1, 3), Fraction(1, 2)], [0, 1]]), "uniform")
    assert exact.is_exact and exact.expected_revenue == Fraction(5, 24)  # 0, 0, 1/3, 1/2 at the four profiles
    rough = audit_finite(first_price([[0.5, 1.0], [0, 1]]), "uniform")
    assert not rough.is_exact and rough.dominant_gain == 0.5 and rough.expected_revenue == 0.875


def test_vcg_is_dominant_efficient_and_rational():
    rng = np.random.default_rng(3)
    for _ in range(many(20)):
        unit = unit_demand_vcg([[tuple(int(x) for x in rng.integers(0, 9, 2)) for _ in range(3)] for _ in range(3)])
        bundles = []
        for _ in range(3):
            values = np.sort(rng.integers(0, 9, (2, 4)))
            values[:, 0] = 0
            bundles.append([tuple(int(x) for x in row) for row in values])
        for mechanism in (unit, bundle_vcg(bundles, 2)):
            audit = audit_finite(mechanism, "uniform")
            assert audit.is_dominant and audit.is_bayesian and audit.is_efficient and audit.has_no_deficit
            assert audit.is_rational


def test_two_small_owners_gain_together_against_a_large_one_at_vcg():
    """Ausubel and Milgrom (2006): where reports are high enough, each covers what the other would have to pay."""
    large = [(0, 0, 0, 3)]
    small = [[tuple(v * (b & item > 0) for b in range(4)) for v in (0, 1, 3)] for item in (1, 2)]
    audit = audit_finite(bundle_vcg([large, *small], 2))
    assert audit.is_dominant and not audit.is_pair_proof
    # Worth 1 each they lose; reporting 3 each they win and pay 3 - 3 = 0.
    assert audit.both_lie.owners == (1, 2) and audit.both_lie.gains == (1, 1) and audit.both_gain == 1
    assert audit.both_lie.true_types == (small[0][1], small[1][1])
    assert audit.both_lie.reports == (small[0][2], small[1][2])
    assert audit.bayesian_gain is None and audit.expected_revenue is None


def test_expected_externality_is_truthful_in_expectation_and_balanced_and_not_dominant():
    rng, not_dominant = np.random.default_rng(4), 0
    for _ in range(many(20)):
        n = int(rng.integers(2, 4))
        utilities = [rng.integers(-5, 9, (3, 3)) for _ in range(n)]
        prior, _ = random_priors(rng, (3,) * n)
        audit = audit_finite(expected_externality([range(3)] * n, utilities, prior), prior)
        assert audit.is_bayesian and audit.bayesian_gain == 0 and audit.is_balanced and audit.is_efficient
        not_dominant += not audit.is_dominant
        floats = expected_externality([range(3)] * n, [u * 1.0 for u in utilities], prior)
        assert audit_finite(floats, prior).is_bayesian
    assert not_dominant > 0


def test_clarke_payments_of_one_owner_and_of_a_public_project():
    assert clarke_vcg([[0, 1]], [[[0, 5], [7, 5]]]).payments.tolist() == [[0], [0]]
    project = clarke_vcg([range(4)] * 2, lambda i, v, built: built * (2 * v - 3), outcomes=[0, 1])
    audit = audit_finite(project, "uniform")
    assert audit.is_dominant and audit.is_efficient
    # Values 3 and 1: it is built against the will of owner 1, whose loss of 1 owner 0 pays.
    assert project.payments.reshape(4, 4, 2)[3, 1].tolist() == [1, 0]
    halves = clarke_vcg([range(4)] * 2, lambda i, v, built: built * (v - Fraction(3, 2)), outcomes=[0, 1])
    assert (halves.payments * 2 == project.payments).all()


def test_a_single_planted_fault_is_found_with_owner_type_and_profile():
    auction = second_price([range(5)] * 3)
    payments = auction.payments.copy()
    payments[np.ravel_multi_index((4, 2, 3), auction.shape), 0] += 2  # owner 0 wins at value 4 and pays 5 for 3
    faulty = FiniteMechanism(auction.types, auction.choice, payments, utilities=auction.utilities)
    audit = audit_finite(faulty, "uniform")
    assert str(audit.dominant_lie) == "owner 0 of type 4 reports 3 against (2, 3): gains 2"
    assert str(audit.worst_utility) == "owner 0 of type 4 gets -1 against (2, 3)"
    assert str(audit.bayesian_lie) == "owner 0 of type 4 reports 3: gains 2/25 in expectation"
    assert not audit.is_dominant and not audit.is_bayesian and not audit.is_rational and audit.is_interim_rational


def test_a_mechanism_that_pays_out_names_the_profile():
    mechanism = FiniteMechanism([[0, 1]] * 2, lambda p: 0, lambda p: (p[0] - 2 * p[1], 0), utilities=[[[1], [1]]] * 2)
    audit = audit_finite(mechanism, "uniform")
    assert (audit.least_revenue, audit.least_revenue_at, audit.most_revenue) == (-2, (0, 1), 1)
    assert not audit.has_no_deficit and not audit.is_balanced and audit.expected_revenue == Fraction(-1, 2)


def test_tolerance_and_pairs_can_be_chosen():
    auction = first_price([range(3)] * 2)
    assert audit_finite(auction, tolerance=2).is_dominant and not audit_finite(auction, tolerance=1.9).is_dominant
    alone = audit_finite(auction, pairs=False)
    assert alone.pair_gain is alone.is_pair_proof is None
    assert list(alone.to_frame()["question"]) == [
        "truthful in dominant strategies", "no owner loses", "no deficit", "balanced budget", "efficient",
        "smallest share of the best welfare",
    ]  # fmt: skip


def test_the_table_keeps_figures_as_they_are():
    frame = audit_finite(first_price([range(3)] * 2), "uniform").to_frame().set_index("question")
    assert frame.loc["truthful in expectation", "figure"] == Fraction(2, 3)
    assert frame.loc["truthful in expectation", "answer"] is False
    assert frame.loc["no pair gains", "where"] == "owners 0 and 1 of types 2 and 0 report 0 and 0: gain 2 (2 and 0)"
    assert frame.loc["no pair gains", "answer"] is False and frame.loc["no pair where both gain", "answer"] is True
    constant = FiniteMechanism([[0, 1]] * 2, np.zeros(4, dtype=int), utilities=[[[1], [2]]] * 2)
    frame = audit_finite(constant).to_frame().set_index("question")
    assert frame["answer"].iloc[:-1].all() and frame.loc["no pair gains", "figure"] == 0


def test_functions_and_arrays_of_either_shape_make_the_same_mechanism():
    values = range(3)
    by_function = FiniteMechanism(
        [values] * 2,
        lambda p: [Fraction(int(p[0] >= p[1])), Fraction(int(p[0] < p[1]))],
        lambda p: np.array(p),
        utilities=lambda owner, value, winner: value * (owner == winner),
        outcomes=[0, 1],
    )
    choice = np.array([[int(a < b) for b in values] for a in values])
    payments = np.array([[[a, b] for b in values] for a in values])
    tables = [np.array([[v, 0] for v in values]), np.array([[0, v] for v in values])]
    audits = [
        figures(audit_finite(FiniteMechanism([values] * 2, outcome, paid, utilities=tables), "uniform"))
        for outcome in (
            choice,
            choice.reshape(-1),
            np.eye(2, dtype=int)[choice],
            np.eye(2, dtype=bool)[choice].reshape(-1, 2),
        )
        for paid in (payments, payments.reshape(-1, 2))
    ]
    assert all(each == figures(audit_finite(by_function, "uniform")) for each in audits)


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
    with pytest.raises(TooLargeError, match="cells"):
        second_price([range(100)] * 5)
    with pytest.raises(TooLargeError, match="x 101 = 1010000000 cells"):  # lotteries are the widest table
        FiniteMechanism(
            [range(100)] * 3 + [range(10)],
            lambda p: [1] + [0] * 100,
            utilities=[np.zeros((m, 101)) for m in (100, 100, 100, 10)],
        )


def test_other_bad_arguments():
    with pytest.raises(InvalidParameterError, match="mechanism = 5: expected a FiniteMechanism"):
        audit_finite(5)
    with pytest.raises(InvalidParameterError, match="tolerance = -1"):
        audit_finite(FiniteMechanism(**given()), tolerance=-1)
    with pytest.raises(InvalidParameterError, match=r"values\[1\]"):
        second_price([[1], [-1]])
    with pytest.raises(InvalidParameterError, match=r"types\[0\]\[1\] = \(1,\)"):
        unit_demand_vcg([[(1, 2), (1,)]])
    with pytest.raises(InvalidParameterError, match="at least two owners"):
        expected_externality([[1]], [[[1]]], [[1]])
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
