"""Channel environments: who is told what and when, exact means, recorded utilities, growth of regret."""

import math

import numpy as np
import pytest

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    ChannelEnvironment,
    Channels,
    Cucb,
    Esdp,
    GaussianUtilities,
    HighestUtilityFirst,
    LongestWaitingFirst,
    RecordedArrivals,
    RecordedUtilities,
    TrueMeanOracle,
    play_slots,
    published_channels,
)
from marketsched.mechanisms.errors import DecisionError
from peeking import find_peeking


def recorded_world(utilities, arrivals, requests=((1,), (1,)), capacities=(1,), ports=(0, 1)):
    """Return an environment of known arrivals and utilities, one row per slot."""
    channels = Channels(requests, capacities, ports)
    source = RecordedUtilities(np.transpose(utilities))
    return ChannelEnvironment(channels, RecordedArrivals(arrivals), source, TrueMeanOracle(channels, source.means))


def arguments(instance):
    """Return what a policy is made of."""
    channels = instance.channels
    return channels.requests, channels.capacities, channels.ports


def test_measures_and_feedback_of_a_played_slot():
    world = recorded_world([[0.5, 0.8], [0.3, 0.2]], [[1, 1], [1, 0]])
    assert world.slots == 2
    assert world.observation("arrivals")[0].tolist() == [True, True]
    outcome = world.play([True, False])
    assert outcome.measures == pytest.approx(
        {"utility": 0.5, "expected": 0.4, "oracle": 0.5, "regret": 0.1, "used": 1.0}
    )
    selected, utilities = outcome.feedback
    assert (selected.tolist(), utilities.tolist()) == ([True, False], [0.5, 0.0])  # nothing of the other
    assert world.observation("arrivals")[0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ([True, True], "takes 2 of type 0: expected at most 1"),
        ([False, True], "port 1, which has no job"),
        ([True], "shape"),
        ([0.5, 0.0], r"selection\[0\] = 0.5"),
        ([[True], [False, True]], "not an array"),
    ],
)
def test_decisions_that_are_not_allowed_are_refused_and_the_slot_stays(decision, said):
    world = recorded_world([[0.5, 0.8]], [[1, 0]])
    with pytest.raises(DecisionError, match="slot 1 is played before it is observed"):
        world.play([True, False])
    world.observation("arrivals")
    with pytest.raises(DecisionError, match=f"slot 1: .*{said}"):
        world.play(decision)
    assert world.play([True, False]).measures["utility"] == 0.5


def test_the_same_world_comes_again():
    instance = published_channels(np.random.default_rng(1))
    world = instance.environment(np.random.default_rng(2))
    make = lambda: Esdp(*arguments(instance))  # noqa: E731
    first, second = play_slots(make(), world, 40), play_slots(make(), world, 40)
    assert first["utility"].tolist() == second["utility"].tolist()
    # Another policy in between meets the same utilities: the oracle's values are those of the same arrivals.
    other = play_slots(HighestUtilityFirst(*arguments(instance)), world, 40)
    assert other["oracle"].tolist() == first["oracle"].tolist()


@pytest.mark.parametrize("make", [Esdp, Cucb, HighestUtilityFirst, LongestWaitingFirst])
def test_policies_do_not_look_ahead(make):
    requests, ports = [[1], [1], [2]], [0, 1, 1]
    rng = np.random.default_rng(3)
    utilities, arrivals = rng.random((12, 3)), rng.random((12, 2)) < 0.9
    changed = utilities.copy()
    changed[8:] = rng.random((4, 3))
    # Both worlds agree up to slot 8; arrivals agree throughout, so slot 9 may not differ yet either.
    worlds = [recorded_world(u, arrivals, requests, [2], ports) for u in (utilities, changed)]
    policies = [make(requests, [2], ports) for _ in worlds]
    assert find_peeking((policies[0], worlds[0]), (policies[1], worlds[1]), 8) is None


def test_means_of_cut_off_gaussians_are_exact():
    rng = np.random.default_rng(4)
    mu, sigma, costs = rng.uniform(0.0, 1.5, 12), rng.uniform(0.01, 0.8, 12), rng.uniform(0, 1, 12)
    sigma[0] = 0.0
    source = GaussianUtilities(mu, sigma, costs, rng, cost_scale=0.3, unit=1.2)
    drawn = np.array([source.draw() for _ in range(40_000)])
    assert drawn.min() >= 0.0
    assert drawn.max() <= 1.0
    error = np.abs(drawn.mean(axis=0) - source.means)
    assert (error <= 4.5 * drawn.std(axis=0) / math.sqrt(len(drawn)) + 1e-12).all()  # one in 10^5 beyond
    assert source.scaling == "(Z - 0.3 * costs) / 1.2, cut off at 0 and 1"


def test_recorded_utilities_are_replayed_or_drawn():
    samples = [[0.1, 0.2, 0.3], [0.9]]
    replayed = RecordedUtilities(samples)
    assert [replayed.draw().tolist() for _ in range(4)] == [[0.1, 0.9], [0.2, 0.9], [0.3, 0.9], [0.1, 0.9]]
    drawn = RecordedUtilities(samples, np.random.default_rng(5))
    values = np.array([drawn.draw() for _ in range(6000)])
    shares = [(values[:, 0] == x).mean() for x in samples[0]]
    assert shares == pytest.approx([1 / 3] * 3, abs=4.5 * math.sqrt(2 / 9 / 6000))
    drawn.begin()
    assert [drawn.draw().tolist() for _ in range(9)] == values[:9].tolist()
    assert replayed.means.tolist() == pytest.approx([0.2, 0.9])


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([], "empty"),
        ([[0.5], []], r"samples\[1\] is empty"),
        ([[0.5], [1.2]], r"samples\[1\]\[0\]"),
        ([[math.nan]], "nan"),
    ],
)
def test_bad_samples_are_named(samples, said):
    with pytest.raises(InvalidParameterError, match=said):
        RecordedUtilities(samples)


def test_environments_whose_parts_disagree_are_refused():
    channels, utilities = Channels([[1], [1]], [1], [0, 1]), RecordedUtilities([[0.5], [0.5]])
    oracle = TrueMeanOracle(channels, utilities.means)
    with pytest.raises(InvalidParameterError, match="3 ports: expected 2"):
        ChannelEnvironment(channels, RecordedArrivals([[1, 1, 1]]), utilities, oracle)
    with pytest.raises(InvalidParameterError, match="2 jobs in one slot"):
        ChannelEnvironment(channels, RecordedArrivals([[1, 2]]), utilities, oracle)
    with pytest.raises(InvalidParameterError, match="1 channels: expected 2"):
        ChannelEnvironment(channels, RecordedArrivals([[1, 1]]), RecordedUtilities([[0.5]]), oracle)


def test_published_instances_have_the_papers_parameters():
    sizes = []
    for seed in range(40):
        instance = published_channels(np.random.default_rng(seed))
        channels = instance.channels
        assert (channels.n_ports, channels.n_types, channels.capacities.tolist()) == (8, 3, [2, 2, 2])
        assert set(channels.requests.ravel().tolist()) <= {1, 2}
        assert instance.means.min() >= 0.1
        assert instance.means.max() <= 1.0
        sizes.append(channels.n_channels)
    # 320 edges of probability 0.1: mean 32, deviation 5.4 / sqrt(40)
    assert np.mean(sizes) == pytest.approx(32, abs=4.5 * 5.37 / math.sqrt(40))
    with pytest.raises(InvalidParameterError, match=r"requests\[1\] = 3"):
        published_channels(np.random.default_rng(0), requests=(1, 3))
