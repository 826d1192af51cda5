"""Utilities of a finite mechanism's owners at every profile of reports, as integers where they are exact."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.finite.exact import as_floats, over_one_denominator
from marketsched.mechanisms.finite.finite_mechanism import FiniteMechanism


class ScaledUtilities:
    """The mechanism's numbers over one denominator: integers if they are exact, else float64 and denominator 1.

    Every figure taken from ``tables``, of each owner of shape (its types, outcomes), and ``payments``, shape (profiles,
    owners), is divided by ``denominator``.
    """

    def __init__(self, mechanism: FiniteMechanism) -> None:
        self.mechanism, self.shape = mechanism, mechanism.shape
        self.lottery, mass = mechanism.lottery, 1
        if self.lottery is not None:
            (self.lottery,), mass = over_one_denominator([self.lottery], 1)
        if not mechanism.is_exact:
            self.lottery, mass = None if self.lottery is None else as_floats(self.lottery) / mass, 1
        terms = 8 * len(self.shape) * mass  # a product of probability and utility carries both denominators
        arrays, denominator = over_one_denominator([*mechanism.utilities, mechanism.payments], terms)
        if not mechanism.is_exact:
            arrays, denominator = [as_floats(array) / denominator for array in arrays], 1
        self.tables, self.payments = arrays[:-1], arrays[-1] * mass
        self.denominator, self._mass = denominator * mass, mass

    def of_owner(self, owner: int) -> NDArray[Any]:
        """Return U_i(θ_i, r, θ_-i), scaled, shape (types of i, types of i, profiles of the others)."""
        table, mechanism = self.tables[owner], self.mechanism
        if self.lottery is None:
            assert mechanism.choice is not None
            value = table[:, mechanism.choice]
        else:
            value = table @ self.lottery.T
        utility: NDArray[Any] = value - self.payments[:, owner]
        m = self.shape[owner]
        return np.moveaxis(utility.reshape(m, *self.shape), owner + 1, 1).reshape(m, m, -1)

    def first(self, numbers: NDArray[Any], owner: int) -> NDArray[Any]:
        """Return numbers over profiles with one owner's type as the first axis, shape (its types, others)."""
        return np.moveaxis(numbers.reshape(self.shape), owner, 0).reshape(self.shape[owner], -1)

    @cached_property
    def truthful(self) -> NDArray[Any]:
        """Utility of each owner at every profile if all are truthful, scaled, shape (profiles, owners)."""
        utility: NDArray[Any] = self.values_at_truth() - self.payments
        return utility

    def values_at_truth(self) -> NDArray[Any]:
        """Return each owner's utility of the selected outcome, scaled, shape (profiles, owners)."""
        columns = []
        for owner, table in enumerate(self.tables):
            if self.lottery is None:
                assert self.mechanism.choice is not None
                columns.append(table[self.places[owner], self.mechanism.choice])
            else:
                columns.append((table[self.places[owner]] * self.lottery).sum(axis=1))
        return np.stack(columns, axis=1)

    def best_welfare(self) -> NDArray[Any]:
        """Return the largest welfare of any outcome at every profile, scaled, shape (profiles,)."""
        best: NDArray[Any] | None = None
        for outcome in range(len(self.mechanism.outcomes)):
            welfare: Any = 0
            for owner, table in enumerate(self.tables):
                along = [1] * len(self.shape)
                along[owner] = -1
                welfare = welfare + table[:, outcome].reshape(along)
            flat = np.broadcast_to(welfare, self.shape).reshape(-1)
            best = flat if best is None else np.maximum(best, flat)
        assert best is not None
        return best if self.lottery is None else best * self._mass

    @cached_property
    def places(self) -> tuple[NDArray[np.intp], ...]:
        """Index of each owner's type at every profile."""
        return np.unravel_index(np.arange(len(self.payments)), self.shape)
