"""Checks, for test suites, whether a policy of an allocation core is truthful with its payments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, Any

import numpy as np

from marketsched.cores.agents.games import OwnersSlot, play_out
from marketsched.cores.audit.searching import World, search_core_lies
from marketsched.mechanisms.legal import Seed, Whole, legal
from marketsched.truthfulness.checks.check_report import CheckReport, CheckResult

ROUNDING = 1e-9  # of the largest value of the world


def check_policy(world: World, **options: Any) -> CheckReport:
    """Look for lies that pay over an allocation core, for owners who lose, and for a deficit.

    ``world`` makes the game of a seed: policy and payments are its own. ``options`` are those of `policy_checks`.

    Examples
    --------
    >>> from marketsched.cores.audit.worlds import PublishedGames
    >>> world = PublishedGames("ogasched", "fairness")
    >>> report = check_policy(world, search_worlds=4, fresh_worlds=20)  # doctest: +SKIP
    >>> [result.name for result in report.failed]  # without payments, asking for more pays  # doctest: +SKIP
    ['truthful in drawn worlds']
    """
    return CheckReport(tuple(check() for check in policy_checks(world, **options).values()))


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
    """Return the checks of `check_policy` by name, as functions without arguments.

    Parameters are those of `search_core_lies`; 1 - confidence bounds the probability that a truthful policy fails (its
    intervals are asymptotic).
    """
    sizes: dict[str, Any] = {"search_worlds": search_worlds, "fresh_worlds": fresh_worlds}

    def truthful(name: str) -> CheckResult:
        found = search_core_lies(world, owner=owner, confidence=confidence, seed=seed, **sizes)
        paying = [lie for lie in found if lie.pays]
        if paying:
            best = max(paying, key=lambda lie: lie.gain.low)
            return CheckResult(
                name,
                "failed",
                f"owner {owner} {best.lie.words()} and gains {best.gain.value:.6g} credits on average, between "
                f"{best.gain.low:.6g} and {best.gain.high:.6g}; "
                f"score_lie(world, {best.lie!r}, owner={owner}, seed={seed})",
            )
        said = f"none of {len(found)} families of lies pays; false alarms: at most {100 * (1 - confidence):.6g} %"
        return CheckResult(name, "passed", said, len(found))

    @cache
    def totals() -> list[OwnersSlot]:
        return [play_out(world(seed + k), {}) for k in range(fresh_worlds)]

    def in_all(name: str, least: Callable[[OwnersSlot], tuple[float, str]]) -> CheckResult:
        for k, total in enumerate(totals()):
            amount, words = least(total)
            if amount < -ROUNDING * max(1.0, float(np.abs(total.values).max())):
                return CheckResult(name, "failed", f"world {seed + k}: {words} {amount:.6g}")
        return CheckResult(name, "passed", f"{fresh_worlds} worlds", fresh_worlds)

    named: dict[str, Callable[[str], CheckResult]] = {
        "truthful in drawn worlds": truthful,
        "individually rational": partial(in_all, least=_worst_owner),
        "no deficit": partial(in_all, least=_payments),
    }
    return {name: partial(check, name) for name, check in named.items()}


def _worst_owner(total: OwnersSlot) -> tuple[float, str]:
    worst = int(np.argmin(total.utilities))
    return float(total.utilities[worst]), f"owner {worst} gets"


def _payments(total: OwnersSlot) -> tuple[float, str]:
    return float(total.payments.sum()), "payments add up to"
