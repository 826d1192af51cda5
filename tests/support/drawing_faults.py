"""Rules that draw with the generator that they are given: in five a lie pays on average, in three none does.

``DRAWING`` has a builder of each by name, as `planted_faults`; ``CLEAN`` those in which no lie pays. What a lie gains
is in the docstring of each, so that an audit's figure can be checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from claims import claiming
from marketsched.mechanisms import register
from marketsched.mechanisms.auctions.first_come import FirstCome

PRICE = 0.2  # credits per node and round


@claiming
class Draws(FirstCome):
    """Holds a generator; the price is flat."""

    def __init__(self, *sizes: Any, rng: np.random.Generator, **limits: Any) -> None:
        super().__init__(*sizes, **limits)
        self.rng = np.random.default_rng(rng)

    def charge(self, x: Any) -> float:
        """Charge the price and what is drawn."""
        return super().charge(x) + self.drawn(x)

    def drawn(self, x: Any) -> float:
        """Return what is drawn."""
        return 0.0


@claiming
class LotteryOfOneHundredth(Draws):
    """Adds a share of the value between 0 and 2 %: half the value gains .5 % of the true one on average."""

    def drawn(self, x: Any) -> float:
        return 0.02 * float(self.rng.random()) * float(x.sow.value.highest)


@claiming
class LotteryOfTwenty(Draws):
    """Adds a fifth of the value for one job in ten: half the value gains 1 % of it on average."""

    def drawn(self, x: Any) -> float:
        return 0.2 * float(x.sow.value.highest) if self.rng.random() < 0.1 else 0.0


@claiming
class DrawnDiscount(Draws):
    """Gives a drawn part of the price back to who declares a late deadline: 4 rounds later gain a quarter of it."""

    def charge(self, x: Any) -> float:
        share = float(self.rng.random()) if x.sow.value.last - x.sow.birth >= 9 else 0.5
        return super().charge(x) * (1 - 0.5 * share) if share != 0.5 else super().charge(x)


@claiming
class DrawnOrder(Draws):
    """Serves within a round in a drawn order, in which a higher value stands further ahead."""

    def serve(self, waiting: Any) -> list[int | None]:
        turns = self.rng.random(len(waiting)) ** (1 / np.array([max(x.sow.value.highest, 1e-3) for x in waiting]))
        order = np.argsort(-turns)
        served = dict(zip(order.tolist(), super().serve([waiting[i] for i in order]), strict=True))
        return [served[i] for i in range(len(waiting))]


@claiming
class DrawnFree(Draws):
    """Free with a chance of a half for a value between 3 and 4, and of a fifth for all others."""

    def charge(self, x: Any) -> float:
        chance = 0.5 if 3 < x.sow.value.highest < 4 else 0.2
        return super().charge(x) * float(self.rng.random() >= chance)


@claiming
class DrawnFee(Draws):
    """Adds a fee that no report moves."""

    def drawn(self, x: Any) -> float:
        return 0.1 * float(self.rng.random())


@claiming
class FairOrder(Draws):
    """Serves within a round in a drawn order, whatever is declared."""

    def serve(self, waiting: Any) -> list[int | None]:
        order = self.rng.permutation(len(waiting)).tolist()
        served = dict(zip(order, super().serve([waiting[i] for i in order]), strict=True))
        return [served[i] for i in range(len(waiting))]


@claiming
class DrawnWaiver(Draws):
    """Free with a chance of a fifth."""

    def charge(self, x: Any) -> float:
        return super().charge(x) * float(self.rng.random() >= 0.2)


def _of(kind: Any) -> Callable[..., Any]:
    def build(*, capacity: int, horizon: int, rng: Any = None, **limits: Any) -> Any:
        return kind(capacity, horizon, PRICE, rng=rng, **limits)

    return build


DRAWING: dict[str, Callable[..., Any]] = {
    "a lottery of 2 % of the bid": _of(LotteryOfOneHundredth),
    "a fifth of the bid from one in ten": _of(LotteryOfTwenty),
    "a drawn discount for late deadlines": _of(DrawnDiscount),
    "a drawn order by value": _of(DrawnOrder),
    "free by a chance that the value moves": _of(DrawnFree),
}
CLEAN: dict[str, Callable[..., Any]] = {
    "a drawn fee": _of(DrawnFee),
    "a drawn order": _of(FairOrder),
    "free by chance": _of(DrawnWaiver),
}


def registered_drawing(rule: str) -> str:
    """Register a rule as a mechanism of scenarios, and return the name that these call it by."""
    made = {**DRAWING, **CLEAN}[rule]

    def build(*, capacity: int, horizon: int, rng: Any = None, **sizes: Any) -> Any:
        limits = {name: sizes[name] for name in ("max_concurrency", "max_duration", "max_value", "max_delay")}
        return made(capacity=capacity, horizon=horizon, rng=rng, **limits)

    name = "drawing-" + "".join(c if c.isalnum() else "-" for c in rule)
    build.__qualname__ = name
    register(name)(build)
    return name
