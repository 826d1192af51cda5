"""Dominant shares on nodes: what starts where is what a naive rule says; decay, shares, and a second account."""

from dataclasses import replace

import numpy as np
import pytest

from draws import many
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.schedulers.cluster_dominant_share import ClusterDominantShare
from marketsched.mechanisms.schedulers.multifactor import kept
from naive_nodes import CLUSTER, HORIZON, SIZES, compared, drawn_jobs, share_of

HALF_LIFE_HOURS = 0.5  # of six rounds


def market_of(**rules):
    rules = {"half_life_hours": HALF_LIFE_HOURS, **rules}
    return get_mechanism("cluster-dominant-share", capacity=CLUSTER.nodes, horizon=HORIZON, **SIZES, **rules)


def by_definition(parts, fades, of_owner=max):
    """Return the rule in words of the naive nodes: ``of_owner`` makes one number of the use of both resources."""
    used = {owner: np.zeros(2) for owner in parts}
    names: dict[str, object] = {}

    def rule(naive, waiting, now):
        started, before = {}, dict(naive.runs)
        names.update({job.name: job for job in waiting})
        for owner in used:
            used[owner] = fades * used[owner]
        own = {owner: each.copy() for owner, each in used.items()}
        left = list(waiting)
        while left:
            owners = {job.owner for job in left}
            owner = min(owners, key=lambda o: ((of_owner(own[o]) + 1e-9) / parts[o], list(parts).index(o)))
            job = next(job for job in left if job.owner == owner)
            left.remove(job)
            place = naive.best(job, now)
            if place is not None:
                started[job.name] = naive.runs[job.name] = place
                own[owner] += share_of(job)
        for name in naive.runs:
            used[names[name].owner] += share_of(names[name])
        naive.runs = before
        return started

    return rule


@pytest.mark.parametrize("seed", range(many(8)))
def test_what_starts_where_is_what_the_naive_rule_says(seed):
    jobs = drawn_jobs(seed)
    owners = sorted({job.owner for job in jobs})
    fades = kept(HALF_LIFE_HOURS * 3600.0, 300.0)
    assert 0.88 < fades < 0.9
    starts = compared(market_of(owners=owners), jobs, by_definition(dict.fromkeys(owners, 1 / len(owners)), fades))
    assert len(starts) > 15
    shares = {owner: 1.0 + i for i, owner in enumerate(owners)}
    parts = {owner: share / sum(shares.values()) for owner, share in shares.items()}
    compared(market_of(shares=shares), jobs, by_definition(parts, fades))


def machine(cores=8, gpus=4):
    parts = (Resource("cpu"), Resource("gpu", device=True))
    return Cluster(parts, [NodeGroup("a", "a", 1, {"cpu": cores, "gpu": gpus})])


def starts_of(jobs, horizon=30, cluster=None, **rules):
    """Play jobs (name, owner, needs, rounds), all of round 1; return starts by name."""
    sizes = {"max_concurrency": 1, "max_duration": 9, "max_value": 9.0, "max_delay": horizon}
    market = ClusterDominantShare(1, horizon, cluster=cluster or machine(), **sizes, **rules)
    for name, owner, each, rounds in jobs:
        report = StatementOfWork.of_shapes(
            1, DeadlineValue(5.0, horizon), 1, [Shape(each, {"a": rounds})], revealed=False
        )
        market.submit(name, report, owner=owner)
    for name, *_ in jobs:
        market.arrive(name)
    starts, length = {}, {name: rounds for name, _, _, rounds in jobs}
    for now in range(1, horizon):
        starts |= {event.job: now for event in market.advance() if event.kind.value == "start"}
        for name, start in starts.items():
            if start + length[name] == now + 1:
                market.complete(name)
    return starts


def test_the_example_of_the_paper():
    """Ghodsi et al., Figure 2: of 9 cores and 18 GB, <1, 4> and <3, 1> a task give three tasks and two."""
    parts = (Resource("cpu"), Resource("gb"))
    cluster = Cluster(parts, [NodeGroup("a", "a", 1, {"cpu": 9, "gb": 18})])
    jobs = [(f"A{i}", "A", {"cpu": 1, "gb": 4}, 9) for i in range(5)]
    jobs += [(f"B{i}", "B", {"cpu": 3, "gb": 1}, 9) for i in range(5)]
    first = [name for name, start in starts_of(jobs, cluster=cluster, owners=["A", "B"]).items() if start == 1]
    assert sorted(first) == ["A0", "A1", "A2", "B0", "B1"]


def test_who_used_the_machine_waits_until_that_has_faded():
    jobs = [("first", "ann", {"gpu": 4}, 4)] + [(f"{o}{i}", o, {"gpu": 4}, 2) for o in ("ann", "bob") for i in range(3)]
    soon = starts_of(jobs, owners=["ann", "bob"], half_life_hours=0.05)
    late = starts_of(jobs, owners=["ann", "bob"], half_life_hours=100.0)
    assert late["first"] == 1 and late["bob0"] == 5 and late["bob1"] == 7 and late["ann0"] == 9
    assert soon["bob0"] == 5 and soon["ann0"] == 7


def test_a_second_account_gains():
    """The lie that the verdict names: each account has a share."""

    def gained(accounts):
        jobs = [(f"ann{i}", accounts[i % len(accounts)], {"gpu": 4}, 3) for i in range(6)]
        jobs += [(f"bob{i}", "bob", {"gpu": 4}, 3) for i in range(6)]
        starts = starts_of(jobs, horizon=20, owners=[*accounts, "bob"])
        return sum(name.startswith("ann") for name in starts)

    assert gained(["ann", "ann2"]) > gained(["ann"])


def test_who_has_no_part_comes_last_and_values_count_for_nothing():
    jobs = [replace(job, owner="guest" if i % 2 else "ann") for i, job in enumerate(drawn_jobs(1))]

    def starts(jobs, **rules):
        events = play(MarketLoop(market_of(**rules)), TruthfulOwners(jobs), HORIZON)
        return [(event.round, event.job) for event in events if event.kind.value == "start"]

    guests = {job.name for job in jobs if job.owner == "guest"}
    alone, equal = starts(jobs, shares={"ann": 1}), starts(jobs, shares={"ann": 1, "guest": 1})
    assert sum(name in guests for _, name in alone) < sum(name in guests for _, name in equal)
    rng = np.random.default_rng(1)
    values = [DeadlineValue(float(rng.lognormal()), job.truth.value.deadline) for job in jobs]
    lied = [
        replace(job, truth=job.truth.moved(job.truth.birth, value)) for job, value in zip(jobs, values, strict=True)
    ]
    assert starts(lied, shares={"ann": 1, "guest": 1}) == equal
    with pytest.raises(InvalidParameterError, match="half_life_hours"):
        market_of(half_life_hours=0)
