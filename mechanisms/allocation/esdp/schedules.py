r"""The sequences of ESDP: the slack delta(t) of its rounding, and the weight g(t) of its exploration.

With ``m = alpha * E`` for the largest number of selected channels (the paper's practical choice):

================ ===================================================== ==========================
``slack``        delta(t)                                              where
================ ===================================================== ==========================
``"paper"``      1 / (ln(ln(t+1) + 1) + 1)                             Section 4, default
``"log"``        1 / (ln(t+1) + 1)                                     Fig. 7, first
``"loglog"``     1 / ln(ln(t+1) + 1)                                   Fig. 7, second, as printed
``"logloglog"``  1 / (ln(ln(ln(t+1) + 1) + 1) + 1)                     Fig. 7, third
``"equation"``   1 / (ln(ln(t+1)) + 1)                                 ESDP (14)
================ ===================================================== ==========================

================ ===================================================== ==========================
``exploration``  g(t)                                                  where
================ ===================================================== ==========================
``"paper"``      ln(t+1) + 4 ln(ln(t+1) + 1) m                         Section 4 and Fig. 8, first
``"loglog"``     4 ln(ln(t+1) + 1) m                                   Fig. 8, second
``"log"``        ln(t+1)                                               Fig. 8, third
``"equation"``   ln(t) + 4 ln(ln(t) + 1) m                             ESDP (11)
================ ===================================================== ==========================

Both may also be any function of t. The scale is ``xi(t) = ceil(m / delta(t))``, ESDP (18), and the
budgets are 0 .. floor(xi(t) m), ESDP (19).
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
    """Return delta as a function of t that raises InvalidParameterError if delta(t) is not positive and finite.

    Examples
    --------
    >>> round(slack_sequence("equation")(1), 3)
    1.579
    """
    chosen = slack if callable(slack) else SLACKS[slack]
    return lambda t: Finite("(0, inf)").check(f"slack({t})", chosen(t))


def exploration_sequence(exploration: str | Sequence, largest: float) -> Sequence:
    """Return g as a function of t that raises InvalidParameterError if g(t) is negative or not finite.

    ``largest`` is m = alpha * E.
    """
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
