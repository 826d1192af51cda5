"""Credits on a cluster: starts keep their bound, and only runs that have to go are taken back."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

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


def played(jobs, horizon=HORIZON, **rules):
    rules = {"owners": sorted({job.owner for job in jobs}), "purses": "pool", **rules}
    market = ClusterCredits(CLUSTER.nodes, horizon, **SIZES, **rules)
    return market, play(MarketLoop(market), TruthfulOwners(jobs), horizon)


def work_of(job):
    """Nodes of the largest share of the cluster, times the announced mean."""
    shape, law = job.truth.shapes[0], job.truth.law
    share = max(shape.each.get("cpu", 0) / 32, shape.each.get("gpu", 0) / 4) * shape.tasks
    return 4 * share * float(law.probabilities @ law.durations)


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


def test_weights_follow_what_jobs_that_have_left_asked_for():
    """Pool a has 16 cores and 4 GPUs, c 16 cores; a pool's pressure is that of its most sought resource."""
    rng, weights, work, expected = np.random.default_rng(4), PoolWeights(CLUSTER), np.zeros((2, 2)), np.ones(2)
    for now in range(1, 80):
        each, kinds = NEEDS[rng.integers(len(NEEDS))]
        rounds, tasks = int(rng.integers(1, 9)), int(rng.integers(1, 3))
        weights.learn(
            options_of([Shape(each, dict.fromkeys(kinds, (rounds,)), tasks)], CLUSTER), np.full(len(kinds), rounds)
        )
        work *= 0.995
        for k, name in enumerate(("cpu", "gpu")):
            size = np.array([16 if name == "cpu" else 4 * (pool == "a") for pool in "ac"]) * [
                pool in kinds for pool in "ac"
            ]
            work[:, k] += size / max(1, size.sum()) * each.get(name, 0) * tasks * rounds
        weights.renew(now)
        if now % 8 == 0:
            pressure = np.array([max(work[0, 0] / 16, work[0, 1] / 4), work[1, 0] / 16])
            aim = np.maximum(pressure / pressure.max(), 0.05) ** 2
            expected = 0.8 * expected + 0.2 * aim * 4 / (aim @ [2, 2])
        assert weights.of_pool == pytest.approx(expected)


class Account:
    """The rule, but for where jobs are placed and in which turn: that is as events and bookings say."""

    def __init__(self, jobs, owners, income, carry, start, patience, margin):
        self.jobs, self.owners, self.patience, self.margin = {job.name: job for job in jobs}, owners, patience, margin
        self.r, self.income = income, income * 2 / len(owners)  # of each pool of two nodes
        self.cap = carry * self.income
        self.purses = {(owner, pool): start * self.cap for owner in owners for pool in "ac"}
        self.present, self.runs, self.regular, self.memory = [], {}, {}, {owner: [] for owner in owners}
        self.over, self.real, self.announced, self.usual = [], 1.0, 1.0, {}
        self.offered = self.rounds = self.came = 0.0
        self.upgrades, self.counts, self.lost = [], Counter(), 0.0

    def cost(self, job, pool):
        """Return the largest share of one of its nodes in pool ``pool``, of devices whole ones, for all tasks."""
        each = job.truth.shapes[0].each
        return max(each["cpu"] / 8, math.ceil(each.get("gpu", 0)) / 2) * job.truth.shapes[0].tasks

    def mean(self, job):
        return work_of(job) / self.size(job)

    def size(self, job):
        shape = job.truth.shapes[0]
        return 4 * max(shape.each["cpu"] / 32, shape.each.get("gpu", 0) / 4) * shape.tasks

    def important(self, job):
        return job.truth.value.value / work_of(job)

    def band(self, job):
        share = self.cost(job, job.truth.shapes[0].kinds[0])
        return "gpu" in job.truth.shapes[0].each, (share > 0.3) + (share > 0.6)

    def usual_rounds(self, job):
        rounds, n = self.usual.get(self.band(job), (0, 0))
        if n <= 0.5:
            rounds, n = (sum(column) for column in zip(*self.usual.values(), strict=True)) if self.usual else (4, 1)
        return rounds / n

    @property
    def kappa(self):
        return self.real / self.announced

    def needed(self, owner, pool, now):
        total = 0.0
        for name in self.present:
            job, (began, place) = self.jobs[name], self.runs.get(name, (now, self.regular.get(name, ("",))[0]))
            if name in self.regular and (job.owner, pool) == (owner, place):  # where it runs, or is regular
                total += self.cost(job, pool) * max(1.0, self.mean(job) * self.kappa - (now - began))
        return total

    def threshold(self, owner, pool, now):
        own = [(rho, work[pool], t) for rho, work, t in self.memory[owner][-64:] if pool in work]
        total = sum(work for _, work, _ in own)
        if len(own) < 5:
            return 0.0
        asked = total / max(8.0, now - min(t for *_, t in own) + 1.0) * self.kappa
        left = max(0.0, self.purses[owner, pool] - self.needed(owner, pool, now))
        most, above = (self.income + left / 400.0) / asked * total, 0.0
        for rho, work, _ in sorted(own, key=lambda row: -row[0]):
            above += work
            if above > most:
                return rho
        return 0.0

    def bound(self, job, pool):
        left = 2 * (1 - self.cost(job, pool) - self.r)
        if job.truth.shapes[0].tasks > 1 or left <= 1e-9:
            return math.nan
        held = sum(min(w + self.patience * self.income, self.cap) for (_, of), w in self.purses.items() if of == pool)
        return self.patience + math.floor(held / left + 1e-9)

    def learn(self, name, used):
        job = self.jobs[name]
        rounds, n = self.usual.get(self.band(job), (0.0, 0.0))
        self.usual[self.band(job)] = 0.97 * rounds + self.mean(job), 0.97 * n + 1
        if used:
            self.real = 0.98 * self.real + self.size(job) * used
            self.announced = 0.98 * self.announced + work_of(job)

    def begins(self, now, events):
        """Take note of who is over, leaves and comes; then incomes."""
        for name, used in self.over:
            self.learn(name, used)
        self.over = []
        gone = {e.job: e.kind.value for e in events if e.kind.leaves}
        new = [job for job in self.jobs.values() if job.arrival == now]
        for name in [name for name in self.present if name in gone]:
            assert gone[name] == ("evict" if self.runs.pop(name, None) or self.counts[name] else "drop")
            self.present.remove(name)
            self.regular.pop(name, None)
            self.learn(name, 0)
        self.offered, self.rounds, self.came = 0.99 * self.offered + self.came, 0.99 * self.rounds + 1, 0.0
        for job in new:
            self.came += self.size(job) * self.usual_rounds(job) * self.kappa
        self.present += [job.name for job in new if job.name not in gone]
        self.counts["jobs"] += len([job for job in new if job.name not in gone])
        for key, purse in self.purses.items():
            self.purses[key] = min(purse + self.income, self.cap)

    def upgrade(self, now):
        for name in self.present:
            job = self.jobs[name]
            last = min(job.truth.value.deadline, HORIZON + 1)
            late = now >= last - math.floor(self.mean(job) * (1 + self.margin) + 2)
            if name in self.runs or name in self.regular or not late:
                continue
            tried = []
            idle_devices = {pool: pool == "a" and "gpu" not in job.truth.shapes[0].each for pool in "ac"}
            for row, pool in enumerate(sorted(job.truth.shapes[0].kinds, key=lambda pool: (idle_devices[pool], pool))):
                cost = self.cost(job, pool)
                has = self.purses[job.owner, pool] - self.needed(job.owner, pool, now)
                if has >= cost * self.mean(job) * self.kappa - 1e-9:
                    tried.append((-has / cost, row, pool))
            for _, _, pool in sorted(tried):
                threshold = self.threshold(job.owner, pool, now)
                if self.important(job) >= threshold:
                    self.regular[name] = pool, now
                    cost, purse = self.cost(job, pool) * self.mean(job) * self.kappa, self.purses[job.owner, pool]
                    row = name, job.owner, pool, now, cost, purse, threshold, self.bound(job, pool)
                    self.upgrades.append(row)
                    break
        for name in self.present:
            job = self.jobs[name]
            if job.arrival == now:
                share = {pool: self.cost(job, pool) * self.mean(job) / len(job.truth.shapes[0].kinds)
                         for pool in job.truth.shapes[0].kinds}  # fmt: skip
                self.memory[job.owner].append((self.important(job), share, now))

    def pays(self, name, pool):
        key, cost = (self.jobs[name].owner, pool), self.cost(self.jobs[name], pool)
        if self.purses[key] < cost - 1e-9:
            return False
        self.purses[key] -= cost
        return True

    def serve(self, now, events, pool_of):
        for name in self.present:
            if name in self.runs and name in self.regular and not self.pays(name, self.runs[name][1]):
                del self.regular[name]
                self.counts["could_not_pay"] += 1
        waiting = [name for name in self.present if name in self.regular and name not in self.runs]
        lost, place, free = 0.0, -1, False
        for event in events:
            name = event.job
            if event.kind.value == "requeue":
                assert name not in self.regular and not free  # only free runs are taken, before free jobs start
                lost += self.size(self.jobs[name]) * (now - self.runs.pop(name)[0])
                self.counts[name] += 1
                self.counts["requeues"] += 1
            if event.kind.value == "start":
                pool = pool_of(name)
                if name in self.regular:
                    assert not free and waiting.index(name) > place  # in turn of arrival
                    place = waiting.index(name)
                    own, *behind = (self.jobs[each] for each in waiting[place:])
                    own, behind = (
                        sum(self.size(job) * self.usual_rounds(job) for job in jobs) for jobs in ([own], behind)
                    )
                    limit = 1.5 * max(1.0, self.offered / self.rounds / 4) ** 3 * (own + 2 * behind)
                    assert lost <= limit + 1e-9 or now - self.regular[name][1] >= self.patience
                    assert self.pays(name, pool)
                else:
                    free = True
                self.lost, lost = self.lost + lost, 0.0
                self.runs[name] = now, pool
        assert not lost

    def ends(self, now, name):
        self.over.append((name, now + 1 - self.runs.pop(name)[0]))
        self.counts["completed"] += 1
        self.present.remove(name)
        self.regular.pop(name, None)


@settings(max_examples=many(40, least=8), phases=[Phase.reuse, Phase.generate])  # seeds do not shrink
@given(
    seed=st.integers(0, 10**6),
    income=st.sampled_from([0.25, 0.5, 0.75]),
    carry=st.sampled_from([8.0, 32.0]),
    start=st.sampled_from([0.0, 0.5, 1.0]),
    patience=st.sampled_from([0, 3, 40]),
    margin=st.sampled_from([0.5, 1.0, 4.0]),
)
def test_drawn_markets_follow_the_rule(seed, income, carry, start, patience, margin):
    jobs, owners = drawn_jobs(seed, n=70, span=40), ["o0", "o1", "o2", "o3"]
    account = Account(jobs, owners, income, carry, start, patience, margin)
    rules = {"income": income, "carry_rounds": carry, "start": start, "patience": patience, "margin": margin}
    market = ClusterCredits(CLUSTER.nodes, HORIZON, **SIZES, owners=owners, **rules)
    loop, truthful = MarketLoop(market), TruthfulOwners(jobs)
    while loop.now <= 80:
        truthful.act(loop)
        loop.arrivals()
        now, events = loop.now, loop.advance()
        account.begins(now, events)
        account.upgrade(now)
        account.serve(now, events, lambda name: CLUSTER.pool_names[market.booking(name).wanted.pool])
        for pool, each in zip(CLUSTER.pool_names, market.pools.every, strict=True):
            expected = [account.purses[owner, pool] for owner in owners]
            assert each.credits.tolist() == pytest.approx(expected, abs=1e-3)
        classes = {name: market.class_of(name).name for name in account.present}
        assert classes == {name: "regular" if name in account.regular else "free" for name in account.present}
        for event in loop.completions():
            account.ends(now, event.job)
    found = sorted((x.job, x.owner, x.pool, x.round, x.cost, x.purse, x.threshold, x.bound) for x in market.upgrades)
    assert [row[:4] for row in found] == [row[:4] for row in sorted(account.upgrades)]
    numbers = [[x for row in rows for x in row[4:]] for rows in (found, sorted(account.upgrades))]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-3, nan_ok=True)
    counts = market.statistics()
    assert {name: counts[name] for name in ("jobs", "could_not_pay", "requeues", "completed")} == {
        name: account.counts[name] for name in ("jobs", "could_not_pay", "requeues", "completed")
    }
    assert counts["upgrades"] == len(found) and counts["node_rounds_lost"] == pytest.approx(account.lost)


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


def test_the_bound_holds_when_all_is_spent_at_once():
    market, _ = played(saved_up(), **SAVED)
    (late,) = (x for x in market.upgrades if x.owner == "other")
    assert late.bound == 19  # 19 credits are left behind the first round, over 2 (1 - .25 - .25) nodes
    assert 0.5 * late.bound <= late.started - late.round <= late.bound


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
