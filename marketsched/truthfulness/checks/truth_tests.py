"""Tests of truthfulness for a mechanism's own test suite: exhaustive in tiny domains, by search beyond.

1. In each of `tiny_domains` every report of each owner is played against every profile of the others: exact, and a
   proof for that domain, where the mechanism draws nothing.
2. In markets that are drawn, the search of `audit` looks for lies that pay: exactly in each market, and on fresh worlds
   where the mechanism draws. All confirmed lies together hold with the requested confidence: a truthful mechanism fails
   with probability 1 - confidence at most, over all markets. That nothing is found there proves nothing.

Also: no owner is worse off than by staying away (on average: participation; in each case: individual rationality),
and payments never add up to less than 0. A failure names the lie, and the call that replays it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np

from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within
from marketsched.agents.lies import misreport_from
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Natural, OpenShare, Positive, Seed, Whole, legal
from marketsched.mechanisms.registry import builder_of
from marketsched.results.views import at_most, exact_amount
from marketsched.truthfulness.checks.check_markets import (
    COVERED,
    NARROW,
    Form,
    Kind,
    drawn_market,
    kinds_for,
    tried_builder,
)
from marketsched.truthfulness.checks.check_report import Broken, CheckReport, CheckResult, MechanismCheckError
from marketsched.truthfulness.checks.checks import CALL_SECONDS
from marketsched.truthfulness.checks.tiny_domains import ROUNDING, Factory, TinyPlays, largest_gain, tiny_domains
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.gain_file import gain_sentence
from marketsched.truthfulness.searches.looking import DECIDING, lies_for_worlds, look_at_hand, needs_worlds
from marketsched.truthfulness.searches.on_worlds import lies_on_worlds
from marketsched.truthfulness.searches.plays_ahead import truth_of
from marketsched.truthfulness.searches.screened import Screened
from marketsched.truthfulness.searches.screening import Screening, over_cases, over_law
from marketsched.truthfulness.sentences import lie_in_words, sentence
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.reproducible import not_reproducible

DRAWN = "truthful in drawn markets"
PER_DOMAIN = ("truthful", "participation", "individually rational", "no deficit")


def check_truthful(
    build: str | Factory,
    *,
    domains: Sequence[str] | None = None,
    n_markets: int = 10,
    plays: int = 600,
    tolerance: float = 0.0,
    confidence: float = 0.99,
    seed: int = 0,
    call_seconds: float = CALL_SECONDS,
    except_for: Mapping[str, str] | None = None,
) -> CheckReport:
    """Test whether a mechanism is truthful: exactly in tiny domains, by search in drawn markets.

    Parameters
    ----------
    build : str, class, or function
        A name, or what builds a new mechanism for sizes and ``rng`` given by name, as for `check_mechanism`.
    domains : sequence of str, optional
        Some of `tiny_domains`; by default all. ``["one round"]`` tests an auction within one round.
    n_markets : int
        Drawn markets to search, >= 0: by turns one of wide jobs, two of each owner, until the end of the horizon, one
        in which jobs come and go, and a contested one in which too much is sold; of a class whose ``truthful_hidden``
        promises anything all with hidden durations as well.
    plays : int
        Of each search, >= 100.
    tolerance : float
        Gains up to it do not count, credits.
    confidence : float
        In (0, 1): a truthful mechanism fails the search with probability 1 - confidence at most.
    seed : int
        Of the drawn markets and searches.
    call_seconds : float
        As for `check_mechanism`.
    except_for : mapping of str to str, optional
        Results that the mechanism does not claim, each with the reason.

    Returns
    -------
    CheckReport
        One result per domain and question, and `DRAWN`. If the mechanism raises an error in one, that result fails.

    Raises
    ------
    InvalidParameterError
        If a name is not known, or the mechanism cannot be built.

    Examples
    --------
    >>> report = check_truthful("pay-as-bid", domains=["one round"], n_markets=0)
    >>> report["truthful, one round"].outcome
    'failed'
    """
    checks = truthful_checks(
        build,
        domains=domains,
        n_markets=n_markets,
        plays=plays,
        tolerance=tolerance,
        confidence=confidence,
        seed=seed,
        call_seconds=call_seconds,
    )
    excused = dict(except_for or {})
    for name in excused:
        if name not in checks:
            raise InvalidParameterError(place="except_for", value=name, legal=f"some of {', '.join(checks)}")
    with calls_end_within(call_seconds):
        results = [
            CheckResult(name, "not claimed", excused[name]) if name in excused else check()
            for name, check in checks.items()
        ]
    return CheckReport(tuple(results))


@legal
def truthful_checks(
    build: str | Factory,
    *,
    domains: Sequence[str] | None = None,
    n_markets: Natural = 10,
    plays: Annotated[int, Whole(100)] = 600,
    tolerance: Amount = 0.0,
    confidence: OpenShare = 0.99,
    seed: Seed = 0,
    call_seconds: Positive = CALL_SECONDS,
) -> dict[str, Callable[[], CheckResult]]:
    """Return the checks of `check_truthful` by name, as functions to call."""
    known = tiny_domains()
    chosen = list(known) if domains is None else list(domains)
    for name in chosen:
        if name not in known:
            raise InvalidParameterError(place="domains", value=name, legal=f"some of {', '.join(known)}")
    called = repr(build) if isinstance(build, str) else getattr(build, "__name__", "")
    called = called if isinstance(build, str) or called.isidentifier() else "build"
    build = tried_builder(build, *(known[name].sizes for name in chosen))
    found: dict[str, Callable[[], CheckResult]] = {}
    for name in chosen:
        made = TinyPlays(build, known[name])
        for what, ask in zip(PER_DOMAIN, (_no_lie_pays, _participation, _rational, _no_deficit), strict=True):
            label = f"{what}, {name}"
            found[label] = partial(_result, label, called, partial(ask, made, tolerance), call_seconds)
    if n_markets:
        given = (n_markets, plays, tolerance, confidence, seed)
        found[DRAWN] = partial(_result, DRAWN, called, partial(_drawn, build, *given), call_seconds)
    return found


def _result(name: str, called: str, ask: Callable[[], tuple[str, int]], call_seconds: float) -> CheckResult:
    try:
        with calls_end_within(call_seconds):
            detail, seen = ask()
    except (Broken, CallDidNotEnd) as error:
        return CheckResult(name, "failed", str(error).replace("(build, ", f"({called}, "))
    except Exception as error:  # a mechanism may raise anything; that is a finding, not our fault
        return CheckResult(name, "failed", f"{type(error).__name__}: {error}")
    return CheckResult(name, "passed" if seen else "does not apply", detail, seen)


# -- tiny domains: each returns what was seen, or raises Broken --------------------------------------------


def _no_lie_pays(plays: TinyPlays, tolerance: float) -> tuple[str, int]:
    """The largest gain of all lies of all owners in all profiles."""
    domain = plays.domain
    best, asked = largest_gain(plays, tolerance)
    if best is not None:
        raise Broken(
            f"owner {best.owner} {lie_in_words(best.truth, best.report)}, gains {exact_amount(best.gain)} credits; "
            f"replay_tiny(build, {domain.name!r}, {best.owner}, {best.profile}, {best.lie})"
        )
    if plays.drew:
        return f"no lie of {asked:,} pays for one stream of the mechanism's draws: no proof", asked
    return f"no lie of {asked:,} pays, in {domain.n_profiles:,} profiles: a proof for this domain", asked


def _participation(plays: TinyPlays, tolerance: float) -> tuple[str, int]:
    asked = 0
    for profile in plays.domain.profiles():
        for i in range(len(profile)):
            asked += 1
            utility = plays.utility(i, profile[i], profile)
            if utility < -tolerance - ROUNDING:
                raise Broken(
                    f"owner {i} gets {at_most(utility, 10)} credits on average for the truth in profile {profile}"
                )
    return f"{asked:,} owners do no worse than by staying away", asked


def _rational(plays: TinyPlays, tolerance: float) -> tuple[str, int]:
    asked = 0
    for profile in plays.domain.profiles():
        for i in range(len(profile)):
            asked += 1
            least = plays.worst(i, profile)
            if least < -tolerance - ROUNDING:
                raise Broken(
                    f"owner {i} gets {at_most(least, 10)} credits for the truth in a case of profile {profile}"
                )
    return f"{asked:,} owners, none of whom loses in any case", asked


def _no_deficit(plays: TinyPlays, tolerance: float) -> tuple[str, int]:
    for profile in plays.domain.profiles():
        revenue = plays.revenue(profile)
        if revenue < -tolerance - ROUNDING:
            raise Broken(f"payments add up to {at_most(revenue, 10)} credits in a case of profile {profile}")
    return f"{plays.domain.n_profiles:,} profiles", plays.domain.n_profiles


def replay_tiny(
    build: str | Factory, domain: str, owner: int, profile: tuple[int, ...], lie: int
) -> tuple[float, float]:
    """Play one lie of a tiny domain again; return the owner's utility of the truth and of the lie, credits.

    ``profile`` numbers the reports that are the owners' true types, ``lie`` the one that ``owner`` makes.

    Raises
    ------
    InvalidParameterError
        If there is no such domain, owner, type or report.

    Examples
    --------
    >>> replay_tiny("pay-as-bid", "one round", owner=0, profile=(3, 0, 0), lie=1)  # truth, and lie
    (0.0, 3.0)
    """
    known = tiny_domains()
    if domain not in known:
        raise InvalidParameterError(place="domain", value=domain, legal=f"one of {', '.join(known)}")
    plays = TinyPlays(builder_of(build), known[domain])
    owners = known[domain].owners
    Whole(0, len(owners) - 1).check("owner", owner)
    if len(profile) != len(owners):
        raise InvalidParameterError(place="profile", value=profile, legal=f"{len(owners)} types")
    for each, one in zip((*profile, lie), (*owners, owners[owner]), strict=True):
        Whole(0, len(one.reports) - 1).check("number of a report", each)
    lying = (*profile[:owner], lie, *profile[owner + 1 :])
    return plays.utility(owner, profile[owner], profile), plays.utility(owner, profile[owner], lying)


# -- drawn markets -----------------------------------------------------------------------------------------


def _drawn(
    build: Factory, n_markets: int, plays: int, tolerance: float, confidence: float, seed: int
) -> tuple[str, int]:
    """Search each market for a lie that pays; all that are confirmed on fresh worlds share the confidence."""
    each = 1 - (1 - confidence) / n_markets
    tried, kinds = 0, kinds_for(build)
    wide = kinds[0].form == "wide"
    for k in range(n_markets):
        number, kind = seed + k // len(kinds), kinds[k % len(kinds)]
        market = _market_at_hand(build, number, kind)
        why = not_reproducible(market)
        if why:
            raise Broken(f"market {number}: {why}")
        screening = Screening(market, Budget(plays, None), lambda share: None)
        look_at_hand(screening, seed + k)
        found = screening.found
        best = found.best_counted
        if best is not None and best.counted > tolerance:
            raise Broken(
                f"market {number}: {gain_sentence(best)}; "
                f"replay_drawn(build, {number}, {best.misreport.data()}, {best.owner.name!r}{_said(kind)})"
            )
        for job, reason in (*found.truth_fails.items(), *((one.words, one.reason) for one in found.failures)):
            raise Broken(f"market {number}: {job}: {reason}")
        if needs_worlds(found, {}):
            _on_worlds(found, number, kind, plays, tolerance, each, seed + k)
        tried += len(found.gains)
    return (
        f"none of {tried:,} lies is known to pay in {n_markets} markets ({COVERED if wide else NARROW}); "
        f"false alarms: at most {100 * (1 - confidence):.6g} % of such calls"
    ), tried


def _on_worlds(
    screened: Screened, number: int, kind: Kind, plays: int, tolerance: float, confidence: float, seed: int
) -> None:
    """Play the best lies of a market on fresh worlds; raise Broken if one is confirmed."""
    lies, at_turn = lies_for_worlds(screened, {}), {owner.name: owner for owner in screened.owners}
    limits = Budget(plays, None), Budget(int(DECIDING * plays), None)
    given: dict[str, Any] = {"confidence": confidence, "tolerance": tolerance, "seed": seed}
    found = lies_on_worlds([at_turn[name] for name in lies], lies, *limits, **given).confirmed
    if found:
        lie = found[0]
        raise Broken(
            f"{sentence(lie)}; replay_drawn(build, {number}, {lie.misreport.data()}, {lie.job!r}{_said(kind)})"
        )


def replay_drawn(
    build: str | Factory,
    market: int,
    misreport: Mapping[str, Any],
    job: str,
    *,
    form: Form = "changing",
    hidden: bool = False,
) -> tuple[float, float]:
    """Play a lie in a drawn market of `check_truthful` again.

    Parameters
    ----------
    build : function
        As for `check_truthful`.
    market : int
        Number of the market.
    misreport : mapping
        The lie, as its ``data()`` wrote it.
    job : str
        Whose owner lies.
    form : {"changing", "contested", "wide"}
        The kind of the market.
    hidden : bool
        Whether its durations are hidden.

    Returns
    -------
    tuple of float
        Utility of the truth and of the lie, credits, on average over the owner's own law, all else fixed.

    Raises
    ------
    InvalidParameterError
        If the market has no such job.

    Examples
    --------
    See `check_truthful`, whose findings name the call.
    """
    played = _market_at_hand(builder_of(build), market, Kind(form, hidden))
    owners = played.owners([job])
    if not owners:
        raise InvalidParameterError(place="job", value=job, legal="a job of the market")
    (owner,) = owners
    lie = misreport_from(misreport).conduct(owner.truth, owner.truth, owner.public)
    weights = [p for _, p in owner.own_law]
    truths = [each.utility for each in over_cases(owner, truth_of(owner))]
    truth = float(np.dot(weights, truths))
    return truth, truth + over_law(owner, lie)[0]


def _said(kind: Kind) -> str:
    return f", form={kind.form!r}" + (", hidden=True" if kind.hidden else "")


def _market_at_hand(build: Factory, number: int, kind: Kind) -> MarketAtHand:
    """Return a drawn market in which all chance is fixed."""
    drawn = drawn_market(number, kind)
    sizes = {key: drawn.sizes[key] for key in ("capacity", "horizon", "max_delay")}
    return MarketAtHand(lambda rng: build(**drawn.sizes, rng=rng), list(drawn.jobs.values()), **sizes, seed=number)


def raising(name: str, check: Callable[[], CheckResult]) -> None:
    """Call a check; raise `MechanismCheckError` if it fails."""
    result = check()
    if result.outcome == "failed":
        raise MechanismCheckError(f"{name}: {result.detail}")
