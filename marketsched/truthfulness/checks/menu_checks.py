"""Checks of menus: what they announce is what is charged, no report of its own moves one, prices only grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from marketsched.agents.lies import ScaleDuration
from marketsched.mechanisms.mechanism import EventKind
from marketsched.truthfulness.certificates.arrival_certificate import best_entry_of
from marketsched.truthfulness.certificates.menus import difference, lies_of
from marketsched.truthfulness.checks.check_markets import TOLERANCE, CheckMarket, Factory, Transcript, play
from marketsched.truthfulness.checks.check_report import Broken
from marketsched.truthfulness.situations.announced import announced_price

LIES = 3  # of one owner of each market, that are asked whether they move its menu


def pays_the_menu(factory: Factory, market: CheckMarket) -> int:
    """A job that completes pays the price in its menu for its start and the rounds it used."""
    played = play(factory, market, faced=True)
    return sum(_check_quote(played, name, market.jobs[name].truth.concurrency) for name in played.faced)


def pays_for_rounds_used(factory: Factory, market: CheckMarket) -> int:
    """The declared durations of a job do not change the price of its rounds (menus at birth)."""
    seen = 0
    for version in (market, market.hidden()):
        played = play(factory, version, faced=True)
        faced = {name: menu for name, menu in played.faced.items() if isinstance(menu, tuple)}
        for name in faced:
            seen += _check_quote(played, name, version.jobs[name].truth.concurrency)
        for place, name in enumerate(faced):
            truth = version.jobs[name].truth
            report = ScaleDuration((0.5, 2.0)[(place + market.seed) % 2]).report(truth, market.public)
            if place % 3 == market.seed % 3 and report != truth:
                lied = play(factory, version, faced=True, lies={name: report})
                seen += _check_quote(lied, name, report.concurrency)
    return seen


def _check_quote(played: Transcript, name: Any, width: int) -> int:
    """Raise unless a job that completes pays what it was quoted for ``width`` nodes; return how often it did."""
    checked = 0
    starts = [event.round for event in played.events if event.job == name and event.kind is EventKind.START]
    for event in played.events:
        if event.job == name and event.kind is EventKind.COMPLETE and event.completion is not None:
            start = starts[-1]
            expected = announced_price(played.faced[name], width, start, event.completion - start, event.payment)
            if not np.isfinite(expected):
                continue  # not on sale for so many rounds: no price was announced
            checked += 1
            if not abs(expected - event.payment) <= TOLERANCE:
                raise Broken(f"job {name!r} pays {event.payment:g}, its menu said {expected:g}")
    return checked


def own_menu(factory: Factory, market: CheckMarket) -> int:
    """The menu of an owner is the same for all its reports, bit for bit; and its payment equals the quote."""
    honest, asked = play(factory, market, faced=True), 0
    if not honest.faced:
        return 0
    at_arrival = not isinstance(next(iter(honest.faced.values())), tuple)
    for version in (market, market.hidden()) if at_arrival else (market,):
        honest = play(factory, version, faced=True)
        rng = np.random.default_rng([13, market.seed])
        name = list(honest.faced)[int(rng.integers(len(honest.faced)))]
        for words, report in lies_of(version.jobs[name].truth, market.public, LIES, rng):
            lied = play(factory, version, faced=True, lies={name: report})
            moved = difference(honest.faced[name], lied.faced.get(name))
            if moved is not None:
                raise Broken(f"job {name!r} {words}, and faces another menu: {moved}")
            _check_quote(lied, name, report.concurrency)
            asked += 1
    return asked


def best_entry(factory: Factory, market: CheckMarket) -> int:
    """A job that reports truly gets the entry of its menu at arrival that is best for it."""
    played, applied = play(factory, market, faced=True), 0
    for name, menu in played.faced.items():
        if isinstance(menu, tuple) or not hasattr(menu, "prices"):
            continue
        applied, job = applied + 1, market.jobs[name]
        best, words = best_entry_of(menu, job.truth, job.duration, market.public)
        ends = [e for e in played.events if e.job == name and e.kind is EventKind.COMPLETE and e.completion is not None]
        got = sum(float(job.truth.value(e.completion)) - e.payment for e in ends if e.completion is not None)
        if got < best - TOLERANCE:
            raise Broken(f"job {name!r} gains {got:g}, and {words}, which gains {best:g}")
    return applied


def menus_grow(factory: Factory, market: CheckMarket) -> int:
    """Prices do not fall from one announcement to the next, nor in concurrency or duration."""
    return _tables_grow(factory, market, "price", in_time=True)


def failures_grow(factory: Factory, market: CheckMarket) -> int:
    """Estimates of failure do not fall in concurrency or duration."""
    return _tables_grow(factory, market, "failure", in_time=False)


def _tables_grow(factory: Factory, market: CheckMarket, what: str, *, in_time: bool) -> int:
    tables = play(factory, market, surfaces=what).surfaces
    before: Any = None
    for now, surface in tables:  # (widths, starts, durations), starts in rounds 1 .. horizon; NaN: not announced
        with np.errstate(invalid="ignore"):
            if (np.diff(surface, axis=0) < -TOLERANCE).any():
                raise Broken(f"in round {now} a {what} falls with the concurrency")
            if (np.diff(surface, axis=2) < -TOLERANCE).any():
                raise Broken(f"in round {now} a {what} falls with the duration")
            if in_time and before is not None and (surface < before - TOLERANCE).any():
                raise Broken(f"in round {now} a {what} is lower than it was announced before")
        before = surface
    return len(tables)
