"""The table of gains from lying to the allocation cores: core, policy, payment and lie, with intervals.

One row per case and family of lies: the best lie of the family that the search found, scored on fresh worlds.
Shares are in per cent; ``low`` and ``high`` are the ends of the interval of the column before them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import pandas as pd

from marketsched.config.scenario import Scenario
from marketsched.cores.agents.games import CoreGame
from marketsched.cores.audit.searching import Progress, ScoredLie, World, search_core_lies
from marketsched.cores.audit.worlds import PUBLISHED, PublishedGames
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.results.paired_statistics import Estimate
from marketsched.results.result import Result, versions

if TYPE_CHECKING:
    from marketsched.cores.sections.core import ClusterCore
    from marketsched.cores.sections.policies import PolicyChoice

Data = str | PathLike[str] | None


@dataclass(frozen=True, slots=True)
class AuditCase:
    """A policy with a payment, and its family of worlds."""

    core: str
    policy: str
    payment: str
    world: World


def published_cases() -> list[AuditCase]:
    """Return the cases of the product's own table: every core with and without payments, and the policies beside it."""
    return [
        AuditCase(core, policy, payment, PublishedGames(core, policy, payment))
        for core, policies in PUBLISHED.items()
        for policy, (_, payments) in policies.items()
        for payment in payments
    ]


def audit_cores(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    policies: Sequence[str] | None = None,
    *,
    seed: int = 0,
    search_worlds: int = 4,
    fresh_worlds: int = 20,
    confidence: float = 0.95,
    data: Data = None,
    progress: Progress | None = None,
) -> Result:
    """Search the policies of a cluster scenario for lies that pay, without payments and with those that fit.

    Every seed draws a world of its own, which is played for all of the scenario's slots; the owner of the first port
    (or job) lies. ``policies`` take the place of the scenario's. The result, of kind ``core-lies``, has the table
    ``lies`` as `core_lies_table` makes it, and the best of each case as summary.
    """
    base = Scenario.of(scenario, kind="cluster")
    core: ClusterCore = base.cluster
    choices, world = core.choices(policies), core.world(seed, data=data)

    def game(choice: PolicyChoice, payment: str, seed: int) -> CoreGame:
        return core.world(seed % 2**53, data=data).game(choice, payment)  # seeds of worlds are folded to those of a run

    cases = [
        AuditCase(core.core, choice.label, payment, partial(game, choice, payment))
        for choice in choices
        for payment in world.payments(choice)
    ]
    options = {"search_worlds": search_worlds, "fresh_worlds": fresh_worlds, "confidence": confidence}
    about = {"scenario": base.name, "core": core.core, "seed": seed}
    return _audited(cases, about, {"scenario.yaml": base.to_yaml()}, progress, **options)


def audit_published(policies: Sequence[str] | None = None, **options: Any) -> Result:
    """Search the policies of all cores for lies that pay, in the worlds of docs/allocation.md.

    ``policies`` are names of `published_cases`, None: all; a policy's figures do not depend on what else is audited.
    ``options`` are those of `core_lies_table`. Returns a result as `audit_cores` does.
    """
    cases = published_cases()
    known = list(dict.fromkeys(case.policy for case in cases))
    names = known if policies is None else list(policies)
    for name in names:
        if name not in known:
            raise UnknownNameError(place="policy", value=name, legal=f"one of {', '.join(known)}")
    options = {"search_worlds": 16, "fresh_worlds": 40, "confidence": 0.95, **options}
    seed, progress = options.pop("seed", 0), options.pop("progress", None)
    about = {"scenario": "published worlds", "core": "all", "seed": seed}
    return _audited([case for case in cases if case.policy in names], about, {}, progress, **options)


def _audited(
    cases: Sequence[AuditCase], about: dict[str, Any], files: dict[str, str], progress: Progress | None, **options: Any
) -> Result:
    """Return the table of all cases, the best of each, and how it was made."""
    table = core_lies_table(cases, seed=about["seed"], progress=progress, **options)
    best = table[table["best"]].reset_index(drop=True)
    return Result("core-lies", {"lies": table}, best, {**about, **options, "versions": versions()}, files)


def core_lies_table(cases: Sequence[AuditCase], *, progress: Progress | None = None, **options: Any) -> pd.DataFrame:
    """Search every case for lies, and return one row per case and family.

    ``progress`` is called with ``("core policy payment", plays of this case)``; ``options`` are ``seed``,
    ``search_worlds``, ``fresh_worlds`` and ``confidence``, as in `search_core_lies`. Columns: ``core``, ``policy``,
    ``payment``, ``family``, ``lie`` (in words), ``best`` (whether the search took it for the best of its case),
    ``gain_percent`` of the truthful utility with its interval (missing where payments leave none that is clearly
    positive), ``of_value_percent``: the same gain as a share of the truthful value, a base that payments do not change,
    with its interval, ``searched_of_value_percent`` (the gain seen in the search, as a share of the same: biased
    upwards), ``others_percent`` (change of all others' value) with its interval, ``gain``, ``truthful_utility`` and
    ``truthful_value`` (credits), ``worlds`` (fresh), ``pays``, ``seems_to_pay`` (its own interval lies above 0, that
    for all lies together does not).
    """
    if not cases:
        raise InvalidParameterError("cases is empty: expected at least one")
    rows = []
    for case in cases:
        named = f"{case.core} {case.policy} {case.payment}"

        def tell(_: str, plays: int, named: str = named) -> None:
            if progress is not None:
                progress(named, plays)

        rows += [_row(case, scored) for scored in search_core_lies(case.world, progress=tell, **options)]
    return pd.DataFrame(rows)


def _row(case: AuditCase, scored: ScoredLie) -> dict[str, object]:
    searched = None if scored.value_share is None else 100.0 * scored.searched_gain / scored.value
    return {
        "core": case.core,
        "policy": case.policy,
        "payment": case.payment,
        "family": scored.lie.family,
        "lie": scored.lie.words(),
        "best": scored.best,
        **_percent("gain", scored.gain_share),
        **_percent("of_value", scored.value_share),
        "searched_of_value_percent": searched,
        **_percent("others", scored.others_share),
        "gain": scored.gain.value,
        "truthful_utility": scored.truthful,
        "truthful_value": scored.value,
        "worlds": scored.worlds,
        "pays": scored.pays,
        "seems_to_pay": scored.seems_to_pay,
    }


def _percent(name: str, share: Estimate | None) -> dict[str, float | None]:
    """Return a share in per cent with the ends of its interval, by the names of their columns."""
    names = (f"{name}_percent", f"{name}_low", f"{name}_high")
    return dict.fromkeys(names) if share is None else dict(zip(names, (100.0 * x for x in share), strict=True))
