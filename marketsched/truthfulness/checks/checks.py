"""Checks that any mechanism can be put through from its own test suite.

In the spirit of scikit-learn's estimator checks: a named list, each check an experiment on small random
markets that are the same for the same seed. A mechanism says which checks it does not claim, with a
class attribute ``does_not_claim`` or for one call with ``except_for``; the report lists what passed,
what failed, with the market that shows it, and what was not claimed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within
from marketsched.agents.lies import ScaleDuration
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.mechanisms.forwarding import as_mechanism
from marketsched.mechanisms.legal import Count, Positive, Seed, legal
from marketsched.mechanisms.mechanism import EventKind, Mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.truthfulness.certificates.arrival_certificate import best_entry_of
from marketsched.truthfulness.certificates.menus import announced_price, difference, lies_of
from marketsched.truthfulness.checks.check_markets import (
    SIZES,
    CheckMarket,
    Transcript,
    check_market,
    contested_market,
    play,
)
from marketsched.truthfulness.checks.check_report import Broken, CheckReport, CheckResult, MechanismCheckError

LATER = "later jobs change nothing"
CALL_SECONDS = 60.0  # a call of a mechanism; kernels are compiled in the first ones
TOLERANCE = 1e-9  # credits
LIES = 3  # of one owner of each market, that are asked whether they move its menu

Factory = Callable[..., Mechanism]


@legal
def check_mechanism(
    factory: Factory,
    *,
    except_for: Mapping[str, str] | None = None,
    n_markets: Count = 20,
    seed: Seed = 0,
    call_seconds: Positive = CALL_SECONDS,
) -> CheckReport:
    """Put the mechanisms that ``factory`` builds through every check.

    Parameters
    ----------
    factory : function
        ``factory(capacity=, horizon=, max_concurrency=, max_duration=, max_value=, max_delay=, rng=)``
        returns a fresh mechanism, in round 1. ``rng`` is a generator, the source of all its draws.
    except_for : mapping of str to str, optional
        Checks the mechanism does not claim, and why. Its attribute ``does_not_claim``, a mapping or a
        set of names, is added; so is "later jobs change nothing" where it does not state that by
        ``later_jobs_change_nothing``.
    n_markets : int
        Random markets per check, >= 1, of each of two kinds: drawn ones, and contested ones, in which jobs are evicted.
    seed : int
        Of the markets, and of the mechanism's generator.
    call_seconds : float
        How long one call of a mechanism may take; one that takes longer is interrupted, and fails the check at hand
        (later ones then have a tenth of it). Not in force on Windows, nor outside of the main thread.

    Returns
    -------
    CheckReport
        A mechanism that raises, or answers too often, fails the check at hand; the others go on. Every result says
        how often what it looks for happened; a check "does not apply" where it never did.

    Raises
    ------
    InvalidParameterError
        If a check is not known.

    Examples
    --------
    >>> from marketsched.mechanisms import get_mechanism
    >>> report = check_mechanism(lambda **sizes: get_mechanism("posted-price", **sizes), n_markets=3)
    >>> len(report.failed), report["capacity is held"].outcome
    (0, 'passed')
    """
    excused = {**_not_claimed(factory, seed), **(except_for or {})}
    for name in excused:
        if name not in CHECKS:
            raise InvalidParameterError(f"except_for: {name!r} is no check: expected some of {', '.join(CHECKS)}")
    with calls_end_within(call_seconds):
        return CheckReport(tuple(_result(name, factory, excused, n_markets, seed) for name in CHECKS))


def mechanism_checks(
    factory: Factory, *, n_markets: int = 20, seed: int = 0, call_seconds: float = CALL_SECONDS
) -> list[tuple[str, Callable[[], None]]]:
    """Return (name, function that raises ``MechanismCheckError``) for each check, to parametrise a test with.

    Examples
    --------
    >>> from marketsched.mechanisms import get_mechanism
    >>> checks = mechanism_checks(lambda **sizes: get_mechanism("first-come", price=0.5, **sizes), n_markets=1)
    >>> name, check = checks[0]
    >>> check()  # raises if the mechanism fails it
    """

    def run(name: str) -> None:
        with calls_end_within(call_seconds):
            result = _result(name, factory, _not_claimed(factory, seed), n_markets, seed)
        if result.outcome == "failed":
            raise MechanismCheckError(f"{name}: {result.detail}")

    return [(name, partial(run, name)) for name in CHECKS]


def _not_claimed(factory: Factory, seed: int) -> dict[str, str]:
    """Return the checks that the mechanism does not claim to pass, and why."""
    try:
        mechanism = as_mechanism(factory(**SIZES, rng=np.random.default_rng(seed)))
    except Exception:  # each check says what is wrong
        return {}
    claims = mechanism.does_not_claim
    excused = {} if mechanism.later_jobs_change_nothing else {LATER: "the mechanism has no later_jobs_change_nothing"}
    return excused | dict(claims if isinstance(claims, Mapping) else dict.fromkeys(claims, "says the mechanism"))


def _result(name: str, factory: Factory, excused: Mapping[str, str], n_markets: int, seed: int) -> CheckResult:
    if name in excused:
        return CheckResult(name, "not claimed", excused[name])
    check, what = CHECKS[name]
    seen = 0
    for market in _markets(n_markets, seed):
        try:
            seen += check(factory, market)
        except (Broken, CallDidNotEnd) as error:
            return CheckResult(name, "failed", f"market {market.seed}: {error}", seen)
        except Exception as error:  # a mechanism may raise anything; that is a finding, not our fault
            return CheckResult(name, "failed", f"market {market.seed}: {type(error).__name__}: {error}", seen)
    if not seen:
        return CheckResult(name, "does not apply", f"no {what} in {n_markets} markets")
    return CheckResult(name, "passed", f"{seen:,} {what}", seen)


def _markets(n_markets: int, seed: int) -> Iterator[CheckMarket]:
    """Yield the markets, of both kinds in turn."""
    for i in range(n_markets):
        yield check_market(seed + i)
        yield contested_market(seed + i)


# -- the checks: each raises Broken, or returns how often what it looks for happened ----------------------


_AFTER = {EventKind.START: "running", EventKind.REQUEUE: "requeued"}  # what a job is after an event; else gone


def _capacity(factory: Factory, market: CheckMarket) -> int:
    loads = play(factory, market).loads
    for now, load in enumerate(loads, 1):
        if load > market.sizes["capacity"]:
            raise Broken(f"round {now} runs {load} nodes of {market.sizes['capacity']}")
    return sum(load > 0 for load in loads)


def _events(factory: Factory, market: CheckMarket) -> int:
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


def _pays_on_completion(factory: Factory, market: CheckMarket) -> int:
    others = 0
    for event in play(factory, market).events:
        if event.kind is not EventKind.COMPLETE:
            others += 1
            if event.payment != 0:
                raise Broken(f"job {event.job!r} pays {event.payment:g} on {event.kind.value}")
        if event.payment < 0 or not np.isfinite(event.payment):
            raise Broken(f"job {event.job!r} pays {event.payment:g}")
    return others


def _evicted_pay_nothing(factory: Factory, market: CheckMarket) -> int:
    """Who is evicted pays nothing, gets nothing back, and neither pays later."""
    evicted = set()
    for event in play(factory, market).events:
        if event.kind is EventKind.EVICT:
            evicted.add(event.job)
        if event.job in evicted and event.payment != 0:
            raise Broken(f"job {event.job!r}, which was evicted, pays {event.payment:g}")
    return len(evicted)


def _rational(factory: Factory, market: CheckMarket) -> int:
    completed = 0
    for event in play(factory, market).events:
        if event.kind is EventKind.COMPLETE and event.completion is not None:
            completed += 1
            worth = float(market.jobs[event.job].truth.value(event.completion))
            if event.payment > worth + TOLERANCE:
                raise Broken(f"job {event.job!r} pays {event.payment:g} for what it declared to be worth {worth:g}")
    return completed


def _pays_the_menu(factory: Factory, market: CheckMarket) -> int:
    played = play(factory, market, faced=True)
    return sum(_check_quote(played, name, market.jobs[name].truth.concurrency) for name in played.faced)


def _pays_for_rounds_used(factory: Factory, market: CheckMarket) -> int:
    """What a job declared its durations to be changes nothing in what its rounds cost (menus at birth)."""
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


def _own_menu(factory: Factory, market: CheckMarket) -> int:
    """Whatever one owner reports, its menu is the same, bit for bit; and what it pays was quoted there."""
    told, asked = play(factory, market, faced=True), 0
    if not told.faced:
        return 0
    at_arrival = not isinstance(next(iter(told.faced.values())), tuple)
    for version in (market, market.hidden()) if at_arrival else (market,):
        told = play(factory, version, faced=True)
        rng = np.random.default_rng([13, market.seed])
        name = list(told.faced)[int(rng.integers(len(told.faced)))]
        for words, report in lies_of(version.jobs[name].truth, market.public, LIES, rng):
            lied = play(factory, version, faced=True, lies={name: report})
            moved = difference(told.faced[name], lied.faced.get(name))
            if moved is not None:
                raise Broken(f"job {name!r} {words}, and faces another menu: {moved}")
            _check_quote(lied, name, report.concurrency)
            asked += 1
    return asked


def _best_entry(factory: Factory, market: CheckMarket) -> int:
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


def _menus_grow(factory: Factory, market: CheckMarket) -> int:
    """Prices do not fall from one announcement to the next, nor in concurrency or duration."""
    return _tables_grow(factory, market, "price", in_time=True)


def _failures_grow(factory: Factory, market: CheckMarket) -> int:
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


def _later_jobs(factory: Factory, market: CheckMarket) -> int:
    """What becomes of a job does not depend on those submitted later (Lemma 3.1), in the same round, too."""
    names, full = list(market.jobs), play(factory, market)
    cuts = sorted({max(1, len(names) // 3), max(1, len(names) // 2), len(names) - 1})
    for cut in cuts:
        short = play(factory, market.without(names[cut:]))
        for name in names[:cut]:
            told, alone = _fate(full, name), _fate(short, name)
            if told != alone:
                raise Broken(f"job {name!r}, one of the first {cut}: {told} with later jobs, {alone} without")
    return sum(cuts)


def _fate(played: Transcript, name: Any) -> list[tuple[int, str, float]]:
    return [(e.round, e.kind.value, round(e.payment, 9)) for e in played.events if e.job == name]


def _quotes_change_nothing(factory: Factory, market: CheckMarket) -> int:
    """A market in which every owner asks for quotes before it submits ends as one in which none does."""
    plain, asked = play(factory, market), play(factory, market, quotes=QUOTES)
    if plain.events != asked.events:
        pairs = zip(plain.events, asked.events, strict=False)
        first = next(
            (f"{one!r} without, {other!r} with quotes" for one, other in pairs if one != other), "other events"
        )
        raise Broken(f"quotes change the market: {first}")
    return QUOTES * len(market.jobs)


def _repeats(factory: Factory, market: CheckMarket) -> int:
    first, second = play(factory, market), play(factory, market)
    if first.events != second.events:
        raise Broken("two plays with the same seed end differently")
    return len(first.events)


def _pickles(factory: Factory, market: CheckMarket) -> int:
    plain, copied = play(factory, market), play(factory, market, pickle_in=market.sizes["horizon"] // 2)
    if plain.events != copied.events:
        raise Broken("it goes on differently after being pickled")
    return sum(event.round >= market.sizes["horizon"] // 2 for event in plain.events)


def _input_unchanged(factory: Factory, market: CheckMarket) -> int:
    before = pickle.dumps([job.truth for job in market.jobs.values()])
    play(factory, market)
    if pickle.dumps([job.truth for job in market.jobs.values()]) != before:
        raise Broken("a report was changed")
    return len(market.jobs)


def _refuses(factory: Factory, market: CheckMarket) -> int:
    """What is wrong is refused with an error of the family, and leaves no trace."""
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


QUOTES = 2  # asked for before each submission

Check = Callable[[Factory, CheckMarket], int]

CHECKS: dict[str, tuple[Check, str]] = {  # and what is counted
    "capacity is held": (_capacity, "rounds with nodes busy"),
    "events are in order": (_events, "events"),
    "pays on completion only": (_pays_on_completion, "events that are no completion"),
    "pays nothing when evicted": (_evicted_pay_nothing, "evictions"),
    "pays at most the declared value": (_rational, "completions"),
    "pays what the menu said": (_pays_the_menu, "completions of jobs that faced a menu"),
    "pays for the rounds used": (_pays_for_rounds_used, "completions at a price of a menu at birth"),
    "its own report moves no menu": (_own_menu, "reports asked about the menu they face"),
    "gives the best entry of the menu at arrival": (_best_entry, "jobs with a menu at arrival"),
    "prices grow in time, width and length": (_menus_grow, "tables of prices"),
    "failure estimates grow in width and length": (_failures_grow, "tables of estimates"),
    LATER: (_later_jobs, "fates compared with those without later jobs"),
    "quotes change nothing": (_quotes_change_nothing, "quotes"),
    "same seed, same outcome": (_repeats, "events played twice"),
    "pickles": (_pickles, "events after being pickled"),
    "reports are left unchanged": (_input_unchanged, "reports"),
    "wrong input is refused": (_refuses, "wrong inputs"),
}
