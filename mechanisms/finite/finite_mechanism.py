r"""A finite direct mechanism: every owner reports one of its types; a table gives outcome and payments.

There are n owners; owner i has the types :math:`\Theta_i` and values outcome k at :math:`u_i(\theta_i, k)`. At the
profile of reports :math:`\theta` the mechanism selects outcome :math:`g(\theta)`, or draws it with the probabilities
:math:`x(\theta, k)`, and owner i pays :math:`p_i(\theta)`. An owner of type :math:`\theta_i` that reports r while the
others report :math:`\theta_{-i}` gets

.. math::

    U_i(\theta_i, r, \theta_{-i}) = \sum_k x((r, \theta_{-i}), k)\, u_i(\theta_i, k) - p_i(r, \theta_{-i}).

Values are private (they depend on the own type alone), and money counts one for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import read_only
from marketsched.mechanisms.finite.exact import is_exact
from marketsched.mechanisms.finite.tables import (
    UtilitiesLike,
    read_outcome,
    read_outcomes,
    read_payments,
    read_types,
    read_utilities,
)


class FiniteMechanism:
    """A finite direct mechanism, as tables over all profiles of reports.

    Parameters
    ----------
    types : sequence of sequences
        The types of each owner; whatever names them.
    outcome : array_like or function
        At each profile the index of an outcome (deterministic), shape (types of owner 0, types of owner 1, ...), or
        probabilities of all outcomes (randomised), one axis more; either may be flat over profiles in the order of
        `itertools.product`. A function gets the profile, a tuple of types.
    payments : array_like or function, optional
        Payment of each owner at each profile, shape (types of owner 0, ..., owners) or flat over profiles; a function
        gets the profile and returns one number an owner. None: no payments.
    utilities : sequence of array_like, or function
        For each owner an array (its types x outcomes), or a function of owner, type and outcome.
    outcomes : int or sequence, optional
        Number of outcomes, or their names; needed where ``utilities`` is a function.

    Attributes
    ----------
    types, outcomes : tuple
        As given; outcomes without names are 0, 1, ...
    shape : tuple of int
        Number of types of each owner.
    utilities : tuple of ndarray
        For each owner, shape (its types, outcomes).
    choice : ndarray of int64 or None
        Deterministic: index of the outcome, shape (profiles,).
    lottery : ndarray or None
        Randomised: probabilities, shape (profiles, outcomes).
    payments : ndarray, shape (profiles, owners)
        Payments of each owner; negative: is paid.
    is_exact : bool
        Whether all numbers are ints and Fractions; all results are then exact.

    Raises
    ------
    InvalidParameterError
        Types are empty, shapes disagree, a number is not finite, an index is out of range, probabilities do not add
        up to 1, or a function raised; the message names the profile.
    TooLargeError
        A table would have more than 10^9 cells, or take more memory than there is.

    Examples
    --------
    Two owners with values 0, 1, 2 for one item; the higher report wins and pays it, owner 0 wins ties:

    >>> values = [0, 1, 2]
    >>> auction = FiniteMechanism(
    ...     [values, values],
    ...     outcome=lambda reports: int(reports[1] > reports[0]),
    ...     payments=lambda r: (0, r[1]) if r[1] > r[0] else (r[0], 0),
    ...     utilities=lambda owner, value, winner: value if winner == owner else 0,
    ...     outcomes=2,
    ... )
    >>> auction
    FiniteMechanism of 2 owners: types 3 x 3, outcomes 2, deterministic, exact
    >>> auction.choice.reshape(auction.shape)
    array([[0, 1, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """

    def __init__(
        self,
        types: Sequence[Sequence[Any]],
        outcome: ArrayLike | Callable[[tuple[Any, ...]], Any],
        payments: ArrayLike | Callable[[tuple[Any, ...]], Any] | None = None,
        *,
        utilities: UtilitiesLike,
        outcomes: int | Sequence[Any] | None = None,
    ) -> None:
        self.types = read_types(types)
        self.shape = tuple(len(each) for each in self.types)
        self.outcomes = read_outcomes(outcomes, utilities)
        self.utilities = read_utilities(utilities, self.types, self.outcomes)
        self.choice, self.lottery = read_outcome(outcome, self.types, len(self.outcomes))
        self.payments = read_payments(payments, self.types)
        for array in (*self.utilities, self.choice, self.lottery, self.payments):
            if array is not None:
                read_only(array)

    @property
    def n_owners(self) -> int:
        """Number of owners."""
        return len(self.types)

    @property
    def n_profiles(self) -> int:
        """Number of profiles of reports."""
        return len(self.payments)

    @property
    def is_exact(self) -> bool:
        """Whether all numbers are whole numbers and fractions."""
        lottery = () if self.lottery is None else (self.lottery,)
        return is_exact(*self.utilities, self.payments, *lottery)

    def profile(self, index: int) -> tuple[Any, ...]:
        """Return the types at a flat index over profiles."""
        places = np.unravel_index(index, self.shape)
        return tuple(each[int(k)] for each, k in zip(self.types, places, strict=True))

    def probabilities(self) -> NDArray[Any]:
        """Return the probability of each outcome at each profile, shape (profiles, outcomes)."""
        if self.lottery is not None:
            return self.lottery
        assert self.choice is not None
        certain: NDArray[np.int64] = (self.choice[:, None] == np.arange(len(self.outcomes))).astype(np.int64)
        return certain

    def __repr__(self) -> str:
        kind = "deterministic" if self.lottery is None else "randomised"
        sizes = " x ".join(map(str, self.shape))
        numbers = "exact" if self.is_exact else "floating point"
        owners = f"{self.n_owners} owner{'s' if self.n_owners > 1 else ''}"
        return f"FiniteMechanism of {owners}: types {sizes}, outcomes {len(self.outcomes)}, {kind}, {numbers}"
