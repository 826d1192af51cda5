"""The certificate of a linear program: its dual, checked by hand.

For  max c·z,  A z <= 0,  B z = b,  the first variables >= 0 and the others free,  multipliers y >= 0 of A and w of B
prove  c·z <= b·w  for every feasible z, if

    (Aᵀy + Bᵀw - c)_j >= 0  for variables >= 0,  and  = 0  for free ones.

A feasible z with c·z = b·w is then optimal, however it was found. Here z, y and w come from the solver, and feasibility
and equality are computed from the program itself: in fractions, without rounding, where the program is in integers and
the solver's numbers are close to fractions for which everything holds; otherwise in floating point, with what is
violated by how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.finite.program import Program, Rows
from marketsched.mechanisms.finite.exact import Number, as_floats, as_number

LARGEST_DENOMINATORS = (1000, 10**5)  # fractions tried for a number of the solver
CLOSE = 1e-6  # a fraction farther from the solver's number is not it
MOST_ENTRIES = 10**6  # entries of a program up to which fractions are tried
ALLOWED = 1e-7  # violation and gap up to which a certificate in floating point holds, of the largest number


@dataclass(frozen=True)
class DualCertificate:
    """Proof that a mechanism is optimal: a feasible dual of the same value.

    Examples
    --------
    >>> from marketsched.finite import design
    >>> best = design([range(3)], utilities=lambda owner, value, sold: value * sold, outcomes=[0, 1])
    >>> best.certificate
    DualCertificate, in fractions, holds: value 2/3, bound 2/3, no violation
    """

    value: Number  # objective of the mechanism, c·z
    bound: Number  # objective of the dual, b·w: no mechanism of the program has more
    primal_violation: Number  # largest of a constraint by the mechanism; in floats, utilities in units of the largest
    dual_violation: Number  # largest of a constraint of the dual by the multipliers
    is_exact: bool  # whether all was computed in fractions: then both violations are 0 and value = bound, exactly
    multipliers: dict[str, NDArray[Any]]  # y and w by the name of the rows
    size: float  # largest number of the objective, which tells how large a gap in floating point is

    @property
    def holds(self) -> bool:
        """Whether violations and gap are 0; in floating point, at most 1e-7 of the largest number concerned."""
        gap: Any = self.value - self.bound
        if self.is_exact:
            return gap == 0 and self.primal_violation == 0 and self.dual_violation == 0
        allowed = ALLOWED * max(self.size, abs(float(self.value)))
        return self.primal_violation <= ALLOWED and self.dual_violation <= allowed and abs(gap) <= allowed

    def __repr__(self) -> str:
        how = "in fractions" if self.is_exact else "in floating point"
        says = "holds" if self.holds else "DOES NOT HOLD"
        worst = (
            f"violations {self.primal_violation:.3g} and {self.dual_violation:.3g}"
            if not self.is_exact
            else "no violation"
        )
        return f"DualCertificate, {how}, {says}: value {self.value}, bound {self.bound}, {worst}"


def exact_certificate(
    program: Program, solution: NDArray[Any], at_most: NDArray[Any], equal: NDArray[Any]
) -> tuple[DualCertificate, NDArray[Any]] | None:
    """Return the certificate in fractions near a solver's numbers, and the solution in fractions; None: there is none.

    The program is in integers; ``solution``, ``at_most`` and ``equal`` are z, y and w, as the solver left them.
    """
    if sum(each.rows.size for each in (*program.at_most, *program.equal)) > MOST_ENTRIES:
        return None
    for largest in LARGEST_DENOMINATORS:
        z, y, w = (_fractions(each, largest) for each in (solution, at_most, equal))
        if z is not None and y is not None and w is not None:
            found = check_certificate(program, z, y, w)
            if found.holds:
                return found, z
    return None


def _fractions(numbers: NDArray[Any], largest: int) -> NDArray[Any] | None:
    """Return the simplest fractions near floats; None if one is not near any."""
    known: dict[float, Fraction] = {}
    for x in numbers.tolist():
        if x not in known:
            known[x] = Fraction(x).limit_denominator(largest)
            if abs(float(known[x]) - x) > CLOSE * max(1.0, abs(x)):
                return None
    read = np.empty(numbers.size, dtype=object)
    read[:] = [known[x] for x in numbers.tolist()]
    return read


def check_certificate(
    program: Program, solution: NDArray[Any], at_most: NDArray[Any], equal: NDArray[Any]
) -> DualCertificate:
    """Check a solution and multipliers against a program: feasibility of both, and their objectives.

    Parameters
    ----------
    program : Program
        The program.
    solution, at_most, equal : ndarray
        z, y and w: all floats, or all Fractions, which are checked without rounding.

    Returns
    -------
    DualCertificate

    Examples
    --------
    See `design`, whose result holds one.
    """
    exact = solution.dtype == object and program.is_exact
    kind: type = object if exact else np.float64  # Python's integers: those of NumPy would overflow
    objective: NDArray[Any] = program.objective.astype(kind)
    right: NDArray[Any] = program.right.astype(kind)
    (z, y, w), parts = _as_integers(solution, at_most, equal) if exact else ([solution, at_most, equal], (1, 1, 1))
    z, y, w = (numbers.astype(kind) for numbers in (z, y, w))
    scale: Any = int(program.scale) if exact else program.scale
    rows, sums = _times(program.at_most, z, exact), _times(program.equal, z, exact)
    n = program.n_probabilities
    violated = [0, -(z[:n].min()), rows.max() if rows.size else 0, abs(sums - right * parts[0]).max()]
    # Reduced costs: all over the denominators of both kinds of multipliers.
    reduced = (
        _transposed(program.at_most, y, z.size, exact) * parts[2]
        + _transposed(program.equal, w, z.size, exact) * parts[1]
        - objective * (parts[1] * parts[2])
    )
    free = abs(reduced[n:]).max() if z.size > n else 0
    wrong = [0, -(y.min()) * parts[2] if y.size else 0, -(reduced[:n].min()), free]
    value, bound = (objective * z).sum(), (right * w).sum()
    return DualCertificate(
        value=_over(value, parts[0] * scale),
        bound=_over(bound, parts[2] * scale),
        primal_violation=_over(max(violated), parts[0] if exact else 1.0),
        dual_violation=_over(max(wrong), parts[1] * parts[2] * scale),
        is_exact=exact,
        multipliers=_named(program, at_most, equal),
        size=program.size,
    )


def _over(x: Any, denominator: Any) -> Number:
    """Return a ratio: of two integers exactly, otherwise as a float."""
    return as_number(x, denominator) if isinstance(denominator, int) else float(x) / denominator


def _as_integers(*arrays: NDArray[Any]) -> tuple[list[NDArray[Any]], tuple[int, ...]]:
    """Return arrays of Fractions as Python integers, each over a denominator of its own."""
    whole, parts = [], []
    for array in arrays:
        denominator = math.lcm(*(x.denominator for x in array.tolist()))
        scaled = np.empty(array.size, dtype=object)
        scaled[:] = [x.numerator * (denominator // x.denominator) for x in array.tolist()]
        whole.append(scaled)
        parts.append(denominator)
    return whole, tuple(parts)


def _times(blocks: Sequence[Rows], z: NDArray[Any], exact: bool) -> NDArray[Any]:
    """Return the rows' products with z."""
    return np.concatenate([_summed(b.rows, b.values * z[b.columns], b.n_rows, exact) for b in blocks] or [z[:0]])


def _transposed(blocks: Sequence[Rows], y: NDArray[Any], size: int, exact: bool) -> NDArray[Any]:
    """Return the columns' products with the multipliers of the rows."""
    total, begin = np.zeros(size, dtype=object if exact else np.float64), 0
    for block in blocks:
        total = total + _summed(block.columns, block.values * y[begin + block.rows], size, exact)
        begin += block.n_rows
    return total


def _summed(places: NDArray[Any], values: NDArray[Any], size: int, exact: bool) -> NDArray[Any]:
    if not exact:
        return np.bincount(places, weights=as_floats(values), minlength=size)
    total = np.zeros(size, dtype=object)
    np.add.at(total, places, values.astype(object))
    return total


def _named(program: Program, at_most: NDArray[Any], equal: NDArray[Any]) -> dict[str, NDArray[Any]]:
    named = {}
    for blocks, numbers in ((program.at_most, at_most), (program.equal, equal)):
        begin = 0
        for block in blocks:
            named[block.name] = numbers[begin : begin + block.n_rows]
            begin += block.n_rows
    return named
