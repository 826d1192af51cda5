"""The owners of the cores as Mesa agents: what they count is what policies earn, and what games of reports say."""

import mesa
import numpy as np
import pytest

from marketsched import Scenario
from marketsched.cores import CoreMarket, play_out
from marketsched.cores.agents.reports import CoreLie
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.play.running import run
from small_core_games import one_job, two_channels, two_ports

SMALL = {
    "cluster-default": ("cluster.slots=40", "cluster.instance.instances=12"),
    "esdp-default": ("cluster.slots=40",),
    "opm-default": ("cluster.slots=150", "cluster.machines.machines=20", "cluster.jobs.per_slot=0.05"),
}


@pytest.mark.compiled
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", SMALL)
def test_owners_who_tell_the_truth_get_what_the_policy_earns_slot_by_slot(name):
    scenario = Scenario.load(name).with_changes(*SMALL[name])
    result = run(scenario, 5, optimum=False, model=True)
    for label in result.meta["policies"]:
        slots = result.tables["slots"].query("policy == @label")
        market, values = CoreMarket.of(scenario, 5, policy=label), []
        while market.running:
            market.step()
            values.append(sum(owner.gained for owner in market.owners))
        np.testing.assert_allclose(values, slots[result.meta["goal"]], rtol=1e-9, atol=1e-9)
        table = result.tables["owners"].query("policy == @label").drop(columns="policy").reset_index(drop=True)
        assert table.equals(market.table()) and set(table["strategy"]) == {"truth"}


@pytest.mark.parametrize(
    ("game", "lie"),
    [(two_ports, CoreLie("utility", 3.0)), (two_channels, CoreLie("requests", -1)), (one_job, CoreLie("budget", 0.5))],
)
def test_a_liar_gets_what_the_game_says(game, lie):
    market = CoreMarket(game(), {0: lie})
    data = mesa.DataCollector({"slot": "slot", "value": "value"}, {"utility": "utility"})
    while market.running:
        market.step()
        data.collect(market)
    found = play_out(game(), {0: lie.report(game().truth(0), game().public)})
    assert [owner.utility for owner in market.owners] == pytest.approx(found.utilities)
    assert data.get_model_vars_dataframe()["value"].iloc[-1] == pytest.approx(found.values.sum())
    with pytest.raises(EventError, match="beyond the last"):
        market.step()


def test_what_has_no_owners_is_refused():
    with pytest.raises(InvalidParameterError, match="owner = 9: expected"):
        CoreMarket(two_ports(), {9: CoreLie("utility", 2.0)})
    with pytest.raises(InvalidParameterError, match="`Market` plays markets"):
        CoreMarket.of("stochastic-mix")
    with pytest.raises(InvalidParameterError, match=r"cluster\.gangs"):
        run(Scenario.load("cluster-gang").with_changes("cluster.slots=5"), model=True, optimum=False)
