"""Checks, for test suites, whether a policy of an allocation core is truthful with its payments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated

import numpy as np

from marketsched.cores.agents.games import OwnersTotal, play_out
from marketsched.cores.audit.searching import World, search_core_lies
from marketsched.mechanisms.legal import Seed, Whole, legal
from marketsched.truthfulness.checks.check_report import CheckReport, CheckResult

ROUNDING = 1e-9  # of the largest value of the world


def check_policy(
    world: World,
    *,
    owner: int = 0,
    search_worlds: int = 8,
    fresh_worlds: int = 40,
    confidence: float = 0.95,
    seed: int = 0,
) -> CheckReport:
    """Look for lies that pay over an allocation core, for owners who lose, and for a deficit.

    Parameters
    ----------
    world : function of int
        Game of a seed: policy and payments are its own.
    owner, search_worlds, fresh_worlds, confidence, seed
        As for `search_core_lies`; 1 - confidence bounds the probability that a truthful policy fails (its intervals
        are asymptotic).

    Returns
    -------
    CheckReport
        "truthful in drawn worlds", "individually rational" and "no deficit".

    Examples
    --------
    >>> from marketsched.cores.audit.worlds import PublishedGames
    >>> world = PublishedGames("ogasched", "fairness")
    >>> report = check_policy(world, search_worlds=4, fresh_worlds=20)  # doctest: +SKIP
    >>> [result.name for result in report.failed]  # without payments, asking for more pays  # doctest: +SKIP
    ['truthful in drawn worlds']
    """
    checks = policy_checks(
        world,
        owner=owner,
        search_worlds=search_worlds,
        fresh_worlds=fresh_worlds,
        confidence=confidence,
        seed=seed,
    )
    return CheckReport(tuple(check() for check in checks.values()))


@legal
def policy_checks(
    world: World,
    *,
    owner: int = 0,
    search_worlds: int = 8,
    fresh_worlds: Annotated[int, Whole(20)] = 40,
    confidence: float = 0.95,
    seed: Seed = 0,
) -> dict[str, Callable[[], CheckResult]]:
    """Return the checks of `check_policy` by name, as functions without arguments."""
    n_fresh = fresh_worlds

    def truthful(name: str) -> CheckResult:
        found = search_core_lies(
            world,
            owner=owner,
            search_worlds=search_worlds,
            fresh_worlds=n_fresh,
            confidence=confidence,
            seed=seed,
        )
        paying = [lie for lie in found if lie.pays]
        if paying:
            best = max(paying, key=lambda lie: lie.gain.low)
            return CheckResult(
                name,
                "failed",
                f"owner {owner} {best.words} and gains {best.gain.value:.6g} credits on average, between "
                f"{best.gain.low:.6g} and {best.gain.high:.6g}; "
                f"score_lie(world, {best.lie!r}, owner={owner}, seed={seed})",
            )
        said = f"none of {len(found)} families of lies pays; false alarms: at most {100 * (1 - confidence):.6g} %"
        return CheckResult(name, "passed", said, len(found))

    @cache
    def totals() -> list[OwnersTotal]:
        return [play_out(world(seed + k), {}) for k in range(n_fresh)]

    def rational(name: str) -> CheckResult:
        for k, total in enumerate(totals()):
            least = int(np.argmin(total.utilities))
            if total.utilities[least] < -_rounding(total):
                return CheckResult(name, "failed", f"world {seed + k}: owner {least} gets {total.utilities[least]:.6g}")
        return CheckResult(name, "passed", f"{n_fresh} worlds", n_fresh)

    def no_deficit(name: str) -> CheckResult:
        for k, total in enumerate(totals()):
            paid = float((total.values - total.utilities).sum())
            if paid < -_rounding(total):
                return CheckResult(name, "failed", f"world {seed + k}: payments add up to {paid:.6g}")
        return CheckResult(name, "passed", f"{n_fresh} worlds", n_fresh)

    named = {"truthful in drawn worlds": truthful, "individually rational": rational, "no deficit": no_deficit}
    return {name: partial(check, name) for name, check in named.items()}


def _rounding(total: OwnersTotal) -> float:
    return ROUNDING * max(1.0, float(np.abs(total.values).max()))
