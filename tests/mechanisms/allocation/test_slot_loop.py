"""The slot loop: who decides when, what a record holds, and what is refused."""

import numpy as np
import pytest

from marketsched.mechanisms import DecisionError, InvalidParameterError
from marketsched.mechanisms.allocation import (
    BernoulliArrivals,
    ClusterEnvironment,
    RecordedArrivals,
    play_slots,
)
from marketsched.mechanisms.allocation.slot_loop import SlotOutcome
from slot_policies import COUNTS, Blind, Sighted, SpiedArrivals, cluster_of

# -- the order of things -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "order"), [(Blind, ["allocate", "draw"]), (Sighted, ["draw", "allocate"])])
def test_arrivals_are_drawn_after_the_decision_of_a_policy_that_observes_nothing(kind, order):
    log = []

    class Logged(kind):
        def allocate(self, *observed):
            log.append("allocate")
            return super().allocate(*observed)

    cluster = cluster_of()
    play_slots(Logged(cluster), ClusterEnvironment(cluster, SpiedArrivals(COUNTS, log)))
    assert log == order * len(COUNTS)


def test_rewards_by_hand():
    cluster = cluster_of()
    environment = ClusterEnvironment(cluster, RecordedArrivals(COUNTS))
    blind, sighted = Blind(cluster), Sighted(cluster)
    record = play_slots(blind, environment)
    assert record["reward"].tolist() == [1.5, 0.0, 2.25, 0.75]
    assert record["gain"].tolist() == [2.0, 0.0, 3.0, 1.0]
    assert record["overhead"].tolist() == [0.5, 0.0, 0.75, 0.25]
    assert record["jobs"].tolist() == [2.0, 0.0, 3.0, 1.0]
    assert (record.policy, record.observes, record.slots, record.total("reward")) == ("blind", "nothing", 4, 4.5)
    assert np.array_equal(blind.learnt, COUNTS)
    assert environment.arrival_counts.tolist() == [2, 2, 2]
    record = play_slots(sighted, environment)  # the same arrivals come again
    assert record["reward"].tolist() == [3.0, 0.0, 3.0, 1.5]
    assert record.observes == "arrivals"
    assert environment.arrival_counts.tolist() == [2, 2, 2]


def test_channel_arrays_are_asked_for_where_a_policy_has_them():
    class Compact(Blind):
        def allocate_channels(self):
            return np.ones(3)

        def allocate(self):
            raise AssertionError

    cluster = cluster_of()
    record = play_slots(Compact(cluster), ClusterEnvironment(cluster, RecordedArrivals(COUNTS)))
    assert record["reward"].tolist() == [1.5, 0.0, 2.25, 0.75]


def test_the_first_slots_alone_and_progress():
    cluster, told = cluster_of(), []
    environment = ClusterEnvironment(cluster, RecordedArrivals(COUNTS * 300))
    assert play_slots(Blind(cluster), environment, slots=3, progress=told.append).slots == 3
    assert told == [1, 2, 3]
    told.clear()
    play_slots(Blind(cluster), environment, progress=told.append)
    assert told[-1] == 1200
    assert len(told) <= 201


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (2.5, r"slot 1: allocation of port 0.*expected a number in \[0, 2\]"),
        (-0.5, "slot 1: .*port 0"),
        (np.nan, "slot 1"),
    ],
)
@pytest.mark.parametrize("compact", [True, False])
def test_illegal_allocations_stop_the_run(entry, message, compact):
    class Greedy(Blind):
        def allocate(self):
            decision = np.ones(self.shape)
            decision[0] = entry
            return decision.ravel() if compact else decision

    log, cluster = [], cluster_of()
    with pytest.raises(DecisionError, match=message):
        play_slots(Greedy(cluster), ClusterEnvironment(cluster, SpiedArrivals(COUNTS, log)))
    assert log == []  # refused before anything was drawn


@pytest.mark.parametrize("decision", [None, "all", np.ones(2), np.ones((3, 1)), np.ones(3, int), [[1.0], 2.0]])
def test_what_is_no_allocation_is_refused(decision):
    class Confused(Blind):
        def allocate(self):
            return decision

    with pytest.raises(DecisionError, match="slot 1: "):
        play_slots(Confused(cluster_of()), ClusterEnvironment(cluster_of(), RecordedArrivals(COUNTS)))


def test_declarations_and_lengths_are_checked():
    cluster = cluster_of()
    recorded = ClusterEnvironment(cluster, RecordedArrivals(COUNTS))
    endless = ClusterEnvironment(cluster, BernoulliArrivals(0.5, np.random.default_rng(0), 3))
    for observes, message in [("jobs", "offers nothing, arrivals"), ("everything", "expected one of nothing")]:
        blind = Blind(cluster)
        blind.observes = observes
        with pytest.raises(InvalidParameterError, match=message):
            play_slots(blind, recorded)
    for environment, slots, message in [
        (recorded, 5, r"in \[1, 4\]"),
        (recorded, 0, r"in \[1, 4\]"),
        (endless, None, "no last slot"),
    ]:
        with pytest.raises(InvalidParameterError, match=message):
            play_slots(Blind(cluster), environment, slots)


@pytest.mark.parametrize("arrivals", [RecordedArrivals([[1, 2, 0]]), RecordedArrivals([[1, 1]])])
def test_arrivals_must_suit_the_cluster(arrivals):
    with pytest.raises(InvalidParameterError, match=r"at most 1 |as the cluster"):
        ClusterEnvironment(cluster_of(), arrivals)


class Scripted:
    """An environment that measures what it is told to."""

    offers = ("nothing",)

    def __init__(self, measures):
        self.measures, self.slots = measures, len(measures)

    def begin(self):
        self.rest = iter(self.measures)

    def observation(self, observes):
        return ()

    def play(self, decision):
        return SlotOutcome(next(self.rest), (np.zeros(1),))


def test_measures_are_the_same_and_finite_in_every_slot():
    blind = Blind(cluster_of())
    assert play_slots(blind, Scripted([{"work": 1.0}, {"work": 2.0}]))["work"].tolist() == [1.0, 2.0]
    with pytest.raises(InvalidParameterError, match="slot 2 measures"):
        play_slots(blind, Scripted([{"work": 1.0}, {"toil": 2.0}]))
    with pytest.raises(DecisionError, match="slot 2: policy 'blind' has work = nan"):
        play_slots(blind, Scripted([{"work": 1.0}, {"work": np.nan}]))
