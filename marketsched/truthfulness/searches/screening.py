"""The screen: a handful of lies for many owners, in the market at hand, where every gain is exact.

Owners are drawn over the whole horizon, half of them among those who pay or lose under the truth: where no owner
pays, hardly any lie does. They are played lie by lie, the most telling lie first, so that a small budget sees many
owners under few lies and not few owners under many. A lie that gains ex post is then played over the owner's whole
law with all else fixed (`OwnLaw`), which separates a lie that pays from luck if durations are hidden or arrivals
uncertain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from marketsched.agents.conduct import Conduct
from marketsched.agents.lies import Misreport
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.evaluation import ROUNDING, Budget, BudgetSpent, Candidate, Failure, prepared
from marketsched.truthfulness.searches.families import default_families, interleaved
from marketsched.truthfulness.searches.plays_ahead import Asked, PlaysAhead, truth_of
from marketsched.truthfulness.searches.screened import MOST_CASES, SCREENED, Gain, Screened
from marketsched.truthfulness.searches.shape_families import lies_about_shapes
from marketsched.truthfulness.situations.announced import Mischarged, announced_price
from marketsched.truthfulness.situations.lotteries import fate_of
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand
from marketsched.truthfulness.situations.true_owners import Played

MOST_OWNERS = 400
FEWEST_OWNERS = 4
SHAPE_LIES = 2  # of each family, for jobs of a cluster
STRIDE = 7  # places of the list of lies, by which the owners begin apart
LIES_EACH = 4  # that the plays of a screen are to reach for every owner, where they are few
MOST_POINTS = 60  # of one that is gone through for a lie that gains at hand
ZOOM, ZOOMS = 9, 4  # values of a number that are tried at a time, and how often around the best of them
ENOUGH = 5  # owners with a gain over the own law, after which no other is gone through


class Screening:
    """Plays in the market at hand, within a budget that all phases share.

    ``tell`` is called with the share that is done. With ``menus`` what a job pays under each lie is compared with the
    menu at arrival that its truth faces, counted as one more play per owner, though one play shows the menus of all of
    them. ``ahead`` makes plays in advance; None: nothing does.
    """

    def __init__(
        self,
        market: MarketAtHand,
        budget: Budget,
        tell: Callable[[float], None],
        menus: bool = False,
        ahead: PlaysAhead | None = None,
    ) -> None:
        self.found = Screened(market)
        self.budget, self._tell, self._menus = budget, tell, menus
        self.ahead = ahead
        self._truths: dict[str, list[Played]] = {}  # in all cases of the own law, by owner
        self._sharpened: set[tuple[str, Misreport]] = set()

    def screen(self, seed: int, plays: int | None) -> Screened:
        """Play `SCREENED`, lie by lie, for drawn owners; return the results so far."""
        market = self.found.market
        names = drawn_owners(market, owners_for(plays), seed)
        found = market.owners(names)
        order = {name: place for place, name in enumerate(names)}
        self.found.owners = sorted(found, key=lambda owner: order[owner.name])
        if self.ahead is not None:
            self.ahead.keep_at_turns(market, found)
        now = "the lies about shapes"
        try:
            for place in range(SHAPE_LIES):  # of each family before the lies that all markets have
                for owner in list(self.found.owners):
                    self._try_about_shapes(owner, place)
            for lie in SCREENED:
                now = repr(lie)
                self._ahead_of(lie)
                for owner in list(self.found.owners):
                    if self._truth_holds(owner):
                        self.try_lie(owner, lie)
                    self._tell(self.budget.used)
                self.found.finished.append(now)
        except BudgetSpent:
            self.found.cut = f"the screen ended before {now} was played for all owners" if self.found.gains else ""
        self.found.plays = self.budget.plays
        return self.found

    def _try_about_shapes(self, owner: OwnerAtHand, place: int) -> None:
        """Play for an owner the lie at this place of each family of lies about shapes; one without shapes has none."""
        families = lies_about_shapes(owner.truth, owner.public).values()
        lies = [family[place] for family in families if place < len(family)]
        if lies and self._truth_holds(owner):
            for lie in lies:
                self.try_lie(owner, lie)
                self._tell(self.budget.used)

    def _ahead_of(self, lie: Misreport) -> None:
        """Have the plays of a lie made, and those of truths that are still to be played."""
        if self.ahead is None or self.budget.out_of_time:
            return
        truths = [owner for owner in self.found.owners if "truthful" not in vars(owner)]
        asked = [(owner, Asked(owner.name)) for owner in truths]
        asked += [(owner, Asked(owner.name, lie)) for owner in self.found.owners if lie_of(owner, lie) is not None]
        self.ahead.plays(self.found.market, asked, self.budget)

    def _truth_holds(self, owner: OwnerAtHand) -> bool:
        """Play the truth of an owner before its first lie; one under whose truth the mechanism fails is left out."""
        if "truthful" not in vars(owner):
            self.budget.take()
        try:
            _ = owner.truthful
        except (MechanismFault, InvalidReportError) as error:
            self.found.truth_fails[owner.name] = str(error)
            self.found.owners.remove(owner)
            return False
        return True

    def try_lie(self, owner: OwnerAtHand, lie: Misreport) -> Gain | None:
        """Play one lie; None: it is illegal, the truth, refused, or the mechanism fails. Raises `BudgetSpent`."""
        made = lie_of(owner, lie)
        if made is None:
            return None
        played = self.play(owner, made.conduct, made)
        if played is None:
            return None
        self._compare_payment(owner, made, played)
        gain = Gain(owner, made.misreport, made.conduct, settled(played, owner.truthful), played.drew)
        if owner.promise != "ex post" and len(owner.own_law) <= MOST_CASES:
            gain = self._gone_through(gain, self._truths, played) or gain
        self.found.gains.append(gain)
        return gain

    def _compare_payment(self, owner: OwnerAtHand, made: Candidate, played: Played) -> None:
        """Compare the payment of a lie with the menu of the truthful report; a report must not change its own menu.

        The menu was recorded in another play. Nothing is recorded in the play of the lie itself, so a mechanism cannot
        detect the comparison and behave differently.
        """
        if not self._menus or not _pays_by_menu(owner, made, played):
            return
        report = made.conduct.statements[0].report
        assert played.completion is not None
        if "menu" not in vars(owner):
            self.budget.take()
        if owner.menu is None:
            return
        start = played.completion - owner.job.duration
        announced = announced_price(owner.menu, report.concurrency, start, owner.job.duration, played.payment)
        self.found.payments += 1
        if abs(announced - played.payment) > ROUNDING * max(1.0, abs(announced)) and self.found.mischarged is None:
            words = made.misreport.words(owner.truth)
            self.found.mischarged = Mischarged(owner.name, words, start, played.payment, announced)

    def play(self, owner: OwnerAtHand, conduct: Conduct, candidate: Candidate) -> Played | None:
        """Play a conduct; None: it is refused or fails, which is counted. Raises `BudgetSpent`."""
        self.budget.take()
        found = self.found
        try:
            return owner.play(conduct)
        except InvalidReportError as error:
            found.refused += 1
            self._note("refused", owner, candidate, error)
        except MechanismFault as error:
            found.failed += 1
            self._note("failed", owner, candidate, error)
        return None

    def _note(self, what: str, owner: OwnerAtHand, candidate: Candidate, error: Exception) -> None:
        if not any(failure.words.startswith(what) for failure in self.found.failures):
            words = f"{what}: {owner.name} {candidate.misreport.words(owner.truth)}"
            self.found.failures.append(Failure(words, str(error)))

    def own_laws(self, gains: Iterable[Gain]) -> None:
        """Go through the own law of owners that gained, best first, until enough are found or the budget ends."""
        truths = self._truths
        done = Counter[str]()  # of each owner, in this call: earlier gains leave room for later ones
        good = sum((g.own_law or 0.0) > 0 for g in self.found.checked)
        try:
            for g in sorted(gains, key=lambda g: (done[g.owner.name], -g.gain)):
                if good >= ENOUGH:
                    break
                if g.own_law is not None or len(g.owner.own_law) > MOST_POINTS or done[g.owner.name] >= 3:
                    continue
                done[g.owner.name] += 1
                checked = self._gone_through(g, truths)
                if checked is not None:
                    self.found.checked.append(checked)
                    good += (checked.own_law or 0.0) > 0
                self._tell(self.budget.used)
        except BudgetSpent:
            pass
        self.found.plays = self.budget.plays

    def families(self) -> None:
        """Play the list of all lies, from another place on for each owner: many have a turn."""
        lists = []
        for k, owner in enumerate(self.found.owners):
            families = default_families(owner.truth, owner.public)
            lies = [lie for _, lie in interleaved(families) if lie not in SCREENED]
            turn = k * STRIDE % max(1, len(lies))
            lists.append((owner, [*lies[turn:], *lies[:turn]]))
        try:
            for place in range(max((len(lies) for _, lies in lists), default=0)):
                for owner, lies in lists:
                    if place < len(lies) and self.found.best_counted is None and self._truth_holds(owner):
                        gain = self.try_lie(owner, lies[place])
                        if gain is not None and gain.gain > 0 and gain.own_law is None:
                            self.own_laws([gain])
                self._tell(self.budget.used)
        except BudgetSpent:
            pass
        self.found.plays = self.budget.plays

    def sharpen(self) -> None:
        """Look beside the lie that breaks the promise by most, number by number, for one that gains more."""
        best = self.found.best_counted
        try:
            while best is not None:
                owner, numbers = best.owner, best.misreport.near()
                before = best
                for name, (low, high) in numbers.items():
                    for _ in range(ZOOMS):
                        step = (high - low) / (ZOOM - 1)
                        for at in np.linspace(low, high, ZOOM).tolist():
                            best = self._better(best, best.misreport.with_values({name: at}))
                        here = float(getattr(best.misreport, name, low))
                        low, high = max(low, here - step), min(high, here + step)
                if best is before or owner is not best.owner:
                    break
        except BudgetSpent:
            pass
        self.found.plays = self.budget.plays

    def _better(self, best: Gain, lie: Misreport) -> Gain:
        """Return the lie that counts for more."""
        if (best.owner.name, lie) in self._sharpened:
            return best
        self._sharpened.add((best.owner.name, lie))
        gain = self.try_lie(best.owner, lie)
        if gain is None or (gain.own_law is None and gain.gain <= 0):
            return best
        if best.owner.promise != "ex post" and gain.own_law is None:
            gain = self._gone_through(gain, self._truths)
            if gain is None:
                return best
            self.found.checked.append(gain)
        return gain if gain.counted > best.counted else best

    def _gone_through(self, g: Gain, truths: dict[str, list[Played]], here: Played | None = None) -> Gain | None:
        """Return a gain with its mean over the own law; None: the mechanism fails or refuses in one case.

        ``here`` is how the lie ends in the case that happened, where that is known.
        """
        owner = g.owner
        if owner.certain:
            return replace(g, own_law=g.gain)
        if self.ahead is not None and not self.budget.out_of_time:
            lies = [None, g.misreport] if owner.name not in truths else [g.misreport]
            others = [k for k, (fate, _) in enumerate(owner.own_law) if here is None or fate != fate_of(owner.job)]
            cases = [Asked(owner.name, lie, k) for lie in lies for k in others]
            self.ahead.plays(self.found.market, [(owner, case) for case in cases], self.budget)
        try:
            if owner.name not in truths:
                truth = owner.truthful if here is not None else None
                truths[owner.name] = list(over_cases(owner, truth_of(owner), self.budget, truth))
            mean, drew = over_law(owner, g.conduct, truths[owner.name], self.budget, here)
        except (MechanismFault, InvalidReportError):
            return None
        return replace(g, own_law=mean, drew=g.drew or drew)


def lie_of(owner: OwnerAtHand, lie: Misreport) -> Candidate | None:
    """Return a lie as it is played; None: it is illegal, or the truth."""
    made = prepared(owner, lie)
    return made if isinstance(made, Candidate) and made.conduct.key != owner.truth else None


def _pays_by_menu(owner: OwnerAtHand, made: Candidate, played: Played) -> bool:
    """Tell whether the payment under a lie is one that a menu at arrival announces."""
    if played.completion is None or not owner.truth.revealed or owner.job.duration is None or owner.truth.shapes:
        return False
    return len(made.conduct.statements) == 1


def over_cases(
    owner: OwnerAtHand, conduct: Conduct, budget: Budget | None = None, here: Played | None = None
) -> Iterator[Played]:
    """Play a conduct in each case of the owner's own law, all else as it is; each counts in the budget.

    ``here`` is how it ends in the case that happened, where that is known.
    """
    for fate, _ in owner.own_law:
        if here is not None and fate == fate_of(owner.job):
            yield here
            continue
        if budget is not None:
            budget.take()
        yield owner.play(conduct, fate)


def over_law(
    owner: OwnerAtHand,
    conduct: Conduct,
    truths: Sequence[Played] | None = None,
    budget: Budget | None = None,
    here: Played | None = None,
) -> tuple[float, bool]:
    """Return the mean gain over the owner's own law, all else as it is, and whether the mechanism drew meanwhile.

    ``truths`` tells how the truth ends in each case (None: it is played), ``here`` how the conduct ends in the one that
    happened; the plays count in ``budget``.
    """
    known = list(over_cases(owner, truth_of(owner), budget)) if truths is None else truths
    lies = list(over_cases(owner, conduct, budget, here))
    gains = np.array([lie.utility - truth.utility for lie, truth in zip(lies, known, strict=True)])
    mean = float(gains @ np.array([p for _, p in owner.own_law]))
    mean = mean if abs(mean) > ROUNDING * (1 + float(np.abs(gains).max())) else 0.0
    return mean, any(played.drew for played in lies)


def settled(lie: Played, truth: Played) -> float:
    """Return the gain; less than rounding counts as 0."""
    gain = lie.utility - truth.utility
    return gain if abs(gain) > ROUNDING * (1 + abs(truth.utility)) else 0.0


def owners_for(plays: int | None) -> int:
    """Return the number of owners for a screen of this many plays."""
    return MOST_OWNERS if plays is None else int(np.clip(plays // (1 + LIES_EACH), FEWEST_OWNERS, MOST_OWNERS))


def drawn_owners(market: MarketAtHand, most: int, seed: int) -> list[str]:
    """Return jobs in the order in which they are played, drawn over the whole horizon.

    Every other one is drawn among those that pay or lose under the truth, as long as there are any.
    """
    outcomes = market.outcomes
    rng = np.random.default_rng([0x5C4EE, seed])
    names = [job.name for job in market.setup.jobs if job.arrival is not None]
    names = [names[i] for i in rng.permutation(len(names)).tolist()]
    concerned = [name for name in names if outcomes[name].payment > 0 or outcomes[name].utility < 0]
    apart = set(concerned)
    others = [name for name in names if name not in apart]
    chosen: list[str] = []
    while len(chosen) < most and (concerned or others):
        for pool in (concerned, others):
            if pool and len(chosen) < most:
                chosen.append(pool.pop(0))
    return chosen
