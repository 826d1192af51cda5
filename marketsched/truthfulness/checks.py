"""Checks that any mechanism can be put through from its own test suite.

In the spirit of scikit-learn's estimator checks: a named list, each check an experiment on small random
markets that are the same for the same seed. A mechanism says which checks it does not claim, with a
class attribute ``does_not_claim`` or for one call with ``except_for``; the report lists what passed,
what failed, with the market that shows it, and what was not claimed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from marketsched.mechanisms.checks import whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.mechanisms.mechanism import EventKind, Mechanism
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.arrival_certificate import best_entry_of
from marketsched.truthfulness.check_markets import SIZES, CheckMarket, Played, check_market, play
from marketsched.truthfulness.menus import difference, lies_of

TOLERANCE = 1e-9  # credits
LIES = 3  # of one owner of each market, that are asked whether they move its menu

Factory = Callable[..., Mechanism]
Outcome = Literal["passed", "failed", "not claimed", "does not apply"]


class MechanismCheckError(MarketschedError, AssertionError):
    """A mechanism failed a check that it claims to pass."""


class _Broken(Exception):
    """A check that failed; the message says how."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: its name, what came out, and why."""

    name: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All checks of one mechanism."""

    results: tuple[CheckResult, ...] = field(repr=False)

    def __getitem__(self, name: str) -> CheckResult:
        """Return the result of one check; KeyError: there is none of this name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"{name!r} is no check: expected one of {', '.join(each.name for each in self.results)}")

    def __iter__(self) -> Iterator[CheckResult]:
        """Go through the results of all checks."""
        return iter(self.results)

    def __len__(self) -> int:
        """Return how many checks there are."""
        return len(self.results)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if result.outcome == "failed")

    def raise_if_failed(self) -> None:
        """Raise ``MechanismCheckError`` with one line per failed check, if there is any."""
        if self.failed:
            raise MechanismCheckError("; ".join(f"{result.name}: {result.detail}" for result in self.failed))

    def __str__(self) -> str:
        """Return one line per check."""
        wide = max(len(result.name) for result in self.results)
        return "\n".join(f"{r.name:{wide}}  {r.outcome}  {r.detail}".rstrip() for r in self.results)


def check_mechanism(
    factory: Factory, *, except_for: Mapping[str, str] | None = None, n_markets: int = 20, seed: int = 0
) -> CheckReport:
    """Put the mechanisms that ``factory`` builds through every check.

    Parameters
    ----------
    factory : function
        ``factory(capacity=, horizon=, max_concurrency=, max_duration=, max_value=, max_delay=, rng=)``
        returns a fresh mechanism, in round 1. ``rng`` is a generator, the source of all its draws.
    except_for : mapping of str to str, optional
        Checks the mechanism does not claim, and why. Its attribute ``does_not_claim``, a mapping or a
        set of names, is added.
    n_markets : int
        Random markets per check, >= 1.
    seed : int
        Of the markets, and of the mechanism's generator.

    Returns
    -------
    CheckReport
        A mechanism that raises, or answers too often, fails the check at hand; the others go on.

    Raises
    ------
    InvalidParameterError
        If a number is out of range, or a check is not known.

    Examples
    --------
    >>> from marketsched.mechanisms import get_mechanism
    >>> report = check_mechanism(lambda **sizes: get_mechanism("posted-price", **sizes), n_markets=3)
    >>> len(report.failed), report["capacity is held"].outcome
    (0, 'passed')
    """
    n_markets, seed = whole_parameter("n_markets", n_markets, 1), checked_seed(seed)
    excused = dict(except_for or {})
    claims = getattr(factory(**SIZES, rng=np.random.default_rng(seed)), "does_not_claim", ())
    excused.update(claims if isinstance(claims, Mapping) else dict.fromkeys(claims, "says the mechanism"))
    for name in excused:
        if name not in CHECKS:
            raise InvalidParameterError(f"except_for: {name!r} is no check: expected some of {', '.join(CHECKS)}")
    return CheckReport(tuple(_result(name, factory, excused, n_markets, seed) for name in CHECKS))


def mechanism_checks(factory: Factory, *, n_markets: int = 20, seed: int = 0) -> list[tuple[str, Callable[[], None]]]:
    """Return (name, function that raises ``MechanismCheckError``) for each check, to parametrise a test with."""

    def run(name: str) -> None:
        result = _result(name, factory, {}, n_markets, seed)
        if result.outcome == "failed":
            raise MechanismCheckError(f"{name}: {result.detail}")

    return [(name, partial(run, name)) for name in CHECKS]


def _result(name: str, factory: Factory, excused: Mapping[str, str], n_markets: int, seed: int) -> CheckResult:
    if name in excused:
        return CheckResult(name, "not claimed", excused[name])
    applied = False
    for i in range(n_markets):
        market = check_market(seed + i)
        try:
            applied |= CHECKS[name](factory, market) is not False
        except _Broken as error:
            return CheckResult(name, "failed", f"market {seed + i}: {error}")
        except Exception as error:  # a mechanism may raise anything; that is a finding, not our fault
            return CheckResult(name, "failed", f"market {seed + i}: {type(error).__name__}: {error}")
    return CheckResult(name, "passed" if applied else "does not apply")


# -- the checks: each raises _Broken, or returns False if it has nothing to say about this mechanism -------


def _capacity(factory: Factory, market: CheckMarket) -> None:
    for now, load in enumerate(play(factory, market).loads, 1):
        if load > market.sizes["capacity"]:
            raise _Broken(f"round {now} runs {load} nodes of {market.sizes['capacity']}")


def _events(factory: Factory, market: CheckMarket) -> None:
    """Every job starts at most once, after its arrival, and ends at most once."""
    state: dict[Any, str] = {}
    for event in play(factory, market).events:
        before, kind = state.get(event.job, "new"), event.kind
        legal = {
            EventKind.START: before == "new",
            EventKind.COMPLETE: before == "running",
            EventKind.DROP: before == "new",
            EventKind.CANCEL: before == "new",
            EventKind.EVICT: before == "running",
        }[kind]
        if not legal:
            raise _Broken(f"{kind.value} of job {event.job!r} in round {event.round}, which is {before}")
        arrival = market.jobs[event.job].arrival
        if kind is EventKind.START and (arrival is None or event.round < arrival):
            raise _Broken(f"job {event.job!r} starts in round {event.round}, before it arrives")
        state[event.job] = "running" if kind is EventKind.START else "gone"


def _pays_on_completion(factory: Factory, market: CheckMarket) -> None:
    for event in play(factory, market).events:
        if event.kind is not EventKind.COMPLETE and event.payment != 0:
            raise _Broken(f"job {event.job!r} pays {event.payment:g} on {event.kind.value}")
        if event.payment < 0 or not np.isfinite(event.payment):
            raise _Broken(f"job {event.job!r} pays {event.payment:g}")


def _rational(factory: Factory, market: CheckMarket) -> None:
    for event in play(factory, market).events:
        if event.kind is EventKind.COMPLETE and event.completion is not None:
            worth = float(market.jobs[event.job].truth.value(event.completion))
            if event.payment > worth + TOLERANCE:
                raise _Broken(f"job {event.job!r} pays {event.payment:g} for what it declared to be worth {worth:g}")


def _pays_the_menu(factory: Factory, market: CheckMarket) -> bool:
    played = play(factory, market, faced=True)
    if not played.faced:
        return False
    for name in played.faced:
        _check_quote(played, name, market.jobs[name].truth.concurrency)
    return True


def _check_quote(played: Played, name: Any, width: int) -> None:
    """Raise unless a job that completes pays what it was quoted for ``width`` nodes."""
    starts = [event.round for event in played.events if event.job == name and event.kind is EventKind.START]
    for event in played.events:
        if event.job == name and event.kind is EventKind.COMPLETE and event.completion is not None:
            menu, start, used = played.faced[name], starts[0], event.completion - starts[0]
            if isinstance(menu, tuple):
                expected = float(np.asarray(menu[width - 1].price(start, used)))
            elif hasattr(menu, "prices"):
                expected = float(menu.prices(width, used, start - menu.now + 1)[-1])
            else:
                expected = menu.rate * width * used
            if not abs(expected - event.payment) <= TOLERANCE:
                raise _Broken(f"job {name!r} pays {event.payment:g}, its menu said {expected:g}")


def _own_menu(factory: Factory, market: CheckMarket) -> bool:
    """Whatever one owner reports, its menu is the same, bit for bit; and what it pays was quoted there."""
    told = play(factory, market, faced=True)
    if not told.faced:
        return False
    at_arrival = not isinstance(next(iter(told.faced.values())), tuple)
    for version in (market, market.hidden()) if at_arrival else (market,):
        told = play(factory, version, faced=True)
        rng = np.random.default_rng([13, market.seed])
        name = list(told.faced)[int(rng.integers(len(told.faced)))]
        for words, report in lies_of(version.jobs[name].truth, market.public, LIES, rng):
            lied = play(factory, version, faced=True, lies={name: report})
            moved = difference(told.faced[name], lied.faced.get(name))
            if moved is not None:
                raise _Broken(f"job {name!r} {words}, and faces another menu: {moved}")
            _check_quote(lied, name, report.concurrency)
    return True


def _best_entry(factory: Factory, market: CheckMarket) -> bool:
    """A job that reports truly gets the entry of its menu at arrival that is best for it."""
    played, applied = play(factory, market, faced=True), False
    for name, menu in played.faced.items():
        if isinstance(menu, tuple) or not hasattr(menu, "prices"):
            continue
        applied, job = True, market.jobs[name]
        best, words = best_entry_of(menu, job.truth, job.duration, market.public)
        ends = [e for e in played.events if e.job == name and e.kind is EventKind.COMPLETE and e.completion is not None]
        got = sum(float(job.truth.value(e.completion)) - e.payment for e in ends if e.completion is not None)
        if got < best - TOLERANCE:
            raise _Broken(f"job {name!r} gains {got:g}, and {words}, which gains {best:g}")
    return applied


def _menus_grow(factory: Factory, market: CheckMarket) -> bool:
    """Prices do not fall from one announcement to the next, nor in concurrency or duration."""
    return _tables_grow(factory, market, "price", in_time=True)


def _failures_grow(factory: Factory, market: CheckMarket) -> bool:
    return _tables_grow(factory, market, "failure", in_time=False)


def _tables_grow(factory: Factory, market: CheckMarket, what: str, *, in_time: bool) -> bool:
    tables = play(factory, market, surfaces=what).surfaces
    before: Any = None
    for now, surface in tables:  # (widths, starts, durations), starts in rounds 1 .. horizon; NaN: not announced
        with np.errstate(invalid="ignore"):
            if (np.diff(surface, axis=0) < -TOLERANCE).any():
                raise _Broken(f"in round {now} a {what} falls with the concurrency")
            if (np.diff(surface, axis=2) < -TOLERANCE).any():
                raise _Broken(f"in round {now} a {what} falls with the duration")
            if in_time and before is not None and (surface < before - TOLERANCE).any():
                raise _Broken(f"in round {now} a {what} is lower than it was announced before")
        before = surface
    return bool(tables)


def _later_jobs(factory: Factory, market: CheckMarket) -> None:
    """What becomes of the jobs born so far does not depend on those submitted later (Lemma 3.1)."""
    births = sorted({job.truth.birth for job in market.jobs.values()})
    last = births[len(births) // 2]
    early = market.without(name for name, job in market.jobs.items() if job.truth.birth > last)
    full, short = play(factory, market), play(factory, early)
    for name in early.jobs:
        told, alone = _fate(full, name), _fate(short, name)
        if told != alone:
            raise _Broken(f"job {name!r}, born by round {last}: {told} with later jobs, {alone} without")


def _fate(played: Played, name: Any) -> list[tuple[int, str, float]]:
    return [(e.round, e.kind.value, round(e.payment, 9)) for e in played.events if e.job == name]


def _repeats(factory: Factory, market: CheckMarket) -> None:
    first, second = play(factory, market), play(factory, market)
    if first.events != second.events:
        raise _Broken("two plays with the same seed end differently")


def _pickles(factory: Factory, market: CheckMarket) -> None:
    plain, copied = play(factory, market), play(factory, market, pickle_in=market.sizes["horizon"] // 2)
    if plain.events != copied.events:
        raise _Broken("it goes on differently after being pickled")


def _input_unchanged(factory: Factory, market: CheckMarket) -> None:
    before = pickle.dumps([job.truth for job in market.jobs.values()])
    play(factory, market)
    if pickle.dumps([job.truth for job in market.jobs.values()]) != before:
        raise _Broken("a report was changed")


def _refuses(factory: Factory, market: CheckMarket) -> None:
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
            raise _Broken(
                f"it took {('an unknown arrival', 'an unknown completion', 'a future birth', 'a job too wide')[i]}"
            )

    if play(factory, market, before_play=bother).events != play(factory, market).events:
        raise _Broken("what it refused left a trace")


def _born(birth: int, nodes: int = 1) -> StatementOfWork:
    from marketsched.mechanisms.values import DeadlineValue

    return StatementOfWork(birth, nodes, DeadlineValue(1.0, birth + 1), [(birth, 1, 1.0)])


CHECKS: dict[str, Callable[[Factory, CheckMarket], bool | None]] = {
    "capacity is held": _capacity,
    "events are in order": _events,
    "pays on completion only": _pays_on_completion,
    "pays at most the declared value": _rational,
    "pays what the menu said": _pays_the_menu,
    "its own report moves no menu": _own_menu,
    "gives the best entry of the menu at arrival": _best_entry,
    "prices grow in time, width and length": _menus_grow,
    "failure estimates grow in width and length": _failures_grow,
    "later jobs change nothing": _later_jobs,
    "same seed, same outcome": _repeats,
    "pickles": _pickles,
    "reports are left unchanged": _input_unchanged,
    "wrong input is refused": _refuses,
}
