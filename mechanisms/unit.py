"""Quarters of an hour in rounds: rules state durations in them, so that the length of a round decides nothing."""

from __future__ import annotations

from dataclasses import dataclass

QUARTER_S = 900.0


@dataclass(frozen=True)
class Unit:
    """How many rounds a quarter of an hour has; 1 where rounds have no length.

    Examples
    --------
    >>> unit = Unit.of(60.0)
    >>> unit.rounds, unit.whole(0.2), round(unit.kept(0.5) ** 15, 9)
    (15.0, 3, 0.5)
    """

    rounds: float = 1.0

    @classmethod
    def of(cls, round_seconds: float | None) -> Unit:
        """Return the unit of a market with rounds of so many seconds; None: one round is a quarter of an hour."""
        return cls() if round_seconds is None else cls(QUARTER_S / round_seconds)

    def whole(self, quarters: float) -> int:
        """Return so many quarters of an hour in whole rounds, at least one."""
        return max(1, round(quarters * self.rounds))

    def kept(self, share: float) -> float:
        """Return the part that is left a round later of something of which ``share`` is left after a quarter."""
        return float(share ** (1.0 / self.rounds))
