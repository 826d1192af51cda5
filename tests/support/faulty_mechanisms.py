"""Mechanisms with one planted fault each, over the real one, and for each a market in which lying pays.

What an audit must catch. Every fault is a few lines; the witness market beside it is small enough to
work out by hand: no chance is involved but what is said there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from claims import claiming
from marketsched.mechanisms import (
    DeadlineValue,
    Event,
    EventKind,
    MonteCarloOracle,
    PostedPriceMechanism,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.named import posted_price

Others = list[tuple[StatementOfWork, int | None, int]]  # statement, arrival (None: never), duration


@dataclass(frozen=True)
class Witness:
    """A market, an owner, and what it gains by a lie; utilities in credits, expected over the others' laws."""

    parameters: dict[str, Any]  # of the mechanism
    others: list[StatementOfWork]  # truthful; submitted before the owner of the same round
    truth: StatementOfWork
    lie: StatementOfWork
    truthful: float
    lying: float
    delay: int = 0  # rounds that the lie is submitted late


def _sizes(**changes: Any) -> dict[str, Any]:
    sizes = {"capacity": 1, "horizon": 6, "max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 6}
    return {**sizes, "pricing": {"kind": "posted", "prices": [0.0]}, **changes}


def _sow(birth: int, values: dict[int, float], points: list[tuple[int, int, float]], nodes: int = 1) -> StatementOfWork:
    return StatementOfWork(birth, nodes, TableValue(values), points)


def _built(kind: type[PostedPriceMechanism], parameters: dict[str, Any]) -> Any:
    """Return a mechanism of class ``kind`` from the keys of the replay contract."""
    market: Any = posted_price(**parameters)
    market.__class__ = kind
    return market


@claiming
class PaysTheReport(PostedPriceMechanism):
    """Charges the declared value instead of the menu's price."""

    def submit(self, job: Any, sow: StatementOfWork) -> Any:
        """Remember what was declared."""
        plan = super().submit(job, sow)
        self.__dict__.setdefault("declared", {})[job] = sow.value
        return plan

    def complete(self, job: Any) -> Event:
        """Charge it."""
        event = super().complete(job)
        return Event(event.round, event.kind, job, event.completion, float(self.declared[job](event.completion)))


@claiming
class FirstOutFirstIn(PostedPriceMechanism):
    """Evicts the oldest job first."""

    def _clear_overload(self, starting: Any) -> Any:
        self._active = dict(reversed(self._active.items()))
        removed = super()._clear_overload(starting)
        self._active = dict(reversed(self._active.items()))
        return removed


@claiming
class EvictsEverybody(PostedPriceMechanism):
    """Removes all jobs as soon as one round is overloaded."""

    def _clear_overload(self, starting: Any) -> Any:
        overloaded = super()._clear_overload(starting)
        rest = list(reversed(self._active.values())) if overloaded else []
        for active in rest:
            self._remove(active)
        return overloaded + rest


@claiming
class ThresholdByValue(PostedPriceMechanism):
    """Ignores failure estimates for those who declare to be worth at least 8."""

    def submit(self, job: Any, sow: StatementOfWork) -> Any:
        """Set the threshold after reading the report."""
        self._planner.threshold = 1.0 if sow.value.highest >= 8 else 0.0
        return super().submit(job, sow)


class _SeededByReport(MonteCarloOracle):
    """Draws paths from a seed that the report determines."""

    report = 0

    def _fractions(self, concurrency: int, n_starts: int, n_durations: int) -> Any:
        paths = self.fresh_paths(self.samples, np.random.default_rng(self.report))
        return paths.counts(concurrency, n_starts, n_durations) / self.samples


@claiming
class SeedByReport(PostedPriceMechanism):
    """Its oracle's seed depends on the report."""

    def submit(self, job: Any, sow: StatementOfWork) -> Any:
        """Seed the oracle from what is declared."""
        self._oracle.own().report = seed_of(sow)  # type: ignore[attr-defined]
        return super().submit(job, sow)


def seed_of(sow: StatementOfWork) -> int:
    """Return the seed that a report leads to."""
    return crc32(repr(sow).encode())


class _Scaled:
    """A relaxed algorithm whose prices are multiplied by ``factor(market, concurrency)``."""

    def __init__(self, inner: Any, market: Any, factor: Callable[[Any, int], float]) -> None:
        self._inner, self._market, self._factor = inner, market, factor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._inner, name)

    def price_table(self, concurrency: int, *place: int) -> Any:
        prices, longest = self._inner.price_table(concurrency, *place)
        return prices * self._factor(self._market, concurrency), longest

    def quote(self, concurrency: int, *place: int) -> Any:
        return _Multiple(self._inner.quote(concurrency, *place), self._factor(self._market, concurrency))


class _Multiple:
    def __init__(self, quote: Any, factor: float) -> None:
        self.quote, self.factor = quote, factor

    def price(self, start: int, duration: int) -> float:
        return float(self.quote.price(start, duration) * self.factor)


def _halved_each_round(market: Any, concurrency: int) -> float:
    return float(0.5 ** (market.round - 1))


def _cheaper_if_wide(market: Any, concurrency: int) -> float:
    return float(concurrency**-3.0)


@claiming
class _RemembersValues(PostedPriceMechanism):
    """Remembers what was declared, and when."""

    def submit(self, job: Any, sow: StatementOfWork) -> Any:
        """Note value and birth."""
        self.__dict__.setdefault("declared", {})[job] = (sow.birth, float(sow.value.highest))
        return super().submit(job, sow)

    def _evicting(self, starting: Any, key: Callable[[Any], Any]) -> Any:
        """Evict the last of the active jobs by ``key`` first."""
        kept = dict(self._active)
        self._active = {job: kept[job] for job in sorted(kept, key=key)}
        removed = super()._clear_overload(starting)
        self._active = {job: active for job, active in kept.items() if job in self._active}
        return removed


@claiming
class LowestValueFirst(_RemembersValues):
    """Evicts who declared the lowest value."""

    def _clear_overload(self, starting: Any) -> Any:
        return self._evicting(starting, lambda job: -self.declared[job][1])


@claiming
class TiesByValue(_RemembersValues):
    """Evicts the last round's jobs first, and of one round who declared the lowest value."""

    def _clear_overload(self, starting: Any) -> Any:
        return self._evicting(starting, lambda job: (self.declared[job][0], -self.declared[job][1]))


@claiming
class RefundsTheEvicted(PostedPriceMechanism):
    """Pays one credit to who is evicted."""

    def advance(self) -> list[Event]:
        """Hand the credit out."""
        return [
            Event(e.round, e.kind, e.job, e.completion, -1.0) if e.kind is EventKind.EVICT else e
            for e in super().advance()
        ]


@claiming
class ChargesTheReport(PostedPriceMechanism):
    """Charges for the longest duration reported for what was shown at arrival, not for the rounds used."""

    def complete(self, job: Any) -> Event:
        """Charge it."""
        active = self._running[job]
        event = super().complete(job)
        law = active.law
        points = slice(law.offsets[active.case], law.offsets[active.case + 1])
        payment = active.quote.price(active.start, int(law.durations[points].max()))
        return Event(event.round, event.kind, job, event.completion, payment)


# -- factories, by the name of the fault -------------------------------------------------------------------


def pays_the_report(**parameters: Any) -> Any:
    """Build `PaysTheReport`."""
    return _built(PaysTheReport, parameters)


def seed_by_report(**parameters: Any) -> Any:
    """Build `SeedByReport`, with very few paths."""
    return _built(SeedByReport, {**parameters, "oracle": _SeededByReport(samples=1, refresh="submission")})


def first_out_first_in(**parameters: Any) -> Any:
    """Build `FirstOutFirstIn`."""
    return _built(FirstOutFirstIn, parameters)


def evicts_everybody(**parameters: Any) -> Any:
    """Build `EvictsEverybody`."""
    return _built(EvictsEverybody, parameters)


def prices_fall(**parameters: Any) -> Any:
    """Build the mechanism with prices that are halved in each round."""
    market: Any = posted_price(**parameters)
    market._planner.relaxed = _Scaled(market._planner.relaxed, market, _halved_each_round)
    return market


def wide_is_cheap(**parameters: Any) -> Any:
    """Build the mechanism with prices that fall with the concurrency declared."""
    market: Any = posted_price(**parameters)
    market._planner.relaxed = _Scaled(market._planner.relaxed, market, _cheaper_if_wide)
    return market


def threshold_by_value(**parameters: Any) -> Any:
    """Build `ThresholdByValue`."""
    return _built(ThresholdByValue, parameters)


FAULTS: dict[str, Callable[..., Any]] = {
    "pays the report": pays_the_report,
    "oracle seed depends on the report": seed_by_report,
    "FIFO eviction": first_out_first_in,
    "evicts everybody": evicts_everybody,
    "prices fall over time": prices_fall,
    "wide is cheap": wide_is_cheap,
    "threshold depends on the value": threshold_by_value,
}


UNFAIR: dict[str, Callable[..., Any]] = {  # faults in who is evicted, and in what is charged
    "lowest value first": lambda **parameters: _built(LowestValueFirst, parameters),
    "ties by value": lambda **parameters: _built(TiesByValue, parameters),
    "refund on eviction": lambda **parameters: _built(RefundsTheEvicted, parameters),
    "charge for the reported duration": lambda **parameters: _built(ChargesTheReport, parameters),
}


# -- where lying pays --------------------------------------------------------------------------------------


def witness_market(fault: str) -> Witness:
    """Return a market in which a lie pays under this fault, worked out by hand."""
    return _WITNESSES[fault]()


def _for_pays_the_report() -> Witness:
    """Alone in the market: worth 10, and charged what it declares; 1 is enough."""
    truth, lie = (StatementOfWork(1, 1, DeadlineValue(v, 3), [(1, 1, 1.0)]) for v in (10.0, 1.0))
    return Witness(_sizes(), [], truth, lie, 0.0, 9.0)


def _for_seed_by_report() -> Witness:
    """A rival holds round 2 with probability one half.

    Starting in round 2 is worth 10 if it is free, in round 3 always 6. With one path the estimate for
    round 2 is 0 or 1, by the seed: who is told 0 starts there and gets 5 on average, who is told 1
    gets 6. The truth here is a report that is told 0, the lie one that is told 1.
    """
    rival = _sow(1, {3: 10.0}, [(2, 1, 0.5)])
    told: dict[bool, StatementOfWork] = {}
    for cents in range(100):
        sow = _sow(1, {3: 10.0, 4: 6.0 - cents / 100}, [(2, 1, 1.0)])
        market = seed_by_report(**_sizes(), rng=0)
        market.submit("rival", rival)
        told.setdefault(market.submit("owner", sow).starts[0][2] == 2, sow)
        if len(told) == 2:
            break
    late = float(told[True].value(4))
    return Witness(_sizes(), [rival], told[True], told[False], 5.0, late)


def _overloaded() -> tuple[dict[str, Any], list[StatementOfWork], StatementOfWork, StatementOfWork]:
    """Prices 1, then 0; failure estimates are ignored (theta = 1), so a rival born later starts in round 2, too.

    The owner, worth 10 at any time, waits for the free round 2; the lie is to be in a hurry.
    """
    parameters = _sizes(threshold=1.0, pricing={"kind": "posted", "prices": [1.0, 0.0]})
    rival = _sow(2, {3: 10.0}, [(2, 1, 1.0)])
    truth = _sow(1, {2: 10.0, 3: 10.0}, [(1, 1, 1.0)])
    lie = _sow(1, {2: 10.0}, [(1, 1, 1.0)])
    return parameters, [rival], truth, lie


def _for_overload() -> Witness:
    """In round 2 the owner is evicted for the rival; in round 1 it pays 1 and is safe."""
    return Witness(*_overloaded(), 0.0, 9.0)


def _for_prices_fall() -> Witness:
    """Needs round 3; it costs 4 if announced in round 1, 2 if in round 2."""
    parameters = _sizes(pricing={"kind": "posted", "prices": [4.0]})
    truth, lie = (_sow(birth, {4: 10.0}, [(3, 1, 1.0)]) for birth in (1, 2))
    return Witness(parameters, [], truth, lie, 6.0, 8.0, delay=1)


def _for_wide_is_cheap() -> Witness:
    """One node costs 4, two cost 4 * 2 / 8 = 1."""
    parameters = _sizes(capacity=2, max_concurrency=2, pricing={"kind": "posted", "prices": [4.0]})
    truth, lie = (_sow(1, {2: 10.0}, [(1, 1, 1.0)], nodes) for nodes in (1, 2))
    return Witness(parameters, [], truth, lie, 6.0, 9.0)


def _for_threshold_by_value() -> Witness:
    """A rival holds round 2 with probability one half: worth 10 there if it is free, 9 in round 3.

    Who declares 10 is not told of the rival, starts in round 2 and gets 5; who declares less than 8
    is told, and starts in round 3.
    """
    rival = _sow(1, {3: 10.0}, [(2, 1, 0.5)])
    truth = _sow(1, {3: 10.0, 4: 9.0}, [(2, 1, 1.0)])
    lie = _sow(1, {3: 7.0, 4: 6.3}, [(2, 1, 1.0)])
    return Witness(_sizes(), [rival], truth, lie, 5.0, 9.0)


_WITNESSES: dict[str, Callable[[], Witness]] = {
    "pays the report": _for_pays_the_report,
    "oracle seed depends on the report": _for_seed_by_report,
    "FIFO eviction": _for_overload,
    "evicts everybody": _for_overload,
    "prices fall over time": _for_prices_fall,
    "wide is cheap": _for_wide_is_cheap,
    "threshold depends on the value": _for_threshold_by_value,
}
