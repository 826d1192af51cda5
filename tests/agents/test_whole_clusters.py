"""Whole markets on clusters: what `Mechanism.play` makes of them, the protocol makes of them round by round."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cluster_markets import HORIZON, RULES, SIZES, changed, tiny_market
from draws import many
from marketsched.agents import Job
from marketsched.agents.cluster_log import ClusterLog
from marketsched.agents.market_run import MarketRun
from marketsched.agents.referee import compare_plays
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.resources.posted import ClusterFirstCome
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.resources.whole_market import ClusterPlay

WHOLE = {  # by name: parameters, each set of which is played
    "cluster-first-come": [{}, {"prices": {"cpu": 0.4, "gpu": 2.0}, "phi": 0.5}, {"placement": "first"}],
    "cluster-exponential": [{"floor": 0.5, "ceiling": 90.0}, {"phi": 1.0, "placement": "worst"}],
    "cluster-bid-price": [{**RULES}, {**RULES, "phi": 0.3, "tail": True, "placement": "best"}],
    "cluster-queue": [{}, {"order": "density", "reserve": True}, {"order": "dominant-share", "placement": "fgd"}],
}
ALIKE = ("cluster-first-come", "cluster-exponential")  # as bid prices, with other prices
CASES = ((1.0,), (0.5, 0.5), (0.2, 0.5, 0.3))


def with_cases(job, rng):
    """Return a job whose durations nobody knows before its run ends, or are seen at its arrival."""
    chances = CASES[int(rng.integers(3))]
    shapes = [
        changed(
            shape, {"on": {kind: [each + 2 * i for i in range(len(chances))] for kind, (each,) in shape.on.items()}}
        )
        for shape in job.truth.shapes
    ]
    revealed = bool(rng.random() < 0.3)
    sow = StatementOfWork.of_shapes(job.truth.birth, job.truth.value, job.arrival, shapes, chances, revealed=revealed)
    point = sow.requirements[int(rng.integers(len(chances)))]
    arrival = None if rng.random() < 0.1 else job.arrival
    return Job(job.name, f"owner {rng.integers(3)}", sow, arrival, point.duration, point.signal)


def setup_of(name, parameters, cluster, jobs, horizon=HORIZON):
    mechanism = get_mechanism(name, capacity=cluster.nodes, horizon=HORIZON, cluster=cluster, **SIZES, **parameters)
    return MarketSetup("drawn", jobs, mechanism, cluster.nodes, horizon, SIZES["max_delay"])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in WHOLE]
)
@given(st.data())
def test_drawn_markets_are_the_same_whole_and_round_by_round(name, data):
    parameters, seed = data.draw(st.sampled_from(WHOLE[name])), data.draw(st.integers(0, 2**31))
    cluster, jobs = tiny_market(seed, n=data.draw(st.sampled_from([0, 3, 14, 25])))
    if data.draw(st.booleans()):
        rng = np.random.default_rng(seed)
        jobs = [with_cases(job, rng) for job in jobs]
    horizon, together = data.draw(st.sampled_from([HORIZON, HORIZON - 9])), data.draw(st.sampled_from([None, 3]))
    found = compare_plays(lambda: setup_of(name, parameters, cluster, jobs, horizon), together)
    assert found.difference == "" and found.whole == bool(jobs)


class Account:
    """What runs on a cluster round by round, by the calls that its market makes; a log of it is kept beside."""

    def __init__(self, setup):
        self.mechanism, self.cluster = setup.mechanism, setup.mechanism.cluster
        self.running, self.rows, self.income, self.pool_of = {}, [], {}, {}
        self.log = ClusterLog(self.cluster)
        advance, complete = self.mechanism.advance, self.mechanism.complete
        self.mechanism.advance = lambda: self.advance(advance())
        self.mechanism.complete = lambda job: self.complete(complete(job))

    def advance(self, events):
        cluster, now = self.cluster, events[0].round if events else self.mechanism.round - 1
        for event in events:
            if event.kind.value == "start":
                booking = self.mechanism.booking(event.job)
                self.running[event.job], self.pool_of[event.job] = booking, cluster.pool_names[booking.wanted.pool]
                self.log.start(event.job, booking)
            else:
                self.leave(event)
        prices = self.mechanism.pool_prices(now, 1)
        for pool, name in enumerate(cluster.pool_names):
            for k, resource in enumerate(cluster.resources):
                here = [each.wanted for each in self.running.values() if each.wanted.pool == pool]
                used = sum(each.tasks * int(each.demand[k]) for each in here) / resource.parts
                size = sum(g.nodes * g.each.get(resource.name, 0) for g in cluster.groups if g.kind == name)
                price = None if prices is None else float(prices[pool, k, 0]) * resource.parts
                if size:
                    self.rows.append((now, name, resource.name, used, size, price))
        self.log.close_round(prices)
        return events

    def complete(self, event):
        self.leave(event)
        return event

    def leave(self, event):
        booking = self.running.pop(event.job, None)
        self.log.leave(event.job, event.payment)
        if booking is not None:
            name = self.cluster.pool_names[booking.wanted.pool]
            self.income[name] = self.income.get(name, 0.0) + event.payment


USED = ["cluster-bid-price", "cluster-queue", "cluster-credits"]  # with prices, without, and with runs taken back


@settings(max_examples=many(40, least=8), phases=[Phase.reuse, Phase.generate])  # seeds do not shrink
@given(name=st.sampled_from(USED), seed=st.integers(0, 2**31))
def test_the_use_of_pools_is_what_bookings_hold_and_pay(name, seed):
    cluster, jobs = tiny_market(seed, n=20)
    jobs = [replace(job, truth=hidden(job), signal=None) for job in jobs] if name == "cluster-credits" else jobs
    setup = setup_of(name, RULES if name == "cluster-bid-price" else {}, cluster, jobs)
    account, market = Account(setup), MarketRun(setup, by_rounds=True)
    result = market.run()
    table = market.pools()
    assert account.log.table().equals(table)
    rows = table.drop(columns="fragmented").astype(object).where(table.notna(), None)
    assert list(rows.itertuples(index=False, name=None)) == [approximately(row) for row in account.rows]
    last = max(job.truth.birth for job in jobs)
    figures = market.pool_figures()
    assert figures["income"].tolist() == pytest.approx([account.income.get(name, 0.0) for name in figures["pool"]])
    for row in figures.itertuples():
        own = table[(table["pool"] == row.pool) & (table["resource"] == row.resource) & (table["round"] <= last)]
        assert row.in_use == pytest.approx(own["used"].sum() / own["size"].sum())
        prices = [price for (now, *of, _, _, price) in account.rows if of == [row.pool, row.resource] and now <= last]
        assert np.isnan(row.price) if prices[0] is None else row.price == pytest.approx(np.mean(prices))
        free = (own["size"] - own["used"])[own["fragmented"].notna()]
        lost = (free * own["fragmented"].dropna()).sum()
        assert np.isnan(row.fragmented) if not free.sum() else row.fragmented == pytest.approx(lost / free.sum())
    found = dict(zip(result.jobs["name"], result.jobs["pool"], strict=True))
    assert {name: pool for name, pool in found.items() if isinstance(pool, str)} == account.pool_of
    whole = MarketRun(setup_of(name, RULES if name == "cluster-bid-price" else {}, cluster, jobs))
    whole.play()
    assert whole.pools().equals(table) and whole.pool_figures().equals(figures)


def hidden(job):
    truth = job.truth
    return StatementOfWork.of_shapes(truth.birth, truth.value, job.arrival, truth.shapes, revealed=False)


def approximately(row):
    return (*row[:3], *(None if each is None else pytest.approx(each) for each in row[3:]))


def made(kind, cluster, jobs):
    market = kind(cluster.nodes, HORIZON, cluster=cluster, **SIZES)
    return MarketSetup("made", jobs, market, cluster.nodes, HORIZON, SIZES["max_delay"])


def refused_both_ways(jobs, cluster, match):
    messages = []
    for by_rounds in (False, True):
        with pytest.raises(ValueError, match=match) as caught:
            MarketRun(made(ClusterFirstCome, cluster, jobs), by_rounds=by_rounds).play()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_jobs_that_are_refused_are_refused_as_round_by_round():
    cluster, jobs = tiny_market(3)
    before = [job for job in jobs if job.truth.birth <= 5]
    value = jobs[0].truth.value
    large = StatementOfWork.of_shapes(5, value, 5, [Shape({"cpu": 999.0}, {"a": 1})])
    refused_both_ways([*before, Job("large", "owner", large, 5, 1, 1)], cluster, "fits no node of a")
    small = StatementOfWork.of_shapes(5, DeadlineValue(9.0, 20), 5, [Shape({"cpu": 0.5}, {"a": 1})])
    refused_both_ways([*before, Job("other", "owner", small, 5, 7, 7)], cluster, "duration of 'other'")


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (lambda self, x, booking: (booking.length, 0.5), "value"),
        (lambda self, x, booking: (booking.length + 1, 1.0), "round"),
    ],
)
def test_the_referee_finds_runs_that_differ(monkeypatch, wrong, where):
    cluster, jobs = tiny_market(5)
    monkeypatch.setattr(ClusterPlay, "_run", wrong)
    found = compare_plays(lambda: made(ClusterFirstCome, cluster, jobs))
    assert found.whole and where in found.difference


def test_the_referee_finds_another_use_of_the_cluster(monkeypatch):
    cluster, jobs = tiny_market(5)
    real = ClusterPlay._clear

    def clear(self, now, outcomes):
        real(self, now, outcomes)
        self._noted.prices[-1] = self._noted.prices[-1] + 1

    monkeypatch.setattr(ClusterPlay, "_clear", clear)
    assert "pools" in compare_plays(lambda: made(ClusterFirstCome, cluster, jobs)).difference
