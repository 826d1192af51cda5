"""Owners in turn: against a market written out in full."""

import numpy as np
import pytest

from credit_markets import (
    HORIZON,
    NODES,
    SIZES,
    density_of,
    drawn_jobs,
    market_of,
    mean_of,
    played,
    starts_of,
)
from draws import many
from marketsched.config.scenario import Scenario
from marketsched.config.sow_codec import ReportLimits, sow_from_json, sow_to_json
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.schedulers.turns import Accounts
from marketsched.mechanisms.values import RankValue


def in_full(jobs, part_of, reserve):
    """Return (round, job) of every start: all is looked up anew in each round."""
    used, running, gone, starts = dict.fromkeys(part_of, 0.0), {}, set(), []
    for now in range(1, HORIZON + 1):
        used = {owner: 0.99 * each for owner, each in used.items()}
        by_name = {job.name: job for job in jobs if job.arrival <= now}
        for name, start in list(running.items()):
            ends = start + by_name[name].duration
            if now >= min(ends, max(start + 1, by_name[name].truth.value.deadline)):
                gone.add(name)
                del running[name]
        waiting = [job for name, job in by_name.items() if name not in gone and name not in running]
        hopeless = {job.name for job in waiting if now + min(job.truth.durations) > job.truth.value.deadline}
        gone |= hopeless

        def turn(job, used=used):
            part, own = part_of[job.owner], used[job.owner]
            return (part == 0, (own + 1) / part if part else own, job.owner, -density_of(job))

        idle, held = np.full(3 * HORIZON, NODES), reserve == "none"
        for name, start in running.items():
            idle[now : max(start + max(by_name[name].truth.durations), now + 1)] -= by_name[name].truth.concurrency
        for job in sorted((job for job in waiting if job.name not in hopeless), key=turn):
            wall, width = max(job.truth.durations), job.truth.concurrency
            first = next(t for t in range(now, 2 * HORIZON) if (idle[t : t + wall] >= width).all())
            if first == now:
                running[job.name] = now
                starts.append((now, job.name))
            if first == now or not held:
                idle[first : first + wall] -= width
                held = held or first > now
        for name in running:
            used[by_name[name].owner] += by_name[name].truth.concurrency
    return starts


@pytest.mark.parametrize("reserve", ["none", "head"])
@pytest.mark.parametrize("parts", [None, {"o0": 1, "o1": 3, "o2": 0, "o3": 2}])
def test_starts_are_those_of_a_market_written_out_in_full(parts, reserve):
    for seed in range(many(12)):
        jobs = drawn_jobs(seed)
        given = {"reserve": reserve} | ({} if parts is None else {"shares": parts})
        found = [(t, job) for t, _, job in starts_of(played(market_of("fair-turns", jobs, **given), jobs))]
        due = parts or dict.fromkeys(sorted({job.owner for job in jobs}), 1)
        expected = in_full(jobs, {owner: part / sum(due.values()) for owner, part in due.items()}, reserve)
        assert sorted(found) == sorted(expected)


def test_an_account_that_nobody_made_is_tried_last():
    accounts = Accounts(owners=["ann", "bob"])
    assert [accounts.number_of(name) for name in ("bob", "eve", "ann")] == [1, 2, 0]
    assert accounts.parts.tolist() == [0.5, 0.5, 0.0]
    jobs = drawn_jobs(5)
    known = [job.owner for job in jobs if job.owner != "o3"]
    waits = {}
    for owners in ([*known, "o3"], known):
        starts = {
            job: t for t, _, job in starts_of(played(market_of("fair-turns", jobs, owners=sorted(set(owners))), jobs))
        }
        own = [starts.get(job.name, HORIZON) - job.arrival for job in jobs if job.owner == "o3"]
        waits[len(set(owners))] = np.mean(own)
    assert waits[3] > waits[4]


def test_newcomers_divide_the_share_of_their_account():
    accounts = Accounts({"physics/": 3, "guests/": 1, "physics/ann": 1, "physics/bob": 2}, "guests/")
    assert accounts.parts.tolist() == pytest.approx([0.25, 0.5])
    for name in ("eve", "joe"):
        accounts.number_of(name)
    assert accounts.parts.tolist() == pytest.approx([0.25, 0.5, 0.125, 0.125])


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"shares": {"ann": -1}}, "shares: ann"),
        ({"shares": {"physics/ann": 1}}, "shares"),
        ({"shares": {"physics/": 1, "physics/ann": "parent"}}, "shares: ann"),
        ({"newcomers": "guests/"}, "newcomers"),
        ({"shares": {"ann": 1}, "newcomers": "guests/"}, "newcomers"),
        ({"kept": 0}, "kept"),
    ],
)
def test_bad_shares_are_one_clear_error(given, place):
    with pytest.raises(InvalidParameterError, match=rf"^(mechanism 'fair-turns': )?{place}"):
        get_mechanism("fair-turns", capacity=NODES, horizon=HORIZON, **SIZES, **given)


LIMITS = ReportLimits(4, 9, 100.0)


def ranked(**changes):
    rows = [{"arrival": 1, "duration": d, "probability": 0.5, "signal": None} for d in (2, 4)]
    return {"concurrency": 2, "value": {"kind": "rank", "rank": 4, "deadline": 9, **changes}, "requirements": rows}


def test_a_rank_stands_for_importance_a_node_and_round():
    sow = sow_from_json(1, ranked(), LIMITS)
    assert sow.value == RankValue(24.0, 9, 4) and mean_of(type("J", (), {"truth": sow})) == 3.0
    assert sow_from_json(1, sow_to_json(sow), LIMITS) == sow


@pytest.mark.parametrize("changes", [{"rank": 0}, {"rank": 10}, {"rank": 1.5}, {"value": 3}, {"deadline": -1}])
def test_a_bad_rank_is_one_clear_error(changes):
    with pytest.raises(InvalidReportError, match=r"^value"):
        sow_from_json(1, ranked(**changes), LIMITS)


SHARED = {"fair-share": {"shares": {"o0": 2}}, "fair-turns": {"shares": {"o0": 2}}, "credits": {"shares": {"o0": 2}}}
SHARED |= {"quota": {"queues": {"o0": {"weight": 2}}}}


@pytest.mark.parametrize("name", SHARED)
def test_a_scenario_holds_shares(name):
    scenario = Scenario.load("synthetic-pipelines").with_changes("workload.recurring_jobs=3")
    data = {**scenario.to_dict(), "mechanism": {"name": name, "parameters": SHARED[name]}}
    assert Scenario.from_dict(data).setup(np.random.default_rng(1)).mechanism.round == 1
    (key,) = SHARED[name]
    with pytest.raises(InvalidParameterError, match=f"^(synthetic-pipelines: )?mechanism.*{key}"):
        bad = {key: {"o0": -1 if name != "quota" else {"weight": -1}}}
        Scenario.from_dict({**data, "mechanism": {"name": name, "parameters": bad}}).setup(np.random.default_rng(1))
