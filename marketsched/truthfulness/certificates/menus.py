"""Does a report change its own menu, and does the payment equal the menu's? Several reports of one owner are played.

A menu mechanism is truthful because a report only selects: the owner's menu must not depend on it. A
search over gains sees a dependence only where it pays; here it shows as soon as one bit moves, through
others' bookings as well. The rounds before the owner's turn cannot depend on its report: they are played
once, and each report goes on from a copy of the market until its job has left. Menus are compared bit for bit, and
each payment, under the truth and under every lie, with the menu that its job was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.bid_price.entries import ArrivalMenu
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError
from marketsched.mechanisms.limits import check_report
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.menu import Menu
from marketsched.mechanisms.resources.menus import ClusterMenu
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.searches.families import default_families
from marketsched.truthfulness.situations.announced import Mischarged, announced_price
from marketsched.truthfulness.situations.guarded_market import GuardedMarket, snapshot
from marketsched.truthfulness.situations.true_owners import Births, TrueOwners, born_by_round

Lie = tuple[str, StatementOfWork]  # in words, and what is reported
ROUNDING = 1e-9  # of a price: two ways of adding it up


@dataclass(frozen=True, slots=True)
class MenuMoved:
    """A report that moves what its own job faces."""

    job: str
    lie: str  # in words
    report: StatementOfWork
    difference: str  # the first entry that differs

    def __str__(self) -> str:
        """Return it as one would say it."""
        return f"{self.job} {self.lie}, and faces another menu: {self.difference}"


@dataclass(frozen=True, slots=True)
class MenuCheck:
    """A comparison of menus: the first report that changed its own menu, the first payment unlike its menu.

    Examples
    --------
    >>> print(MenuCheck(owners=2, lies=24, rates_only=False, moved=None, payments=31).words)
    menus at arrival are the same, bit for bit, under 24 lies of 2 owners; 31 payments equal their menus
    """

    owners: int
    lies: int
    rates_only: bool  # durations hidden: only the rate is locked, no menu
    moved: MenuMoved | None
    payments: int = 0  # that were compared with the menu of their job
    mischarged: Mischarged | None = None

    @property
    def words(self) -> str:
        """The checks that a certificate rests on."""
        what = "rates locked at arrival" if self.rates_only else "menus at arrival"
        if self.moved is not None:
            return f"{what} depend on the report: {self.moved}"
        still = f"{what} are the same, bit for bit, under {self.lies:,} lies of {self.owners:,} owners"
        if self.mischarged is not None:
            return f"{still}; a payment differs: {self.mischarged}"
        return f"{still}; {self.payments:,} payments equal their menus"


def difference(honest: Any, lied: Any) -> str | None:
    """Return the first thing in which two menus differ, bit for bit; None: they are the same.

    Examples
    --------
    >>> first = ArrivalMenu(4, np.array([2, 2]), np.array([0.0, 0.5]))
    >>> difference(first, ArrivalMenu(4, np.array([2, 1]), np.array([0.0, 0.5])))
    '1 nodes free in round 5, not 2'
    """
    if type(honest) is not type(lied):
        return f"{_kind(lied)}, not {_kind(honest)}"
    if isinstance(honest, tuple):  # menus at birth, of 1, 2, ... nodes
        each = enumerate((difference(*pair) for pair in zip(honest, lied, strict=True)), 1)
        return next((f"on {width} nodes, {moved}" for width, moved in each if moved is not None), None)
    if not is_dataclass(honest):
        return None if honest == lied else f"{lied!r}, not {honest!r}"
    for field in fields(honest):
        ours, theirs = getattr(honest, field.name), getattr(lied, field.name)
        if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
            found = _first_entry(ours, theirs)
            if found is not None:
                return _entry(honest, field.name, found, ours, theirs)
        elif _bits(ours) != _bits(theirs):
            return f"{field.name} {theirs!r}, not {ours!r}"
    return None


def _kind(menu: Any) -> str:
    return "no menu" if menu is None else f"a {type(menu).__name__}"


def _bits(x: Any) -> Any:
    return x.hex() if isinstance(x, float) else x


def _first_entry(ours: NDArray[Any], theirs: NDArray[Any]) -> tuple[int, ...] | None:
    """Return the place of the first entry that differs in any bit; () if the shapes do."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return ()
    if ours.tobytes() == theirs.tobytes():
        return None
    raw = [np.frombuffer(x.tobytes(), dtype=np.uint8).reshape(x.size, -1) for x in (ours, theirs)]
    place = int((raw[0] != raw[1]).any(axis=1).argmax())
    return tuple(int(i) for i in np.unravel_index(place, ours.shape))


def _entry(menu: Any, name: str, place: tuple[int, ...], ours: NDArray[Any], theirs: NDArray[Any]) -> str:
    """Return one entry that differs in words."""
    if not place:
        return f"{theirs.size} entries of {name}, not {ours.size}"
    was, now = ours[place].item(), theirs[place].item()
    if isinstance(menu, ArrivalMenu) and name == "free":
        return f"{now} nodes free in round {menu.now + place[0]}, not {was}"
    if isinstance(menu, ArrivalMenu) and name == "prefix":
        return f"prices up to round {menu.now + place[0] - 1} add up to {now!r}, not {was!r}"
    if isinstance(menu, Menu):
        row, column = place
        return (
            f"{name.removesuffix('s')} {now!r} of start {menu.first_start + row} for {column + 1} rounds, not {was!r}"
        )
    return f"{name}{list(place)} is {now!r}, not {was!r}"


def lies_of(truth: StatementOfWork, public: PublicInformation, count: int, rng: np.random.Generator) -> list[Lie]:
    """Return different legal misreports inside the model, in words and as reports; fewer if there are fewer."""
    members = [member for family in default_families(truth, public) for member in family.members]
    found: list[Lie] = []
    seen = [truth]
    longest = public.max_duration or public.horizon
    highest = np.inf if public.max_value is None else public.max_value
    for place in rng.permutation(len(members)).tolist():
        if len(found) == count:
            break
        try:
            report = members[place].report(truth, public)
            check_report("a lie", report, truth.birth, public.widest, longest, highest, public.cluster)
        except (InvalidReportError, EventError):
            continue
        if not any(report == other for other in seen):
            seen.append(report)
            found.append((members[place].words(truth), report))
    return found


@dataclass(frozen=True, slots=True)
class Served:
    """The menu of an examined job, and its outcome under its true report.

    Examples
    --------
    >>> Served(menu=None, completion=None, payment=0.0).payment  # of a job that was not served
    0.0
    """

    menu: Any  # as `menu_at_arrival` returns it; None: it was not served
    completion: int | None
    payment: float  # credits
    worth: float = 1.0  # of the result, compared with the value curve


def play_menus(
    setup: MarketSetup,
    lies: Mapping[str, Sequence[Lie]],
    progress: Callable[[int], None] | None = None,
) -> tuple[dict[str, Served], MenuCheck]:
    """Play a market of true reports; on the way, ask of some jobs whether other reports move their menus.

    Parameters
    ----------
    setup : MarketSetup
        With a mechanism that posts menus at arrival (`Mechanism.posts_menus_at_arrival`); it is used up.
    lies : mapping of str to a sequence of (words, StatementOfWork)
        By job that is looked at; there may be none.
    progress : function of int, optional
        Called after each round with its number.

    Returns
    -------
    tuple of dict and MenuCheck
        Menu and outcome of each of these jobs; and the first lie that changed a menu, in order of arrival. Jobs that
        never arrive are left out of both.

    Raises
    ------
    InvalidParameterError
        If the mechanism cannot be pickled, which copies of the market are made by.
    MechanismFault
        If it breaks the protocol.

    Examples
    --------
    >>> from marketsched.config.scenario import Scenario
    >>> setup = Scenario.load("stochastic-mix").with_mechanism("bid-price").setup(np.random.default_rng(1))
    >>> job = setup.jobs[0]
    >>> served, check = play_menus(setup, {job.name: lies_of(job.truth, setup.public, 3, np.random.default_rng(2))})
    >>> check.lies, check.moved
    (3, None)
    """
    market = GuardedMarket(lambda rng: setup.mechanism, np.random.default_rng(0), setup.capacity)
    setup.mechanism.keep_menus(lies)
    everybody = _Everybody(setup, lies, progress)
    play(market, everybody, setup.horizon)
    return everybody.served, everybody.check()


def has_entries(menu: Any) -> bool:
    """Tell whether a menu at arrival prices starts, and not only a rate, as that of a job of hidden duration."""
    return hasattr(menu, "prices") or isinstance(menu, ClusterMenu)


class _Everybody(TrueOwners):
    """The same, who look at some jobs and at what other reports would make of their menus."""

    def __init__(
        self, setup: MarketSetup, lies: Mapping[str, Sequence[Lie]], progress: Callable[[int], None] | None
    ) -> None:
        super().__init__(setup, born_by_round(setup.jobs))
        self._lies, self._progress = lies, progress
        self._open = {name for name in lies if self.by_name[name].arrival is not None}
        self._faced: dict[str, list[Any]] = {}  # under each lie
        self._asked: list[tuple[str, int]] = []
        self.served: dict[str, Served] = {}
        self.moved: MenuMoved | None = None
        self._payments, self._mischarged = 0, cast(Mischarged | None, None)
        self._bookings: dict[Any, Any] = {}  # on a cluster, of jobs that are looked at

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once every job that is looked at has left."""
        return not self._open

    def check(self) -> MenuCheck:
        """Return the result of the comparison."""
        menus = [each.menu for each in self.served.values()]
        rates = bool(menus) and not any(map(has_entries, menus))
        asked = [count for _, count in self._asked if count]
        return MenuCheck(len(asked), sum(asked), rates, self.moved, self._payments, self._mischarged)

    def submit(self, job: Job, market: Any, place: int) -> None:
        """Submit one job; one that is looked at first under its lies, each in a copy of the market."""
        if job.name in self._open and self._lies[job.name]:
            self._faced[job.name] = self._under_lies(job, market, place)
        super().submit(job, market, place)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Note what became of the jobs that are looked at."""
        super().hear(events, market)
        for name in [name for name in self._open if self.by_name[name].arrival == market.now - 1]:
            self._compare(name, market)
        for event in events:
            if event.job in self._open and event.kind is EventKind.START:
                self._bookings[event.job] = market.placed_now.get(event.job)
            if event.job in self._open and event.kind.leaves:
                menu, booking = menu_of(market, event.job), self._bookings.pop(event.job, None)
                self.served[event.job] = Served(menu, event.completion, event.payment, event.worth)
                job = self.by_name[event.job]
                self._compare_payment(job, "reports the truth", job.truth, menu, event, booking)
                self._open.discard(event.job)
        if market.now > self._setup.horizon:
            for name in self._open:
                self.served[name] = Served(menu_of(market, name), None, 0.0)
        if self._progress is not None:
            self._progress(market.now - 1)

    def _under_lies(self, job: Job, market: GuardedMarket, place: int) -> list[Any]:
        """Return what the job faces under each lie."""
        kept = snapshot(market)
        if kept is None:
            raise InvalidParameterError(
                f"mechanism = {type(market.mechanism).__name__}: it cannot be pickled: expected one that can, to ask "
                "whether reports move menus"
            )
        found = []
        for words, report in self._lies[job.name]:
            copy = kept.copy()
            copy.submit(job.name, report, job, job.truth.concurrency, owner=job.owner, own=True)
            others = _UntilItLeft(self._setup, self._born, place + 1, job.name)
            play(copy, others, min(job.arrival or 0, self._setup.horizon))
            menu = menu_of(copy, job.name)
            if others.last is None:
                play(copy, others, self._setup.horizon)
            if others.last is not None:
                self._compare_payment(job, words, report, menu, others.last, others.booking)
            found.append(menu)
        return found

    def _compare_payment(
        self, job: Job, words: str, report: StatementOfWork, menu: Any, event: Event, booking: Any
    ) -> None:
        """Compare what a job paid with the menu that it was shown under this report."""
        if event.kind is not EventKind.COMPLETE or event.completion is None or menu is None:
            return
        start = event.completion - job.duration if booking is None else booking.start
        used = event.completion - start
        announced = announced_price(menu, report.concurrency, start, used, event.payment, booking)
        self._payments += 1
        same = abs(announced - event.payment) <= ROUNDING * max(1.0, abs(announced))
        if not same and self._mischarged is None:
            self._mischarged = Mischarged(job.name, words, start, event.payment, announced)

    def _compare(self, name: str, market: MarketLoop) -> None:
        honest, under_lies = menu_of(market, name), self._faced.pop(name, [])
        self._asked.append((name, len(under_lies)))
        for (words, report), lied in zip(self._lies[name], under_lies, strict=True):
            moved = difference(honest, lied)
            if moved is not None and self.moved is None:
                self.moved = MenuMoved(name, words, report, moved)


class _UntilItLeft(TrueOwners):
    """The same, who play until one job has left."""

    def __init__(self, setup: MarketSetup, born: Births, entered: int, name: str) -> None:
        super().__init__(setup, born, entered)
        self._name = name
        self.last: Event | None = None  # with which it left
        self.booking: Any = None  # on a cluster, what it had

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once the job has left."""
        return self.last is not None

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Note how the job leaves."""
        super().hear(events, market)
        for event in events:
            if event.job == self._name and event.kind is EventKind.START:
                self.booking = market.placed_now.get(event.job)
            if event.job == self._name and event.kind.leaves:
                self.last = event


def menu_of(market: MarketLoop, name: Any) -> Any:
    """Return the menu of a job; None: nothing."""
    try:
        return market.mechanism.menu_at_arrival(name)
    except EventError:
        return None
