"""The linear program of the best finite mechanism, as sparse arrays.

Variables are the probabilities x(θ, k) of every outcome at every profile and, with money, the payments p_i(θ):

    maximise    c · z                            z = (x, p),  x >= 0,  p free
    subject to  A z <= 0                         truth is best, owners take part, no deficit
                B z  = b                         probabilities of a profile add up to 1 (balanced: payments to 0)

Where all numbers are exact, rows and objective are multiplied up to integers, so that a solution in fractions can be
checked without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import TooLargeError
from marketsched.mechanisms.finite.exact import as_floats, is_exact, over_one_denominator
from marketsched.mechanisms.finite.prior import Prior
from marketsched.mechanisms.finite.tables import MOST_CELLS
from marketsched.mechanisms.memory import check_memory

LARGEST_INTEGER = 10**6  # up to which numbers of the program are written as integers: the solver rounds larger ones
_Entries = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # rows, columns, values


@dataclass(frozen=True)
class Rows:
    """Some rows of the program."""

    name: str  # their meaning
    rows: NDArray[np.int64]  # with ``columns`` and ``values``: entries that are not 0; those of one place are added up
    columns: NDArray[np.int64]
    values: NDArray[Any]
    n_rows: int  # how many rows there are


@dataclass(frozen=True)
class Program:
    """The program of the best mechanism."""

    objective: NDArray[Any]  # c, to be maximised, times ``scale``
    at_most: tuple[Rows, ...]  # A, whose right-hand side is 0; ``equal`` is B
    equal: tuple[Rows, ...]
    right: NDArray[np.int64]  # b
    n_probabilities: int  # the number of leading variables that are >= 0; the others are free
    scale: float  # the value of the program is c · z / scale
    size: float  # largest number of the objective, in its own units
    is_exact: bool  # whether all numbers are integers


class Programmer:
    """Writes the rows for given utilities (for each owner, its types x outcomes) and prior; ``money``: owners pay.

    With ``exact`` it is written in integers if that can be done without large ones, for which utilities are multiplied
    by ``unit``. Otherwise utilities and payments are in units of the largest utility, ``size``, and probabilities of
    profiles, which add up to ``total``, in units of their mean: the solver's tolerances are absolute.
    """

    def __init__(self, utilities: tuple[NDArray[Any], ...], beliefs: Prior, *, money: bool, exact: bool = True) -> None:
        self.shape = tuple(len(table) for table in utilities)
        self.n_profiles, self.n_outcomes = len(beliefs.weights), utilities[0].shape[1]
        self.n_probabilities = self.n_profiles * self.n_outcomes
        self.money, n = money, len(self.shape)
        self.n_variables = self.n_probabilities + (self.n_profiles * n if money else 0)
        self.tables, self.unit, self.size = [*utilities], 1, 1.0
        self.weights, self.total = beliefs.weights, float(beliefs.total)
        self.is_exact = exact and beliefs.is_exact and beliefs.total <= LARGEST_INTEGER and is_exact(*utilities)
        if self.is_exact:
            self.tables, self.unit = over_one_denominator(utilities, 2 * n * beliefs.total)
            self.is_exact = max(abs(table).max() for table in self.tables) * n <= LARGEST_INTEGER
        if not self.is_exact:
            self.size, self.unit = max(float(abs(table).max()) for table in utilities) or 1.0, 1
            self.tables = [as_floats(table) / self.size for table in utilities]
            self.weights = as_floats(beliefs.weights) / beliefs.total * self.n_profiles
            self.total = float(self.n_profiles)
        self.places = np.unravel_index(np.arange(self.n_profiles), self.shape)

    def check_size(self) -> None:
        """Refuse programs whose rows would have more than 10^9 entries, or need more memory than there is."""
        entries = sum(self.n_profiles * (m - 1) * 2 * (self.n_outcomes + self.money) for m in self.shape)
        what = f"a linear program of {self.n_variables} variables and {entries} entries"
        if entries > MOST_CELLS:
            raise TooLargeError(what, legal=f"at most {MOST_CELLS} entries: fewer owners, types or outcomes")
        check_memory(what, 100.0 * entries, "fewer owners, types or outcomes")

    def tables_of(self, solution: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return probabilities (profiles x outcomes) and payments (profiles x owners) of a solution."""
        lottery = solution[: self.n_probabilities].reshape(-1, self.n_outcomes)
        paid = solution[self.n_probabilities :].reshape(-1, len(self.shape)) if self.money else None
        if lottery.dtype == object:
            return lottery, paid
        lottery = np.clip(lottery, 0.0, 1.0)
        return lottery / lottery.sum(axis=1, keepdims=True), None if paid is None else paid * self.size

    def revenue(self) -> NDArray[Any]:
        """Return the objective of expected revenue."""
        assert self.money
        n = len(self.shape)
        objective = np.zeros(self.n_variables, dtype=self.weights.dtype)
        objective[self.n_probabilities :] = np.repeat(self.weights * self.unit, n)
        return objective

    def welfare(self) -> NDArray[Any]:
        """Return the objective of expected welfare."""
        total = sum(table[place] for table, place in zip(self.tables, self.places, strict=True))
        return self.reward(total)

    def reward(self, reward: Any) -> NDArray[Any]:
        """Return the objective of an expected reward, scaled as utilities are, shape (profiles, outcomes)."""
        objective = np.zeros(self.n_variables, dtype=np.result_type(self.weights, reward))
        objective[: self.n_probabilities] = (self.weights[:, None] * reward).reshape(-1)
        return objective

    def truth(self, owner: int, *, dominant: bool) -> Rows:
        """Return the constraints that no lie of one owner pays: gain at a profile, or in expectation.

        Dominant: one row for each profile and lie. Bayesian: one for each type and lie, weighted by the prior.
        """
        m, place = self.shape[owner], self.places[owner]
        step = int(np.prod(self.shape[owner + 1 :], dtype=np.int64))
        profiles, others = np.arange(self.n_profiles), np.arange(m - 1)
        report = others[None, :] + (others[None, :] >= place[:, None])  # all types but the true one
        lied = profiles[:, None] + (report - place[:, None]) * step
        if dominant:
            rows, n_rows = profiles[:, None] * (m - 1) + others[None, :], self.n_profiles * (m - 1)
            weights = np.ones(self.n_profiles, dtype=np.int64)
        else:
            rows, n_rows = place[:, None] * (m - 1) + others[None, :], m * (m - 1)
            weights = self.weights
        true = np.broadcast_to(profiles[:, None], lied.shape)
        lie = self._utility(owner, rows, lied, place[:, None], weights[:, None])
        truth = self._utility(owner, rows, true, place[:, None], -weights[:, None])
        name = f"owner {owner} gains by no lie" + ("" if dominant else " in expectation")
        return Rows(name, *_joined(lie, truth), n_rows)

    def participation(self, owner: int, *, ex_post: bool) -> Rows:
        """Return what keeps one owner from losing: at every profile, or in expectation given its type."""
        profiles, place = np.arange(self.n_profiles), self.places[owner]
        weights = np.ones(self.n_profiles, dtype=np.int64) if ex_post else self.weights
        rows = (profiles if ex_post else place)[:, None]
        entries = self._utility(owner, rows, profiles[:, None], place[:, None], -weights[:, None])
        name = f"owner {owner} never loses" if ex_post else f"owner {owner} expects no loss"
        return Rows(name, *entries, self.n_profiles if ex_post else self.shape[owner])

    def budget(self, *, ex_post: bool) -> Rows:
        """Return minus what all owners pay together, at every profile or in expectation."""
        n, profiles = len(self.shape), np.arange(self.n_profiles)
        columns = self.n_probabilities + np.arange(self.n_profiles * n)
        if ex_post:
            return Rows("no deficit", np.repeat(profiles, n), columns, np.full(columns.size, -1), self.n_profiles)
        return Rows("no expected deficit", np.zeros_like(columns), columns, -np.repeat(self.weights, n), 1)

    def certain(self) -> Rows:
        """Return the sums of probabilities of each profile."""
        columns = np.arange(self.n_probabilities)
        return Rows("probabilities", columns // self.n_outcomes, columns, np.ones_like(columns), self.n_profiles)

    def _utility(
        self, owner: int, rows: NDArray[Any], at: NDArray[Any], true: NDArray[Any], weights: NDArray[Any]
    ) -> _Entries:
        """Return entries of weights * U_i(true type, what the profiles ``at`` give), added to rows."""
        rows, at, true, weights = np.broadcast_arrays(rows, at, true, weights)
        outcomes = np.arange(self.n_outcomes)
        values = self.tables[owner][true] * weights[..., None]
        columns = at[..., None] * self.n_outcomes + outcomes
        found = (np.broadcast_to(rows[..., None], values.shape).reshape(-1), columns.reshape(-1), values.reshape(-1))
        kept = found[2] != 0
        probabilities = (found[0][kept], found[1][kept], found[2][kept])
        if not self.money:
            return probabilities
        columns = self.n_probabilities + at * len(self.shape) + owner
        return _joined(probabilities, (rows.reshape(-1), columns.reshape(-1), -self.unit * weights.reshape(-1)))


def _joined(one: _Entries, other: _Entries) -> _Entries:
    """Return the entries of both."""
    return (
        np.concatenate((one[0], other[0])),
        np.concatenate((one[1], other[1])),
        np.concatenate((one[2], other[2])),
    )
