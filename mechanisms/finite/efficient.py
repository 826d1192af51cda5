"""Mechanisms that choose the outcome of largest welfare: VCG, and the expected externality mechanism.

VCG charges each owner what its presence costs the others (Clarke's pivot rule): truthful in dominant strategies,
with a budget that need not balance. The expected externality mechanism (d'Aspremont and Gerard-Varet, 1979; Arrow,
1979) pays each owner what its report is worth to the others in expectation, financed by the others: truthful in
expectation where types are independent, with a budget that balances at every profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.finite.exact import as_floats, as_number, is_exact, over_one_denominator
from marketsched.mechanisms.finite.finite_mechanism import FiniteMechanism
from marketsched.mechanisms.finite.prior import Prior, prior_of
from marketsched.mechanisms.finite.tables import (
    UtilitiesLike,
    check_size,
    read_outcomes,
    read_types,
    read_utilities,
)
from marketsched.mechanisms.legal import Whole, legal


def clarke_vcg(
    types: Sequence[Sequence[Any]], utilities: UtilitiesLike, outcomes: int | Sequence[Any] | None = None
) -> FiniteMechanism:
    """Return the VCG mechanism with Clarke's pivot payments; of equally good outcomes the first.

    Owner i pays ``max_k Σ_{j≠i} u_j(θ_j, k) - Σ_{j≠i} u_j(θ_j, g(θ))``.

    Parameters
    ----------
    types, utilities, outcomes
        As for `FiniteMechanism`.

    Examples
    --------
    A bridge that costs 3, shared by two owners that value it at 0 to 4, is built where it is worth it:

    >>> from fractions import Fraction
    >>> bridge = clarke_vcg(
    ...     [range(5)] * 2, lambda owner, value, built: built * (value - Fraction(3, 2)), outcomes=[0, 1]
    ... )
    >>> [as_number(paid) for paid in bridge.payments.reshape(5, 5, 2)[4, 0]]  # values 4 and 0: it is built
    [Fraction(3, 2), 0]
    """
    known = _Problem(types, utilities, outcomes)
    choice, tables = known.best_outcome(), known.tables
    paid = []
    for owner in range(len(tables)):
        others = [table for i, table in enumerate(tables) if i != owner]
        places = [place for i, place in enumerate(known.places) if i != owner]
        welfare = _welfare(others, places, known.n_profiles, len(known.outcomes))
        paid.append(np.max(welfare, axis=1) - welfare[np.arange(known.n_profiles), choice])
    payments = _divided(np.stack(paid, axis=1), known.denominator)
    return FiniteMechanism(known.types, choice, payments, utilities=known.utilities, outcomes=known.outcomes)


def expected_externality(
    types: Sequence[Sequence[Any]],
    utilities: UtilitiesLike,
    prior: Sequence[ArrayLike],
    outcomes: int | Sequence[Any] | None = None,
) -> FiniteMechanism:
    """Return the expected externality (AGV) mechanism: efficient, budget balanced, truthful in expectation.

    With ``h_i(θ_i) = E_{θ_-i}[Σ_{j≠i} u_j(θ_j, g(θ))]``, owner i pays ``Σ_{j≠i} h_j(θ_j) / (n - 1) - h_i(θ_i)``.

    Parameters
    ----------
    types, utilities, outcomes
        As for `FiniteMechanism`; at least two owners.
    prior : sequence of array_like
        The probabilities of each owner's types; owners are independent.

    Raises
    ------
    InvalidParameterError
        One owner only, or a prior that is not a list with one array for each owner.

    References
    ----------
    .. [1] C. d'Aspremont and L.-A. Gerard-Varet, Incentives and incomplete information, Journal of Public Economics
       11 (1979).

    Examples
    --------
    >>> from fractions import Fraction
    >>> item = expected_externality(
    ...     [[0, 2], [0, 2]], lambda owner, value, winner: value * (winner == owner), [[Fraction(1, 2)] * 2] * 2, 2
    ... )
    >>> [[str(paid) for paid in row] for row in item.payments]
    [['0', '0'], ['0', '0'], ['1', '-1'], ['1', '-1']]
    """
    known = _Problem(types, utilities, outcomes)
    n = len(known.types)
    if n < 2:
        raise InvalidParameterError(place="types", value=known.types, legal="at least two owners")
    if not isinstance(prior, (list, tuple)) or len(prior) != n:
        raise InvalidParameterError(
            place="prior", value=prior, legal="a list with one array for each owner: independent"
        )
    beliefs = prior_of(prior, known.shape)
    choice = known.best_outcome()
    worth = _worth_to_others(known, choice, beliefs)
    others = worth.sum(axis=1, keepdims=True) - worth
    payments = others * Fraction(1, n - 1) - worth if worth.dtype == object else others / (n - 1) - worth
    return FiniteMechanism(
        known.types, choice, _divided(payments, known.denominator), utilities=known.utilities, outcomes=known.outcomes
    )


def _worth_to_others(known: _Problem, choice: NDArray[np.int64], beliefs: Prior) -> NDArray[Any]:
    """Return h_i(θ_i) of every owner at every profile, as Fractions if all is exact, over the known denominator."""
    exact = beliefs.is_exact and is_exact(*known.tables)
    values = np.stack([table[place, choice] for table, place in zip(known.tables, known.places, strict=True)], axis=1)
    values = values.astype(object) if exact else as_floats(values)
    weights = beliefs.weights.astype(object) if exact else as_floats(beliefs.weights) / beliefs.total
    worth = []
    for owner, size in enumerate(known.shape):
        others, table = values.sum(axis=1) - values[:, owner], []
        for k in range(size):
            here = known.places[owner] == k
            mass = weights[here].sum()
            if not mass > 0:
                raise InvalidParameterError(place=f"prior[{owner}][{k}]", value=0, legal="a probability > 0")
            total = others[here] @ weights[here]
            table.append(Fraction(total) / mass if exact else total / mass)
        worth.append(np.array(table, dtype=object if exact else np.float64)[known.places[owner]])
    return np.stack(worth, axis=1)


def unit_demand_vcg(types: Sequence[Sequence[Any]]) -> FiniteMechanism:
    """Return VCG for owners that want one of several items each.

    Parameters
    ----------
    types : sequence of sequences
        The types of each owner; a type is the tuple of its values for the items.

    Returns
    -------
    FiniteMechanism
        An outcome is a tuple: the item of each owner, None for nothing.

    Examples
    --------
    >>> market = unit_demand_vcg([[(5, 4)], [(3, 1), (6, 1)]])
    >>> market.outcomes[market.choice[0]], market.payments[0].tolist()
    ((1, 0), [0, 1])
    """
    read = read_types(types)
    items = _width(read, "a tuple of values, one for each item")
    slots = [*range(items), *([None] * len(read))]
    outcomes = sorted(set(permutations(slots, len(read))), key=lambda each: [-1 if k is None else k for k in each])

    def utility(owner: int, values: Any, outcome: Any) -> Any:
        item = outcome[owner]
        return 0 if item is None else values[item]

    return clarke_vcg(read, utility, outcomes)


@legal
def bundle_vcg(types: Sequence[Sequence[Any]], n_items: Annotated[int, Whole(1, 20)]) -> FiniteMechanism:
    """Return VCG for owners with values for bundles of items.

    Parameters
    ----------
    types : sequence of sequences
        The types of each owner; a type is a tuple of 2^items values, entry b for the bundle of the items whose bits
        are set in b: with two items nothing, item 0, item 1, both.
    n_items : int
        Number of items.

    Returns
    -------
    FiniteMechanism
        An outcome is a tuple: the bundle of each owner, as such a number.

    Examples
    --------
    One owner wants both items, two want one each; the small ones win and pay nothing, each covers the other:

    >>> market = bundle_vcg([[(0, 0, 0, 2)], [(0, 2, 0, 2)], [(0, 0, 2, 2)]], 2)
    >>> market.outcomes[market.choice[0]], market.payments[0].tolist()
    ((0, 1, 2), [0, 0, 0])
    """
    read = read_types(types)
    width = _width(read, f"a tuple of {2**n_items} values, one for each bundle")
    if width != 2**n_items:
        raise InvalidParameterError(
            f"has {width} values", place="types[0][0]", legal=f"{2**n_items}, one for each bundle"
        )
    outcomes = []
    for given in product(range(len(read) + 1), repeat=n_items):  # who gets each item; the last: none
        bundles = [sum(1 << item for item, owner in enumerate(given) if owner == i) for i in range(len(read))]
        outcomes.append(tuple(bundles))
    return clarke_vcg(read, lambda owner, values, bundles: values[bundles[owner]], outcomes)


def _width(types: tuple[tuple[Any, ...], ...], legal: str) -> int:
    width = np.size(types[0][0])
    for i, each in enumerate(types):
        for k, values in enumerate(each):
            if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != width or not width:
                raise InvalidParameterError(place=f"types[{i}][{k}]", value=values, legal=legal)
    return int(width)


class _Problem:
    """Types, utilities and outcomes as read, the utilities also over one denominator."""

    def __init__(
        self, types: Sequence[Sequence[Any]], utilities: UtilitiesLike, outcomes: int | Sequence[Any] | None
    ) -> None:
        self.types = read_types(types)
        self.outcomes = read_outcomes(outcomes, utilities)
        self.n_profiles = check_size(self.types, len(self.outcomes))
        self.shape = tuple(len(each) for each in self.types)
        self.utilities = read_utilities(utilities, self.types, self.outcomes)
        self.tables, self.denominator = over_one_denominator(self.utilities, 2 * len(self.types))
        self.places = np.unravel_index(np.arange(self.n_profiles), self.shape)

    def best_outcome(self) -> NDArray[np.int64]:
        """Return the outcome of largest welfare at each profile, the first of equals."""
        welfare = _welfare(self.tables, self.places, self.n_profiles, len(self.outcomes))
        best: NDArray[np.int64] = np.argmax(welfare, axis=1).astype(np.int64)
        return best


def _welfare(tables: Sequence[NDArray[Any]], places: Sequence[NDArray[Any]], n: int, width: int) -> NDArray[Any]:
    """Return the sum of these owners' utilities at each profile, shape (profiles, outcomes); no owners: zeros."""
    if not tables:
        return np.zeros((n, width), dtype=np.int64)
    total: NDArray[Any] = tables[0][places[0]]
    for table, place in zip(tables[1:], places[1:], strict=True):
        total = total + table[place]
    return total


def _divided(array: NDArray[Any], denominator: int) -> NDArray[Any]:
    """Return integers over a denominator as the exact numbers they are; floats as they are."""
    if denominator == 1:
        return array
    flat = np.empty(array.size, dtype=object)
    flat[:] = [as_number(x, denominator) for x in array.ravel().tolist()]
    return flat.reshape(array.shape)
