"""The sequences of ESDP: the slack delta(t) of its rounding, and the weight g(t) of its exploration.

With ``m = alpha * E`` for the largest number of selected channels, the scale is ``xi(t) = ceil(m / delta(t))``, ESDP
(18), and the budgets are 0 .. floor(xi(t) m), ESDP (19). ``"paper"`` stands for the defaults of Section 4, the next
three names for Figs. 7 and 8, and ``"equation"`` for ESDP (14) and ESDP (11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite, Named, Range

Sequence = Callable[[int], float]
"""A function of the slot t = 1, 2, ..."""

_LARGEST_SCALE = 2**26  # beyond, squares of it times a variance are no longer exact as float64

SLACKS: dict[str, Sequence] = {
    "paper": lambda t: 1.0 / (math.log(math.log(t + 1) + 1) + 1),
    "log": lambda t: 1.0 / (math.log(t + 1) + 1),
    "loglog": lambda t: 1.0 / math.log(math.log(t + 1) + 1),
    "logloglog": lambda t: 1.0 / (math.log(math.log(math.log(t + 1) + 1) + 1) + 1),
    "equation": lambda t: 1.0 / (math.log(math.log(t + 1)) + 1),
}
"""The paper's delta(t), by name."""

EXPLORATIONS: dict[str, Callable[..., float]] = {
    "paper": lambda t, m: math.log(t + 1) + 4 * math.log(math.log(t + 1) + 1) * m,
    "loglog": lambda t, m: 4 * math.log(math.log(t + 1) + 1) * m,
    "log": lambda t, m: math.log(t + 1),
    "equation": lambda t, m: math.log(t) + 4 * math.log(math.log(t) + 1) * m,
}
"""The paper's g(t), by name, as functions of t and m."""


@dataclass(frozen=True)
class _Function(Range[Any]):
    """A sequence of one's own, which no file can hold."""

    def __call__(self, x: object) -> Any:
        if not callable(x):
            raise ValueError("a function of t")
        return x


Slack = Annotated[str | Sequence, Named(tuple(SLACKS), _Function())]
Exploration = Annotated[str | Sequence, Named(tuple(EXPLORATIONS), _Function())]


def slack_sequence(slack: str | Sequence) -> Sequence:
    """Return delta as a function of t that raises InvalidParameterError if delta(t) is not positive and finite."""
    chosen = slack if callable(slack) else SLACKS[slack]
    return lambda t: Finite("(0, inf)").check(f"slack({t})", chosen(t))


def exploration_sequence(exploration: str | Sequence, largest: float) -> Sequence:
    """Return g as a function of t that refuses a g(t) that is negative or not finite; ``largest`` is m = alpha * E."""
    if callable(exploration):
        chosen: Sequence = exploration
    else:
        chosen = partial(EXPLORATIONS[exploration], m=largest)
    return lambda t: Finite("[0, inf)").check(f"exploration({t})", chosen(t))


def scale_of(slack: float, largest: float) -> tuple[int, int]:
    """Return xi, ESDP (18), at most 2**26, and the largest budget, ESDP (19)."""
    scale = math.ceil(largest / slack)
    if scale > _LARGEST_SCALE:
        raise InvalidParameterError(
            f"slack = {slack!r} asks for a scale of {scale}: expected a slack >= {largest / _LARGEST_SCALE:g}"
        )
    return scale, math.floor(scale * largest)
