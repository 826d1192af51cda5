"""Scenarios of gangs, and of machines that hold several tasks: run, compared, and refused where they make no sense."""

import pandas as pd
import pytest

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.play.running import run as run_scenario
from peeking import find_peeking

pytestmark = pytest.mark.compiled  # runs of many slots: too long for plain kernels

NAMES = ["cluster-gang", "esdp-gang", "opm-general"]


def short(name, slots=30, **changes):
    data = Scenario.load(name).to_dict()
    data["cluster"] |= {"slots": slots, **changes}
    return Scenario.from_dict(data)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_the_same_again_and_its_scenario_reads_back(name):
    scenario = short(name)
    first, again = run_scenario(scenario, 3), run_scenario(Scenario.from_dict(scenario.to_dict()), 3)
    pd.testing.assert_frame_equal(first.slots, again.slots)
    assert len(first.summary) == len(scenario.cluster.policies) and first.summary["reward"].notna().all()


def test_gangs_run_whole_and_earn_no_more_than_without_their_rule():
    found = run_scenario(short("cluster-gang", 60), 1)
    assert (found.slots["launched"] <= found.slots["jobs"]).all() and (found.slots["launched"] > 0).any()
    repaired = found.summary.set_index("policy")["reward"]
    free = run_scenario(short("cluster-gang", 60, gangs=None, policies=["drf"]), 1).summary["reward"][0]
    assert repaired["drf"] != free
    blind = found.summary["observes"] == "nothing"
    assert (found.summary.loc[blind, "regret"] > 0).all()


@pytest.mark.parametrize(
    ("name", "policy", "message"),
    [
        ("esdp-gang", "cucb", "'cucb': expected esdp"),
        ("opm-general", "fair", "'fair': expected opm"),
        ("cluster-default", "gang-oga", "expected a cluster with gangs"),
    ],
)
def test_policies_that_do_not_know_the_rule_are_refused(name, policy, message):
    with pytest.raises(InvalidParameterError, match=message):
        run_scenario(short(name), policies=[policy])


@pytest.mark.parametrize("name", NAMES)
def test_no_owner_lies_about_gangs(name):
    world = short(name).cluster.world(0)
    with pytest.raises(InvalidParameterError, match="where owners may lie"):
        world.payments(short(name).cluster.choices()[0])


def test_gang_oga_decides_before_it_sees_who_has_arrived():
    scenario = short("cluster-gang")
    worlds = [scenario.cluster.world(2) for _ in range(2)]
    choice = scenario.cluster.choices(["gang-oga"])[0]
    assert find_peeking(*((world.policy(choice, 30), world.environment()) for world in worlds), 10) is None
