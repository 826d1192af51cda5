"""The announced limits of a posted-price mechanism, checked at its public edge."""

from __future__ import annotations

from marketsched.mechanisms.checks import whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.posted.residual import Limits


def checked_limits(
    capacity: int, horizon: int, max_concurrency: int, max_duration: int, max_delay: int, eviction: str
) -> Limits:
    """Return the limits of a market.

    Parameters
    ----------
    capacity, max_concurrency : int
        C and c_max, nodes; 1 <= c_max <= C.
    horizon, max_duration, max_delay : int
        T, D_max and S, rounds; each >= 1.
    eviction : {"all", "running"}
        The LIFO rule.

    Raises
    ------
    InvalidParameterError
        If one is out of range; the message names it.
    """
    c = whole_parameter("capacity", capacity, 1)
    limits = Limits(
        c,
        whole_parameter("horizon", horizon, 1),
        whole_parameter("max_concurrency", max_concurrency, 1, c),
        whole_parameter("max_duration", max_duration, 1),
        whole_parameter("max_delay", max_delay, 1),
        eviction,
    )
    if eviction not in ("all", "running"):
        raise InvalidParameterError(f"eviction = {eviction!r}: expected 'all' or 'running'")
    return limits
