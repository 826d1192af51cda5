r"""Fractional unit allocations: the LP's outcomes, packed into bundles that can be sold one by one.

An outcome w occupies the rounds :math:`I_w` on :math:`c_w` nodes and happens with weight
:math:`x_w`. A bundle k is a run of consecutive rounds :math:`T_k`; outcomes, or shares of them, are
given to bundles so that

* (i) :math:`I_w \subseteq T_k` for every member w of k;
* (ii) :math:`W_k = \sum_{w \in k} c_w x_w \le c_{max}`;
* the shares of every outcome add up to 1, so that no value is lost;
* few bundles lie over any round t: :math:`N(t) = |\{k : t \in T_k\}|`.

Construction STAR groups outcomes by their centre, the round of :math:`I_w` divisible by the highest
power of two. In the star of centre p let :math:`F^l(w)` be the weight of the members that reach at
least as far left as w, :math:`F^r(w)` of those that reach at least as far right, in bundles (units
of :math:`c_{max}` nodes). In the order of :math:`\min(F^l, F^r)`, bundles are filled one after the
other, each to exactly one unit. With :math:`W_p(t)` the load of star p on round t, W(t) of all, and
:math:`H = \lceil \log_2 D_{max} \rceil`,

.. math:: N(t) \le \sum_{p : W_p(t) > 0} \lceil 2 W_p(t) \rceil \le 2 W(t) + H + 2.

Bundles hold what they should up to rounding; see `marketsched.relaxed_lp.star`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError, TooLargeError
from marketsched.mechanisms.legal import EXACT, Amount, Count, Whole, legal
from marketsched.relaxed_lp.outcomes import Outcomes, checked_outcomes
from marketsched.relaxed_lp.star import star_bundles
from marketsched.relaxed_lp.widening import stretched

TOLERANCE = 4e-9  # relative: how far verify() lets weights, values and sums of shares be off
MAX_TABLE = 2**27  # rounds in a table of N(t)


class Members(NamedTuple):
    """Who is in which bundle; arrays of shape (n_members,), bundle by bundle."""

    bundle: NDArray[np.int64]
    outcome: NDArray[np.int64]
    share: NDArray[np.float64]  # of the outcome's weight, in (0, 1]


@dataclass(frozen=True, slots=True, eq=False)
class UnitAllocation:
    """Bundles, and the outcomes they hold. Arrays are read-only; those of bundles have shape (n_bundles,).

    Examples
    --------
    See `fractional_unit_allocation`, which returns one.
    """

    first: NDArray[np.int64]  # first round of T_k
    last: NDArray[np.int64]  # last round, included
    value: NDArray[np.float64]  # F_k, credits
    weight: NDArray[np.float64]  # W_k, nodes
    members: Members
    outcomes: Outcomes
    max_concurrency: int  # c_max, nodes

    @property
    def max_overlap(self) -> int:
        """The largest N(t); O(n_bundles log n_bundles)."""
        begins, ends = np.sort(self.first), np.sort(self.last)
        return int((np.searchsorted(begins, begins, side="right") - np.searchsorted(ends, begins, side="left")).max())

    @legal
    def overlap(self, horizon: Annotated[int, Whole(1, EXACT)] | None = None) -> NDArray[np.int64]:
        """Return N(t) for the rounds 1 to ``horizon``, or to the end of the last bundle; round 1 first.

        Raises
        ------
        TooLargeError
            If that are too many rounds for a table.
        """
        rounds = int(self.last.max()) if horizon is None else horizon
        if rounds > MAX_TABLE:
            raise TooLargeError(f"a table of {rounds} rounds: expected at most {MAX_TABLE}; see max_overlap")
        begins = np.bincount(np.minimum(self.first, rounds + 1), minlength=rounds + 2)
        ends = np.bincount(np.minimum(self.last, rounds) + 1, minlength=rounds + 2)
        return np.asarray(np.cumsum(begins - ends)[1 : rounds + 1])

    @legal
    def verify(self, supply: Amount | None = None) -> None:
        """Check every condition of a fractional unit allocation against the outcomes.

        Parameters
        ----------
        supply : float, optional
            Nodes; at most ``floor(supply / max_concurrency)`` bundles may then lie over any round.

        Raises
        ------
        InvalidParameterError
            If a condition does not hold; the message names the bundle or outcome.
        """
        _verify_bundles(self)
        _verify_members(self)
        if supply is None:
            return
        limit = int(supply / self.max_concurrency * (1 + 1e-12))
        if self.max_overlap > limit:
            raise InvalidParameterError(
                f"{self.max_overlap} bundles lie over one round: expected at most {limit}, for a supply of {supply:g} "
                f"nodes with max_concurrency = {self.max_concurrency}"
            )

    def widened(self, limit: int, horizon: int) -> UnitAllocation:
        """Add free rounds to bundles, where fewer than ``limit`` lie over a round.

        Wider bundles only add to the menu. They grow round by round, to the right and then to the
        left, as far as there is room; where it does not suffice for all, those that have grown the
        least on this side go on, of equals those of the highest value.

        However long it is, a bundle sells no more nodes than before, and once they are sold, all its
        rounds are lost; so the free rounds are spread among many. To the right first, because jobs
        start after their arrival.

        Parameters
        ----------
        limit : int
            How many bundles may lie over a round; at least `max_overlap`.
        horizon : int
            Last round that may be added; at least that of every bundle.

        Returns
        -------
        UnitAllocation
            The same members in bundles that cannot grow any further.

        Raises
        ------
        TooLargeError
            If there are too many rounds for a table.
        """
        limit = Whole(self.max_overlap, EXACT).check("limit", limit)
        horizon = Whole(int(self.last.max()), EXACT).check("horizon", horizon)
        last = stretched(self.last, limit - self.overlap(horizon), np.lexsort((-self.value, -self.last)))
        room = limit - replace(self, last=last).overlap(horizon)
        # Here those who compete begin in the same round: who ends just before them had no room to their right.
        dearest_first = np.argsort(-self.value, kind="stable")
        first = horizon + 1 - stretched(horizon + 1 - self.first, room[::-1], dearest_first)
        return replace(self, first=_frozen(first), last=_frozen(last))


@legal
def fractional_unit_allocation(
    first: ArrayLike,
    last: ArrayLike,
    width: ArrayLike,
    weight: ArrayLike,
    value: ArrayLike,
    *,
    max_concurrency: Annotated[int, Whole(1, 2**26)],
    max_duration: Count,
) -> UnitAllocation:
    r"""Pack weighted outcomes into bundles by construction STAR.

    Parameters
    ----------
    first, last : array_like of int, shape (n,)
        Rounds of each outcome, both included; at most ``max_duration`` of them, from round 1 on.
    width : array_like of int, shape (n,)
        :math:`c_w`, nodes, in [1, max_concurrency].
    weight : array_like of float, shape (n,)
        :math:`x_w \ge 0`; an outcome of weight 0 is in no bundle.
    value : array_like of float, shape (n,)
        :math:`v_w \ge 0`, credits per unit of weight.
    max_concurrency : int
        :math:`c_{max}`, nodes: what a bundle holds.
    max_duration : int
        :math:`D_{max}`, rounds.

    Returns
    -------
    UnitAllocation
        Bundles by centre, in the order they were filled.

    Raises
    ------
    InvalidParameterError
        If arrays are malformed or of different lengths, a number is out of range, there is no
        outcome of positive weight, or the weights fill more than `MAX_BUNDLES`.

    Notes
    -----
    Cost O(n log n + n_bundles). The cap :math:`2^H` on the powers of two matters to the proof alone:
    an interval of at most :math:`2^H` rounds contains at most one multiple of :math:`2^H`.

    Examples
    --------
    >>> bundles = fractional_unit_allocation(
    ...     [1, 3, 4, 4], [4, 5, 4, 6], [1, 1, 1, 1], [0.5, 0.5, 0.75, 0.75], [4, 3, 2, 1],
    ...     max_concurrency=1, max_duration=4,
    ... )
    >>> bundles.first.tolist(), bundles.last.tolist(), bundles.value.round(6).tolist()
    ([1, 3, 4], [6, 6, 4], [2.5, 2.25, 1.0])
    >>> bundles.overlap().tolist()
    [1, 1, 2, 3, 2, 2]
    """
    outcomes = checked_outcomes(first, last, width, weight, value, max_concurrency, max_duration)
    used = np.flatnonzero(outcomes.weight > 0)
    bundle, member, share = star_bundles(
        outcomes.first[used], outcomes.last[used], outcomes.width[used], outcomes.weight[used], max_concurrency
    )
    members = Members(bundle, used[member], share)
    weight_of, value_of = _bundle_sums(members, outcomes, int(bundle[-1]) + 1)
    begin = np.flatnonzero(np.diff(bundle, prepend=-1))
    allocation = UnitAllocation(
        first=np.minimum.reduceat(outcomes.first[members.outcome], begin),
        last=np.maximum.reduceat(outcomes.last[members.outcome], begin),
        value=value_of,
        weight=weight_of,
        members=members,
        outcomes=outcomes,
        max_concurrency=max_concurrency,
    )
    for array in (allocation.first, allocation.last, allocation.value, allocation.weight, *members, *outcomes):
        array.flags.writeable = False
    return allocation


def _verify_bundles(allocation: UnitAllocation) -> None:
    """Check what concerns bundles alone: shapes, rounds in order, figures that are numbers."""
    first, last = allocation.first, allocation.last
    if not first.size or any(array.shape != (first.size,) for array in (last, allocation.value, allocation.weight)):
        shapes = [array.shape for array in (first, last, allocation.value, allocation.weight)]
        raise InvalidParameterError(
            f"first, last, value, weight have shapes {shapes}: expected (n_bundles,), not empty"
        )
    wrong = np.flatnonzero(~((first >= 1) & (first <= last) & (np.floor(first) == first) & (np.floor(last) == last)))
    if wrong.size:
        k = int(wrong[0])
        raise InvalidParameterError(
            f"bundle {k} has the rounds {first[k]} to {last[k]}: expected 1 <= first <= last, whole numbers"
        )
    most = allocation.max_concurrency * (1 + TOLERANCE)
    wrong = np.flatnonzero(~((allocation.weight > 0) & (allocation.weight <= most) & (allocation.value >= 0)))
    if wrong.size:
        k = int(wrong[0])
        raise InvalidParameterError(
            f"bundle {k} weighs {allocation.weight[k]:.12g} nodes and is worth {allocation.value[k]:.12g}: expected a "
            f"weight in (0, {allocation.max_concurrency}] and a value >= 0"
        )


def _verify_members(allocation: UnitAllocation) -> None:
    """Check members against bundles and outcomes: (i), (ii), shares, weights and values."""
    bundle, outcome, share = allocation.members
    n_bundles, n_outcomes = allocation.first.size, allocation.outcomes.first.size
    if not bundle.shape == outcome.shape == share.shape == (bundle.size,):
        raise InvalidParameterError(f"members have shapes {bundle.shape}, {outcome.shape}, {share.shape}: expected one")
    if bundle.dtype.kind not in "iu" or outcome.dtype.kind not in "iu":
        raise InvalidParameterError(f"members have types {bundle.dtype}, {outcome.dtype}: expected whole numbers")
    legal = (bundle >= 0) & (bundle < n_bundles) & (outcome >= 0) & (outcome < n_outcomes) & (share > 0)
    if not legal.all():
        m = int(np.argmin(legal))
        raise InvalidParameterError(
            f"member {m} is a share {share[m]:.12g} of outcome {outcome[m]} in bundle {bundle[m]}: expected a share in "
            f"(0, 1], of {n_outcomes} outcomes in {n_bundles} bundles"
        )
    weight = allocation.outcomes.weight
    first, last = allocation.outcomes.first[outcome], allocation.outcomes.last[outcome]
    outside = np.flatnonzero((first < allocation.first[bundle]) | (last > allocation.last[bundle]))
    if outside.size:
        m = int(outside[0])
        raise InvalidParameterError(
            f"outcome {outcome[m]} has the rounds {first[m]} to {last[m]}: expected them inside those of bundle "
            f"{bundle[m]}, {allocation.first[bundle[m]]} to {allocation.last[bundle[m]]}"
        )
    whole = np.where(weight > 0, 1.0, 0.0)
    shares = np.bincount(outcome, share, n_outcomes).astype(np.float64)
    _verify_sums("the shares of outcome", shares, whole, 1.0)
    weights, values = _bundle_sums(allocation.members, allocation.outcomes, n_bundles)
    _verify_sums("the nodes in bundle", weights, allocation.weight, float(allocation.max_concurrency))
    _verify_sums("the values in bundle", values, allocation.value, values)


def _bundle_sums(
    members: Members, outcomes: Outcomes, n_bundles: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what the members of each bundle weigh in nodes, and what they are worth in credits."""
    amounts = outcomes.weight[members.outcome] * members.share
    weights = np.bincount(members.bundle, outcomes.width[members.outcome] * amounts, n_bundles)
    values = np.bincount(members.bundle, outcomes.value[members.outcome] * amounts, n_bundles)
    return weights.astype(np.float64), values.astype(np.float64)


def _verify_sums(
    what: str, sums: NDArray[np.float64], expected: NDArray[np.float64], scale: float | NDArray[np.float64]
) -> None:
    """Compare sums with what they should be, to `TOLERANCE` times ``scale``."""
    wrong = np.flatnonzero(~(np.abs(sums - expected) <= TOLERANCE * scale))
    if wrong.size:
        i = int(wrong[0])
        raise InvalidParameterError(f"{what} {i} add up to {sums[i]:.12g}: expected {expected[i]:.12g}")


def _frozen(array: NDArray[np.int64]) -> NDArray[np.int64]:
    array.flags.writeable = False
    return array
