"""The findings of an audit: for each mechanism certificates, searches, and the owner that gains most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.config.scenario import Scenario
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.gain_file import gain_sentence
from marketsched.truthfulness.searches.joint_reports import JointGain
from marketsched.truthfulness.searches.on_worlds import OnWorlds
from marketsched.truthfulness.searches.screened import Gain, Screened, first_of
from marketsched.truthfulness.sentences import sentence


@dataclass(frozen=True, slots=True, repr=False)
class MechanismAudit:
    """The results about one mechanism. ``errors`` lists failed parts with their reasons."""

    label: str
    certificates: pd.DataFrame  # as `certify_owners`; empty without menus
    worlds: OnWorlds  # lies on fresh worlds; empty where the market at hand decides
    certified_share: float | None  # of owners that gain at most the tolerance, at least; None: not known
    errors: tuple[str, ...]
    at_hand: Screened | None = None  # None: the market at hand was not played
    cut: tuple[str, ...] = ()  # parts that seconds ended before their plays were made
    plays: int = 0
    scenario: Scenario | None = None  # with this mechanism
    joint: tuple[JointGain, ...] = ()  # owners with several jobs, those that gain most first
    irreproducible: str = ""  # why two plays of one seed end differently, so that no lie was played; empty: they do not
    beside_menu: str = ""  # the first payment that is none of its menu; empty: none was seen

    def __repr__(self) -> str:
        """Return the figures of the summary."""
        gains = f"gain {self.regret_lower:g} .. {self.regret_upper:g}" if self.audited else "not audited"
        owners = f"{len(self.certificates)} certified, {len(self.claims)} lies scored"
        return f"MechanismAudit({self.label!r}, {gains}, {owners})"

    @property
    def compared(self) -> bool:
        """Whether any lie was played against the truth."""
        at_hand = self.at_hand is not None and len(self.at_hand.gains) > 0
        return at_hand or len(self.worlds.tried) > 0

    @property
    def truth_fails(self) -> str:
        """Why no lie could be compared, if the mechanism fails under the truth of every owner looked at; else empty."""
        screen = {} if self.at_hand is None else self.at_hand.truth_fails
        reasons = [*screen.values(), *self.worlds.truth_fails.values()]
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
    def free_of_charge(self) -> bool:
        """Whether jobs compete without money, so that an owner may pay for one job with the others."""
        return self.at_hand is not None and bool(self.at_hand.market.setup.mechanism.free_of_charge)

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
        """The lies that are confirmed on fresh worlds, largest sure gain first."""
        return self.worlds.confirmed

    @property
    def claims(self) -> list[Deviation]:
        """The lies that were scored on fresh worlds."""
        return self.worlds.claims

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

    def pays(self, tolerance: float) -> bool:
        """Return whether a lie is known to gain more than ``tolerance`` credits, in a way that the promise excludes."""
        return self.regret_lower > tolerance

    def seems(self) -> list[str]:
        """Return what seems to pay and is not confirmed, in sentences, largest first."""
        return [
            f"{lie.job} {lie.words}: {lie.gain_mean:+.3g} credits on average over "
            f"{lie.n_fresh:,} worlds, interval {lie.gain_low:.3g} to {lie.gain_high:.3g}"
            for lie in sorted((lie for lie in self.claims if lie.seems), key=lambda lie: -lie.gain_mean)
        ]

    def tried(self) -> list[tuple[str, str, str, float, float]]:
        """Return every lie that was tried: label, job, words, size, gain on the worlds of the search."""
        found = [(self.label, *each) for each in self.worlds.tried]
        at_hand = [] if self.at_hand is None else self.at_hand.gains
        return [*found, *((self.label, g.owner.name, g.words, g.size, g.gain) for g in at_hand)]

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
        """Return the lies that are confirmed on fresh worlds: see `CONFIRMED`."""
        return [
            (self.label, lie.job, lie.words, lie.size, lie.gain_low, lie.gain_high, sentence(lie)) for lie in self.lies
        ]

    @property
    def best(self) -> Deviation | None:
        """The lie with the largest sure gain on fresh worlds; None: none is confirmed."""
        return next(iter(self.worlds.confirmed), None)

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
        if best is not None and best.gain_low >= certified:
            return best.job, best.words
        if not len(table):
            return "", ""
        row = int(exact.argmax()) if certified > 0 else int(table["regret_upper"].to_numpy().argmax())
        return str(table["job"].iloc[row]), str(table["witness"].iloc[row]) if certified > 0 else ""
