"""Checks that any mechanism can be put through from its own test suite.

In the spirit of scikit-learn's estimator checks: a named list, each check an experiment on small random
markets that are the same for the same seed. A mechanism states which checks it does not claim, with a
class attribute ``does_not_claim`` or for one call with ``except_for``; the report lists what passed,
what failed, with the market that shows it, and what was not claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.forwarding import as_mechanism
from marketsched.mechanisms.legal import Count, Positive, Seed, legal
from marketsched.truthfulness.checks import menu_checks, run_checks, state_checks
from marketsched.truthfulness.checks.check_markets import (
    SIZES,
    CheckMarket,
    Factory,
    check_market,
    contested_market,
    tried_builder,
)
from marketsched.truthfulness.checks.check_report import Broken, CheckReport, CheckResult, MechanismCheckError

LATER, ARRIVAL = "later jobs change nothing", "reports count from the arrival on"
CALL_SECONDS = 60.0  # a call of a mechanism; kernels are compiled in the first ones


@legal
def check_mechanism(
    factory: str | Factory,
    *,
    except_for: Mapping[str, str] | None = None,
    n_markets: Count = 20,
    seed: Seed = 0,
    call_seconds: Positive = CALL_SECONDS,
) -> CheckReport:
    """Put the mechanisms that ``factory`` builds through every check.

    Parameters
    ----------
    factory : str, class, or function
        A name of `mechanism_names`, or what ``factory(capacity=, horizon=, max_concurrency=, max_duration=, max_value=,
        max_delay=, rng=)`` builds a fresh mechanism with, in round 1. ``rng`` is a generator, the source of all its
        draws; who draws nothing need not take it.
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
        A mechanism that raises, or answers too often, fails the check at hand; the others go on. Every result states
        how often its case occurred; a check "does not apply" where it never did.

    Raises
    ------
    InvalidParameterError
        If a check is not known, or the mechanism cannot be built.

    Examples
    --------
    >>> report = check_mechanism("posted-price", n_markets=3)
    >>> len(report.failed), report["capacity is held"].outcome
    (0, 'passed')
    """
    factory = tried_builder(factory, SIZES)
    excused = {**_not_claimed(factory, seed), **(except_for or {})}
    for name in excused:
        if name not in CHECKS:
            raise InvalidParameterError(f"except_for: {name!r} is no check: expected some of {', '.join(CHECKS)}")
    with calls_end_within(call_seconds):
        return CheckReport(tuple(_result(name, factory, excused, n_markets, seed) for name in CHECKS))


def mechanism_checks(
    factory: str | Factory, *, n_markets: int = 20, seed: int = 0, call_seconds: float = CALL_SECONDS
) -> list[tuple[str, Callable[[], None]]]:
    """Return (name, function that raises ``MechanismCheckError``) for each check, to parametrise a test with.

    Examples
    --------
    >>> from marketsched.mechanisms import get_mechanism
    >>> checks = mechanism_checks(lambda **sizes: get_mechanism("first-come", price=0.5, **sizes), n_markets=1)
    >>> name, check = checks[0]
    >>> check()  # raises if the mechanism fails it
    """
    build = tried_builder(factory, SIZES)

    def run(name: str) -> None:
        with calls_end_within(call_seconds):
            result = _result(name, build, _not_claimed(build, seed), n_markets, seed)
        if result.outcome == "failed":
            raise MechanismCheckError(f"{name}: {result.detail}")

    return [(name, partial(run, name)) for name in CHECKS]


def _not_claimed(factory: Factory, seed: int) -> dict[str, str]:
    """Return the checks that the mechanism does not claim to pass, and why."""
    mechanism = as_mechanism(factory(**SIZES, rng=np.random.default_rng(seed)))
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


# Each raises Broken, or returns how often what it looks for happened.
Check = Callable[[Factory, CheckMarket], int]

CHECKS: dict[str, tuple[Check, str]] = {  # and what is counted
    "capacity is held": (run_checks.capacity, "rounds with nodes busy"),
    "events are in order": (run_checks.events, "events"),
    "pays on completion only": (run_checks.pays_on_completion, "events that are no completion"),
    "pays nothing when evicted": (run_checks.evicted_pay_nothing, "evictions"),
    "pays at most the declared value": (run_checks.rational, "completions"),
    "pays what the menu said": (menu_checks.pays_the_menu, "completions of jobs that faced a menu"),
    "pays for the rounds used": (menu_checks.pays_for_rounds_used, "completions at a price of a menu at birth"),
    "its own report moves no menu": (menu_checks.own_menu, "reports asked about the menu they face"),
    "gives the best entry of the menu at arrival": (menu_checks.best_entry, "jobs with a menu at arrival"),
    "prices grow in time, width and length": (menu_checks.menus_grow, "tables of prices"),
    "failure estimates grow in width and length": (menu_checks.failures_grow, "tables of estimates"),
    ARRIVAL: (state_checks.reads_at_arrival, "reports put in the place of others at the arrival"),
    LATER: (state_checks.later_jobs, "fates compared with those without later jobs"),
    "quotes change nothing": (state_checks.quotes_change_nothing, "quotes"),
    "plays whole markets as round by round": (state_checks.plays_whole_markets, "events of markets played whole"),
    "same seed, same outcome": (state_checks.repeats, "events played twice"),
    "pickles": (state_checks.pickles, "events after being pickled"),
    "reports are left unchanged": (state_checks.input_unchanged, "reports"),
    "wrong input is refused": (state_checks.refuses, "wrong inputs"),
}
