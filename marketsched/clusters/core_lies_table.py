"""The table of gains from lying to the allocation cores: core, policy, payment and lie, with intervals.

One row per case and family of lies: the best lie of the family that the search found, scored on fresh worlds.
Shares are in per cent; ``low`` and ``high`` are the ends of the interval of the column before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marketsched.clusters.core_lies import Progress, ScoredLie, World, search_core_lies
from marketsched.clusters.core_lies_worlds import ChannelWorld, JobWorld, PortWorld
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.paired_statistics import Estimate

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "core",
    "policy",
    "payment",
    "family",
    "lie",
    "best",
    "gain_percent",
    "gain_low",
    "gain_high",
    "of_value_percent",
    "of_value_low",
    "of_value_high",
    "searched_of_value_percent",
    "others_percent",
    "others_low",
    "others_high",
    "gain",
    "truthful_utility",
    "truthful_value",
    "worlds",
    "pays",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A policy with a payment, and its family of worlds."""

    core: str
    policy: str
    payment: str
    world: World


def published_cases() -> list[Case]:
    """Return the cases of the product's own table: every core with and without payments, and the policies beside it."""
    makers: list[tuple[str, Callable[[str, str], World], list[tuple[str, str]]]] = [
        (
            "ogasched",
            lambda policy, payment: PortWorld(policy, payment),
            [
                ("ogasched", "none"),
                ("ogasched", "capacity prices"),
                ("fairness", "none"),
                ("drf", "none"),
                ("binpacking", "none"),
            ],
        ),
        (
            "esdp",
            lambda policy, payment: ChannelWorld(policy, payment),
            [
                ("esdp", "none"),
                ("esdp", "displaced utility"),
                ("cucb", "none"),
                ("cucb", "displaced utility"),
                ("hauf", "none"),
                ("lcf", "none"),
                ("lwtf", "none"),
            ],
        ),
        (
            "opm",
            lambda policy, payment: JobWorld(policy, payment),
            [
                ("opm", "none"),
                ("opm", "displaced work"),
                ("opm", "spending"),
                ("fair", "none"),
                ("fair", "spending"),
                ("deadline-aware", "none"),
                ("deadline-aware", "spending"),
            ],
        ),
    ]
    return [Case(core, *pair, make(*pair)) for core, make, pairs in makers for pair in pairs]


def core_lies_table(
    cases: Sequence[Case] | None = None,
    *,
    search_worlds: int = 16,
    fresh_worlds: int = 40,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Search every case for lies, and return one row per case and family.

    Parameters
    ----------
    cases : sequence of Case, optional
        `published_cases` by default.
    search_worlds, fresh_worlds, confidence, seed, progress
        As in `search_core_lies`; ``progress`` is told ``("core policy payment", plays of this case)``.

    Returns
    -------
    DataFrame
        ``core``, ``policy``, ``payment``, ``family``, ``lie`` (in words), ``best`` (whether the search took it for the
        best of its case), ``gain_percent`` of the truthful utility with its interval (missing where payments leave
        none that is clearly positive), ``of_value_percent``: the same gain as a share of the truthful value, a base
        that payments do not change, with its interval, ``searched_of_value_percent`` (the gain seen in the search, as
        a share of the same: biased upwards), ``others_percent`` (change of all others' value) with its interval,
        ``gain``, ``truthful_utility`` and ``truthful_value`` (credits), ``worlds`` (fresh), ``pays``.

    Raises
    ------
    InvalidParameterError
        If there is no case, or a parameter is out of range.
    """
    import pandas as pd

    chosen = published_cases() if cases is None else list(cases)
    if not chosen:
        raise InvalidParameterError("cases is empty: expected at least one")
    rows = []
    for case in chosen:
        found = search_core_lies(
            case.world,
            search_worlds=search_worlds,
            fresh_worlds=fresh_worlds,
            confidence=confidence,
            seed=seed,
            progress=None if progress is None else _told(case, progress),
        )
        rows += [_row(case, scored) for scored in found]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _told(case: Case, progress: Progress) -> Progress:
    return lambda _, plays: progress(f"{case.core} {case.policy} {case.payment}", plays)


def _row(case: Case, scored: ScoredLie) -> tuple[object, ...]:
    return (
        case.core,
        case.policy,
        case.payment,
        scored.family,
        scored.words,
        scored.best,
        *_percent(scored.gain_share),
        *_percent(scored.value_share),
        None if scored.value_share is None else 100.0 * scored.searched_gain / scored.value,
        *_percent(scored.others_share),
        scored.gain.value,
        scored.truthful,
        scored.value,
        scored.worlds,
        scored.pays,
    )


def _percent(share: Estimate | None) -> tuple[float | None, ...]:
    return (None, None, None) if share is None else tuple(100.0 * x for x in share)
