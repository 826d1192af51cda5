"""Environments over markets: the libraries' own checks, the tables of a run, and what an action does."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

from marketsched import Scenario, contested_market, run
from marketsched.agents import value_menu
from marketsched.agents.learning import ReportMenu
from marketsched.agents.lies import InflateConcurrency, ScaleDuration, ScaleValue, ShiftDeadline
from marketsched.env import OBSERVED, Bids, MarketEnv, OwnerEnv, OwnersVectorEnv, parallel_env
from marketsched.mechanisms import StatementOfWork
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError, UnknownNameError
from marketsched.mechanisms.registry import register
from marketsched.study.learning.played_turns import PlayedTurns
from marketsched.study.learning.turns import OwnersTurns
from refusals import refused

SMALL = {
    "name": "small",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 12, "birth_rounds": 40, "capacity": 4},
    "mechanism": {"name": "bid-price"},
}


def truthful(env):
    """Play the truth to the end; return the rewards by owner."""
    earned = dict.fromkeys(env.possible_agents, 0.0)
    while env.agents:
        _, rewards, *_ = env.step(dict.fromkeys(env.agents, env.menu.truth))
        for owner, reward in rewards.items():
            earned[owner] += reward
    return earned


def test_pettingzoo_accepts_the_market():
    parallel_api_test(MarketEnv(contested_market("pay-as-bid", n_owners=3, capacity=1)), num_cycles=60)


def test_equal_seeds_give_equal_markets():
    parallel_seed_test(lambda: MarketEnv(contested_market("exponential", n_owners=4)), num_cycles=20)


def test_an_episode_that_takes_seconds_says_so_with_what_is_quick():
    day = Scenario.load("synthetic-pipelines")
    with pytest.warns(
        UserWarning, match=r"4,\d+ jobs under prices that draw sample paths; first-come, workload.recurring"
    ):
        OwnerEnv(day)
    for quick in (day.with_mechanism("first-come"), day.with_changes("workload.recurring_jobs=40")):
        OwnerEnv(quick)  # a warning would be an error


def test_gymnasium_accepts_continuous_bids_and_makes_the_environment_by_name():
    source = contested_market("vcg", n_owners=3, capacity=1)
    check_env(OwnerEnv(source, menu=Bids()), skip_render_check=True)
    named = gymnasium.make("marketsched/Owner-v0", source=source, menu=Bids(2.0))
    assert named.action_space.high.tolist() == [2.0]
    with pytest.raises(InvalidParameterError, match=r"expected 0 \.\. 1"):
        env = OwnerEnv(source, menu=Bids())
        env.reset(seed=0)
        env.step(np.array([1.6], dtype=np.float32))


def test_a_bid_of_one_is_the_truth_and_a_lower_one_is_what_is_paid():
    source = contested_market("pay-as-bid", n_owners=1, capacity=1)
    paid = {}
    for factor in (0.5, 1.0):
        env = OwnerEnv(source, menu=Bids())
        env.reset(seed=1)
        *_, info = env.step(np.array([factor], dtype=np.float32))
        paid[factor] = info["paid"]
        assert info["jobs_over"] == info["started"] == 1.0
    assert paid[0.5] == pytest.approx(0.5 * paid[1.0]) and paid[1.0] > 0.0


@pytest.mark.slow
def test_infos_add_up_to_the_tables_of_the_run():
    env = parallel_env(Scenario.from_dict(SMALL))
    _, infos = env.reset(seed=3)
    sums = dict.fromkeys(("jobs_over", "surplus", "paid", "started", "wait"), 0.0)
    while env.agents:
        *_, infos = env.step(dict.fromkeys(env.agents, env.menu.truth))
        for info in infos.values():
            sums = {name: x + info[name] for name, x in sums.items()}
    jobs = env.result().jobs
    waits = (jobs["start"] - jobs["arrival"]).dropna()
    assert sums["jobs_over"] == len(jobs) and sums["started"] == len(waits) and sums["wait"] == waits.sum()
    assert sums["paid"] == pytest.approx(jobs["payment"].sum())
    assert sums["surplus"] == pytest.approx(jobs["utility"].sum())


def test_gymnasium_accepts_the_market_of_one_owner():
    check_env(OwnerEnv(contested_market("vcg", n_owners=3, capacity=1)), skip_render_check=True)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mechanism", ["bid-price", "posted-price", "pay-as-bid"])
def test_truthful_agents_give_the_tables_of_a_run(mechanism):
    scenario = Scenario.from_dict(SMALL).with_mechanism(mechanism)
    env = parallel_env(scenario)
    env.reset(seed=3)
    earned = truthful(env)
    there, here = run(scenario, 3, optimum=False), env.result()
    for name in ("events", "jobs", "rounds"):
        assert getattr(here, name).equals(there.tables[name])
    of_run = (there.jobs["value"] - there.jobs["payment"]).groupby(there.jobs["owner"]).sum()
    assert {o: pytest.approx(u) for o, u in of_run.items()} == {o: earned[o] for o in of_run.index}


def test_an_action_is_the_report_of_the_menu():
    menu = value_menu((0.5,))
    env = OwnerEnv(contested_market("pay-as-bid", n_owners=1, capacity=1), menu=menu)
    paid = {}
    for action in range(2):
        seen, _ = env.reset(seed=1)
        assert seen[OBSERVED.index("has a job to report")] == 1.0
        env.step(action)
        paid[menu.names[action]] = env.result().jobs["payment"].sum()
    assert paid["value x 0.5"] == pytest.approx(paid["truth"] / 2)
    assert paid["truth"] > 0


def test_who_does_not_decide_reports_as_the_scenario_says():
    lie = {"strategy": {"kind": "scale-value", "factor": 0.5}, "misreporting": 1}
    scenario = Scenario.from_dict({**SMALL, "owners": lie})
    plain = run(scenario, 1, optimum=False).jobs
    env = MarketEnv(scenario, [min(plain["owner"])])
    env.reset(seed=1)
    truthful(env)
    jobs, own = env.result().jobs, plain["owner"] == min(plain["owner"])
    honest = run(Scenario.from_dict(SMALL), 1, optimum=False).jobs
    assert not jobs.equals(plain) and not jobs.equals(honest)
    assert 0 < own.sum() < len(own)


def test_observations_are_of_the_owner_and_public():
    env = MarketEnv(contested_market("posted-price", n_owners=4))
    observations, _ = env.reset(seed=0)
    for owner, seen in observations.items():
        assert env.observation_space(owner).contains(seen)
    prices = [seen[8:16] for seen in observations.values()]
    assert all(np.array_equal(prices[0], other) for other in prices) and prices[0].max() > 0
    values = {float(seen[OBSERVED.index("highest value")]) for seen in observations.values() if seen[0]}
    assert len(values) == sum(bool(seen[0]) for seen in observations.values())


def test_bad_input_is_named():
    refused(lambda: MarketEnv(contested_market(n_owners=2), ["nobody"]), "owners", error=InvalidParameterError)
    refused(lambda: MarketEnv(contested_market(n_owners=2), menu=[0.5]), "menu = [0.5]", error=InvalidParameterError)
    refused(lambda: MarketEnv(contested_market(n_owners=2), render_mode="human"), "nothing to render")
    refused(lambda: MarketEnv(None), "scenario = None", error=InvalidParameterError)
    refused(lambda: contested_market("pay-as-bd"), "'pay-as-bd' is unknown", error=UnknownNameError)
    refused(lambda: Bids("a"), "highest = 'a'", error=InvalidParameterError)
    for bad in (None, np.array([]), "much"):
        bids = OwnerEnv(contested_market(n_owners=2), menu=Bids())
        bids.reset(seed=1)
        refused(lambda bids=bids, bad=bad: bids.step(bad), "action of owner-1", error=InvalidParameterError)
    env = MarketEnv(contested_market(n_owners=2))
    refused(lambda: env.step({}), "reset", error=EventError)
    env.reset(seed=0)
    refused(lambda: env.step(None), "actions = None", error=InvalidParameterError)
    refused(lambda: env.step({"owner-1": 99}), "action of owner-1", error=InvalidParameterError)
    refused(lambda: env.step({"owner-9": 0}), "owner-9", error=InvalidParameterError)
    refused(lambda: env.step({"owner-1": 0}), "action of owner-2 is missing", error=InvalidParameterError)


MENUS = {
    "values": value_menu(),
    "all that fits into columns": ReportMenu(
        {"half": ScaleValue(0.5), "early": ShiftDeadline(-3), "late": ShiftDeadline(4), "wide": InflateConcurrency(1)}
    ),
    "bids": Bids(),
}


@pytest.mark.parametrize("menu", MENUS)
@pytest.mark.parametrize("mechanism", ["first-come", "first-come:price=2", "bid-price"])
def test_turns_that_the_mechanism_plays_at_once_are_those_of_the_loop(mechanism, menu, monkeypatch):
    """Every reward, observation, info and table, with actions drawn at random."""
    scenario = Scenario.from_dict(SMALL).with_mechanism(mechanism)

    def episode(whole):
        rng = np.random.default_rng(5)
        turns = OwnersTurns(scenario.setup(np.random.default_rng(3)), [f"pipeline-{k}" for k in range(12)], MENUS[menu])
        assert turns.played_whole == whole
        seen = []
        while not turns.over:
            drawn = rng.random(12) if menu == "bids" else rng.integers(0, len(MENUS[menu]), 12)
            actions = {owner: float(drawn[k]) for k, owner in enumerate(turns.owners)}
            seen.append((turns.act(actions), turns.outcomes, turns.price(), turns.owners))
            seen.append(turns.observations(sorted(turns.owners)).tolist())
        with pytest.raises(EventError, match="the market is over"):
            turns.act({})
        return seen, turns.result()

    found, tables = episode(whole=True)
    monkeypatch.setattr(PlayedTurns, "of", lambda *_: None)
    expected, by_loop = episode(whole=False)
    assert found == expected
    assert len(found) > 10
    for name in ("events", "jobs", "rounds"):
        assert getattr(tables, name).equals(getattr(by_loop, name))
    assert tables.outcome == by_loop.outcome


@pytest.mark.parametrize(
    ("changes", "menu"),
    [
        ({"mechanism": {"name": "pay-as-bid"}}, value_menu()),
        ({"workload": {**SMALL["workload"], "durations": "hidden"}, "mechanism": {"name": "first-come"}}, value_menu()),
        ({"owners": {"strategy": {"kind": "scale-value", "factor": 0.5}, "misreporting": 1}}, value_menu()),
        ({}, ReportMenu({"longer": ScaleDuration(2.0)})),
        ({}, ReportMenu({"narrow": InflateConcurrency(-1)})),
    ],
)
def test_what_does_not_fit_into_columns_is_played_by_the_loop(changes, menu):
    scenario = Scenario.from_dict({**SMALL, **changes})
    assert not OwnersTurns(scenario.setup(np.random.default_rng(3)), ["pipeline-1"], menu).played_whole


def test_a_report_outside_the_limits_is_refused():
    """A strategy that the loop would let the mechanism refuse is refused in the same words."""
    setup = Scenario.from_dict(SMALL).with_mechanism("first-come").setup(np.random.default_rng(3))
    turns = OwnersTurns(setup, ["pipeline-1"], value_menu())
    truth, wide = next(job for job in setup.jobs if job.owner == "pipeline-1"), setup.mechanism.max_concurrency + 1
    report = StatementOfWork(truth.truth.birth, wide, truth.truth.value, list(truth.truth.requirements))
    with pytest.raises(InvalidReportError, match="concurrency"):
        turns.market.report(0, truth, report)


@pytest.mark.parametrize("menu", [value_menu(), Bids()], ids=["menu", "bids"])
def test_a_vector_step_is_a_step_of_the_parallel_environment(menu):
    """Observations, rewards and infos of each step, with actions drawn at random."""
    scenario = Scenario.from_dict(SMALL)
    many, one, rng = OwnersVectorEnv(scenario, menu=menu), parallel_env(scenario, menu=menu), np.random.default_rng(2)
    seen, _ = many.reset(seed=3)
    one.reset(seed=3)
    last = {}
    while one.agents:
        drawn = rng.random(many.num_envs) if isinstance(menu, Bids) else rng.integers(0, len(menu), many.num_envs)
        acting = {owner: drawn[many.owners.index(owner)] for owner in one.agents}
        others, earned, *_, infos = one.step(acting)
        last |= others
        seen, rewards, ended, _, found = many.step(drawn)
        final = {name: found.pop(name) for name in list(found) if "final" in name}
        for i, owner in enumerate(many.owners):
            assert rewards[i] == earned.get(owner, 0.0)
            assert {name: x[i] for name, x in found.items()} == infos.get(owner, dict.fromkeys(found, 0.0))
            assert not one.agents or (seen[i] == others.get(owner, 0.0 * seen[i])).all()
        assert ended.all() == (not one.agents) == bool(final)
        assert (seen[:, OBSERVED.index("rounds played")] < 1).all()
    ends = [last.get(owner, 0.0 * seen[0]).tolist() for owner in many.owners]  # some have no job in this market
    assert final["final_obs"].tolist() == ends != seen.tolist()
    assert final["_final_obs"].all() and final["_final_info"].all()
    assert {name: x.tolist() for name, x in final["final_info"].items()} == {
        name: x.tolist() for name, x in found.items()
    }
    for bad, words in (
        ([9.0] * many.num_envs, "action of pipeline-"),
        ([0], "actions = "),
        ([-1] * many.num_envs, "0 .."),
    ):
        refused(lambda bad=bad: many.step(np.array(bad)), words)


# -- regret against the truth -----------------------------------------------------------------------------------


def bidding(mechanism, factor, seed, **options):
    """Let three owners bid the same factor of their values to the end; return the environment and the last infos."""
    env = MarketEnv(contested_market(mechanism, n_owners=3, capacity=1), menu=Bids(2.0), **options)
    env.reset(seed=seed)
    infos = {}
    while env.agents:
        *_, infos = env.step({owner: np.array([factor], np.float32) for owner in env.agents})
    return env, infos


@register("mechanism", "test: half a credit")
def posted(**limits):
    return FirstCome(price=0.5, **limits)


@pytest.mark.parametrize("mechanism", ["test: half a credit", "pay-as-bid"])
def test_the_truth_has_no_regret(mechanism):
    env, infos = bidding(mechanism, 1.0, 1, regret=True)
    assert set(env.regrets().values()) == {0.0} and infos
    assert all(info["regret"] == 0.0 for info in infos.values())


def test_regret_is_what_a_lie_loses_under_a_posted_price_and_gains_under_pay_as_bid():
    lost = [regret for seed in range(8) for regret in bidding("test: half a credit", 0.05, seed)[0].regrets().values()]
    assert min(lost) >= -1e-9 and max(lost) > 0.1
    paid = [regret for seed in range(8) for regret in bidding("pay-as-bid", 0.5, seed)[0].regrets().values()]
    assert min(paid) < -0.1  # bids of a half win, too, and pay less than a bid of the truth would


def test_regret_is_asked_for_at_the_end():
    env = OwnerEnv(contested_market("bid-price", n_owners=3))
    env.reset(seed=1)
    with pytest.raises(EventError, match="the market is not over"):
        env.regret()
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(env.menu.truth)
    assert env.regret() == 0.0 and "regret" not in info
