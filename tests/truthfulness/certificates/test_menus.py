"""Does my report move my menu? Mechanisms in which it does are caught, bit for bit; certificates rest on the answer."""

import re

import numpy as np
import pandas as pd
import pytest

from marketsched.agents.job import Job
from marketsched.agents.market import Market
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import DeadlineValue, InvalidParameterError, StatementOfWork, TableValue
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.bid_price.entries import ArrivalMenu, LockedRate
from marketsched.mechanisms.bid_price.forecast import Expected
from marketsched.mechanisms.bid_price.tasks import TaskStore
from marketsched.mechanisms.menu import Menu
from marketsched.mechanisms.registry import get_mechanism
from marketsched.truthfulness import check_mechanism
from marketsched.truthfulness.certificates.arrival_certificate import certify_arrivals, certify_served
from marketsched.truthfulness.certificates.menus import Served, difference, lies_of, play_menus
from marketsched.truthfulness.certificates.owners import certify_owners
from marketsched.truthfulness.certificates.unchanged import require_certified_class
from marketsched.truthfulness.checks.checks import CHECKS

pytestmark = pytest.mark.compiled  # plays whole markets for each menu: too long for plain kernels

OWN, BEST, QUOTE = (
    "its own report moves no menu",
    "gives the best entry of the menu at arrival",
    "pays what the menu said",
)


# -- mechanisms that are at fault --------------------------------------------------------------------------


class _Announced:
    """Scenarios of what was announced: what the bid prices of the package are not made of."""

    steps, samples_the_past, adds_exactly = 10, False, False

    def __init__(self):
        self.reports = []

    def expected(self, now, last, past):
        store, weights = TaskStore(), []
        coming = [(r, sow) for sow in self.reports for r in sow.requirements if now <= r.arrival <= last]
        for r, sow in sorted(coming, key=lambda each: each[0].arrival):
            n = max(0, sow.value.last - r.duration - r.arrival + 1)
            store.add(r.arrival, r.duration, sow.concurrency, sow.value.table(r.arrival + r.duration, n))
            weights.append(r.probability)
        rows, rounds = store.between(now, last)
        if not weights:
            return None
        return Expected(rows, np.ones_like(rows), rounds, np.array(weights), store.columns)


class UsesAnnouncements(BidPrice):
    """Prices of statements that were submitted: my announcement moves others' prices, so what they book, so my menu."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, slack=0.0, **keywords)
        self.heard = _Announced()
        for curve in self._curves:
            curve._forecast = self.heard

    def submit(self, job, sow, owner=None):
        plan = super().submit(job, sow, owner=owner)
        self.heard.reports.append(sow)
        return plan


class LearnsTooEarly(BidPrice):
    """A report is in the prices that its own job is going to face."""

    def foresee(self, x, signal):
        super().foresee(x, signal)
        super()._learn([x])

    def _learn(self, arrived):
        pass


class ChargesTheReport(BidPrice):
    """The menu says one thing, the bill another."""

    def charge(self, x):
        return super().charge(x) + 0.01 * x.sow.value.highest


class HighRates(BidPrice):
    """Durations hidden: the rate grows with the value reported."""

    def submit(self, job, sow, owner=None):
        self.values_of = {**getattr(self, "values_of", {}), job: sow.value.highest}
        return super().submit(job, sow, owner=owner)

    def menu_at_arrival(self, job):
        menu = super().menu_at_arrival(job)
        return LockedRate(menu.now, menu.rate + self.values_of[job]) if isinstance(menu, LockedRate) else menu


class Fifo(FirstCome):
    """First come, first served at a flat price, which says what it offers; its queue of hidden jobs has no menu."""

    rising = 0.0

    def foresee(self, x, signal):
        if signal is None:
            super().foresee(x, signal)
        else:
            x.limit = signal

    def keep_menus(self, jobs=None):
        self.offers = {}

    def menu_at_arrival(self, job):
        return self.offers[job] if job in self.offers else LockedRate(0, self.price)

    def _start(self, x):
        prefix = np.cumsum([0.0, *(self.price + self.rising * k for k in range(self.horizon))])
        if x.worth is None:
            self.offers[x.job] = ArrivalMenu(self.round, self._free[self.round - 1 :].copy(), prefix)
        return super()._start(x)


class CheaperLater(Fifo):
    """The same, but the offer says that later rounds cost less: the earliest start is not the best one."""

    rising = -0.05

    def charge(self, x):
        menu = self.offers.get(x.job)
        paid, used = super().charge(x), self.round - x.start
        if menu is None:
            return paid
        return float(menu.prices(x.sow.concurrency, used, x.start - menu.now + 1)[-1])


def factory(kind, **more):
    def build(rng, **sizes):
        return kind(**more, **sizes)

    return build


@pytest.mark.slow
@pytest.mark.long_after(3)
@pytest.mark.parametrize(
    ("kind", "more", "caught"),
    [
        (BidPrice, {}, {}),
        (BidPrice, {"buckets": 2}, {}),
        (Fifo, {"price": 0.3}, {}),
        (UsesAnnouncements, {}, {OWN: "faces another menu"}),
        (LearnsTooEarly, {}, {OWN: "faces another menu"}),
        (ChargesTheReport, {}, {OWN: "its menu said", QUOTE: "its menu said", BEST: "was to be had"}),
        (HighRates, {}, {OWN: "faces another menu: rate"}),
        (CheaperLater, {"price": 1.0}, {BEST: "was to be had"}),
    ],
)
def test_what_moves_a_menu_is_caught_and_named(kind, more, caught):
    report = check_mechanism(factory(kind, **more), n_markets=12)
    for name in (OWN, BEST, QUOTE):
        outcome = "failed" if name in caught else "passed"
        assert report[name].outcome == outcome, f"{name}: {report[name]}"
        assert caught.get(name, "") in report[name].detail
    assert OWN in CHECKS


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", ["first-come", "pay-as-bid", "spot", "vcg"])
def test_without_menus_there_is_nothing_to_ask(name):
    report = check_mechanism(lambda **sizes: get_mechanism(name, **sizes), n_markets=2)
    assert report[OWN].outcome == report[BEST].outcome == "does not apply"


def test_the_first_entry_that_differs_is_named():
    menu = ArrivalMenu(4, np.array([2, 2, 1]), np.array([0.0, 0.5, 1.25]))
    assert difference(menu, ArrivalMenu(4, np.array([2, 2, 1]), np.array([0.0, 0.5, 1.25]))) is None
    assert difference(menu, ArrivalMenu(4, np.array([2, 1, 0]), menu.prefix)) == "1 nodes free in round 5, not 2"
    almost = np.array([0.0, 0.5, np.nextafter(1.25, 2)])
    assert difference(menu, ArrivalMenu(4, menu.free, almost)) == (
        "prices up to round 5 add up to 1.2500000000000002, not 1.25"
    )
    assert difference(menu, ArrivalMenu(4, menu.free, np.array([-0.0, 0.5, 1.25]))) is not None  # bit for bit
    assert difference(menu, ArrivalMenu(4, menu.free, menu.prefix[:2])) == "2 entries of prefix, not 3"
    assert difference(menu, None) == "no menu, not a ArrivalMenu"
    at_birth = [Menu(1, 3, np.array([[1.0, 2.0], [1.0, last]]), np.zeros((2, 2))) for last in (2.0, 2.5)]
    assert difference((at_birth[0],), (at_birth[1],)) == "on 1 nodes, price 2.5 of start 4 for 2 rounds, not 2.0"


# -- certificates ------------------------------------------------------------------------------------------


def small(n=12, mechanism=BidPrice, hidden=False, resubmit=False):
    """Return a market of jobs on two nodes that come one a round, some in another round than they said."""
    rng, jobs = np.random.default_rng(5), []
    for i in range(n):
        d, value = int(rng.integers(1, 4)), float(rng.integers(2, 9))
        signal = (None,) if hidden else ()
        law = [(i + 1, d, 0.5, *signal), (i + 2, d, 0.4, *signal)]
        sow = StatementOfWork(i + 1, int(rng.integers(1, 3)), DeadlineValue(value, i + 6 + d), law)
        arrival = i + 3 if i % 5 == 4 else i + 1
        jobs.append(Job(f"job {i}", f"owner {i}", sow, arrival, d, None if hidden else d))
    sizes = {"max_concurrency": 2, "max_duration": 3, "max_value": 10.0, "max_delay": 12}
    return MarketSetup("small", jobs, mechanism(2, n + 12, **sizes), 2, n + 12, 12, resubmit=resubmit)


@pytest.mark.parametrize("resubmit", [False, True])
def test_the_market_that_is_looked_at_is_the_one_that_is_run(resubmit):
    setup = small(resubmit=resubmit)
    lies = {job.name: lies_of(job.truth, setup.public, 4, np.random.default_rng(1)) for job in setup.jobs}
    assert all(len(each) == 4 for each in lies.values())
    served, check = play_menus(setup, lies)
    assert (check.owners, check.lies, check.moved) == (12, 48, None)
    run = small(resubmit=resubmit)
    run.mechanism.keep_menus()
    jobs = Market(run).run().jobs.set_index("name")
    for name, each in served.items():
        assert each.menu == run.mechanism.menu_at_arrival(name)
        if not jobs.loc[name, "resubmitted"]:
            assert each.payment == jobs.loc[name, "payment"]
            completion = jobs.loc[name, "completion"]
            assert each.completion == (None if pd.isna(completion) else completion)


def test_a_copy_of_the_market_is_as_good_as_playing_it_again():
    """What a lie makes of the menu in a copy is what it makes of it in a market of its own."""
    setup = small(mechanism=UsesAnnouncements)
    lies = {job.name: lies_of(job.truth, setup.public, 3, np.random.default_rng(2)) for job in setup.jobs}
    _, check = play_menus(setup, lies)
    assert check.moved is not None
    whole = []
    for report in (None, check.moved.report):
        again = small(mechanism=UsesAnnouncements)
        jobs = [Job(j.name, j.owner, report if report and j.name == check.moved.job else j.truth, j.arrival, j.duration,
                    j.signal) for j in again.jobs]  # fmt: skip
        again.mechanism.keep_menus()
        Market(MarketSetup("again", jobs, again.mechanism, 2, again.horizon, 12)).run()
        whole.append(again.mechanism.menu_at_arrival(check.moved.job))
    assert difference(*whole) == check.moved.difference


def test_the_certificate_is_the_best_entry_less_what_the_truth_got():
    public = small().public
    menu = ArrivalMenu(2, np.array([1, 2, 2, 2, 0, 2]), np.array([0.0, 1.0, 1.5, 1.5, 1.5]))
    truth = StatementOfWork(1, 1, TableValue({4: 9.0, 5: 8.75, 6: 8.0}), [(2, 2, 1.0)])
    # Two rounds from 2, 3, 4 on cost 1.5, .5 and 0: surpluses 7.5, 8.25 and 8; on two nodes 3 on: 8.75 - 1.
    first = certify_served(Served(menu, 4, 1.5), truth, 2, small())
    assert (first.regret_upper, first.regret_lower, first.truthful_utility, first.confidence) == (0.75, 0.75, 7.5, 1.0)
    assert certify_served(Served(menu, 5, 0.5), truth, 2, small()).regret_upper == 0.0
    assert certify_served(Served(menu, None, 0.0), truth, 2, small()).regret_upper == 8.25
    assert public.max_delay == 12  # so a completion in 13 would be worth nothing
    dear = StatementOfWork(1, 1, DeadlineValue(0.25, 5), [(2, 2, 1.0)])
    assert certify_served(Served(menu, None, 0.0), dear, 2, small()).regret_upper == 0.0


MIX = Scenario.load("stochastic-mix")


def test_regret_is_exactly_0_and_says_what_that_rests_on():
    table = certify_owners(MIX.with_mechanism("bid-price"), 40, seed=3, menu_lies=10)
    assert len(table) > 25 and (table["regret_upper"] == 0.0).all() and (table["truthful_utility"] > 0).any()
    (rests_on,) = table["rests_on"].unique()
    assert rests_on.startswith("menus at arrival are the same, bit for bit, under 10 lies of 4 owners; ")
    compared = int(re.search(r"; (\d+) payments equal their menus", rests_on)[1])
    assert len(table) - 10 < compared <= len(table) + 10  # of the owners under the truth, and of the lies


class Rebate(BidPrice):
    """Honest menus; charged is the menu, or four fifths of the declared value if that is less."""

    def charge(self, x):
        return min(super().charge(x), 0.8 * x.sow.value(self.round))


class Refund(BidPrice):
    """Honest menus; a fifth of a credit is paid back for each round that the reported law has on average."""

    def charge(self, x):
        return super().charge(x) - 0.2 * float(x.sow.law.durations @ x.sow.law.probabilities)


class Rare(BidPrice):
    """Honest menus; one value in a thousand is charged half, and no lie that is tried has it."""

    def charge(self, x):
        paid = super().charge(x)
        return paid / 2 if 6.0371 <= x.sow.value.highest < 6.0471 else paid


class KeepsOut(BidPrice):
    """Honest menus and charges, but it does not serve what the report selects."""

    def serve(self, waiting):
        return [None if start and x.sow.value.highest > 5.0 else start
                for x, start in zip(waiting, super().serve(waiting), strict=True)]  # fmt: skip


class SameByAnotherName(BidPrice):
    """Nothing is changed."""

    submit = BidPrice.submit

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.note = "mine"


def certified(mechanism):
    setup = small(mechanism=mechanism)
    chosen = {job.name: job for job in setup.jobs}
    return certify_arrivals(setup, chosen, menu_lies=24, rng=np.random.default_rng(3))


@pytest.mark.parametrize("kind", [BidPrice, SameByAnotherName])
def test_menus_that_are_charged_are_certified_with_the_count_of_payments(kind):
    table = certified(kind)
    assert (table["regret_upper"] == 0.0).all()
    assert re.search(r"; \d\d payments equal their menus", table["rests_on"].iloc[0])


@pytest.mark.parametrize("kind", [Rebate, Refund, Rare, KeepsOut])
def test_a_class_that_charges_or_serves_otherwise_gets_no_certificate(kind):
    with pytest.raises(InvalidParameterError, match=r"; its menu said|it changes (charge|serve) of BidPrice"):
        certified(kind)


def test_payments_are_compared_where_no_class_shows_a_change(monkeypatch):
    charge = BidPrice.charge
    monkeypatch.setattr(BidPrice, "charge", lambda self, x: charge(self, x) + 0.01 * x.sow.value.highest)
    with pytest.raises(InvalidParameterError, match=r"job \d+ .*, starts in round \d+ and pays .*; its menu said"):
        certified(BidPrice)


def test_an_attribute_of_its_own_is_a_change_too():
    market = BidPrice(1, 9, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    require_certified_class(market)
    market._owed = lambda x, used: 0.0
    with pytest.raises(InvalidParameterError, match="it changes _owed of BidPrice"):
        require_certified_class(market)


def test_menus_that_no_class_vouches_for_get_none():
    with pytest.raises(InvalidParameterError, match="no class of it says that they are all"):
        certified(Fifo)


def test_of_a_mixed_market_those_get_a_certificate_that_show_their_durations():
    mixed = MIX.to_dict()
    hidden = mixed["workload"]["jobs"][0]
    for statement in hidden["statements"]:
        for point in statement.get("requirements", ()):
            point["signal"] = None
    found = certify_owners({**mixed, "mechanism": {"name": "bid-price"}}, 40, menu_lies=4)
    owners = {owner.rpartition("-")[0] or owner for owner in found["owner"]}
    assert len(found) and hidden["name"] not in owners
