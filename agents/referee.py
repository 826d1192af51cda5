"""The referee of whole markets: what `Mechanism.play` makes of a market, beside the loop's round by round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marketsched.agents.market_log import ROUND, MarketLog
from marketsched.agents.market_run import MarketRun
from marketsched.agents.result import RunResult
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Compared:
    """A market played twice: whether its mechanism played it whole, its events, and the first difference, or ''."""

    whole: bool
    events: int
    difference: str


def compare_plays(make: Callable[[], MarketSetup], rounds_together: int | None = None) -> Compared:
    """Play two equal setups of ``make`` whole and round by round, and compare every table.

    ``rounds_together`` is for how many rounds the mechanism is asked at a time; None: as in any market.

    Examples
    --------
    >>> from marketsched import Scenario
    >>> scenario = Scenario.load("synthetic-pipelines").with_mechanism("first-come")
    >>> compare_plays(lambda: scenario.setup(np.random.default_rng(7)))
    Compared(whole=True, events=17613, difference='')
    """
    whole, by_rounds = MarketRun(make()), MarketRun(make(), by_rounds=True)
    whole.rounds_together = rounds_together or whole.rounds_together
    for market in (whole, by_rounds):
        market.play()
    events = len(by_rounds.log.events)
    same = _bytes(whole.log) == _bytes(by_rounds.log)  # of which all tables are made
    equal = same and _own(whole.mechanism) == _own(by_rounds.mechanism)
    difference = "" if equal else _difference(whole.result(), by_rounds.result())
    if equal and _on_cluster(whole) != _on_cluster(by_rounds):
        difference = "pools: use, prices, income, or where jobs ran"
    return Compared(whole.played_whole, events, difference)


def _bytes(log: MarketLog) -> list[bytes]:
    """Return all that a log holds."""
    n_rounds, n_events, n_statements = log.finished
    tables = [log.events.first(n_events), log.statements.first(n_statements), np.array(log.rounds, dtype=ROUND)]
    surface = [] if log.surfaces is None else [log.surfaces.first(n_rounds)]
    return [table.tobytes() for table in (*tables, *surface)]


def _on_cluster(market: MarketRun) -> list[str]:
    """Return what is noted of a cluster: the use of its pools, and where jobs ran."""
    pools = market.pools()
    if pools is None:
        return []
    where = market.result().jobs["pool"].astype(str)
    tables = [pools, market.pool_figures(), where.to_frame()]
    return [repr(table.to_dict("list")) for table in tables if table is not None]


def _own(mechanism: Mechanism) -> str:
    """Return a mechanism's own figures and tables as text, in which nan is nan."""
    tables = {name: {key: list(column) for key, column in table.items()} for name, table in mechanism.tables().items()}
    return repr((mechanism.statistics(), tables))


def _difference(found: RunResult, expected: RunResult) -> str:
    """Return in which table, and where, two results differ first."""
    for name in ("events", "jobs", "rounds"):
        one, other = getattr(found, name), getattr(expected, name)
        if one.equals(other):
            continue
        if len(one) != len(other):
            return f"{name}: {len(one)} rows, round by round {len(other)}"
        differs = (one != other).astype("boolean").fillna(True)  # a cell that only one of them has
        unequal = differs.astype(bool) & ~(one.isna() & other.isna())
        row = int(np.flatnonzero(unequal.any(axis=1))[0])
        cells = [f"{c} {one[c][row]!r}, not {other[c][row]!r}" for c in one if unequal[c][row]]
        return f"{name}, row {row}: {'; '.join(cells)}"
    if not _equal(found.price_surface, expected.price_surface):
        return "prices some rounds ahead"
    unlike = [key for key, each in expected.outcome.items() if repr(found.outcome[key]) != repr(each)]
    return f"{unlike[0]}: {found.outcome[unlike[0]]!r}, not {expected.outcome[unlike[0]]!r}" if unlike else "the log"


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other, equal_nan=True)
