"""The Mesa model over the allocation cores: agents decide once, arrays do the rest, tables come out tidy."""

import gc
import time
import weakref

import mesa
import numpy as np
import pytest

from marketsched.agents.cluster_games import play_out
from marketsched.agents.cluster_market import OWNER_COLUMNS, ClusterMarket
from marketsched.agents.cluster_ports import PortGame
from marketsched.agents.cluster_reports import ScaledBudget, ScaledRequirements, ScaledWeight, ScaledWorth, Several
from marketsched.mechanisms.allocation import BernoulliArrivals, BipartiteCluster, Fairness
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError
from marketsched.truthfulness.cores.worlds import ChannelWorld, JobWorld, PortWorld

WORLDS = [
    (PortWorld(payment="capacity prices", slots=30), {0: ScaledWorth(2.0), 4: ScaledRequirements(0.5)}),
    (ChannelWorld(payment="displaced utility", slots=30), {0: ScaledWorth(2.0)}),
    (JobWorld(payment="spending", slots=30), {0: Several((ScaledBudget(2.0), ScaledWeight(2.0)))}),
]


@pytest.mark.parametrize(("world", "strategies"), WORLDS)
def test_the_model_is_the_game_step_by_step(world, strategies):
    game = world(5)
    told = {owner: lie.report(game.truth(owner), game.public) for owner, lie in strategies.items()}
    expected = play_out(game, told)
    result = ClusterMarket(world(5), strategies, rng=1).run()
    assert tuple(result.owners.columns) == OWNER_COLUMNS
    np.testing.assert_array_equal(result.owners["value"], expected.values)
    np.testing.assert_array_equal(result.owners["payment"], expected.payments)
    np.testing.assert_array_equal(result.owners["utility"], expected.values - expected.payments)
    assert result.slots["slot"].tolist() == list(range(1, game.slots + 1))
    assert result.slots["welfare"].sum() == pytest.approx(expected.values.sum())
    assert result.slots["revenue"].sum() == pytest.approx(expected.payments.sum())
    assert result.summary["liars"] == len(strategies) and result.summary["complete"]
    assert result.summary["utility"] == pytest.approx(result.owners["utility"].sum())


def test_the_order_in_which_owners_decide_changes_nothing():
    world, strategies = WORLDS[0]
    first, second = (ClusterMarket(world(5), strategies, rng=seed).run() for seed in (1, 2))
    assert first.owners.equals(second.owners) and first.slots.equals(second.slots)


def test_a_step_is_a_slot_and_owners_see_what_it_brought():
    market = ClusterMarket(PortWorld(slots=3)(5))
    seen = []
    for slot in (1, 2, 3):
        market.step()
        assert market.slot == slot and len(market.result().slots) == slot
        seen.append(sum(owner.utility for owner in market.owners))
    assert seen == pytest.approx(market.result().slots["welfare"].cumsum())
    assert not market.running and market.result().summary["complete"]
    with pytest.raises(EventError, match="over"):
        market.step()


def test_an_interrupted_run_keeps_its_finished_slots():
    market = ClusterMarket(PortWorld(slots=9)(5))

    def stop(slot):
        if slot == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        market.run(stop)
    assert len(market.result().slots) == 4 and not market.result().summary["complete"]


def test_mesa_forgets_a_game_that_nobody_holds():
    market = ClusterMarket(PortWorld(slots=3)(5))
    market.step()  # and not to its end
    assert isinstance(market, mesa.Model) and [owner.unique_id for owner in market.owners] == [1, 2, 3, 4, 5, 6]
    gone = weakref.ref(market)
    del market
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("strategies", "error"),
    [
        ({6: ScaledWorth(2.0)}, InvalidParameterError),
        ({0: "shade"}, InvalidParameterError),
        ({0: ScaledBudget(2.0)}, InvalidReportError),
    ],
)
def test_bad_strategies_are_refused(strategies, error):
    with pytest.raises(error, match="expected"):
        ClusterMarket(PortWorld(slots=3)(5), strategies)


@pytest.mark.slow
@pytest.mark.compiled
def test_a_thousand_owners_for_a_thousand_slots_cost_mesa_next_to_nothing():
    """At most half a second of processor time on top of the game's own; the best of several of both."""
    rng = np.random.default_rng(0)
    channels = rng.random((1000, 10)) < 0.3
    channels[:, 0] = True
    cluster = BipartiteCluster(rng.uniform(1.0, 2.0, (1000, 2)), np.full((10, 2), 300.0), channels, "log", 1.0, 0.1)
    game = PortGame(cluster, BernoulliArrivals(0.5, rng, 1000), 1000, lambda believed, horizon: Fairness(believed))

    def seconds(run):
        begin = time.process_time()
        run()
        return time.process_time() - begin

    seconds(lambda: play_out(game, {}))  # compiles
    alone = min(seconds(lambda: play_out(game, {})) for _ in range(3))
    with_owners = min(seconds(lambda: ClusterMarket(game).run()) for _ in range(3))
    assert with_owners - alone < 0.5
