"""The best finite direct mechanism, by linear program: automated mechanism design.

Over all randomised mechanisms, an objective that is linear in probabilities and payments is maximised under linear
constraints: truth is best, owners take part, the budget [1]_. By the revelation principle nothing indirect does better.

References
----------
.. [1] V. Conitzer and T. Sandholm, Complexity of mechanism design, UAI 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.finite.program import Program, Programmer, Rows
from marketsched.finite.program_certificate import DualCertificate, check_certificate, exact_certificate
from marketsched.mechanisms.errors import InvalidParameterError, SolverError
from marketsched.mechanisms.finite.exact import Number, as_floats, is_exact, number_array, over_one_denominator
from marketsched.mechanisms.finite.finite_mechanism import FiniteMechanism
from marketsched.mechanisms.finite.prior import PriorLike, prior_of
from marketsched.mechanisms.finite.tables import (
    UtilitiesLike,
    check_size,
    read_outcomes,
    read_types,
    read_utilities,
)
from marketsched.mechanisms.legal import legal

Incentive = Literal["dominant", "bayesian"]
Participation = Literal["ex post", "interim", "none"]
Budget = Literal["any", "no deficit", "no expected deficit", "balanced"]
TOLERANCE = 1e-9  # of the solver


@dataclass(frozen=True)
class Design:
    """The best mechanism, and the proof.

    Examples
    --------
    >>> best = design([range(3)], utilities=lambda owner, value, sold: value * sold, outcomes=[0, 1])
    >>> best.value, best.certificate.holds
    (Fraction(2, 3), True)
    """

    mechanism: FiniteMechanism  # randomised; an audit of one in floats wants a tolerance, as 1e-6
    value: Number  # its objective, in expectation
    certificate: DualCertificate  # the dual of the same value

    def __repr__(self) -> str:
        return f"Design of value {self.value}\n  {self.mechanism!r}\n  {self.certificate!r}"


@legal
def design(
    types: Sequence[Sequence[Any]],
    prior: PriorLike = "uniform",
    objective: Any = "revenue",
    *,
    utilities: UtilitiesLike,
    outcomes: int | Sequence[Any] | None = None,
    incentive: Incentive = "dominant",
    participation: Participation = "ex post",
    payments: bool = True,
    budget: Budget = "any",
) -> Design:
    """Return the best randomised mechanism for given types, utilities and prior.

    Parameters
    ----------
    types, utilities, outcomes
        As for `FiniteMechanism`.
    prior : "uniform", sequence of array_like, or ndarray
        As for `audit_finite`.
    objective : "revenue", "welfare" or array_like
        The objective, in expectation: the sum of payments; the sum of utilities without payments; or a
        reward for each outcome at each profile, shape (types of owner 0, ..., outcomes) or flat over profiles.
    incentive : "dominant" or "bayesian"
        Truth is best at every profile of the others, or in expectation over them for every type that can occur.
    participation : "ex post", "interim" or "none"
        Who is truthful gets at least 0 at every profile, in expectation given its type, or is held to nothing.
    payments : bool
        Whether owners can pay and be paid.
    budget : "any", "no deficit", "no expected deficit" or "balanced"
        What payments may add up to: anything; at least 0 at every profile, or in expectation; 0 at every profile.

    Returns
    -------
    Design
        The mechanism, its value, and the dual that proves it best.

    Raises
    ------
    InvalidParameterError
        A parameter is malformed, or revenue is wanted without payments.
    SolverError
        No mechanism meets the constraints, there is no best one, or the solver's result has no certificate.
    TooLargeError
        The program would have more than 10^9 entries, or take more memory than there is.

    Examples
    --------
    Hart and Nisan (2017): a buyer of two goods, worth 0, 1 or 2 each with equal probability. The best mechanism sells
    one good at 2 and both at 3, for 13/9, while one by one or as a bundle they bring 4/3:

    >>> goods = [(0, 0), (0, 1), (1, 0), (1, 1)]
    >>> best = design(
    ...     [[(a, b) for a in range(3) for b in range(3)]],
    ...     utilities=lambda owner, values, sold: values[0] * sold[0] + values[1] * sold[1],
    ...     outcomes=goods,
    ... )
    >>> best
    Design of value 13/9
      FiniteMechanism of 1 owner: types 9, outcomes 4, randomised, exact
      DualCertificate, in fractions, holds: value 13/9, bound 13/9, no violation
    >>> [str(paid[0]) for paid in best.mechanism.payments]  # values (0, 0), (0, 1), (0, 2), (1, 0), ...
    ['0', '0', '2', '0', '0', '3', '2', '3', '3']
    """
    read = read_types(types)
    names = read_outcomes(outcomes, utilities)
    check_size(read, len(names))
    tables = read_utilities(utilities, read, names)
    if not payments and budget != "any":
        raise InvalidParameterError(place="budget", value=budget, legal="'any', where no owner pays")
    beliefs = prior_of(prior, tuple(len(each) for each in read))
    for exact in (True, False):
        programmer = Programmer(tables, beliefs, money=payments, exact=exact)
        programmer.check_size()
        program = _program(programmer, objective, incentive, participation, budget)
        if program.is_exact or not exact:
            numbers = _solved(program)
            found = exact_certificate(program, *numbers) if exact else _certificate(program, *numbers)
            if found is not None:
                break
    assert found is not None
    certificate, solution = found
    lottery, paid = programmer.tables_of(solution)
    mechanism = FiniteMechanism(read, lottery, paid, utilities=tables, outcomes=names)
    return Design(mechanism, certificate.value, certificate)


def _certificate(
    program: Program, solution: NDArray[Any], at_most: NDArray[Any], equal: NDArray[Any]
) -> tuple[DualCertificate, NDArray[Any]]:
    """Return the certificate in floating point, and the solution; an answer without one is no answer."""
    found = check_certificate(program, solution, np.maximum(at_most, 0.0), equal)
    if not found.holds:
        raise SolverError(f"what HiGHS returned is not optimal: {found!r}")
    return found, solution


def _program(
    programmer: Programmer, objective: Any, incentive: Incentive, participation: Participation, budget: Budget
) -> Program:
    """Return the program; it is exact if the objective is, too."""
    goal, scale, size = _objective(programmer, objective)
    at_most, equal, right = _rows(programmer, incentive, participation, budget)
    exact = programmer.is_exact and is_exact(goal)
    return Program(goal, at_most, equal, right, programmer.n_probabilities, scale, size, exact)


def _objective(programmer: Programmer, objective: Any) -> tuple[NDArray[Any], float, float]:
    """Return the objective times a scale, the scale, and its largest number without the scale."""
    scale, size = programmer.total * programmer.unit / programmer.size, programmer.size
    if isinstance(objective, str):
        if objective == "welfare":
            return programmer.welfare(), scale, size
        if objective == "revenue" and programmer.money:
            return programmer.revenue(), scale, size
        without = "'revenue', 'welfare' or an array" if programmer.money else "'welfare' or an array, without payments"
        raise InvalidParameterError(place="objective", value=objective, legal=without)
    reward = number_array("objective", objective)
    flat = (programmer.n_profiles, programmer.n_outcomes)
    if reward.shape not in (flat, (*programmer.shape, programmer.n_outcomes)):
        legal = f"{(*programmer.shape, programmer.n_outcomes)}, a reward for each outcome at each profile"
        raise InvalidParameterError(f"has shape {reward.shape}", place="objective", legal=legal)
    if programmer.is_exact and is_exact(reward):
        (whole,), unit = over_one_denominator([reward.reshape(flat)], int(programmer.total))
        return programmer.reward(whole), programmer.total * unit, 1.0
    size = float(abs(reward).max()) or 1.0
    return programmer.reward(as_floats(reward).reshape(flat) / size), programmer.total / size, size


def _rows(
    programmer: Programmer, incentive: Incentive, participation: Participation, budget: Budget
) -> tuple[tuple[Rows, ...], tuple[Rows, ...], NDArray[np.int64]]:
    """Return the rows whose right-hand side is 0, the equations, and the equations' right-hand side."""
    owners = range(len(programmer.shape))
    rows = [programmer.truth(i, dominant=incentive == "dominant") for i in owners if programmer.shape[i] > 1]
    if participation != "none":
        rows += [programmer.participation(i, ex_post=participation == "ex post") for i in owners]
    if budget in ("no deficit", "no expected deficit"):
        rows.append(programmer.budget(ex_post=budget == "no deficit"))
    equal, right = [programmer.certain()], [np.ones(programmer.n_profiles, dtype=np.int64)]
    if budget == "balanced":
        equal.append(programmer.budget(ex_post=True))
        right.append(np.zeros(programmer.n_profiles, dtype=np.int64))
    return tuple(rows), tuple(equal), np.concatenate(right)


def _solved(program: Program) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return z, y and w from HiGHS."""
    from scipy.optimize import linprog

    n, size = program.n_probabilities, program.objective.size
    at_most, equal = _sparse(program.at_most, size), _sparse(program.equal, size)
    bounds = np.empty((size, 2))
    bounds[:, 0], bounds[:, 1] = np.where(np.arange(size) < n, 0.0, -np.inf), np.inf
    solved = linprog(
        -as_floats(program.objective),
        A_ub=at_most,
        b_ub=None if at_most is None else np.zeros(at_most.shape[0]),
        A_eq=equal,
        b_eq=program.right.astype(np.float64),
        bounds=bounds,
        method="highs",
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if solved.status != 0:
        reasons = {2: "no mechanism meets the constraints", 3: "there is no best mechanism: the objective has no limit"}
        raise SolverError(f"{reasons.get(solved.status, 'HiGHS ended without an answer')} ({solved.message})")
    upper = np.zeros(0) if at_most is None else -np.asarray(solved.ineqlin.marginals)
    return np.asarray(solved.x), upper, -np.asarray(solved.eqlin.marginals)


def _sparse(blocks: tuple[Rows, ...], size: int) -> Any:
    """Return rows as a sparse matrix; None: there are none."""
    from scipy import sparse

    if not blocks:
        return None
    parts = [
        sparse.coo_array((as_floats(b.values), (b.rows, b.columns)), shape=(b.n_rows, size)).tocsr() for b in blocks
    ]
    return sparse.vstack(parts, format="csr")
