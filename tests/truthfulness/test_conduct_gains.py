"""Conduct outside the model, in markets so small that its gains are known by hand."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.loop import Fate
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import DeadlineValue, InvalidReportError, LinearValue, StatementOfWork
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.registry import get_mechanism
from marketsched.results.result import load
from marketsched.results.views import parts_of_view
from marketsched.show.cli import app
from marketsched.truthfulness.conduct.conduct_audit import BEST, BEST_OF_DAYS, audit_conduct, conduct_table
from marketsched.truthfulness.conduct.conduct_gains import play_conducts
from marketsched.truthfulness.conduct.conducts import BELIEFS, FAMILIES, arriving_ghost, identities, statements_of

SIZES = {"capacity": 2, "horizon": 16, "max_concurrency": 2, "max_duration": 3, "max_value": 20.0, "max_delay": 12}


def job(name, value, arrival=1, duration=1, nodes=1, owner=None):
    truth = StatementOfWork(1, nodes, value, [(arrival, duration, 1.0)])
    return Job(name, owner or name, truth, arrival, duration, duration)


def gains(jobs, looked_at=(), past_of=(), mechanism="first-come", **more):
    rules = {key: more.pop(key) for key in ("price", "kill", "grace") if key in more}
    setup = MarketSetup("small", jobs, get_mechanism(mechanism, **SIZES, **rules), 2, 16, 12)
    return pd.DataFrame(play_conducts(setup, looked_at, past_of, **more).rows)


def of(rows, family):
    own = rows[rows["family"] == family]
    return dict(zip(own["conduct"], own["utility"] - own["truth"], strict=True))


def test_a_delay_costs_what_the_curve_says_and_pays_where_prices_wait_for_nobody():
    falling = gains([job("A", LinearValue(10.0, 2, 1.0, 12))], ["A"], delays=(1, 2, 5))
    assert of(falling, "delay") == {"1 round": -1.0, "2 rounds": -2.0, "5 rounds": -5.0}
    # Two nodes, two rivals who cannot wait: the auction of a later round asks nothing of A, whose law allows for it.
    law = [(arrival, 1, 0.25) for arrival in (1, 2, 5, 6)]
    own = Job("A", "A", StatementOfWork(1, 1, DeadlineValue(10.0, 6), law), 1, 1, 1)
    rows = gains(
        [own, *(job(f"B{i}", DeadlineValue(8.0, 2)) for i in range(2))], ["A"], mechanism="vcg", delays=(1, 4, 5)
    )
    assert rows["truth"].unique().tolist() == [2.0]  # it pays what the second rival would have been worth
    assert of(rows, "delay") == {"1 round": 8.0, "4 rounds": 8.0, "5 rounds": -2.0}


def test_two_identities_find_nodes_one_after_the_other():
    """One node is busy in rounds 1 and 2: both are free in 3, one of them twice before."""
    jobs = [job("X", DeadlineValue(9.0, 12), duration=2), job("A", LinearValue(10.0, 3, 4.0, 12), nodes=2)]
    assert of(gains(jobs, ["A"], delays=()), "split") == {"into 2": 4.0}  # done at 3, not at 4


def test_all_jobs_of_an_owner_in_parts():
    """As above, from the account it has; a job of one node stays whole, and what is dropped in one part is not done."""
    jobs = [job("X", DeadlineValue(9.0, 12), duration=2), job("A", LinearValue(10.0, 3, 4.0, 12), nodes=2, owner="ann")]
    jobs.append(job("A2", DeadlineValue(1.0, 12), arrival=6, owner="ann"))
    assert of(gains(jobs, past_of=["ann"], families=["parts"]), "parts") == {"each in two": 4.0}
    assert gains(jobs[2:], past_of=["ann"], families=["parts"]).empty
    late = [jobs[0], job("A", DeadlineValue(10.0, 2), nodes=2, owner="ann")]  # worth nothing unless done at once
    rows = gains(late, past_of=["ann"], families=["parts"], price=0.5)
    assert of(rows, "parts") == {"each in two": -0.5}


def test_identities_share_nodes_and_value():
    conduct = identities(StatementOfWork(1, 3, DeadlineValue(9.0, 4), [(1, 1, 1.0)]), 3)
    assert [each.identity for each in conduct.statements] == ["", "/2", "/3"]
    assert [each.report.value.highest for each in conduct.statements] == [3.0] * 3
    with pytest.raises(InvalidReportError, match="2 identities for 1 nodes"):
        identities(StatementOfWork(1, 1, DeadlineValue(9.0, 4), [(1, 1, 1.0)]), 2)


def test_a_ghost_that_is_served_pays():
    rows = of(gains([job("A", DeadlineValue(10.0, 12), arrival=3)], ["A"], price=0.75, delays=()), "ghost")
    assert set(rows.values()) == {-0.75} and len(rows) == 4
    too_cheap = of(gains([job("A", DeadlineValue(1.25, 12), arrival=3)], ["A"], price=0.75, delays=()), "ghost")
    assert sorted(too_cheap.values()) == [-0.75, -0.75, 0.0, 0.0]  # worth half of it, nobody serves it
    ghost = arriving_ghost(job("A", DeadlineValue(15.0, 12), arrival=3).truth, Fate(3, 1, 1), 2.0, 6, 20.0).statements[
        0
    ]
    assert (ghost.report.value.highest, ghost.part(Fate(3, 1, 1)).arrival) == (20.0, 1)


def test_no_wait_is_agreed_to_by_the_job_or_by_a_ghost_of_it():
    mine = job("A", DeadlineValue(10.0, 12), arrival=3)
    played = list(statements_of(mine, Fate(3, 1, 1), PublicInformation(2, 12, 12), ["hurry"]))
    found = [(name, [each.report.patience for each in conduct.statements]) for _, name, conduct in played]
    ghosts = [(f"a ghost worth {share:g} of it does, 1 round before", [0, None]) for share in (0.5, 2.0)]
    assert found == [("the job agrees to no wait", [0]), *ghosts]
    rows = gains([mine], ["A"], price=0.75, families=["hurry"])
    assert sorted(of(rows, "hurry").values()) == [-0.75, -0.75, 0.0]  # first come sells no patience


def test_all_jobs_of_an_owner_at_other_values():
    jobs = [job(f"A{i}", DeadlineValue(3.0, 12), arrival=1 + i, owner="ann") for i in range(4)]
    kept_out = of(gains(jobs, past_of=["ann"], price=2.0, factors=(0.5, 0.8, 2.0)), "past")
    assert kept_out == {"values times 0.5": -4.0, "values times 0.8": 0.0, "values times 2": 0.0}
    shaded = of(gains(jobs, past_of=["ann"], mechanism="pay-as-bid", factors=(0.5, 0.8)), "past")
    assert shaded == {"values times 0.5": pytest.approx(6.0), "values times 0.8": pytest.approx(2.4)}


def hidden(name, value, duration, nodes=1, arrival=1, owner=None):
    truth = StatementOfWork(1, nodes, value, [(arrival, duration, 1.0, None)])
    return Job(name, owner or name, truth, arrival, duration, None)


@pytest.mark.parametrize(
    ("rules", "least", "most"), [({}, 10.0, 10.0), ({"kill": True, "grace": 0}, 0.0, 0.0), ({"kill": True}, 0.0, 10.0)]
)
def test_a_short_estimate_passes_the_head_unless_runs_are_stopped_at_it(rules, least, most):
    """X has one of two nodes for two rounds, H waits for both: A, of three rounds, may not pass unless it says two."""
    jobs = [hidden("X", DeadlineValue(9.0, 12), 2), hidden("H", DeadlineValue(9.0, 12), 1, nodes=2)]
    jobs.append(hidden("A", DeadlineValue(10.0, 5), 3))
    rows = gains(jobs, ["A"], mechanism="easy-backfill", families=["estimate"], **rules)
    names = ("as it will be", "times 0.25", "times 0.5", "times 0.8", "times 1.25", "times 2")
    assert of(rows, "estimate") == dict(zip(names, (0.0, least, most, most, 0.0, 0.0), strict=True))


def test_what_is_worth_most_runs_first_if_one_says_so():
    jobs = [job("A", DeadlineValue(4.0, 2), nodes=2), job("B", DeadlineValue(7.0, 2), nodes=2)]
    rows = gains(jobs, ["A"], mechanism="largest-value-first", families=["value"])
    assert of(rows, "value") == {"times 0.5": 0.0, "times 2": 4.0, "times 10": 4.0}


def test_a_fresh_account_has_used_nothing():
    """Ann has run X; in round 2 Bob comes first, unless A comes from an account of its own."""
    jobs = [job("X", DeadlineValue(4.0, 2), nodes=2, owner="ann")]
    jobs += [
        job(name, DeadlineValue(5.0, 3), arrival=2, nodes=2, owner=who) for name, who in (("A", "ann"), ("B", "bob"))
    ]
    rows = gains(jobs, ["A"], ["ann"], mechanism="fair-share", families=BELIEFS)
    assert of(rows, "account") == {"one of its own": 5.0}
    assert of(rows, "accounts") == {"one for each job": 5.0}
    assert set(
        of(gains(jobs, ["A"], ["ann"], mechanism="first-come", families=["account", "accounts"]), "account")
    ) == {"one of its own"}


def test_families_by_what_a_mechanism_promises():
    found = audit_conduct(MARKET, ["first-come", "easy-backfill"], owners=1, past_owners=1).summary
    played = found.groupby("mechanism")["family"].unique().map(set)
    assert played["first-come"] <= set(FAMILIES) and "past" in played["first-come"]
    assert played["easy-backfill"] - set(FAMILIES) == set(BELIEFS) - {"parts"}  # its jobs have one node


def test_what_is_played_leaves_the_market_of_the_truth_alone():
    jobs = [job(f"A{i}", DeadlineValue(4.0 + i, 12), arrival=1 + i // 2, duration=2) for i in range(8)]
    setup = MarketSetup("small", jobs, FirstCome(price=0.5, **SIZES), 2, 16, 12)
    watched = play_conducts(setup, [x.name for x in jobs], ["A3"])
    alone = play_conducts(MarketSetup("small", jobs, FirstCome(price=0.5, **SIZES), 2, 16, 12), [])
    assert watched.worth == alone.worth and len(watched.rows) == 8 * 17 + 5


def test_the_table_by_hand():
    rows = [
        ("d", "1", "A", 4.0, 1.0),
        ("d", "1", "B", 6.0, -1.0),
        ("d", "2", "A", 4.0, -2.0),
        ("d", "2", "B", 6.0, -3.0),
    ]
    frame = pd.DataFrame(rows, columns=["family", "conduct", "job", "truth", "gain"]).assign(
        mechanism="m", owner="x", highest_value=10.0, seed=0
    )
    table = conduct_table(frame, ["m"]).set_index("conduct")
    assert table.loc[BEST, ["gain", "paying", "largest"]].tolist() == [0.1, 0.5, 1.0]  # .5 of 5; B does nothing
    assert table.loc["1", ["gain", "paying", "looked_at"]].tolist() == [0.0, 0.5, 2]
    half = 12.706204736432095 * 1.0 / 5.0
    assert table.loc["1", "gain_high"] == pytest.approx(half)
    assert table.loc["2", "gain"] == -0.5


def test_the_best_response_to_days_is_one_factor_for_all_of_them():
    rows = [(0, "a", "x1", 3.0), (0, "a", "x2", -1.0), (1, "a", "x1", -2.0), (1, "a", "x2", 4.0),
            (0, "b", "x1", 1.0), (0, "b", "x2", -9.0), (1, "b", "x1", -4.0), (1, "b", "x2", 1.0)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["seed", "owner", "conduct", "gain"]).assign(
        mechanism="m", family="past", job="", truth=10.0, highest_value=10.0
    )
    table = conduct_table(frame, ["m"]).set_index("conduct")
    assert table.loc[BEST, "gain"] == pytest.approx((3 + 4 + 1 + 1) / 4 / 10)
    assert table.loc[BEST_OF_DAYS, "gain"] == pytest.approx((1.5 + 0) / 2 / 10)  # b does best with the truth


MARKET = {
    "name": "recurring",
    "workload": {
        "kind": "synthetic-pipelines", "recurring_jobs": 6, "birth_rounds": 60, "utilisation": 0.9,
    },
    "mechanism": {"name": "bid-price"},
}  # fmt: skip


@pytest.mark.slow
def test_the_command_measures_and_its_folder_comes_back(tmp_path):
    from marketsched.config.strict_yaml import dump_yaml

    (tmp_path / "market.yaml").write_text(dump_yaml(MARKET))
    call = ["audit", "conduct", str(tmp_path / "market.yaml"), "--owners", "3", "--past-owners", "1"]
    call += ["--mechanism", "bid-price", "--mechanism", "bid-price:buckets=2"]
    done = CliRunner().invoke(app, [*call, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.stderr
    kept = load(tmp_path / "out")
    found = audit_conduct(Scenario.from_dict(MARKET), ["bid-price", "bid-price:buckets=2"], owners=3, past_owners=1)
    pd.testing.assert_frame_equal(kept.gains, found.gains)
    assert parts_of_view(kept.view()) == parts_of_view(found.view())
    assert max(map(len, done.stdout.splitlines())) <= 110
    assert set(kept.summary["family"]) >= {"delay", "ghost", "past"}
    assert np.isfinite(kept.summary["gain"]).all()
