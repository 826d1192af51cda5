"""`check_mechanism` passes what is sound, catches what is not, and says so in words."""

from itertools import count

import numpy as np
import pytest

from draws import many
from faulty_mechanisms import FAULTS, UNFAIR
from marketsched.mechanisms import (
    InvalidParameterError,
    LaunchPlan,
    MarketschedError,
    StatementLaw,
    get_mechanism,
    mechanism_names,
)
from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.registry import get
from marketsched.truthfulness import MechanismCheckError, check_mechanism, mechanism_checks
from marketsched.truthfulness.checks.check_markets import check_market, play
from marketsched.truthfulness.checks.checks import CHECKS
from refusals import refused

LATER = "later jobs change nothing"
NOT_CLAIMED = {
    "stochastic": {"capacity is held": "bundles need more nodes than these markets have; it is built with 30"}
}


OWN = [name for name in mechanism_names() if get("mechanism", name).__module__.startswith("marketsched.")]


def built(name):
    """Return a factory of a registered mechanism, large enough for bundles."""

    def factory(**sizes):
        if name != "stochastic":
            return get_mechanism(name, **sizes)
        laws = [StatementLaw([(job.truth, 1.0)]) for seed in range(6) for job in check_market(seed).jobs.values()]
        sizes["capacity"] = 30
        return get_mechanism(name, **sizes, laws=laws)

    return factory


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_every_registered_mechanism_passes_what_it_claims(name):
    report = check_mechanism(built(name), except_for=NOT_CLAIMED.get(name), n_markets=many(6, least=3))
    report.raise_if_failed()
    assert report["events are in order"].outcome == "passed"
    at_arrival = name in ("bid-price", "two-offers")
    on_clusters = name in ("cluster-bid-price", "cluster-exponential", "cluster-first-come")
    at_birth = name in ("exponential", "posted-price", "stochastic")
    seen = {check for check in CHECKS if report[check].outcome != "does not apply"}
    assert ("prices grow in time, width and length" in seen) is at_birth
    assert ({"pays what the menu said", "its own report moves no menu"} <= seen) is (
        at_birth or at_arrival or on_clusters
    )
    assert ("gives the best entry of the menu at arrival" in seen) is at_arrival


def test_markets_are_varied():
    """The checks see starts, drops, evictions or cancellations, completions, and jobs that never arrive."""
    kinds, never = set(), 0
    for seed in range(20):
        market = check_market(seed)
        never += sum(job.arrival is None for job in market.jobs.values())
        played = play(
            lambda **sizes: get_mechanism(
                "posted-price", **sizes, pricing={"kind": "posted", "prices": [0]}, threshold=1.0
            ),
            market,
        )
        kinds |= {event.kind.value for event in played.events}
    assert kinds >= {"start", "drop", "complete", "cancel"}
    assert never > 0


CAUGHT_BY = {
    "pays the report": "pays what the menu said",
    "FIFO eviction": "later jobs change nothing",
    "evicts everybody": "later jobs change nothing",
    "prices fall over time": "prices grow in time, width and length",
    "wide is cheap": "prices grow in time, width and length",
}


RULES = {"pricing": {"kind": "posted", "prices": [0.3]}, "threshold": 1.0}
FIRST, *REST = CAUGHT_BY  # a report makes all checks, so that most are slow


@pytest.mark.parametrize("fault", REST)
def test_faults_that_a_check_can_see_are_seen(fault):
    checks = dict(mechanism_checks(lambda **sizes: FAULTS[fault](**sizes, **RULES), n_markets=many(40)))
    with pytest.raises(MechanismCheckError, match=CAUGHT_BY[fault]):
        checks[CAUGHT_BY[fault]]()


SEEN_BY = {
    "lowest value first": "later jobs change nothing",
    "ties by value": "later jobs change nothing",
    "refund on eviction": "pays nothing when evicted",
    "charge for the reported duration": "pays for the rounds used",
}


@pytest.mark.parametrize("fault", UNFAIR)
def test_faults_in_who_is_evicted_and_in_what_is_paid_are_seen(fault):
    """With the paper's own prices and estimates, as with flat ones."""
    for rules in ({}, RULES):
        checks = dict(mechanism_checks(lambda rules=rules, **sizes: UNFAIR[fault](**sizes, **rules)))
        with pytest.raises(MechanismCheckError, match=SEEN_BY[fault]):
            checks[SEEN_BY[fault]]()


@pytest.mark.slow
def test_that_later_jobs_change_nothing_is_asked_of_those_that_state_it():
    class Promises(FirstCome):
        later_jobs_change_nothing = True

    asked = {}
    for kind in (FirstCome, Promises):
        report = check_mechanism(lambda rng, kind=kind, **sizes: kind(**sizes), n_markets=4)
        asked[kind] = report[LATER].outcome
        checks = dict(mechanism_checks(lambda rng, kind=kind, **sizes: kind(**sizes), n_markets=4))
        if kind is Promises:
            with pytest.raises(MechanismCheckError, match=LATER):
                checks[LATER]()
        else:
            report.raise_if_failed()
            checks[LATER]()
    assert asked == {FirstCome: "not claimed", Promises: "failed"}


def test_a_report_can_be_gone_through_and_knows_its_names():
    report = check_mechanism(built("first-come"), n_markets=1)
    assert [result.name for result in report] == list(CHECKS) and len(report) == len(CHECKS)
    with pytest.raises(KeyError, match="'capacity' is no check: expected one of capacity is held"):
        report["capacity"]


class Wrong(FirstCome):
    """First come, with one fault."""


class Oversold(Wrong):
    def __init__(self, capacity, horizon, **limits):
        super().__init__(capacity + 2, horizon, **limits)


class PaysAtOnce(Wrong):
    def advance(self):
        return [type(e)(e.round, e.kind, e.job, payment=1.0) for e in super().advance()]


class TakesAll(Wrong):
    def complete(self, job):
        event = super().complete(job)
        return type(event)(event.round, event.kind, job, event.completion, 1e6)


class Shared(Wrong):
    calls = 0

    def advance(self):
        Shared.calls += 1
        return [] if Shared.calls % 7 == 0 and self._shift() else super().advance()

    def _shift(self):
        self._round += 1
        return True


class Unpicklable(Wrong):
    def __init__(self, capacity, horizon, **limits):
        super().__init__(capacity, horizon, **limits)
        self.hook = lambda: None


class Meddles(Wrong):
    def submit(self, job, sow):
        object.__setattr__(sow, "concurrency", 1)
        return super().submit(job, sow)


class TakesAnything(Wrong):
    def arrive(self, job, signal=None):
        if job in self._jobs:
            super().arrive(job, signal)


class Starts(Wrong):
    def advance(self):
        events = super().advance()
        return [*events, *events]


class Explodes(Wrong):
    def advance(self):
        raise ZeroDivisionError("no luck")


@pytest.mark.long_after(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Oversold, "capacity is held"),
        (PaysAtOnce, "pays on completion only"),
        (TakesAll, "pays at most the declared value"),
        (Shared, "same seed, same outcome"),
        (Unpicklable, "pickles"),
        (Meddles, "reports are left unchanged"),
        (TakesAnything, "wrong input is refused"),
        (Starts, "events are in order"),
        (Explodes, "capacity is held"),
    ],
)
def test_every_check_can_fail(kind, check):
    def factory(*, capacity, horizon, rng, **limits):
        return kind(capacity, horizon, **limits)

    report = check_mechanism(factory)
    assert report[check].outcome == "failed"
    if kind is Explodes:
        assert "ZeroDivisionError: no luck" in report[check].detail
    else:
        assert report[check].detail.startswith("market ")


def test_a_mechanism_that_never_stops_talking_is_named():
    class Talks:
        round, horizon = 1, 12

        def submit(self, job, sow):
            return LaunchPlan(job, (), 0.0)

        def arrive(self, job, signal=None):
            pass

        def advance(self):
            from marketsched.mechanisms import Event, EventKind

            return (Event(1, EventKind.DROP, "job 0") for _ in count())

        def complete(self, job):
            raise AssertionError

    report = check_mechanism(lambda **sizes: Talks(), n_markets=1)
    assert "drop of 'job 0': expected a job in the market" in report["capacity is held"].detail


def test_what_is_not_claimed():
    class Honest(FirstCome):
        does_not_claim = frozenset({LATER})

    def factory(*, capacity, horizon, rng, **limits):
        return Honest(capacity, horizon, **limits)

    report = check_mechanism(factory, except_for={"pickles": "holds a socket"}, n_markets=2)
    assert (report[LATER].outcome, report["pickles"].detail) == ("not claimed", "holds a socket")
    with pytest.raises(InvalidParameterError, match="'pickels' is no check: expected some of capacity is held"):
        check_mechanism(factory, except_for={"pickels": ""})
    refused(lambda: check_mechanism(factory, n_markets=0), place="n_markets", seen=0, error=InvalidParameterError)


@pytest.mark.slow_after(6)
@pytest.mark.parametrize(("name", "check"), mechanism_checks(built("posted-price"), n_markets=2), ids=list(CHECKS))
def test_checks_can_parametrise_a_test(name, check):
    check()
    assert name in CHECKS
    assert issubclass(MechanismCheckError, (MarketschedError, AssertionError))


def test_quotes_that_move_the_price_are_named():
    class Leaks(FirstCome):
        def quote(self, job, sow):
            self.price = getattr(self, "price", 0.5) + 0.5
            return super().quote(job, sow)

        def charge(self, x):
            return getattr(self, "price", 0.5) * x.sow.concurrency

    def build(*, rng, **sizes):
        return Leaks(sizes.pop("capacity"), sizes.pop("horizon"), 0.5, **sizes)

    checks = dict(mechanism_checks(build, n_markets=2))
    with pytest.raises(MechanismCheckError, match="quotes change"):
        checks["quotes change nothing"]()


class ReadsAhead(FirstCome):
    """Serves no job while one that has not arrived announces a high value; states what its base class does."""

    def serve(self, waiting):
        ahead = [x for x in self._jobs.values() if not x.arrival and x.sow.value.highest > 6]
        return [0] * len(waiting) if ahead else super().serve(waiting)


class Notes(FirstCome):
    """Its price grows with what is announced, which `restate` does not take back."""

    def submit(self, job, sow, owner=None):
        self.price += 0.01 * sow.value.highest
        return super().submit(job, sow, owner=owner)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("kind", "outcome"), [(FirstCome, "passed"), (ReadsAhead, "failed"), (Notes, "failed")])
def test_a_mechanism_is_held_to_when_it_reads_reports(kind, outcome):
    report = check_mechanism(lambda *, rng, **sizes: kind(price=0.3, **sizes), n_markets=4)
    found = report["reports count from the arrival on"]
    assert found.outcome == outcome
    assert found.seen > 10 if outcome == "passed" else "counts before" in found.detail


class _NowOrNever(ArrivalMarket):
    """A job gets its nodes in the round of its arrival, or never. ``fault`` is what `play` does wrong."""

    fault = ""

    def foresee(self, x, signal):
        x.limit = signal if isinstance(signal, int) else self.max_duration
        x.mean = float(x.limit)

    def serve(self, waiting):
        free, starts = self.capacity - self.load, []
        for x in waiting:
            completes = self.round + x.limit
            in_time = completes < x.sow.birth + self.max_delay and completes <= self.horizon + 1
            starts.append(self.round if x.width <= free and in_time and x.sow.value(completes) > 0 else None)
            free -= x.width if starts[-1] else 0
        return starts

    def charge(self, x):
        return 0.0

    def play(self, jobs, outcomes, until):
        if not (jobs.revealed.all() or self.fault == "hidden"):
            return False
        if self.round == 1 or self.fault == "pieces":
            self.loads = np.zeros(200, int)
        useful = jobs.useful(99, 99) if self.fault == "late" else jobs.useful(self.max_delay, self.horizon)
        for row in jobs.arriving(self.round, until):
            now, duration, width = jobs.arrivals[row], jobs.durations[row], jobs.widths[row]
            if self.loads[now] + width <= self.capacity and now + duration <= useful[row]:
                self.loads[now : now + duration] += width
                outcomes.starts[row], outcomes.payments[row] = now, 0.0
        outcomes.close_bookings(jobs.arriving(self.round, until), jobs)
        self._round = until + 1
        return True


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("fault", "where"),
    [
        ("hidden", "durations hidden, it differs"),
        ("late", "with runs at the end, it differs"),
        ("pieces", "runs 4 nodes, capacity is 3"),
    ],
)
def test_whole_markets_are_compared_with_hidden_durations_at_the_end_and_in_pieces(fault, where):
    name = "plays whole markets as round by round"
    dict(mechanism_checks(_NowOrNever))[name]()
    with pytest.raises(MechanismCheckError, match=where):
        dict(mechanism_checks(type("Faulty", (_NowOrNever,), {"fault": fault})))[name]()
