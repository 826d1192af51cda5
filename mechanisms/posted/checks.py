"""Checks at the public edge of the posted-price mechanism: parameters and reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.posted.residual import Limits
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import whole_number


def checked_limits(
    capacity: int, horizon: int, max_concurrency: int, max_duration: int, max_delay: int, eviction: str
) -> Limits:
    """Return the limits, or raise naming the parameter."""
    try:
        c = whole_number("capacity", capacity, 1)
        checked = Limits(
            c,
            whole_number("horizon", horizon, 1),
            whole_number("max_concurrency", max_concurrency, 1, c),
            whole_number("max_duration", max_duration, 1),
            whole_number("max_delay", max_delay, 1),
            eviction,
        )
    except InvalidReportError as error:
        raise InvalidParameterError(str(error)) from None
    if eviction not in ("all", "running"):
        raise InvalidParameterError(f"eviction = {eviction!r}: expected 'all' or 'running'")
    return checked


def checked_number(
    name: str, x: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False, hint: str = ""
) -> float:
    """Return ``x`` as a float in the interval, or raise naming it."""
    legal = f"a finite number in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}{hint}"
    number = not isinstance(x, (bool, str)) and isinstance(x, (int, float, np.integer, np.floating))
    if (
        not number
        or not math.isfinite(x)
        or not low <= x <= high
        or (open_low and x == low)
        or (open_high and x == high)
    ):
        raise InvalidParameterError(f"{name} = {x!r}: expected {legal}")
    return float(x)


def check_report(job: JobId, sow: StatementOfWork, limits: Limits, max_value: float) -> None:
    """Raise InvalidReportError unless the report keeps within the announced limits."""
    if sow.concurrency > limits.max_concurrency:
        legal = f"a whole number in [1, {limits.max_concurrency}]"
        raise InvalidReportError(f"job {job!r}: concurrency = {sow.concurrency}: expected {legal}")
    longest = int(sow.law.durations.max())
    if longest > limits.max_duration:
        legal = f"a whole number in [1, {limits.max_duration}]"
        raise InvalidReportError(f"job {job!r}: duration = {longest}: expected {legal}")
    if sow.value.highest > max_value:
        raise InvalidReportError(
            f"job {job!r}: value {sow.value.highest:g} exceeds V_max: expected values in [0, {max_value:g}]"
        )
