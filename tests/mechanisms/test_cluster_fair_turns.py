"""Fair turns on a cluster: what starts is what brute force says, and no node is overfull."""

from dataclasses import replace

import numpy as np
import pytest

from draws import many
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.shapes import Shape
from node_requests import CPU, GPU, LAWS, NEEDS

CLUSTER = Cluster((CPU, GPU), [NodeGroup("a", "a", 2, {"cpu": 8, "gpu": 2}), NodeGroup("c", "c", 1, {"cpu": 8})])
SIZE = {"cpu": 24.0, "gpu": 4.0}
HORIZON, KEPT = 70, 0.9


def drawn_jobs(seed, n=40, span=25, owners=3):
    rng, jobs = np.random.default_rng(seed), []
    for i, birth in enumerate(np.sort(rng.integers(1, span, n)).tolist()):
        durations, chances = LAWS[rng.integers(len(LAWS))]
        each, kinds = NEEDS[rng.integers(len(NEEDS))]
        value = DeadlineValue(float(rng.uniform(1, 9)), birth + int(rng.integers(1, 30)))
        shape = Shape(each, dict.fromkeys(kinds, durations))
        truth = StatementOfWork.of_shapes(birth, value, birth, [shape], chances, revealed=False)
        jobs.append(Job(f"j{i}", f"o{int(owners * rng.random() ** 2)}", truth, birth, int(rng.choice(durations))))
    return jobs


def market_of(jobs, **rules):
    rules = {"owners": sorted({job.owner for job in jobs}), "kept": KEPT, **rules}
    sizes = {"max_concurrency": 1, "max_duration": 12, "max_value": 1e15, "max_delay": 40, "cluster": CLUSTER}
    return get_mechanism("cluster-fair-turns", capacity=3, horizon=HORIZON, **sizes, **rules)


def events_of(jobs, **rules):
    return play(MarketLoop(market_of(jobs, **rules)), TruthfulOwners(jobs), HORIZON)


def share_of(job):
    """Return the nodes of the largest share of the cluster."""
    return 3 * max(amount / SIZE[name] for name, amount in job.truth.shapes[0].each.items())


def importance_of(job):
    law = job.truth.law
    return job.truth.value.value / (share_of(job) * float(law.probabilities @ law.durations))


def can_pay_off(job, now):
    return now + job.truth.law.durations.min() <= job.truth.value.last


def nodes_held(market, running):
    """Return by node the cores that these runs hold, and the part of each device."""
    first = CLUSTER.layout.device_begin[:, 1]
    held = [[0.0, [0.0] * (2 if node < 2 else 0)] for node in range(3)]
    for name in running:
        booking = market.booking(name)
        ((node, tasks),) = zip(booking.placed.nodes.tolist(), booking.placed.tasks.tolist(), strict=True)
        held[node][0] += tasks * booking.wanted.demand[0] / CPU.parts
        for device, parts in zip(booking.placed.devices.tolist(), booking.placed.parts.tolist(), strict=True):
            held[node][1][device - first[node]] += parts / GPU.parts
    return held


class Watched:
    """Plays a market, and says for each round what brute force would start: it tries every node for every resource."""

    def __init__(self, jobs, parts):
        self.jobs, self.parts = {job.name: job for job in jobs}, parts
        self.used, self.starts = dict.fromkeys(parts, 0.0), 0

    def room(self, held, job):
        """Tell whether some node of an accepted kind has room; ``held`` by node: cores, and parts of each device."""
        (shape,) = job.truth.shapes
        for node, kind in enumerate(("a", "a", "c")):
            cpu, gpus = held[node]
            if kind not in shape.kinds or cpu + shape.each["cpu"] > 8:
                continue
            gpu = shape.each.get("gpu", 0)
            empty = sum(part == 0 for part in gpus)
            if (gpu >= 1 and empty >= gpu) or (gpu < 1 and (gpu == 0 or any(part + gpu <= 1 for part in gpus))):
                return True
        return False

    def round(self, market, now, waiting, running):
        """Clear a round, compare, and return the names of what started."""
        waiting = {name for name in waiting if can_pay_off(self.jobs[name], now)}
        self.used = {owner: KEPT * used for owner, used in self.used.items()}
        events = market.advance()
        started = [event.job for event in events if event.kind.value == "start"]
        left = {event.job for event in events if event.kind.value in ("evict", "drop")}
        now_running, used, left_over = (running - left), dict(self.used), set(started)
        while waiting:
            owners = {self.jobs[name].owner for name in waiting}
            owner = min(owners, key=lambda o: ((used[o] + 1e-9) / self.parts[o], list(self.parts).index(o)))
            name = max((n for n in waiting if self.jobs[n].owner == owner), key=lambda n: importance_of(self.jobs[n]))
            waiting.discard(name)
            if self.room(nodes_held(market, now_running), self.jobs[name]):
                left_over.remove(name)
                now_running.add(name)
                used[owner] += share_of(self.jobs[name])
                self.starts += 1
        assert not left_over
        for name in now_running:
            self.used[self.jobs[name].owner] += share_of(self.jobs[name])
        return started, left


@pytest.mark.parametrize("seed", range(many(6)))
def test_what_starts_is_what_brute_force_says_and_no_node_is_overfull(seed):
    jobs = drawn_jobs(seed)
    owners = sorted({job.owner for job in jobs})
    market = market_of(jobs, owners=owners)
    watched, waiting, running = Watched(jobs, dict.fromkeys(owners, 1 / len(owners))), set(), {}
    for now in range(1, HORIZON):
        new = [job for job in jobs if job.truth.birth == now]
        for job in new:
            market.submit(job.name, job.truth, owner=job.owner)
        for job in new:
            market.arrive(job.name)
        waiting |= {job.name for job in new}
        started, left = watched.round(market, now, waiting, set(running))
        waiting -= set(started) | left
        running = {name: at for name, at in running.items() if name not in left} | dict.fromkeys(started, now)
        for cpu, gpus in nodes_held(market, running):
            assert cpu <= 8 and all(part <= 1 for part in gpus)
        for name, at in list(running.items()):
            if at + watched.jobs[name].duration == now + 1:
                market.complete(name)
                del running[name]
    assert watched.starts > 15


def test_an_owner_without_a_share_goes_last():
    jobs = [replace(job, owner="guest" if i % 2 else "ann") for i, job in enumerate(drawn_jobs(1))]
    starts = {
        rule: sum(e.kind.value == "start" for e in events_of(jobs, shares=shares) if e.job in guests)
        for rule, shares in (("guest", {"ann": 1}), ("equal", {"ann": 1, "guest": 1}))
        for guests in [{job.name for job in jobs if job.owner == "guest"}]
    }
    assert starts["guest"] < starts["equal"]
    with pytest.raises(InvalidParameterError, match="kept"):
        market_of(jobs, kept=0)
