"""How likely each profile of types is: independent between owners, or any joint distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.finite.exact import Number, as_number, number_array, over_one_denominator

PriorLike: TypeAlias = Literal["uniform"] | Sequence[ArrayLike] | NDArray[Any]
LEGAL = "'uniform', a list with the probabilities of each owner's types, or a NumPy array over profiles"
ROUNDING = 1e-9  # how far a sum of floats may be from 1


@dataclass(frozen=True)
class Prior:
    """Probabilities of profiles."""

    # shape (profiles,): probabilities times ``total``, integers where they are given exactly, float64 otherwise
    weights: NDArray[Any]
    total: int  # sum of the weights; 1 if they are floats

    @property
    def is_exact(self) -> bool:
        """Whether every probability is known exactly."""
        return self.weights.dtype.kind != "f"

    def mean(self, numbers: NDArray[Any], denominator: int = 1) -> Number:
        """Return the expectation of ``numbers / denominator``, one for each profile."""
        if not self.is_exact or numbers.dtype.kind == "f":
            weights = np.asarray(self.weights, dtype=np.float64) / self.total
            return float(np.asarray(numbers, dtype=np.float64) @ weights) / denominator
        weights, numbers = products_fit(self.weights, numbers, self.total)
        return as_number(numbers @ weights, denominator * self.total)


def products_fit(weights: NDArray[Any], numbers: NDArray[Any], total: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both as Python integers unless their weighted sums fit into int64."""
    if weights.dtype == object or numbers.dtype == object:
        return weights.astype(object), numbers.astype(object)
    if int(np.abs(numbers).max()) * total >= 2**62:
        return weights.astype(object), numbers.astype(object)
    return weights, numbers


def prior_of(prior: PriorLike, shape: tuple[int, ...]) -> Prior:
    """Return a prior from a user's input over profiles of this shape: the number of types of each owner.

    "uniform"; a list or tuple has one array for each owner, the probabilities of its types: independent. A NumPy array
    is joint: of shape ``shape``, or flat in the order of ``itertools.product``. Raises InvalidParameterError if
    probabilities are negative, do not add up to 1, or are of another shape.

    Examples
    --------
    >>> from fractions import Fraction
    >>> prior_of([[Fraction(1, 4), Fraction(3, 4)], [1, 0]], (2, 2)).weights
    array([1, 0, 3, 0])
    """
    if isinstance(prior, str):
        if prior != "uniform":
            raise InvalidParameterError(place="prior", value=prior, legal=LEGAL)
        n = math.prod(shape)
        return Prior(np.ones(n, dtype=np.int64), n)
    if isinstance(prior, np.ndarray):
        joint = number_array("prior", prior)
        if joint.shape not in (shape, (math.prod(shape),)):
            raise InvalidParameterError(f"has shape {joint.shape}", place="prior", legal=f"{shape}, all profiles")
        return _weights("prior", joint.reshape(-1))
    if not isinstance(prior, (list, tuple)):
        raise InvalidParameterError(place="prior", value=prior, legal=LEGAL)
    if len(prior) != len(shape):
        raise InvalidParameterError(
            f"has {len(prior)} entries", place="prior", legal=f"one for each of {len(shape)} owners"
        )
    return _independent(
        [_marginal(f"prior[{i}]", each, size) for i, (each, size) in enumerate(zip(prior, shape, strict=True))]
    )


def _marginal(place: str, given: ArrayLike, size: int) -> Prior:
    probabilities = number_array(place, given)
    if probabilities.shape != (size,):
        raise InvalidParameterError(
            f"has shape {probabilities.shape}", place=place, legal=f"({size},), one for each type"
        )
    return _weights(place, probabilities, " (a joint prior is a NumPy array)")


def _weights(place: str, probabilities: NDArray[Any], hint: str = "") -> Prior:
    if (probabilities < 0).any():
        first = int(np.flatnonzero(probabilities < 0)[0])
        raise InvalidParameterError(place=f"{place}[{first}]", value=probabilities[first], legal="a probability")
    total: Any = as_number(probabilities.sum())
    if abs(total - 1) > (ROUNDING if isinstance(total, float) else 0):
        shown = f"{float(total):.9g}" if isinstance(total, float) else total
        raise InvalidParameterError(f"adds up to {shown}", place=place, legal=f"probabilities that add up to 1{hint}")
    (weights,), denominator = over_one_denominator([probabilities], 1)
    return Prior(weights, denominator)


def _independent(marginals: list[Prior]) -> Prior:
    total = math.prod(marginal.total for marginal in marginals)
    factors = [marginal.weights for marginal in marginals]
    if not all(marginal.is_exact for marginal in marginals):
        factors, total = [np.asarray(m.weights, dtype=np.float64) / m.total for m in marginals], 1
    elif total >= 2**62:
        factors = [factor.astype(object) for factor in factors]
    return Prior(reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), factors), total)
