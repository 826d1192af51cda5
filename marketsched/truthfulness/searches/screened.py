"""The results of a screen: the gains of lies in the market at hand, and the share of owners it would have found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from marketsched.agents.conduct import Conduct
from marketsched.agents.lies import InflateConcurrency, Misreport, ScaleDuration, ScaleValue, ShiftDeadline
from marketsched.truthfulness.searches.evaluation import Failure
from marketsched.truthfulness.situations.announced import Mischarged
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand

SCREENED: tuple[Misreport, ...] = (
    ScaleValue(0.5),
    ScaleValue(0.9),
    ScaleValue(1.5),
    ShiftDeadline(2),
    ScaleDuration(1.5),
    ScaleDuration(0.5),
    ShiftDeadline(-1),
    InflateConcurrency(1),
    InflateConcurrency(-1),  # never completes: it pays only for owners that are served at a loss
)
MOST_CASES = 4  # of an own law that is gone through for every lie
CHANCE = 0.9  # for which `Screened.detectable_share` holds


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of one lie in the market at hand, credits.

    ``own_law`` is the mean over the owner's own law, all else as it is; None: not gone through. ``drew``: the
    mechanism has drawn from its stream meanwhile, so that both figures are those of one stream of its draws.
    ``counted`` is what breaks the mechanism's promise: the gain ex post, or the one over the own law; 0: neither.
    """

    owner: OwnerAtHand = field(repr=False)
    misreport: Misreport
    conduct: Conduct = field(repr=False)
    gain: float
    drew: bool
    own_law: float | None = None
    counted: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counted", self._counted())  # once: the best of many is asked for after each

    def _counted(self) -> float:
        """Return what counts; 0 where the mechanism drew: one draw more or less gains or loses by luck."""
        promise = self.owner.promise
        if self.drew or promise == "up to regret":
            return 0.0
        return max(self.gain if promise == "ex post" else self.own_law or 0.0, 0.0)

    @property
    def words(self) -> str:
        """The lie in words."""
        return self.misreport.words(self.owner.truth)

    @property
    def size(self) -> float:
        """Distance of the lie from the truth."""
        return self.misreport.distance(self.owner.truth, self.owner.public)


@dataclass
class Screened:
    """The plays in the market at hand.

    ``gains`` has every lie that was compared. ``refused`` counts reports that the mechanism refused, ``failed`` those
    under which it failed, with the first reason of each kind in ``failures``.
    """

    market: MarketAtHand
    owners: list[OwnerAtHand] = field(default_factory=list)
    gains: list[Gain] = field(default_factory=list)
    refused: int = 0
    failed: int = 0
    plays: int = 0
    failures: list[Failure] = field(default_factory=list)
    truth_fails: dict[str, str] = field(default_factory=dict)  # by job
    checked: list[Gain] = field(default_factory=list)  # gone through over the own law
    payments: int = 0  # under lies, that were compared with the menu which the truth faces
    mischarged: Mischarged | None = None  # the first payment that is none of that menu's
    cut: str = ""  # what the budget cut off
    finished: list[str] = field(default_factory=list)  # fixed lies that were played for all owners, where legal

    @property
    def paying(self) -> list[Gain]:
        """Lies that gained, most first; of equal ones the smaller lie first."""
        return sorted((g for g in self.gains if g.gain > 0), key=lambda g: (-g.gain, g.size))

    @property
    def best_ex_post(self) -> Gain | None:
        """The lie that gained most; None: none did."""
        return next(iter(self.paying), None)

    @property
    def best_counted(self) -> Gain | None:
        """The lie that breaks the promise by most, of equal ones that of the job submitted first; None: none does."""
        found = [g for g in (*self.checked, *self.gains) if g.counted > 0]
        if not found:
            return None
        place = {job.name: i for i, job in enumerate(self.market.setup.jobs)}
        return max(found, key=lambda g: (g.counted, -place[g.owner.name], -g.size))

    def promoted(self) -> list[Misreport]:
        """Return the fixed lies, those that gained most on average at hand, as shares of the values, before others."""
        shares: dict[int, list[float]] = {}
        for g in self.gains:
            value = g.owner.truth.value.highest
            if g.misreport in SCREENED and value > 0:
                shares.setdefault(SCREENED.index(g.misreport), []).append(g.gain / value)
        order = sorted(shares, key=lambda i: -float(np.mean(shares[i])))
        played = [SCREENED[i] for i in order]
        return [*played, *(lie for lie in SCREENED if lie not in played)]

    @property
    def gainers(self) -> int:
        """How many owners gained ex post by some lie."""
        return len({g.owner.name for g in self.gains if g.gain > 0})

    @property
    def detectable_share(self) -> float:
        """The smallest share of gaining owners that the draw would have hit with probability `CHANCE`.

        By one of the lies that are ``finished``, by however little: gains are exact. Half of the owners are drawn among
        those that pay or lose under the truth; so a share of all owners is one of either half, or more, and half of
        the owners count. NaN where nothing can be said: no lie is finished, the mechanism draws, promises truth up to
        regret, or an own law has more than `MOST_CASES`, so that a gain in this market may be luck.
        """
        exact = all(
            owner.promise == "ex post" or (owner.promise != "up to regret" and len(owner.own_law) <= MOST_CASES)
            for owner in self.owners
        )
        half = len(self.owners) // 2
        if not exact or not self.finished or not half or any(g.drew for g in self.gains):
            return float("nan")
        return float(1 - (1 - CHANCE) ** (1 / half))


def first_of(gains: Sequence[Gain]) -> list[Gain]:
    """Return the best gain of each owner, best first."""
    best: dict[str, Gain] = {}
    for g in sorted(gains, key=lambda g: -g.gain):
        best.setdefault(g.owner.name, g)
    return list(best.values())
