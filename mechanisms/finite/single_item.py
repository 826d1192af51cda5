"""One item sold to owners whose type is their value: first price, and second price with a reserve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.finite.exact import Number, number_array
from marketsched.mechanisms.finite.finite_mechanism import FiniteMechanism
from marketsched.mechanisms.finite.tables import check_size, read_types


def first_price(values: Sequence[ArrayLike], reserve: Number = 0) -> FiniteMechanism:
    """Return the first-price auction: the highest report of at least the reserve wins and pays itself.

    Parameters
    ----------
    values : sequence of array_like
        The values each owner may have for the item.
    reserve : number
        Reports below it do not win.

    Returns
    -------
    FiniteMechanism
        Outcome i: owner i gets the item (the first of equals); the last outcome: no owner does.

    Examples
    --------
    >>> auction = first_price([[0, 1, 2], [0, 1, 2]])
    >>> auction.outcomes, auction.payments[auction.n_profiles - 1]
    ((0, 1, 'nobody'), array([2, 0]))
    """
    return _single_item(values, reserve, second=False)


def second_price(values: Sequence[ArrayLike], reserve: Number = 0) -> FiniteMechanism:
    """Return the second-price auction: the winner pays the highest other report, or the reserve if that is higher.

    Parameters, outcomes and ties are those of `first_price`. Truthful in dominant strategies (Vickrey, 1961).

    Examples
    --------
    >>> auction = second_price([[0, 4], [0, 3]], reserve=1)
    >>> auction.payments.tolist()  # reports (0, 0), (0, 3), (4, 0), (4, 3)
    [[0, 0], [0, 1], [1, 0], [3, 0]]
    """
    return _single_item(values, reserve, second=True)


def _single_item(values: Sequence[ArrayLike], reserve: Number, *, second: bool) -> FiniteMechanism:
    types, least = read_types(values), number_array("reserve", reserve)  # type: ignore[arg-type]
    if least.shape:
        raise InvalidParameterError(place="reserve", value=reserve, legal="a number")
    check_size(types)
    n, shape = len(types), tuple(len(each) for each in types)
    grids = [number_array(f"values[{i}]", each) for i, each in enumerate(types)]
    for i, grid in enumerate(grids):
        if grid.ndim != 1 or (grid < 0).any():
            raise InvalidParameterError(place=f"values[{i}]", value=types[i], legal="numbers >= 0")
    reports = np.stack([_spread(grid, i, shape) for i, grid in enumerate(_alike([*grids, least])[:-1])], axis=1)
    winner = np.argmax(reports, axis=1)
    everyone = np.arange(len(reports))
    price = reports[everyone, winner]
    sold = price >= least
    if second:
        price = np.maximum(_second(reports), least)
    payments = np.zeros(reports.shape, dtype=reports.dtype)
    payments[everyone[sold], winner[sold]] = np.broadcast_to(price, everyone.shape)[sold]
    utilities = []
    for i, grid in enumerate(grids):
        utility = np.zeros((len(grid), n + 1), dtype=grid.dtype)
        utility[:, i] = grid
        utilities.append(utility)
    return FiniteMechanism(
        types, np.where(sold, winner, n), payments, utilities=utilities, outcomes=[*range(n), "nobody"]
    )


def _alike(arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the arrays in one kind of numbers: floats if one is, Python's exact ones if one is."""
    kinds = {array.dtype.kind for array in arrays}
    kind: type = np.float64 if "f" in kinds else object if "O" in kinds else np.int64
    return [array.astype(kind) for array in arrays]


def _spread(grid: NDArray[Any], owner: int, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the value of one owner at every profile."""
    along = [1] * len(shape)
    along[owner] = -1
    return np.broadcast_to(grid.reshape(along), shape).reshape(-1)


def _second(reports: NDArray[Any]) -> NDArray[Any]:
    """Return the second highest report of each profile; 0 where there is one owner."""
    if reports.shape[1] == 1:
        return np.zeros(len(reports), dtype=reports.dtype)
    return np.sort(reports, axis=1)[:, -2]
