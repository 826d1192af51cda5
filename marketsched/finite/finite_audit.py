"""The exact audit of a finite direct mechanism: every owner, type, report and profile of the others.

Truth is *dominant* where no owner gains by a lie whatever the others' types are, and *Bayesian* where none gains in
expectation over them, given its own type, if they are truthful. Nothing is sampled: the largest gain is a maximum
over a table, in integers where the mechanism's numbers are whole numbers or fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.finite.findings import FiniteAudit, FiniteLie, WorstUtility
from marketsched.finite.pairs import best_pair_lies
from marketsched.finite.utilities import ScaledUtilities
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.finite.exact import Number, as_number
from marketsched.mechanisms.finite.finite_mechanism import FiniteMechanism
from marketsched.mechanisms.finite.prior import Prior, PriorLike, prior_of, products_fit
from marketsched.mechanisms.legal import Finite
from marketsched.mechanisms.memory import check_memory

ROUNDING = 1e-9  # tolerance of floating point, times the largest number of the mechanism


def audit_finite(
    mechanism: FiniteMechanism, prior: PriorLike | None = None, *, tolerance: float | None = None, pairs: bool = True
) -> FiniteAudit:
    """Audit a finite direct mechanism exactly.

    Parameters
    ----------
    mechanism : FiniteMechanism
        The mechanism.
    prior : "uniform", sequence of array_like, or ndarray, optional
        How likely types are: a list with the probabilities of each owner's types (independent), or a NumPy array over
        profiles (joint). Without it there are no results in expectation. Types of probability 0 are left out there.
    tolerance : float, optional
        Gains and losses up to it count as none. By default 0 where all numbers are exact, and otherwise 1e-9 times
        the largest number of the mechanism.
    pairs : bool
        Whether to go through joint lies of two owners as well, the most expensive part.

    Returns
    -------
    FiniteAudit

    Raises
    ------
    InvalidParameterError
        If the prior does not fit.
    TooLargeError
        If pairs would need more memory than there is.

    Examples
    --------
    >>> from marketsched.mechanisms.finite import first_price, second_price
    >>> audit_finite(first_price([range(3)] * 2)).dominant_lie
    FiniteLie(owner=0, true_type=2, report=0, others=(0,), gain=2)
    >>> audit_finite(second_price([range(3)] * 2), "uniform")
    FiniteAudit of a FiniteMechanism of 2 owners: types 3 x 3, outcomes 3, deterministic, exact
      truthful in dominant strategies    yes  0
      truthful in expectation            yes  0
      no owner loses                     yes  0        owner 0 of type 0 gets 0 against 0
      no owner expects a loss            yes  0        owner 0 of type 0 gets 0 in expectation
      no deficit                         yes  0        revenue at (0, 0)
      balanced budget                    no   2        largest revenue
      efficient                          yes  0        loss of welfare at (0, 0)
      no pair gains                      no   2        owners 0 and 1 of types 2 and 2 report 0 and 0: gain 2 (2 and 0)
      no pair where both gain            yes  0
      expected revenue                        5/9
      expected welfare                        13/9
      expected loss of welfare                0
      smallest share of the best welfare      1
    """
    if not isinstance(mechanism, FiniteMechanism):
        raise InvalidParameterError(place="mechanism", value=mechanism, legal="a FiniteMechanism")
    beliefs = None if prior is None else prior_of(prior, mechanism.shape)
    n, widest = mechanism.n_owners, max(mechanism.shape)
    check_memory(
        f"the audit of {mechanism.n_profiles} profiles of {n} owners with up to {widest} types",
        8.0 * mechanism.n_profiles * (2 * widest + 4 * n + 6),
        "fewer owners or types",
    )
    scaled, asked = ScaledUtilities(mechanism), pairs and n > 1
    allowed = _tolerance(scaled, tolerance)
    dominant, bayesian = _lies(scaled, beliefs)
    pair_gain, pair_lie, both_gain, both_lie = best_pair_lies(scaled) if asked else (None, None, None, None)
    return FiniteAudit(
        mechanism=repr(mechanism),
        is_exact=mechanism.is_exact,
        tolerance=allowed,
        dominant_gain=dominant.gain if dominant else 0,
        dominant_lie=dominant,
        bayesian_gain=None if beliefs is None else bayesian.gain if bayesian else 0,
        bayesian_lie=bayesian,
        worst_utility=_worst_utility(scaled),
        worst_interim_utility=None if beliefs is None else _worst_interim(scaled, beliefs),
        pair_gain=pair_gain,
        pair_lie=pair_lie,
        both_gain=both_gain,
        both_lie=both_lie,
        **_revenue(scaled, beliefs),
        **_efficiency(scaled, beliefs),
    )


def _tolerance(scaled: ScaledUtilities, given: float | None) -> float:
    if given is not None:
        return Finite("[0, inf)").check("tolerance", given)
    if scaled.mechanism.is_exact:
        return 0.0
    return ROUNDING * max(1.0, *(float(abs(array).max()) for array in (*scaled.tables, scaled.payments)))


def _lies(scaled: ScaledUtilities, beliefs: Prior | None) -> tuple[FiniteLie | None, FiniteLie | None]:
    """Return the lie that gains most at any profile, and the one that gains most in expectation."""
    dominant: tuple[Any, tuple[int, int, int, int] | None] = (0, None)
    bayesian: tuple[Any, tuple[int, int, int] | None] = (0, None)
    for owner, n_types in enumerate(scaled.shape):
        utility = scaled.of_owner(owner)
        weights = None if beliefs is None else scaled.first(beliefs.weights, owner)
        for true in range(n_types):
            gains = utility[true] - utility[true, true]
            largest = gains.max()
            if largest > dominant[0]:
                report, others = divmod(int(np.argmax(gains)), gains.shape[1])
                dominant = largest, (owner, true, report, others)
            if weights is None or not weights[true].sum() > 0:
                continue
            assert beliefs is not None
            expected = _expectations(gains, weights[true], beliefs, scaled.denominator)
            best = max(range(n_types), key=expected.__getitem__)
            if expected[best] > bayesian[0]:
                bayesian = expected[best], (owner, true, best)
    known = scaled.mechanism.types
    found = expected_lie = None
    if dominant[1] is not None:
        owner, true, report, others = dominant[1]
        gain = as_number(dominant[0], scaled.denominator)
        found = FiniteLie(owner, known[owner][true], known[owner][report], _others(scaled, owner, others), gain)
    if bayesian[1] is not None:
        owner, true, report = bayesian[1]
        expected_lie = FiniteLie(owner, known[owner][true], known[owner][report], None, bayesian[0])
    return found, expected_lie


def _expectations(numbers: NDArray[Any], weights: NDArray[Any], beliefs: Prior, denominator: int) -> list[Number]:
    """Return the mean of each row given one's own type: weights need not add up to 1."""
    if not beliefs.is_exact or numbers.dtype.kind == "f":
        shares = np.asarray(weights, dtype=np.float64) / float(weights.sum())
        return [float(x) / denominator for x in np.asarray(numbers, dtype=np.float64) @ shares]
    weights, numbers = products_fit(weights, numbers, beliefs.total)
    return [as_number(x, denominator * int(weights.sum())) for x in (numbers @ weights).tolist()]


def _others(scaled: ScaledUtilities, owner: int, index: int) -> tuple[Any, ...]:
    """Return the types of all but one owner at a flat index over their profiles."""
    rest = [each for k, each in enumerate(scaled.mechanism.types) if k != owner]
    if not rest:
        return ()
    places = np.unravel_index(index, [len(each) for each in rest])
    return tuple(each[int(k)] for each, k in zip(rest, places, strict=True))


def _worst_utility(scaled: ScaledUtilities) -> WorstUtility:
    profile, owner = divmod(int(np.argmin(scaled.truthful)), len(scaled.shape))
    types = scaled.mechanism.profile(profile)
    utility = as_number(scaled.truthful[profile, owner], scaled.denominator)
    return WorstUtility(owner, types[owner], types[:owner] + types[owner + 1 :], utility)


def _worst_interim(scaled: ScaledUtilities, beliefs: Prior) -> WorstUtility:
    worst: WorstUtility | None = None
    for owner, n_types in enumerate(scaled.shape):
        utility = scaled.first(scaled.truthful[:, owner], owner)
        weights = scaled.first(beliefs.weights, owner)
        for true in range(n_types):
            if not weights[true].sum() > 0:
                continue
            (mean,) = _expectations(utility[true : true + 1], weights[true], beliefs, scaled.denominator)
            if worst is None or mean < worst.utility:
                worst = WorstUtility(owner, scaled.mechanism.types[owner][true], None, mean)
    assert worst is not None  # probabilities add up to 1
    return worst


def _revenue(scaled: ScaledUtilities, beliefs: Prior | None) -> dict[str, Any]:
    total = scaled.payments.sum(axis=1)
    least = int(np.argmin(total))
    return {
        "least_revenue": as_number(total[least], scaled.denominator),
        "least_revenue_at": scaled.mechanism.profile(least),
        "most_revenue": as_number(total.max(), scaled.denominator),
        "expected_revenue": None if beliefs is None else beliefs.mean(total, scaled.denominator),
    }


def _efficiency(scaled: ScaledUtilities, beliefs: Prior | None) -> dict[str, Any]:
    welfare, best = scaled.values_at_truth().sum(axis=1), scaled.best_welfare()
    loss = best - welfare
    worst = int(np.argmax(loss))
    means = (
        [None] * 3 if beliefs is None else [beliefs.mean(each, scaled.denominator) for each in (loss, welfare, best)]
    )
    return {
        "worst_loss": as_number(loss[worst], scaled.denominator),
        "worst_loss_at": scaled.mechanism.profile(worst),
        "worst_ratio": _worst_ratio(welfare, best),
        "expected_loss": means[0],
        "expected_welfare": means[1],
        "best_expected_welfare": means[2],
    }


def _worst_ratio(welfare: NDArray[Any], best: NDArray[Any]) -> Number | None:
    """Return the smallest welfare / best where best is above 0."""
    above = best > 0
    if not above.any():
        return None
    got, most = welfare[above], best[above]
    if got.dtype == object:
        return as_number(min(Fraction(a) / Fraction(b) for a, b in zip(got.tolist(), most.tolist(), strict=True)))
    shares = got / most
    if got.dtype.kind == "f":
        return float(shares.min())
    near = np.flatnonzero(shares <= shares.min() + 1e-9 * abs(shares.min()))  # floats leave a few to tell apart
    pairs = {(int(got[k]), int(most[k])) for k in near}
    return as_number(min(Fraction(a, b) for a, b in pairs))
