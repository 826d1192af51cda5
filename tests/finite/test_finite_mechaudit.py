"""Figures and optima against mechaudit, an independent package, where it is installed."""

from itertools import product

import numpy as np
import pytest

from draws import many
from marketsched.finite import audit_finite, design
from marketsched.mechanisms.finite import FiniteMechanism

mechaudit = pytest.importorskip("mechaudit")


def environment(utilities, joint):
    """Return the same types, values and prior in mechaudit's terms."""
    shape = joint.shape
    names = [f"owner {i}" for i in range(len(shape))]
    return mechaudit.FiniteEnvironment(
        agents={name: list(range(m)) for name, m in zip(names, shape, strict=True)},
        outcomes=list(range(utilities[0].shape[1])),
        prior={p: float(joint[p]) for p in product(*map(range, shape))},
        values=mechaudit.PrivateValues(lambda agent, own, k: float(utilities[names.index(agent)][own, k])),
    )


def drawn(rng):
    """Return utilities, and a joint prior in which every profile has a chance."""
    shape = tuple(int(m) for m in rng.integers(1, 5, size=rng.integers(1, 4)))
    n_outcomes = int(rng.integers(1, 5))
    utilities = [rng.normal(size=(m, n_outcomes)) for m in shape]
    joint = rng.uniform(0.1, 1, size=shape)
    return utilities, joint / joint.sum()


def test_figures_are_those_of_mechaudit():
    rng = np.random.default_rng(0)
    for _ in range(many(200)):
        utilities, joint = drawn(rng)
        lottery = rng.dirichlet(np.ones(utilities[0].shape[1]), size=joint.size)
        if rng.random() < 0.5:
            lottery = np.eye(lottery.shape[1])[lottery.argmax(axis=1)]
        payments = rng.normal(size=(joint.size, joint.ndim))
        ours = audit_finite(
            FiniteMechanism([range(m) for m in joint.shape], lottery, payments, utilities=utilities), joint
        )
        theirs = environment(utilities, joint)
        asked = [
            mechaudit.DSIC(),
            mechaudit.BIC(),
            mechaudit.ExPostIR(),
            mechaudit.InterimIR(),
            mechaudit.WeakBudgetBalance(),
        ]
        report = theirs.audit(mechaudit.DirectMechanism.from_arrays(lottery, payments, environment=theirs), asked)
        expected_revenue = theirs.audit(
            mechaudit.DirectMechanism.from_arrays(lottery, payments, environment=theirs),
            [mechaudit.WeakBudgetBalance(timing="ex_ante")],
        )
        pairs = {
            "dominant": (ours.dominant_gain, report.section("", {"dsic"}).epsilon),
            "bayesian": (ours.bayesian_gain, report.section("", {"bic"}).epsilon),
            "ex post": (ours.worst_utility.utility, report.section("", {"ex_post_ir"}).minimum_slack),
            "interim": (ours.worst_interim_utility.utility, report.section("", {"interim_ir"}).minimum_slack),
            "deficit": (ours.least_revenue, report.budget.minimum_slack),
            "revenue": (ours.expected_revenue, expected_revenue.budget.minimum_slack),
        }
        for name, (mine, other) in pairs.items():
            assert mine == pytest.approx(other, rel=0, abs=1e-9), name


@pytest.mark.parametrize("incentive", ["dominant", "bayesian"])
def test_optima_are_those_of_mechaudit(incentive):
    rng = np.random.default_rng(1)
    for _ in range(many(20)):
        utilities, joint = drawn(rng)
        utilities = [np.abs(table) for table in utilities]  # somebody is always willing to take part
        ours = design(
            [range(m) for m in joint.shape],
            joint,
            utilities=utilities,
            incentive=incentive,
            participation="ex post",
            budget="no deficit",
        )
        truth = mechaudit.DSIC() if incentive == "dominant" else mechaudit.BIC()
        problem = environment(utilities, joint).design(
            objective=mechaudit.ExpectedRevenue(),
            requirements=(truth, mechaudit.ExPostIR(), mechaudit.WeakBudgetBalance()),
        )
        assert ours.certificate.holds and ours.value == pytest.approx(problem.solve().objective_value, abs=1e-6)
