"""Checks of a mechanism's state: later jobs, quotes, copies, reports, wrong input."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from marketsched.agents.referee import compare_plays
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.mechanisms.forwarding import as_mechanism
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.truthfulness.certificates.menus import lies_of
from marketsched.truthfulness.checks.check_markets import CheckMarket, Factory, Transcript, play
from marketsched.truthfulness.checks.check_report import Broken

LIES = 3  # of one owner of each market, that are put in the place of its truth
QUOTES = 2  # asked for before each submission
ROUNDS_AT_A_TIME = 5  # of a market that is played in pieces


def reads_at_arrival(factory: Factory, market: CheckMarket) -> int:
    """A report that replaces the truth at the arrival of its job has the same effect as from the start."""
    mechanism = as_mechanism(factory(**market.sizes, rng=np.random.default_rng(market.seed)))
    if mechanism.reads_reports != "arrival":
        return 0
    rng, compared = np.random.default_rng([17, market.seed]), 0
    last = market.sizes["horizon"]
    ahead = [n for n, job in market.jobs.items() if job.arrival is not None and job.truth.birth < job.arrival <= last]
    for name in rng.permutation(ahead)[:LIES].tolist():
        for words, report in lies_of(market.jobs[name].truth, market.public, LIES, rng):
            submitted = play(factory, market, lies={name: report})
            restated = play(factory, market, restated={name: report})
            if submitted.events != restated.events:
                pairs = zip(submitted.events, restated.events, strict=False)
                first = next((f"{one!r}, not {other!r}" for one, other in pairs if one != other), "other events")
                raise Broken(f"job {name!r} {words}, which counts before its arrival: {first}")
            compared += 1
    return compared


def later_jobs(factory: Factory, market: CheckMarket) -> int:
    """What becomes of a job does not depend on those submitted later (Lemma 3.1), in the same round, too."""
    names, full = list(market.jobs), play(factory, market)
    cuts = sorted({max(1, len(names) // 3), max(1, len(names) // 2), len(names) - 1})
    for cut in cuts:
        short = play(factory, market.without(names[cut:]))
        for name in names[:cut]:
            among, alone = _fate(full, name), _fate(short, name)
            if among != alone:
                raise Broken(f"job {name!r}, one of the first {cut}: {among} with later jobs, {alone} without")
    return sum(cuts)


def _fate(played: Transcript, name: Any) -> list[tuple[int, str, float]]:
    return [(e.round, e.kind.value, round(e.payment, 9)) for e in played.events if e.job == name]


def quotes_change_nothing(factory: Factory, market: CheckMarket) -> int:
    """A market in which every owner gets quotes before it submits ends like one without quotes."""
    plain, asked = play(factory, market), play(factory, market, quotes=QUOTES)
    if plain.events != asked.events:
        pairs = zip(plain.events, asked.events, strict=False)
        first = next(
            (f"{one!r} without, {other!r} with quotes" for one, other in pairs if one != other), "other events"
        )
        raise Broken(f"quotes change the market: {first}")
    return QUOTES * len(market.jobs)


def plays_whole_markets(factory: Factory, market: CheckMarket) -> int:
    """A `play` of one's own makes of many rounds what the mechanism makes of each round by itself."""

    def make(market: CheckMarket) -> MarketSetup:
        mechanism = as_mechanism(factory(**market.sizes, rng=np.random.default_rng(market.seed)))
        sizes = {name: market.sizes[name] for name in ("capacity", "horizon", "max_delay")}
        sizes["capacity"] = max(sizes["capacity"], getattr(mechanism, "capacity", 0))  # whether it is held, others say
        return MarketSetup("a check", tuple(market.jobs.values()), mechanism, **sizes)

    if type(make(market).mechanism).play in (Mechanism.play, ArrivalMarket.play):  # none, or that of its rounds
        return 0
    events = 0
    variants = (
        ("", market, None),
        (", a few rounds at a time,", market, ROUNDS_AT_A_TIME),
        (", durations hidden,", market.hidden(), None),
        (", with runs at the end,", market.cut(), None),
    )
    for kind, variant, together in variants:
        try:
            compared = compare_plays(partial(make, variant), together)
        except InvalidParameterError:
            if not kind:
                raise
            continue  # it takes no such jobs, which is for others to say
        if compared.difference:
            raise Broken(f"played whole{kind} it differs from round by round: {compared.difference}")
        events += compared.events if compared.whole else 0
    return events


def repeats(factory: Factory, market: CheckMarket) -> int:
    """Two plays with one seed end the same."""
    first, second = play(factory, market), play(factory, market)
    if first.events != second.events:
        raise Broken("two plays with the same seed end differently")
    return len(first.events)


def pickles(factory: Factory, market: CheckMarket) -> int:
    """A copy by pickle, made in the middle, goes on as the original does."""
    plain, copied = play(factory, market), play(factory, market, pickle_in=market.sizes["horizon"] // 2)
    if plain.events != copied.events:
        raise Broken("it goes on differently after being pickled")
    return sum(event.round >= market.sizes["horizon"] // 2 for event in plain.events)


def input_unchanged(factory: Factory, market: CheckMarket) -> int:
    """The reports that it was given are as they were."""
    before = pickle.dumps([job.truth for job in market.jobs.values()])
    play(factory, market)
    if pickle.dumps([job.truth for job in market.jobs.values()]) != before:
        raise Broken("a report was changed")
    return len(market.jobs)


def refuses(factory: Factory, market: CheckMarket) -> int:
    """Illegal input is refused with an error of the family, and changes nothing."""
    wrong: list[Callable[[Mechanism], Any]] = [
        lambda m: m.arrive("nobody"),
        lambda m: m.complete("nobody"),
        lambda m: m.submit("late", _born(2)),
        lambda m: m.submit("wide", _born(1, market.sizes["max_concurrency"] + 1)),
    ]

    def bother(mechanism: Mechanism) -> None:
        for i, call in enumerate(wrong):
            try:
                call(mechanism)
            except MarketschedError:
                continue
            raise Broken(
                f"it took {('an unknown arrival', 'an unknown completion', 'a future birth', 'a job too wide')[i]}"
            )

    if play(factory, market, before_play=bother).events != play(factory, market).events:
        raise Broken("what it refused left a trace")
    return len(wrong)


def _born(birth: int, nodes: int = 1) -> StatementOfWork:
    return StatementOfWork(birth, nodes, DeadlineValue(1.0, birth + 1), [(birth, 1, 1.0)])
