"""Checks of a run: nodes in use, order of events, the most that a job pays."""

from __future__ import annotations

from typing import Any

import numpy as np

from marketsched.mechanisms.mechanism import EventKind
from marketsched.truthfulness.checks.check_markets import TOLERANCE, CheckMarket, Factory, play
from marketsched.truthfulness.checks.check_report import Broken

_AFTER = {EventKind.START: "running", EventKind.REQUEUE: "requeued"}  # what a job is after an event; else gone


def capacity(factory: Factory, market: CheckMarket) -> int:
    """No round runs more nodes than there are."""
    loads = play(factory, market).loads
    for now, load in enumerate(loads, 1):
        if load > market.sizes["capacity"]:
            raise Broken(f"round {now} runs {load} nodes of {market.sizes['capacity']}")
    return sum(load > 0 for load in loads)


def events(factory: Factory, market: CheckMarket) -> int:
    """Every job runs at most once at a time, after its arrival, and ends at most once."""
    state: dict[Any, str] = {}
    events = play(factory, market).events
    for event in events:
        before, kind = state.get(event.job, "new"), event.kind
        legal = {
            EventKind.START: before in ("new", "requeued"),
            EventKind.REQUEUE: before == "running",
            EventKind.COMPLETE: before == "running",
            EventKind.DROP: before == "new",
            EventKind.CANCEL: before == "new",
            EventKind.EVICT: before in ("running", "requeued"),
        }[kind]
        if not legal:
            raise Broken(f"{kind.value} of job {event.job!r} in round {event.round}, which is {before}")
        arrival = market.jobs[event.job].arrival
        if kind is EventKind.START and (arrival is None or event.round < arrival):
            raise Broken(f"job {event.job!r} starts in round {event.round}, before it arrives")
        state[event.job] = _AFTER.get(kind, "gone")
    return len(events)


def pays_on_completion(factory: Factory, market: CheckMarket) -> int:
    """Only completions are charged, and no charge is negative."""
    others = 0
    for event in play(factory, market).events:
        if event.kind is not EventKind.COMPLETE:
            others += 1
            if event.payment != 0:
                raise Broken(f"job {event.job!r} pays {event.payment:g} on {event.kind.value}")
        if event.payment < 0 or not np.isfinite(event.payment):
            raise Broken(f"job {event.job!r} pays {event.payment:g}")
    return others


def evicted_pay_nothing(factory: Factory, market: CheckMarket) -> int:
    """Who is evicted pays nothing, gets nothing back, and neither pays later."""
    evicted = set()
    for event in play(factory, market).events:
        if event.kind is EventKind.EVICT:
            evicted.add(event.job)
        if event.job in evicted and event.payment != 0:
            raise Broken(f"job {event.job!r}, which was evicted, pays {event.payment:g}")
    return len(evicted)


def rational(factory: Factory, market: CheckMarket) -> int:
    """No job pays more than it declared its completion to be worth."""
    completed = 0
    for event in play(factory, market).events:
        if event.kind is EventKind.COMPLETE and event.completion is not None:
            completed += 1
            worth = float(market.jobs[event.job].truth.value(event.completion))
            if event.payment > worth + TOLERANCE:
                raise Broken(f"job {event.job!r} pays {event.payment:g} for what it declared to be worth {worth:g}")
    return completed
