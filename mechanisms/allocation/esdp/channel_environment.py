"""A cluster with channels, its arrivals and its fluctuating utilities as an environment of the slot loop.

The arrivals of a slot are drawn before the decision and shown (ESDP sees them, and so do all policies
here); its utilities are drawn after the decision was checked, and only those of used channels are revealed.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
from marketsched.mechanisms.allocation.esdp.channel_utilities import UtilitySource
from marketsched.mechanisms.allocation.slot_loop import SlotOutcome
from marketsched.mechanisms.arrays import bool_array
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError


class _ChannelRules(Protocol):
    """What may be selected: `Channels` or `GangChannels`."""

    @property
    def n_channels(self) -> int:
        """E."""
        ...

    @property
    def n_ports(self) -> int:
        """L."""
        ...

    def violation(self, selected: NDArray[np.bool_], arrivals: NDArray[np.bool_]) -> str | None:
        """Return what is wrong with a selection, or None."""
        ...


class _MeanOracle(Protocol):
    """The largest expected utility there is."""

    def value(self, arrivals: NDArray[np.bool_]) -> float:
        """Return it for the ports that have a job."""
        ...


class ChannelEnvironment:
    """Channels with arrivals and utilities.

    Measures: ``utility`` (as it came), ``expected`` (true means of the used channels), ``oracle`` (the
    largest expected utility for the slot's arrivals), ``regret`` = oracle - expected, ESDP (6), and
    ``used`` (number of channels). Feedback: the used channels and their utilities, 0 for the others.

    Parameters
    ----------
    rules : ChannelRules
        What may be selected.
    arrivals : ArrivalProcess
        At most one job per port and slot.
    utilities : UtilitySource
        Utilities of all channels.
    oracle : MeanOracle
        For the true means; a `TrueMeanOracle`.

    Raises
    ------
    InvalidParameterError
        If ports or channels disagree in number, or a port can get more than one job in a slot.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation.arrivals import RecordedArrivals
    >>> from marketsched.mechanisms.allocation.esdp.bandit_references import TrueMeanOracle
    >>> from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
    >>> from marketsched.mechanisms.allocation.esdp.channel_utilities import RecordedUtilities
    >>> from marketsched.mechanisms.allocation.esdp.esdp import Esdp
    >>> from marketsched.mechanisms.allocation.slot_loop import play_slots
    >>> channels, utilities = Channels([[1], [1]], [1], [0, 0]), RecordedUtilities([[0.5], [0.25]])
    >>> world = ChannelEnvironment(
    ...     channels, RecordedArrivals([[1]] * 3), utilities, TrueMeanOracle(channels, utilities.means)
    ... )
    >>> play_slots(Esdp([[1], [1]], [1], [0, 0]), world)["utility"]
    array([0.25, 0.5 , 0.25])
    """

    offers = ("arrivals",)

    def __init__(
        self, rules: _ChannelRules, arrivals: ArrivalProcess, utilities: UtilitySource, oracle: _MeanOracle
    ) -> None:
        if arrivals.n_ports != rules.n_ports:
            raise InvalidParameterError(f"arrivals have {arrivals.n_ports} ports: expected {rules.n_ports}")
        if arrivals.most.max() > 1:
            raise InvalidParameterError(
                f"port {int(arrivals.most.argmax())} can get {arrivals.most.max()} jobs in one slot: expected at most 1"
            )
        if len(utilities.means) != rules.n_channels:
            raise InvalidParameterError(f"utilities of {len(utilities.means)} channels: expected {rules.n_channels}")
        self.rules, self.oracle = rules, oracle
        self._source_of_arrivals, self._source_of_utilities = arrivals, utilities
        self.begin()

    @property
    def scaling(self) -> str:
        """How utilities came to lie in [0, 1], in words for a table's foot."""
        return self._source_of_utilities.scaling

    @property
    def slots(self) -> int | None:
        """How many slots arrivals and utilities last; None: no last one."""
        known = [n for n in (self._source_of_arrivals.slots, self._source_of_utilities.slots) if n is not None]
        return min(known, default=None)

    def begin(self) -> None:
        """Go back to the first slot; the same arrivals and utilities come again."""
        self._source_of_arrivals.begin()
        self._source_of_utilities.begin()
        self._slot = 1
        self._arrived: NDArray[np.bool_] | None = None

    def observation(self, observes: str) -> tuple[Any, ...]:
        """Return which ports have a job in this slot, shape (L,)."""
        return (self._arrivals(),)

    def play(self, decision: Any) -> SlotOutcome:
        """Check the selection, then draw the slot's utilities and tell those of the used channels.

        Parameters
        ----------
        decision : array_like of bool, shape (E,)
            Channels to use.

        Raises
        ------
        DecisionError
            If it is malformed, or not allowed.
        """
        arrived = self._arrivals()
        try:
            selected = np.array(bool_array("selection", decision, (self.rules.n_channels,)), subok=False)
        except InvalidParameterError as problem:
            raise DecisionError(f"slot {self._slot}: {problem}") from problem
        wrong = self.rules.violation(selected, arrived)
        if wrong is not None:
            raise DecisionError(f"slot {self._slot}: {wrong}")
        drawn = np.where(selected, self._source_of_utilities.draw(), 0.0)
        expected = float(self._source_of_utilities.means[selected].sum())
        best = self.oracle.value(arrived)
        self._slot += 1
        self._arrived = None
        measures = {
            "utility": float(drawn.sum()),
            "expected": expected,
            "oracle": best,
            "regret": best - expected,
            "used": float(np.count_nonzero(selected)),
        }
        return SlotOutcome(measures, (selected, drawn))

    def _arrivals(self) -> NDArray[np.bool_]:
        """Return who has a job in this slot; drawn once."""
        if self._arrived is None:
            self._arrived = self._source_of_arrivals.draw() > 0
        return self._arrived
