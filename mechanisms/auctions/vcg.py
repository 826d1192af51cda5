r"""VCG in every round: the most valuable set of starts, and each winner pays what it costs the others.

With free nodes F and bids :math:`(w_i, c_i)` the winners solve the knapsack problem
:math:`\max \sum_{i \in A} w_i` subject to :math:`\sum_{i \in A} c_i \le F` exactly, by dynamic
programming over nodes, and winner i pays :math:`w(A^*_{-i}) - (w(A^*) - w_i)`, where
:math:`A^*_{-i}` is optimal without i ([Clarke71]_, [Groves73]_).

References
----------
.. [Clarke71] Clarke: Multipart pricing of public goods, Public Choice 11 (1971) 17-33.
.. [Groves73] Groves: Incentives in teams, Econometrica 41 (1973) 617-631.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.auctions.round_auction import Bids, RoundAuction, Settlement
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Natural, legal
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.memory import check_memory


class Vcg(RoundAuction):
    """Each round starts the most valuable set of waiting jobs; winners pay their externality.

    Truthful within a round for jobs of revealed duration that can start in no other one. Over several rounds it is not:
    the free nodes of a round are sold as if there were no tomorrow, so an owner may gain by making
    its job look urgent, or by waiting for a cheaper round (`RoundAuction` has the rest of the rules).

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> limits = {"max_concurrency": 2, "max_duration": 2, "max_value": 9.0, "max_delay": 9}
    >>> market = Vcg(2, 5, **limits)
    >>> for name, nodes, value in (("A", 1, 3.0), ("B", 1, 5.0), ("C", 2, 6.0)):
    ...     plan = market.submit(name, StatementOfWork(1, nodes, DeadlineValue(value, 3), [(1, 1, 1.0)]))
    >>> for name in "ABC":
    ...     market.arrive(name, 1)
    >>> [event.job for event in market.advance()], market.complete("A").payment, market.complete("B").payment
    (['A', 'B'], 1.0, 3.0)
    """

    standing: ClassVar[Standing] = Standing(
        "tested",
        "it is best within one round, for jobs of revealed duration that can start in no other",
        "nothing",
        lie="a part of its value",
    )

    def settle(self, bids: Bids, free: int) -> list[Settlement | None]:
        """Choose the most valuable set that fits, and charge every winner the loss it causes to the others."""
        winners, payments = vcg_outcome(bids.worth, bids.nodes, free)
        return [
            Settlement(fixed=pay) if won else None for won, pay in zip(winners.tolist(), payments.tolist(), strict=True)
        ]


@legal
def vcg_outcome(worth: ArrayLike, nodes: ArrayLike, free: Natural) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return who wins, and what winners pay.

    Parameters
    ----------
    worth : array_like of float, shape (n_bids,)
        Credits, > 0.
    nodes : array_like of int, shape (n_bids,)
        Each >= 1.
    free : int
        Free nodes.

    Returns
    -------
    winners : ndarray of bool, shape (n_bids,)
        The most valuable set; among equally valuable ones, the one without the later bids.
    payments : ndarray of float, shape (n_bids,)
        Credits; 0 for losers.

    Raises
    ------
    TooLargeError
        If there is too little memory for a table of bids and nodes.

    Notes
    -----
    Cost O(n_bids * free) for the winners and as much again for each winner.

    Examples
    --------
    >>> winners, payments = vcg_outcome([10.0, 7.0, 4.0], [1, 1, 1], 2)
    >>> winners.tolist(), payments.tolist()
    ([True, True, False], [4.0, 4.0, 0.0])
    """
    values, widths = np.asarray(worth, dtype=np.float64), np.asarray(nodes, dtype=np.int64)
    if values.ndim != 1 or values.shape != widths.shape:
        raise InvalidParameterError(f"worth {values.shape} and nodes {widths.shape}: expected the same shape (n_bids,)")
    if not (np.isfinite(values).all() and (values > 0).all() and (widths >= 1).all()):
        raise InvalidParameterError("worth or nodes: expected finite numbers > 0 and whole numbers >= 1")
    check_memory(
        f"the table of {values.size} bids for {free} nodes", (free + 1.0) * (values.size + 8.0), "a smaller capacity"
    )
    winners = np.zeros(values.size, dtype=np.bool_)
    best = float(_knapsack_kernel(values, widths, free, -1, winners))
    payments, unused = np.zeros(values.size), np.zeros(values.size, dtype=np.bool_)
    for i in np.flatnonzero(winners).tolist():
        without = float(_knapsack_kernel(values, widths, free, i, unused))
        # Sums in another order differ in the last digit: a payment is never negative, nor above the bid.
        payments[i] = min(max(without - (best - values[i]), 0.0), values[i])
    return winners, payments


@njit(cache=True)
def _knapsack_kernel(values, widths, free, left_out, winners):  # type: ignore[no-untyped-def]
    """Return the value of the best set without bid ``left_out``, and mark it in ``winners``."""
    n = values.size
    best = np.zeros(free + 1)
    taken = np.zeros((n, free + 1), dtype=np.bool_)
    for i in range(n):
        if i == left_out:
            continue
        for room in range(free, widths[i] - 1, -1):
            value = best[room - widths[i]] + values[i]
            if value > best[room]:
                best[room] = value
                taken[i, room] = True
    room = free
    for i in range(n - 1, -1, -1):
        winners[i] = taken[i, room]
        if winners[i]:
            room -= widths[i]
    return best[free]
