r"""Step sizes of online gradient ascent: the paper's, and schedules to compare it with.

The *theory* step is :math:`\eta_t = \mathrm{diam}(\mathcal{Y}) / (\|\nabla q\| \sqrt{T})`, OgaSched (26),
with the bound OgaSched (25) in place of the diameter and the gradient of the slot itself: it does not
change when all rewards are scaled. The proof of the bound OgaSched (14) takes one step for all slots, which
this one is only as long as the norm of the gradient stays the same; what is measured is far below the bound.
Every other schedule is a function of the slot, counted from 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from marketsched.mechanisms.checks import finite_parameter
from marketsched.mechanisms.errors import InvalidParameterError

Schedule = Callable[[int], float]
THEORY: Final = "theory"
LARGEST: Final = 1e100  # step, so that no point overflows
_LOG_LARGEST: Final = math.log(LARGEST)


def geometric_step(first: float = 25.0, decay: float = 0.9999, horizon: int | None = None) -> Schedule:
    r"""Return :math:`\eta_t = \eta_0 \, \delta^t`, the schedule of the authors' published code.

    A decay above 1 makes steps grow, as the OgaSched paper tries in its Fig. 4(b).

    Parameters
    ----------
    first : float
        Step that the decay is applied to, >= 0.
    decay : float
        > 0.
    horizon : int, optional
        T: steps that outgrow 1e100 by then are refused now; without it, in their slot.

    Raises
    ------
    InvalidParameterError
        Unless ``first`` >= 0 and ``decay`` > 0, or if a step up to the horizon is above 1e100.

    Examples
    --------
    >>> geometric_step(8.0, 0.5)(2)
    2.0
    """
    start, factor = finite_parameter("first", first), finite_parameter("decay", decay, "(0, inf)")
    if horizon is not None and start > 0 and factor > 1 and math.log(start) + horizon * math.log(factor) > _LOG_LARGEST:
        most = math.exp((_LOG_LARGEST - math.log(start)) / horizon)
        most = math.floor(most * 1e4) / 1e4  # rounded down: what the line offers is legal
        raise InvalidParameterError(
            f"decay = {decay!r}: expected at most {most:g}: "
            f"steps from {first:g} on pass {LARGEST:g} within {horizon} slots"
        )

    def step(t: int) -> float:
        try:
            return start * factor**t
        except OverflowError:  # `step_of` then says what is legal
            return math.inf

    return step


def step_schedule(step: str | float | Schedule) -> Schedule | None:
    """Return a step as a schedule; None stands for the theory step.

    Parameters
    ----------
    step : "theory", float or callable
        The theory step, the same step in every slot, or the step of each slot, counted from 1.

    Raises
    ------
    InvalidParameterError
        If ``step`` is none of these, or a number outside [0, 1e100].
    """
    if isinstance(step, str):
        if step != THEORY:
            raise InvalidParameterError(f"step = {step!r}: expected {THEORY!r}, a number or a function of the slot")
        return None
    if callable(step):
        return step
    constant = finite_parameter("step", step, f"[0, {LARGEST:g}]", hint=f", {THEORY!r} or a function of the slot")
    return lambda t: constant


def step_of(schedule: Schedule, slot: int) -> float:
    """Return the step of one slot, checked.

    Raises
    ------
    InvalidParameterError
        If the schedule gives a number outside [0, 1e100], or no number.
    """
    return finite_parameter(f"step of slot {slot}", schedule(slot), f"[0, {LARGEST:g}]")
