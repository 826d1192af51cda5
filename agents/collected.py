"""Figures of a market by name, as reporters of Mesa's ``DataCollector``: each costs the same in every round."""

from __future__ import annotations

import math
from collections.abc import Callable

from marketsched.agents.market_log import RowKind
from marketsched.agents.market_run import MarketRun
from marketsched.mechanisms.errors import UnknownNameError

Reporter = Callable[[MarketRun], float]


def _counted(kind: RowKind) -> Reporter:
    def count(market: MarketRun) -> float:
        return market.log.counts[kind]

    return count


def _latest(place: int) -> Reporter:
    def found(market: MarketRun) -> float:
        return market.log.rounds[-1][place] if market.log.rounds else math.nan

    return found


def _utilisation(market: MarketRun) -> float:
    rounds = market.log.rounds
    return sum(load for load, _, _ in rounds) / (market.setup.capacity * len(rounds)) if rounds else math.nan


REPORTERS: dict[str, Reporter] = {
    "round": lambda market: market.round,
    "load": lambda market: market.load,
    "price": _latest(2),
    "promised": _latest(1),
    "utilisation": _utilisation,
    "welfare": lambda market: market.log.value,
    "revenue": lambda market: market.log.payment,
    "utility": lambda market: market.log.value - market.log.payment,
    "submitted": _counted(RowKind.SUBMIT),
    "arrived": _counted(RowKind.ARRIVE),
    "started": _counted(RowKind.START),
    "completed": _counted(RowKind.COMPLETE),
    "dropped": _counted(RowKind.DROP),
    "cancelled": _counted(RowKind.CANCEL),
    "evicted": _counted(RowKind.EVICT),
    "requeued": _counted(RowKind.REQUEUE),
}
"""By name; `reporters` says what they are."""


def reporters(*names: str) -> dict[str, Reporter]:
    """Return figures of a `Market` by name, for ``mesa.DataCollector(model_reporters=...)``.

    Parameters
    ----------
    *names : str
        Of `REPORTERS`: ``round``, ``load`` (nodes busy), ``price`` (of a node in the round just played; NaN: the
        mechanism has none), ``promised`` (expected nodes, as of `RunResult`), ``utilisation`` (busy share of all
        node-rounds so far), ``welfare``, ``revenue``, ``utility`` (credits so far), and how many statements were
        ``submitted``, and jobs ``arrived``, ``started``, ``completed``, ``dropped``, ``cancelled``, ``evicted``,
        ``requeued`` so far.
        None: all of them.

    Returns
    -------
    dict of str to function
        Each takes the market; in the order of the arguments.

    Raises
    ------
    UnknownNameError
        If there is no such figure; the message lists them.

    Examples
    --------
    >>> import mesa
    >>> from marketsched import Market, Scenario
    >>> market, data = Market(Scenario.load("stochastic-mix"), 7), mesa.DataCollector(reporters("load", "welfare"))
    >>> for _ in range(24):
    ...     market.step()
    ...     data.collect(market)
    >>> table = data.get_model_vars_dataframe()
    >>> list(table), bool(table["welfare"].is_monotonic_increasing)
    (['load', 'welfare'], True)
    """
    for name in names:
        if name not in REPORTERS:
            raise UnknownNameError(f"reporter {name!r} is unknown: expected one of {', '.join(REPORTERS)}")
    return {name: REPORTERS[name] for name in names or REPORTERS}
