"""A cluster with channels, its arrivals and its fluctuating utilities as an environment of the slot loop.

The arrivals of a slot are drawn before the decision and shown (ESDP sees them, and so do all policies
here); its utilities are drawn after the decision was checked, and only those of used channels are revealed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.arrivals import ArrivalProcess, ArrivalStage
from marketsched.mechanisms.allocation.esdp.baselines import TrueMeanOracle
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.channel_utilities import UtilitySource
from marketsched.mechanisms.allocation.slot_loop import SlotOutcome
from marketsched.mechanisms.arrays import bool_array
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError


class ChannelEnvironment(ArrivalStage):
    """Channels with arrivals, at most one a port and slot, and utilities of all channels.

    Measures: ``utility`` (as it came), ``expected`` (true means of the used channels), ``oracle`` (the largest expected
    utility for the slot's arrivals; 0 without an oracle), ``regret`` = oracle - expected, ESDP (6), and ``used``
    (number of channels). Feedback: the used channels and their utilities, 0 for the others. ``came``, shape (L,), says
    which ports had a job in the slot played last.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import Esdp, RecordedArrivals, RecordedUtilities, play_slots
    >>> channels, utilities = Channels([[1], [1]], [1], [0, 0]), RecordedUtilities([[0.5], [0.25]])
    >>> oracle = TrueMeanOracle(channels, utilities.means)
    >>> world = ChannelEnvironment(channels, RecordedArrivals([[1]] * 3), utilities, oracle)
    >>> play_slots(Esdp([[1], [1]], [1], [0, 0]), world)["utility"]
    array([0.25, 0.5 , 0.25])
    """

    offers = ("arrivals",)

    def __init__(
        self, rules: Channels, arrivals: ArrivalProcess, utilities: UtilitySource, oracle: TrueMeanOracle | None
    ) -> None:
        super().__init__(arrivals, rules.n_ports)
        if len(utilities.means) != rules.n_channels:
            raise InvalidParameterError(f"utilities of {len(utilities.means)} channels: expected {rules.n_channels}")
        self.rules, self.oracle = rules, oracle
        self.came: NDArray[np.bool_] = np.zeros(rules.n_ports, dtype=np.bool_)
        self._utilities = utilities
        self.begin()

    @property
    def slots(self) -> int | None:
        """How many slots arrivals and utilities last; None: no last one."""
        known = [n for n in (self._arrivals.slots, self._utilities.slots) if n is not None]
        return min(known, default=None)

    def begin(self) -> None:
        """Go back to the first slot; the same arrivals and utilities come again."""
        super().begin()
        self._utilities.begin()

    def observation(self, observes: str) -> tuple[Any, ...]:
        """Return which ports have a job in this slot, shape (L,); DecisionError if asked twice."""
        return tuple(counts > 0 for counts in super().observation(observes))

    def play(self, decision: Any) -> SlotOutcome:
        """Check the selection, shape (E,), or raise DecisionError; draw utilities, tell those of used channels."""
        arrived = self._draw() > 0
        try:
            selected = np.array(bool_array("selection", decision, (self.rules.n_channels,)), subok=False)
        except InvalidParameterError as problem:
            raise DecisionError(f"slot {self._slot}: {problem}") from problem
        wrong = self.rules.violation(selected, arrived)
        if wrong is not None:
            raise DecisionError(f"slot {self._slot}: {wrong}")
        drawn = np.where(selected, self._utilities.draw(), 0.0)
        expected = float(self._utilities.means[selected].sum())
        best = 0.0 if self.oracle is None else self.oracle.value(arrived)
        self.came = arrived
        self._end_slot()
        measures = {
            "utility": float(drawn.sum()),
            "expected": expected,
            "oracle": best,
            "regret": best - expected,
            "used": float(np.count_nonzero(selected)),
        }
        return SlotOutcome(measures, (selected, drawn))
