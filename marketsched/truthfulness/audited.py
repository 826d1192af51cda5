"""The findings of an audit: for each mechanism certificates, searches, and the owner that gains most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.config.scenario import Scenario
from marketsched.truthfulness.searches.findings import Deviation, Deviations
from marketsched.truthfulness.searches.gain_file import gain_sentence
from marketsched.truthfulness.searches.joint_reports import JointGain
from marketsched.truthfulness.searches.pooling import Pooled
from marketsched.truthfulness.searches.screened import Gain, Screened, first_of
from marketsched.truthfulness.sentences import pooled_words, sentence
from marketsched.truthfulness.situations.situation import Situation
from marketsched.truthfulness.tiny_first import TinyFound


@dataclass(frozen=True, slots=True, repr=False)
class Searched:
    """The search for one owner.

    Attributes
    ----------
    job : str
        Whose.
    situation : Situation
        Where it was played.
    deviations : Deviations
        The lies tried.
    lie : Deviation or None
        Of the confirmed lies inside the model, that with the largest sure gain.
    smallest : Deviation or None
        The smallest lie of the same kind that still pays; None: there is none but ``lie`` itself.
    """

    job: str
    situation: Situation
    deviations: Deviations
    lie: Deviation | None
    smallest: Deviation | None = None

    @property
    def compared(self) -> bool:
        """Whether any lie inside the model was played against the truth."""
        return self.lie is not None or any(tried.inside_model for tried in self.deviations.tried)

    def __repr__(self) -> str:
        """Return the job, how many lies were tried, and the best one that is confirmed."""
        best = "none confirmed" if self.lie is None else f"{self.lie.words!r} gains {self.lie.gain_low:g} or more"
        return f"Searched({self.job!r}, {len(self.deviations.tried)} lies tried, {best})"


@dataclass(frozen=True, slots=True, repr=False)
class MechanismAudit:
    """The results about one mechanism. ``errors`` lists failed parts with their reasons."""

    label: str
    certificates: pd.DataFrame  # as `certify_owners`; empty without menus
    searched: tuple[Searched, ...]
    certified_share: float | None  # of owners that gain at most the tolerance, at least; None: not known
    errors: tuple[str, ...]
    at_hand: Screened | None = None  # None: the market at hand was not played
    pooled: tuple[Pooled, ...] = ()  # fixed lies over owners and worlds
    cut: tuple[str, ...] = ()  # parts that seconds ended before their plays were made
    plays: int = 0
    scenario: Scenario | None = None  # with this mechanism
    tiny: TinyFound = field(default_factory=TinyFound)
    joint: tuple[JointGain, ...] = ()  # owners with several jobs, those that gain most first
    irreproducible: str = ""  # why two plays of one seed end differently, so that no lie was played; empty: they do not
    beside_menu: str = ""  # the first payment that is none of its menu; empty: none was seen

    def __repr__(self) -> str:
        """Return the figures of the summary."""
        gains = f"gain {self.regret_lower:g} .. {self.regret_upper:g}" if self.audited else "not audited"
        owners = f"{len(self.certificates)} certified, {len(self.searched)} searched"
        return f"MechanismAudit({self.label!r}, {gains}, {owners})"

    @property
    def compared(self) -> bool:
        """Whether any lie was played against the truth."""
        at_hand = self.at_hand is not None and len(self.at_hand.gains) > 0
        return at_hand or any(each.compared for each in self.searched)

    @property
    def truth_fails(self) -> str:
        """Why no lie could be compared, if the mechanism fails under the truth of every owner looked at; else empty."""
        screen = {} if self.at_hand is None else self.at_hand.truth_fails
        reasons = [*screen.values(), *(each.deviations.truth_fails for each in self.searched)]
        return "" if self.compared or not reasons or "" in reasons else reasons[0]

    @property
    def audited(self) -> bool:
        """Whether anything is known: an owner was certified, or a lie was played against the truth."""
        return not self.irreproducible and (self.compared or len(self.certificates) > 0)

    @property
    def mischarged(self) -> str:
        """The first payment that is none of its menu, where the mechanism promises something; empty: none was seen."""
        return "" if self.promise == "none" else self.beside_menu

    @property
    def exact(self) -> Gain | None:
        """The lie that breaks the mechanism's promise in the market at hand by most; None: none does."""
        return None if self.at_hand is None else self.at_hand.best_counted

    @property
    def promise(self) -> str:
        """The promise of the mechanism to each kind of job that was played; empty: none was."""
        played = [] if self.at_hand is None else self.at_hand.owners
        return ", ".join(sorted({owner.promise for owner in played}))

    @property
    def regret_upper(self) -> float:
        """The largest upper end of a certificate, credits; NaN without menus."""
        return float(self.certificates["regret_upper"].max()) if len(self.certificates) else np.nan

    @property
    def rests_on(self) -> str:
        """The checks of menus at arrival before they were certified; empty for other mechanisms."""
        if "rests_on" not in self.certificates:
            return ""
        said = str(self.certificates["rests_on"].iloc[0])
        n = 0 if self.at_hand is None else self.at_hand.payments
        return f"{said}, and {n:,} under lies of the search" if n else said

    @property
    def lies(self) -> list[Deviation]:
        """The confirmed lies inside the model, largest sure gain first."""
        found = [each.lie for each in self.searched if each.lie is not None]
        return sorted(found, key=lambda lie: -lie.gain_low)

    @property
    def regret_lower(self) -> float:
        """The largest gain that is sure, by an exact certificate or a confirmed lie, credits; NaN: not audited."""
        if not self.audited:
            return np.nan
        at_hand = 0.0 if self.exact is None else self.exact.counted
        return max([at_hand, float(self._exact_lower.max(initial=0.0)), *(lie.gain_low for lie in self.lies)])

    @property
    def _exact_lower(self) -> NDArray[np.float64]:
        """Lower ends of certificates that hold for sure; 0 for the others."""
        if not len(self.certificates):
            return np.zeros(0)
        return np.array(self.certificates["regret_lower"].where(self.certificates["confidence"] == 1.0, 0.0))

    @property
    def fixed(self) -> Pooled | None:
        """The fixed lie that is confirmed to pay on average, with the largest sure gain; None: there is none."""
        return max((p for p in self.pooled if p.confirmed), key=lambda p: p.low, default=None)

    def pays(self, tolerance: float) -> bool:
        """Return whether a lie is known to gain more than ``tolerance`` credits, in a way that the promise excludes."""
        return self.regret_lower > tolerance or self.fixed is not None or self.tiny.breaks

    @property
    def power(self) -> tuple[float, str]:
        """The smallest mean gain that would have been confirmed, as a share of a value, and its fixed lie; NaN: none.

        Of the lies that were played in as many worlds as any, see `Pooled.power`.
        """
        most = max((len(p.means) for p in self.pooled), default=0)
        found = [(p.power(), repr(p.lie)) for p in self.pooled if len(p.means) == most > 1]
        return min(found, default=(np.nan, ""))

    def seems(self) -> list[str]:
        """Return what seems to pay and is not confirmed, in sentences, largest first."""
        found = [
            (d.gain_mean, one.job, d) for one in self.searched for d in one.deviations if d.inside_model and d.seems
        ]
        words = [
            f"{job} {d.words}: {d.gain_mean:+.3g} credits on average over {d.n_fresh:,} worlds, interval "
            f"{d.gain_low:.3g} to {d.gain_high:.3g}"
            for _, job, d in sorted(found, key=lambda row: -row[0])
        ]
        return words + [f"{pooled_words(p)}, which seems more than nothing" for p in self.pooled if p.seems]

    @property
    def outside(self) -> list[Deviation]:
        """Confirmed conduct outside the model that pays, largest sure gain first."""
        found = [each.deviations.best(inside_model=False) for each in self.searched]
        return sorted((lie for lie in found if lie is not None), key=lambda lie: -lie.gain_low)

    def tried(self) -> list[tuple[str, str, float, float]]:
        """Return every lie that was tried: label, job, size, gain on the worlds of the search."""
        found = [(self.label, one.job, x.size, x.gain) for one in self.searched for x in one.deviations.tried]
        at_hand = [] if self.at_hand is None else self.at_hand.gains
        return [*found, *((self.label, g.owner.name, g.size, g.gain) for g in at_hand)]

    def exact_gains(self) -> list[tuple[Any, ...]]:
        """Return the lies that gained in the market at hand, of every owner the best: see `EXACT`."""
        if self.at_hand is None:
            return []
        best = {g.owner.name: g for g in first_of(self.at_hand.paying)}
        best |= {g.owner.name: g for g in first_of(self.at_hand.checked) if (g.own_law or 0) > 0}
        rows = []
        for g in sorted(best.values(), key=lambda g: (-g.counted, -g.gain)):
            own_law = np.nan if g.own_law is None else g.own_law
            breaks = g.counted > 0
            rows.append((self.label, g.owner.name, g.words, g.size, g.gain, own_law, breaks, gain_sentence(g)))
        return rows

    def confirmed(self) -> list[tuple[Any, ...]]:
        """Return the lies that are confirmed, of every owner the best: see `CONFIRMED`."""
        rows = []
        for one in self.searched:
            if one.lie is not None:
                least = one.lie if one.smallest is None else one.smallest
                figures = (one.lie.size, one.lie.gain_low, one.lie.gain_high, one.lie.exact)
                text = sentence(one.job, one.lie, one.deviations.truthful)
                rows.append((self.label, one.job, one.lie.words, *figures, text, least.words, least.gain_low))
        return rows

    @property
    def best(self) -> Searched | None:
        """The search with the largest sure gain; None: no lie is confirmed."""
        found = [each for each in self.searched if each.lie is not None]
        return max(found, key=lambda each: 0.0 if each.lie is None else each.lie.gain_low, default=None)

    @property
    def headline(self) -> Gain | None:
        """The exact gain in the market at hand, if nothing else is known to gain as much."""
        found = [float(self._exact_lower.max(initial=0.0)), *(lie.gain_low for lie in self.lies)]
        return self.exact if self.exact is not None and self.exact.counted > max(found) else None

    @property
    def kind(self) -> str:
        """Kind of the largest certain gain: "ex post", "own law", "expected", "certified"; empty: there is none."""
        if not self.regret_lower > 0:
            return ""
        if self.headline is not None:
            return "ex post" if self.headline.own_law is None else "own law"
        return "expected" if self.lies and self.lies[0].gain_low >= self.regret_lower else "certified"

    @property
    def worst(self) -> tuple[str, str]:
        """The owner's job with the largest sure gain (else the largest bound), and the lie in words."""
        best, table, exact = self.best, self.certificates, self._exact_lower
        certified = float(exact.max(initial=0.0))
        if self.headline is not None:
            return self.headline.owner.name, self.headline.words
        if best is not None and best.lie is not None and best.lie.gain_low >= certified:
            return best.job, best.lie.words
        if not len(table):
            return "", ""
        row = int(exact.argmax()) if certified > 0 else int(table["regret_upper"].to_numpy().argmax())
        return str(table["job"].iloc[row]), str(table["witness"].iloc[row]) if certified > 0 else ""
