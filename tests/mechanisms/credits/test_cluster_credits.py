"""Credits on a cluster: no scale counts, starts keep their bound, and only runs that have to go are taken back."""

from dataclasses import replace

import numpy as np
import pytest

from draws import many
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import ClusterCredits, DeadlineValue, StatementOfWork
from marketsched.mechanisms.credits.pool_weights import PoolWeights
from marketsched.mechanisms.credits.pools import PoolPurses
from marketsched.mechanisms.credits.purses import CREDIT
from marketsched.mechanisms.resources.calendars import Wanted
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.nodes import NOW, Nodes, Run
from marketsched.mechanisms.resources.shapes import Shape, options_of
from marketsched.mechanisms.schedulers.cluster_fair_turns import ClusterFairTurns
from marketsched.mechanisms.schedulers.turns import Accounts
from node_requests import CPU, GPU, LAWS, NEEDS

CLUSTER = Cluster(
    (CPU, GPU), [NodeGroup("a", "a", 2, {"cpu": 8, "gpu": 2}), NodeGroup("c", "c", 2, {"cpu": 8})]
)  # fmt: skip
HORIZON, GIVE_BACK = 120, Nodes.give_back
SIZES = {"max_concurrency": 4, "max_duration": 12, "max_value": 1e12, "max_delay": HORIZON + 20, "cluster": CLUSTER}


def drawn_jobs(seed, n=70, span=60, owners=4):
    """Return jobs with hidden durations, a few of them of two tasks."""
    rng = np.random.default_rng(seed)
    jobs = []
    for i, birth in enumerate(np.sort(rng.integers(1, span, n)).tolist()):
        durations, chances = LAWS[rng.integers(len(LAWS))]
        each, kinds = NEEDS[rng.integers(len(NEEDS))]
        tasks = 2 if rng.random() < 0.1 else 1
        shape = Shape(each, dict.fromkeys(kinds, durations), tasks=tasks, per_node=1)
        value = DeadlineValue(float(rng.uniform(1, 9)), birth + durations[-1] + int(rng.integers(0, 30)))
        truth = StatementOfWork.of_shapes(birth, value, birth, [shape], chances, revealed=False)
        owner = f"o{int(owners * rng.random() ** 2)}"
        jobs.append(Job(f"j{i}", owner, truth, birth, int(rng.choice(durations, p=chances))))
    return jobs


def played(jobs, horizon=HORIZON, kind=ClusterCredits, **rules):
    rules = {"owners": sorted({job.owner for job in jobs}), "purses": "pool", **rules}
    market = kind(CLUSTER.nodes, horizon, **SIZES, **rules)
    return market, play(MarketLoop(market), TruthfulOwners(jobs), horizon)


def valued(job, value):
    return replace(job, truth=job.truth.moved(job.truth.birth, DeadlineValue(value, job.truth.value.deadline)))


def state_of(jobs, **rules):
    market, events = played(jobs, **rules)
    upgrades = [(x.job, x.pool, x.round, x.cost, x.purse, x.bound, x.started) for x in market.upgrades]
    return events, upgrades, [each.held.tolist() for each in market.pools.every]


def work_of(job):
    """Nodes of the largest share of the cluster, times the announced mean."""
    shape, law = job.truth.shapes[0], job.truth.law
    share = max(shape.each.get("cpu", 0) / 32, shape.each.get("gpu", 0) / 4) * shape.tasks
    return 4 * share * float(law.probabilities @ law.durations)


TIGHT = {"income": 0.5, "carry_rounds": 24.0}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("purses", ["pool", "one"])
def test_no_increasing_map_of_an_owner_s_importance_changes_anything(purses):
    changed, rules = 0, {**TIGHT, "purses": purses}
    for seed in range(many(8)):
        jobs, rng = drawn_jobs(seed), np.random.default_rng(seed)
        before = state_of(jobs, **rules)
        assert before[1]
        for owner in ("o0", "o1"):
            own = sorted({job.truth.value.value / work_of(job) for job in jobs if job.owner == owner})
            to = dict(zip(own, np.cumsum(rng.exponential(1.0, len(own)) ** 4 + 1e-3).tolist(), strict=True))
            maps = (lambda rho, to=to: to[rho]), (lambda rho: rho * 1024), (lambda rho: 1 / rho)
            for k, phi in enumerate(maps):
                lied = [
                    valued(job, phi(job.truth.value.value / work_of(job)) * work_of(job)) if job.owner == owner else job
                    for job in jobs
                ]
                same = state_of(lied, **rules) == before
                assert same or k == 2
                changed += not same
    assert changed > many(8)  # one that falls does


def violations(market):
    return [x for x in market.upgrades if (x.started or x.left or market.round) - x.round - x.unpaid > x.bound]


@pytest.mark.slow
def test_no_regular_job_waits_beyond_its_bound_and_purses_are_whole():
    bounded = 0
    for seed in range(many(24)):
        rules = ({}, {"start": 1.0, "margin": 6.0}, {"patience": 0, "income": 0.3, "start": 1.0, "margin": 6.0})[
            seed % 3
        ]
        market, _ = played(drawn_jobs(seed, n=110, span=50), carry_rounds=30.0, **rules)
        assert not violations(market)
        bounded += sum(np.isfinite(x.bound) for x in market.upgrades)
        for each in market.pools.every:
            assert (each.held >= 0).all() and (each.earned == each.held + each.spent + each.expired).all()
    assert bounded > 5 * many(24)


@pytest.mark.slow
def test_one_purse_pays_for_all_pools_and_promises_nothing():
    for seed in range(many(6)):
        market, _ = played(drawn_jobs(seed, n=110, span=50), carry_rounds=30.0, purses="one")
        (each,) = market.pools.every
        assert market.upgrades and all(np.isnan(x.bound) for x in market.upgrades)
        assert (each.held >= 0).all() and (each.earned == each.held + each.spent + each.expired).all()
        assert each.spent.sum() and set(market.tables()["purses"]["pool"]) == {"all"}


def test_a_pool_that_is_sought_more_costs_more_and_all_credits_buy_all_nodes():
    weights = PoolWeights(CLUSTER)
    options = options_of([Shape({"cpu": 1, "gpu": 1}, {"a": (4,)})], CLUSTER)
    weights.learn(options, np.array([4.0]))
    weights.renew(7)
    assert weights.of_pool.tolist() == [1.0, 1.0]  # in one of eight rounds
    for now in range(8, 800, 8):
        weights.renew(now)
        assert weights.of_pool @ [2, 2] == pytest.approx(4)
    # nothing but pool a is sought: its pressure is the largest, that of c at the least
    assert weights.of_pool == pytest.approx([2 / 1.0025, 2 * 0.0025 / 1.0025])
    wide = options_of([Shape({"cpu": 8}, {"a": (3,), "c": (3,)})], CLUSTER)
    for _ in range(3000):
        weights.learn(wide, np.array([3.0, 3.0]))
    for now in range(8, 800, 8):
        weights.renew(now)
    assert weights.of_pool == pytest.approx([1, 1], abs=1e-3)  # spread by capacity, which is equal


class Unpaid(ClusterCredits):
    """A planted fault: regular runs that are under way cost nothing, so that the bound is none."""

    def _prepay(self):
        pass


def saved_up():
    """One owner saves, and spends it all at once on pool c; another owner's short job comes a little later."""

    def job(name, owner, birth, length, each, last):
        shape = Shape(each, {"c": (length,)})
        truth = StatementOfWork.of_shapes(birth, DeadlineValue(1.0, last), birth, [shape], revealed=False)
        return Job(name, owner, truth, birth, length)

    rush = [job(f"r{i}", "saver", 1, 12, {"cpu": 6.5}, 118) for i in range(16)]
    return [*rush, job("late", "other", 2, 1, {"cpu": 2}, 40)]


SAVED = {
    "owners": None, "shares": {"saver": 96, "other": 4}, "income": 0.25, "carry_rounds": 40.0, "start": 1.0,
    "patience": 0, "margin": 40.0,
}  # fmt: skip


def test_the_bound_holds_when_all_is_spent_at_once_and_breaks_where_nobody_pays():
    market, _ = played(saved_up(), **SAVED)
    (late,) = (x for x in market.upgrades if x.owner == "other")
    assert late.bound == 19  # 19 credits are left behind the first round, over 2 (1 - .25 - .25) nodes
    assert 0.5 * late.bound <= late.started - late.round <= late.bound
    market, _ = played(saved_up(), kind=Unpaid, **SAVED)
    assert [x.job for x in violations(market) if x.owner == "other"] == ["late"]


def test_a_job_costs_its_largest_share_of_the_smallest_node_that_holds_it_and_devices_whole():
    groups = [NodeGroup("s", "n", 1, {"cpu": 4, "gpu": 2}), NodeGroup("l", "n", 1, {"cpu": 8, "gpu": 4})]
    cluster = Cluster((CPU, GPU), groups)
    pools = PoolPurses(Accounts(None, "", ["ann"]), cluster, 0.5, 8.0, 1.0, "pool")
    cases = {1: {"cpu": 1}, 2: {"cpu": 5}, 3: {"cpu": 1, "gpu": 0.25}, 4: {"cpu": 1, "gpu": 3}}
    costs = {n: int(pools.costs(options_of([Shape(each, {"n": (1,)})], cluster))[0]) for n, each in cases.items()}
    assert {n: cost / CREDIT for n, cost in costs.items()} == {1: 0.25, 2: 0.625, 3: 0.5, 4: 0.75}
    options = options_of([Shape({"cpu": 1}, {"n": (1,)})], cluster)
    assert pools.longest_wait(0, options.demand[0], 1, costs[1], 3) == 3 + 16  # 8 credits over 2 (1 - .25 - .5) nodes
    assert np.isnan(pools.longest_wait(0, options.demand[0], 2, costs[1], 3))  # of two tasks
    assert np.isnan(pools.longest_wait(0, options_of([Shape({"cpu": 5}, {"n": (1,)})], cluster).demand[0], 1, 1, 3))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kind", [ClusterCredits, ClusterFairTurns])
def test_jobs_that_are_known_to_have_no_room_change_nothing_by_being_left_out(kind, monkeypatch):
    rules = TIGHT if kind is ClusterCredits else {}

    def happened():
        found = []
        for seed in range(many(12)):
            market = kind(CLUSTER.nodes, HORIZON, **SIZES, owners=["o0", "o1", "o2", "o3"], **rules)
            found.append(play(MarketLoop(market), TruthfulOwners(drawn_jobs(seed, n=110, span=50)), HORIZON))
        return found

    shorter = happened()
    with monkeypatch.context() as context:
        context.setattr(Nodes, "may_hold", lambda self, keys: True)
        assert happened() == shorter
    with monkeypatch.context() as context:  # what is given back has to be tried again
        context.setattr(Nodes, "give_back", forgetful)
        assert happened() != shorter


def forgetful(self, run):
    """Give a run's nodes back, and go on as if requests without room still had none."""
    full = [set(each) for each in self._full]
    GIVE_BACK(self, run)
    self._full = full


@pytest.mark.parametrize("seed", range(8))
def test_only_runs_that_have_to_go_are_taken(seed):
    rng, nodes, tried = np.random.default_rng(seed), Nodes(CLUSTER), 0
    runs = []
    while len(runs) < 14:
        each, kinds = NEEDS[rng.integers(4)]
        options = options_of([Shape(each, dict.fromkeys(kinds, (1,)))], CLUSTER)
        found = nodes.best((i, Wanted(int(options.pool[i]), 1, 1, options.demand[i])) for i in range(options.pool.size))
        if found is None:
            break
        i, placed = found
        runs.append(Run(Wanted(int(options.pool[i]), 1, 1, options.demand[i]), placed, int(rng.integers(1, 9)), 1.0))
        nodes.take(runs[-1])
    before = nodes._calendars.state(NOW, 1)
    for each, kinds in NEEDS:
        for tasks in (1, 2):
            options = options_of([Shape(each, dict.fromkeys(kinds, (1,)), tasks=tasks, per_node=1)], CLUSTER)
            wanted = [Wanted(int(options.pool[i]), tasks, 1, options.demand[i]) for i in range(options.pool.size)]
            if any(nodes.fits(one) for one in wanted):
                continue
            found = nodes.taking(wanted, sorted(runs, key=lambda run: -run.start), 10)
            assert all(np.array_equal(*pair) for pair in zip(before, nodes._calendars.state(NOW, 1), strict=True))
            lost, victims = found
            assert lost == sum(10 - run.start for run in victims)
            tried += 1
            for run in victims:
                nodes.give_back(run)
            assert any(nodes.fits(one) for one in wanted)
            for run in victims:
                nodes.take(run)
                assert len(victims) == 1 or not any(nodes.fits(one) for one in wanted if one.pool == run.wanted.pool)
                nodes.give_back(run)
            for run in victims:
                nodes.take(run)
    assert tried


def test_an_owner_without_a_share_is_a_guest():
    jobs = drawn_jobs(3)
    market, events = played(jobs, owners=None, shares={"o1": 1, "o2": 1, "o3": 1})
    assert {x.owner for x in market.upgrades} == {"o1", "o2", "o3"}
    assert any(
        event.kind.value == "start" and event.job in {j.name for j in jobs if j.owner == "o0"} for event in events
    )
    tables = market.tables()
    assert set(tables["purses"]["pool"]) == {"a", "c"} and len(tables["upgrades"]["job"]) == len(market.upgrades)
