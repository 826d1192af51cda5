"""The exact audit of finite mechanisms: against plain loops, on mechanisms with known answers, and with a fault."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest

from draws import many
from marketsched.finite import audit_finite
from marketsched.mechanisms.finite import (
    FiniteMechanism,
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


@pytest.mark.slow_after(2)
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


def test_an_exact_mechanism_under_a_prior_in_floats_is_exact_but_for_expectations():
    rng = np.random.default_rng(8)
    for _ in range(many(40)):
        tables = random_tables(rng, NUMBERS["fractions"](rng), lotteries=True)
        mechanism = mechanism_of(*tables, lotteries=True)
        marginals, joint = random_priors(rng, tables[0])
        for prior in ([[float(x) for x in each] for each in marginals], joint.astype(float)):
            exact = figures(audit_finite(mechanism, marginals if isinstance(prior, list) else joint))
            rough = figures(audit_finite(mechanism, prior))
            for name, value in exact.items():
                if "expected" in name or name in ("bayesian_gain", "worst_interim_utility"):
                    assert rough[name] == pytest.approx(float(value), rel=1e-9, abs=1e-12), name
                else:
                    assert rough[name] == value and not isinstance(rough[name], float), name


@pytest.mark.parametrize("rough", ["utilities", "lottery", "payments"])
def test_one_table_in_floats_makes_all_figures_floats_and_changes_none(rough):
    rng = np.random.default_rng(9)
    for _ in range(many(20)):
        shape, utilities, chances, payments = random_tables(rng, NUMBERS["fractions"](rng), lotteries=True)
        exact = figures(audit_finite(mechanism_of(shape, utilities, chances, payments, lotteries=True), "uniform"))
        mixed = FiniteMechanism(
            [range(m) for m in shape],
            np.array(list(chances.values()), dtype=float if rough == "lottery" else object),
            np.array(list(payments.values()), dtype=float if rough == "payments" else object),
            utilities=[np.array(each, dtype=float if rough == "utilities" else object) for each in utilities],
        )
        audit = audit_finite(mixed, "uniform")
        assert not audit.is_exact and isinstance(audit.worst_utility.utility, float)
        for name, value in exact.items():
            found = figures(audit)[name]
            assert found == (None if value is None else pytest.approx(float(value), rel=1e-9, abs=1e-12)), name


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
        rough = audit_finite(floats, prior)
        assert rough.is_bayesian and rough.is_balanced and not rough.is_exact
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
