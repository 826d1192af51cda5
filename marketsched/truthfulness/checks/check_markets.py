"""The small random markets that mechanisms are checked in, and how one is played."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.call_limit import timed
from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.agents.playing import play as play_rounds
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.forwarding import as_mechanism
from marketsched.mechanisms.mechanism import Event, Mechanism
from marketsched.mechanisms.menu import Menu
from marketsched.mechanisms.registry import builder_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, LinearValue
from marketsched.truthfulness.certificates.menus import menu_of

TOLERANCE = 1e-9  # credits
Factory = Callable[..., Mechanism]

SIZES: dict[str, Any] = {
    "capacity": 3,
    "horizon": 12,
    "max_concurrency": 2,
    "max_duration": 3,
    "max_value": 10.0,
    "max_delay": 9,
}
WIDE: dict[str, Any] = {**SIZES, "capacity": 6, "horizon": 9, "max_concurrency": 5, "max_value": 40.0}
LAST_ROUND, SHORT_DELAY = 8, 5  # of `CheckMarket.cut`


def tried_builder(mechanism: str | Callable[..., Any], *sizes: dict[str, Any]) -> Factory:
    """Return a function that builds a mechanism, as `builder_of` takes it; it has been called for each of these sizes.

    Raises InvalidParameterError if it can be built for none, as no check could say more; with the reason for the first.
    """
    build, reasons = builder_of(mechanism), list[Exception]()
    for each in sizes:
        try:
            build(**each, rng=np.random.default_rng(0))
        except Exception as error:  # a mechanism may raise anything
            reasons.append(error)
    if not sizes or len(reasons) < len(sizes):
        return build
    if isinstance(reasons[0], InvalidParameterError):
        raise reasons[0]
    raise InvalidParameterError(
        f"mechanism = {mechanism!r} cannot be built: {type(reasons[0]).__name__}: {reasons[0]}"
    ) from reasons[0]


@dataclass(frozen=True, slots=True)
class CheckMarket:
    """Jobs by name, in order of submission, and the limits of the market."""

    jobs: dict[Any, Job]
    seed: int
    sizes: dict[str, Any] = field(default_factory=lambda: dict(SIZES))

    def without(self, names: Iterable[str]) -> CheckMarket:
        """Return the same market without some of its jobs."""
        left_out = set(names)
        return CheckMarket({n: job for n, job in self.jobs.items() if n not in left_out}, self.seed, self.sizes)

    def hidden(self) -> CheckMarket:
        """Return the same market with durations that stay hidden until a job ends."""
        jobs = {}
        for name, job in self.jobs.items():
            points = [(r.arrival, r.duration, r.probability, None) for r in job.truth.requirements]
            truth = StatementOfWork(job.truth.birth, job.truth.concurrency, job.truth.value, points)
            jobs[name] = replace(job, truth=truth, signal=None)
        return CheckMarket(jobs, self.seed, self.sizes)

    def cut(self) -> CheckMarket:
        """Return the same market, ended while its last jobs run, in which waiting soon brings nothing."""
        return CheckMarket(self.jobs, self.seed, {**self.sizes, "horizon": LAST_ROUND, "max_delay": SHORT_DELAY})

    @property
    def public(self) -> PublicInformation:
        """Public information of owners."""
        names = ("capacity", "horizon", "max_delay", "max_concurrency", "max_duration", "max_value")
        return PublicInformation(*(self.sizes[name] for name in names))


@dataclass(slots=True)
class Transcript:
    """The outputs of a mechanism."""

    events: list[Event] = field(default_factory=list)
    loads: list[int] = field(default_factory=list)  # nodes busy, round by round, as the events tell
    menus: dict[Any, Menu] = field(default_factory=dict)  # by job, of the moment before its submission
    faced: dict[Any, Any] = field(default_factory=dict)  # by job: menus of all widths at birth, or that at arrival
    surfaces: list[tuple[int, NDArray[np.float64]]] = field(default_factory=list)


def check_market(seed: int) -> CheckMarket:
    """Return a market of up to ten jobs with laws of two points, durations revealed; a few never arrive."""
    rng = np.random.default_rng([11, seed])
    jobs: dict[Any, Job] = {}
    for i, birth in enumerate(np.sort(rng.integers(1, 7, int(rng.integers(4, 11)))).tolist()):
        cases = [(birth + int(a), int(d)) for a, d in rng.integers((0, 1), (3, 4), (2, 2))]
        last, worth = birth + int(rng.integers(2, 8)), float(rng.integers(1, 11))
        curve = DeadlineValue(worth, last) if rng.random() < 0.5 else LinearValue(worth, birth + 2, 0.7, last)
        points = [(*case, p) for case, p in zip(cases, (0.6, 0.3), strict=True)]
        sow = StatementOfWork(birth, int(rng.integers(1, SIZES["max_concurrency"] + 1)), curve, points)
        which = int(rng.choice(3, p=[0.6, 0.3, 0.1]))
        name = f"job {i}"
        arrival, duration = (None, 1) if which == 2 else cases[which]
        jobs[name] = Job(name, name, sow, arrival, duration, duration)
    return CheckMarket(jobs, seed)


def contested_market(seed: int) -> CheckMarket:
    """Return a market in which jobs are overtaken: announced early, they come rarely by their laws, and do come.

    Where prices and estimates follow the laws, nodes are sold to others meanwhile, and the load exceeds the capacity:
    this shows evictions and their payments.
    """
    rng = np.random.default_rng([12, seed])
    jobs: dict[Any, Job] = {}
    for i, birth in enumerate(np.sort(np.r_[1, 1, 1, rng.integers(1, 6, 5)]).tolist()):
        first, second = (int(d) for d in rng.permutation([1, 2, 3])[:2])
        worth, nodes = float(rng.integers(3, 11)), int(rng.integers(1, SIZES["max_concurrency"] + 1))
        if i < 3 or rng.random() < 0.3:
            ready = birth + int(rng.integers(2, 4))
            points = [(ready, first, 0.1), (ready, second, 0.1)]
            comes, duration = rng.random() < 0.8, int(rng.choice([first, second]))
        else:
            ready, points, comes, duration = birth, [(birth, 3, 0.6), (birth, 2, 0.4)], True, int(rng.choice([3, 2]))
        last = min(ready + 3 + int(rng.integers(0, 2)), birth + SIZES["max_delay"] - 1)
        sow = StatementOfWork(birth, nodes, DeadlineValue(worth, last), points)
        jobs[f"job {i}"] = Job(f"job {i}", f"job {i}", sow, ready if comes else None, duration, duration)
    return CheckMarket(jobs, seed)


def wide_market(seed: int) -> CheckMarket:
    """Return a market of jobs of up to five nodes, two of each owner, half of which come in the last rounds.

    A job comes in one of two rounds, with another duration in each; both are as likely as it says.
    """
    rng = np.random.default_rng([13, seed])
    jobs: dict[Any, Job] = {}
    last = WIDE["horizon"] - 1
    early, late_ones = rng.choice(np.arange(1, 5), 2), rng.choice(np.arange(5, last + 1), 2)
    for i, birth in enumerate(np.sort(np.r_[rng.choice(early, 5), rng.choice(late_ones, 5)]).tolist()):
        chance, late = float(rng.choice([0.3, 0.5, 0.7])), int(rng.integers(0, 2))
        cases = [(birth + at, int(d)) for at, d in zip((late, late + 1), rng.permutation([1, 2, 3])[:2], strict=True)]
        nodes, (arrival, duration) = int(rng.integers(1, 6)), cases[int(rng.random() >= chance)]
        worth = float(rng.uniform(0.3, 2.5)) * nodes * sum(d for _, d in cases) / 2
        curve = DeadlineValue(worth, min(cases[1][0] + 3 + int(rng.integers(0, 4)), last + 2))
        points = [(*case, p) for case, p in zip(cases, (chance, 1 - chance), strict=True)]
        name, owner = f"job {i}", f"owner {i % 5}"
        jobs[name] = Job(name, owner, StatementOfWork(birth, nodes, curve, points), arrival, duration, duration)
    return CheckMarket(jobs, seed, dict(WIDE))


Form = Literal["changing", "contested", "wide"]
FORMS: dict[Form, Callable[[int], CheckMarket]] = {
    "changing": check_market,
    "contested": contested_market,
    "wide": wide_market,
}
COVERED = "up to five nodes a job, two jobs an owner, two cases of arrival and duration, the last rounds"
NARROW = "up to two nodes a job, one job an owner, two cases of arrival and duration"


class Kind(NamedTuple):
    """Of a market that is drawn."""

    form: Form
    hidden: bool = False  # its durations


def drawn_market(number: int, kind: Kind) -> CheckMarket:
    """Return the market of this number and kind."""
    found = FORMS[kind.form](number)
    return found.hidden() if kind.hidden else found


def kinds_for(build: Factory) -> list[Kind]:
    """Return the kinds of markets that are drawn by turns: with hidden durations, too, if truth is promised there.

    A rule that refuses the sizes of wide markets has none of these.
    """
    promised = getattr(build(**SIZES, rng=np.random.default_rng(0)), "truthful_hidden", "none") != "none"
    forms: list[Form] = ["wide", "changing", "contested"]
    try:
        build(**WIDE, rng=np.random.default_rng(0))
    except InvalidParameterError:
        forms = forms[1:]
    return [Kind(form, hidden) for hidden in (False, True)[: 1 + promised] for form in forms]


def play(
    factory: Factory,
    market: CheckMarket,
    *,
    menus: bool = False,
    surfaces: str = "",
    pickle_in: int = 0,
    before_play: Callable[[Mechanism], None] | None = None,
    faced: bool = False,
    lies: Mapping[Any, StatementOfWork] | None = None,
    restated: Mapping[Any, StatementOfWork] | None = None,
    quotes: int = 0,
) -> Transcript:
    """Play a market through the protocol.

    ``menus`` keeps the menu of each submission, ``surfaces`` ("price" or "failure") all announced tables, ``faced``
    what each job faces, at birth or at arrival; all only of mechanisms that have menus. In round ``pickle_in`` the
    mechanism is pickled, and its copy goes on. ``lies`` are reports in place of the true ones, by job; those of
    ``restated`` take that place in the round of the arrival, see `Mechanism.restate`. Before each submission the
    market answers ``quotes`` quotes.
    """
    with timed("the construction", 1):
        mechanism = as_mechanism(factory(**market.sizes, rng=np.random.default_rng(market.seed)))
    at_arrival = faced and mechanism.posts_menus_at_arrival
    if at_arrival:
        mechanism.keep_menus()
    if before_play is not None:
        before_play(mechanism)
    loop = _AsReturned(mechanism)
    played = Transcript()
    watched = _Watched(
        market, played, menus, surfaces, pickle_in, faced and not at_arrival, lies or {}, quotes, restated or {}
    )
    play_rounds(loop, watched, market.sizes["horizon"])
    for name, job in market.jobs.items() if at_arrival else ():
        if job.arrival is not None and job.arrival <= market.sizes["horizon"]:
            played.faced[name] = menu_of(loop, name)
    played.events += loop.close()
    return played


class _AsReturned(MarketLoop):
    """A market whose events are as the mechanism returned them: what it says is what is checked."""

    def _by_own_clock(self, event: Event) -> Event:
        return event


class _Watched(TruthfulOwners):
    """Truthful owners, and a note of what the mechanism says to them."""

    def __init__(
        self,
        market: CheckMarket,
        played: Transcript,
        menus: bool,
        surfaces: str,
        pickle_in: int,
        faced: bool,
        lies: Mapping[Any, StatementOfWork],
        quotes: int,
        restated: Mapping[Any, StatementOfWork],
    ) -> None:
        super().__init__(market.jobs.values())
        self._faced, self._lies, self._quotes, self._restated = faced, lies, quotes, restated
        self._market, self._played = market, played
        self._menus, self._surfaces, self._pickle_in = menus, surfaces, pickle_in

    def act(self, market: MarketLoop) -> None:
        """Submit, after the mechanism's copy has taken its place if it is time to; then replace reports."""
        if market.now == self._pickle_in:
            market.mechanism = pickle.loads(pickle.dumps(market.mechanism))
        super().act(market)
        for name, report in self._restated.items():
            if self._market.jobs[name].arrival == market.now and name in market.entries:
                market.restate(name, report)

    def submit(self, job: Job, market: MarketLoop) -> None:
        """Submit one job, after looking at what is announced to it."""
        mechanism = market.mechanism
        menu = mechanism.menu(job.truth.concurrency)
        if menu is not None:
            if self._menus:
                self._played.menus[job.name] = menu
            if self._surfaces:
                surface = _surface(mechanism, self._market, market.now, self._surfaces)
                self._played.surfaces.append((market.now, surface))
            if self._faced:
                widths = range(1, self._market.sizes["max_concurrency"] + 1)
                self._played.faced[job.name] = tuple(mechanism.menu(width) for width in widths)
        report = self._lies.get(job.name, job.truth)
        for k in range(self._quotes):
            mechanism.quote(f"{job.name}, asked for the {k + 1}. time", report)
        market.submit(job.name, report, job, job.truth.concurrency, owner=job.owner)

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Note the events, and the load."""
        self._played.events += events
        self._played.loads.append(market.load)


def _surface(mechanism: Any, market: CheckMarket, now: int, what: str) -> NDArray[np.float64]:
    """Return an announced table for all widths, rounds and durations; NaN for rounds gone by or too far ahead."""
    widths, durations = market.sizes["max_concurrency"], market.sizes["max_duration"]
    found = np.full((widths, market.sizes["horizon"], durations), np.nan)
    starts = np.arange(now, min(now + market.sizes["max_delay"], market.sizes["horizon"] + 1))
    for width in range(1, widths + 1):
        menu = mechanism.menu(width)
        table = getattr(menu, what)(starts[:, None], np.arange(1, durations + 1)[None, :])
        found[width - 1, starts - 1] = table
    return found
