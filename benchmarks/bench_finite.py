"""Exact audits of finite mechanisms, and mechaudit on the same one; without that package its rows are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from harness import Row, Timed, benchmark, time_interleaved


def _ours(n_owners: int, n_values: int, *, pairs: bool) -> Callable[[], Any]:
    """Return the audit of the first-price auction, mechanism included, in the questions that mechaudit answers, too."""
    from marketsched.finite import audit_finite
    from marketsched.mechanisms.finite import first_price

    return lambda: audit_finite(first_price([range(n_values)] * n_owners), "uniform", pairs=pairs)


def _theirs(n_owners: int, n_values: int) -> Callable[[], Any]:
    """Return mechaudit's audit of the same auction; environment and mechanism are made before, and not timed."""
    from marketsched.mechanisms.finite import first_price

    package: Any = import_module("mechaudit")
    auction = first_price([range(n_values)] * n_owners)
    names = [f"owner {i}" for i in range(n_owners)]
    marginals = {name: dict.fromkeys(range(n_values), 1 / n_values) for name in names}
    environment = package.FiniteEnvironment(
        agents={name: list(range(n_values)) for name in names},
        outcomes=list(range(n_owners + 1)),
        prior=package.JointPrior.from_independent(marginals),
        values=package.PrivateValues(lambda agent, value, k: float(value) if k == names.index(agent) else 0.0),
    )
    mechanism = package.DirectMechanism.from_arrays(
        auction.probabilities().astype(np.float64), auction.payments.astype(np.float64), environment=environment
    )
    asked = [package.DSIC(), package.BIC(), package.ExPostIR(), package.InterimIR(), package.WeakBudgetBalance()]
    return lambda: environment.audit(mechanism, asked)


@benchmark
def audit_of_one_item() -> Iterator[Row]:
    """Time the audit of the first-price auction: 4 owners x 8 values, and 6 x 8 with joint lies of two."""
    (ours,) = time_interleaved([_ours(4, 8, pairs=False)], rounds=15)  # compiles, too
    yield Row("finite.audit_4x8_s", ours, "s")
    yield Row("finite.audit_6x8_pairs_s", Timed(_ours(6, 8, pairs=True)).seconds(), "s")
    if find_spec("mechaudit") is not None:
        own, other = time_interleaved([_ours(4, 8, pairs=False), _theirs(4, 8)], rounds=5, budget=120)
        yield Row("finite.mechaudit_4x8_s", other, "s")
        yield Row("finite.mechaudit_over_audit", other / own, at_least=50)
