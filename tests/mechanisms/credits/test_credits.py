"""Credits: what is proven of them, in drawn markets, and in one where the bound is attained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credit_markets import HORIZON, NODES, SIZES, density_of, drawn_jobs, market_of, of_density, played
from draws import many
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.credits.credits import Credits
from marketsched.mechanisms.credits.purses import CREDIT
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import get_mechanism, promises_of

TIGHT = {"income": 0.5, "carry_rounds": 12.0, "patience": 2}  # small purses: who is regular matters
rules = st.fixed_dictionaries(
    {
        "income": st.sampled_from([0.3, 0.5, 0.7, 1.0]),
        "carry_rounds": st.sampled_from([4.0, 20.0, 200.0]),
        "start": st.sampled_from([0.0, 0.5, 1.0]),
        "patience": st.integers(0, 6),
        "margin": st.sampled_from([0.0, 1.0, 5.0]),
    }
)


def by_rounds(market, jobs):
    """Play; yield the market after each round, with its events."""
    loop, owners = MarketLoop(market), TruthfulOwners(jobs)
    while loop.now <= market.horizon:
        owners.act(loop)
        yield loop.clear()


def violations(market):
    """Return the upgrades whose jobs waited beyond their bound."""
    found = []
    for each in market.upgrades:
        end = each.started or each.left or market.round
        if end - each.round - each.unpaid > each.bound:  # False where it is nan
            found.append(each)
    return found


@pytest.mark.slow
@settings(max_examples=many(120, least=25), deadline=None)
@given(seed=st.integers(0, 10**6), rule=rules)
def test_purses_bound_what_is_regular_and_how_long_it_waits(seed, rule):
    """P2 and P3, exact sums, and that no regular run is ever taken back."""
    jobs = drawn_jobs(seed, n=80)
    market = market_of("credits", jobs, **rule)
    purses, regular, spent, start = market.purses, [], [], market.purses.held.copy()
    for events in by_rounds(market, jobs):
        rows = market._present.jobs[market._present.turn[: market._present.n]]
        ran = {market._in_row[row].job: row for row in market._present.turn[: market._present.n].tolist()}
        taken = {e.job for e in events if e.kind.value == "requeue"}
        assert not any(
            market._present.jobs["since"][ran[job]] and not market._present.jobs["start"][ran[job]] for job in taken
        )
        nodes = np.zeros(len(market.accounts), np.int64)
        running = rows[(rows["since"] > 0) & (rows["start"] > 0)]
        np.add.at(nodes, running["owner"], running["width"])
        regular.append(nodes)
        spent.append(purses.spent.copy())
        assert (purses.held >= 0).all() and (purses.held <= np.maximum(purses.caps, start)).all()
        assert (purses.earned == purses.held + purses.spent + purses.expired).all()
        assert market.load <= NODES
    paid = np.diff(np.array([np.zeros_like(spent[0]), *spent]), axis=0)
    assert (
        paid == CREDIT * np.array(regular)
    ).all()  # a regular node and round costs one credit: so P2 is the sum of purses
    windows = np.cumsum(np.array(regular), axis=0)
    rounds = np.arange(1, len(windows) + 1)[:, None]
    assert (CREDIT * windows <= start + rounds * purses.incomes).all()
    assert not violations(market)


def saved_up(nodes=10, carry=200.0):
    """Return a market in which one owner has saved, and fills the machine in front of the job of another."""
    rush = [
        Job(f"r{i}", "saver", StatementOfWork(1, nodes, DeadlineValue(5.0, 302), [(1, 1, 1.0, None)]), 1, 1)
        for i in range(220)
    ]
    law = [(1, 1, 0.5, None), (1, 3, 0.5, None)]
    late = Job("late", "other", StatementOfWork(1, 1, DeadlineValue(5.0, 302), law), 1, 1)
    sizes = {**SIZES, "max_concurrency": nodes, "max_delay": 400}
    shares = {"saver": 996, "other": 4}
    market = Credits(
        nodes, 320, shares=shares, income=0.5, carry_rounds=carry, start=1.0, patience=0, margin=300, **sizes
    )
    return market, [*rush, late]


def test_the_bound_is_attained_when_all_is_spent_at_once():
    market, jobs = saved_up()
    played(market, jobs, 320)
    (each,) = (x for x in market.upgrades if x.job == "late")
    assert each.bound == 200.0  # 1,000 credits over (1 - .5) 10 - 1 + 1 nodes
    assert 0.98 * each.bound <= each.started - each.round <= each.bound
    shown = market.tables()["purses"]
    assert shown["incomes"].tolist() == [4.98, 0.02] and shown["spent"][1] == 1.0  # of 5 a round; a run of one round


def state_of(market, jobs):
    events = played(market, jobs)
    return (
        events,
        [(x.job, x.round, x.cost, x.purse, x.bound, x.started) for x in market.upgrades],
        market.purses.held.tolist(),
    )


def test_a_map_that_gives_worthless_jobs_a_value_is_not_one_of_those():
    jobs = [of_density(job, 0.0) if i % 3 == 0 else job for i, job in enumerate(drawn_jobs(3, n=80))]
    before = state_of(market_of("credits", jobs, **TIGHT), jobs)
    for added, same in ((0.0, True), (1.0, False)):
        mapped = [of_density(job, 2 * density_of(job) + added) if job.owner == "o0" else job for job in jobs]
        assert (state_of(market_of("credits", mapped, **TIGHT), mapped) == before) is same
    assert "with 0 at 0" in promises_of("credits")


def test_a_regular_run_is_taken_back_once_its_owner_cannot_pay():
    """Its purse is empty, so that the run is free."""
    jobs = drawn_jobs(4, n=80)
    market = market_of("credits", jobs, **TIGHT)
    events = played(market, jobs)
    regular = {x.job for x in market.upgrades if x.started}
    taken = {event.job for event in events if event.kind.value == "requeue"}
    assert taken & regular and "taken back for no other while its owner can pay" in promises_of("credits")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"income": 0}, "income"),
        ({"income": 1.2}, "income"),
        ({"carry_rounds": 0}, "carry_rounds"),
        ({"start": 2}, "start"),
        ({"patience": -1}, "patience"),
        ({"shares": {"ann": -1}}, "shares: ann"),
        ({"shares": {"ann": "parent"}}, "shares: ann"),
    ],
)
def test_bad_parameters_are_one_clear_error(given, place):
    with pytest.raises(InvalidParameterError, match=rf"^(mechanism 'credits': )?{place}"):
        get_mechanism("credits", capacity=NODES, horizon=HORIZON, **SIZES, **given)
