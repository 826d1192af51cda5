"""Policies that try to see more than they declared: what stops them."""

import dataclasses

import numpy as np
import pytest

from marketsched.mechanisms import DecisionError, InvalidParameterError
from marketsched.mechanisms.allocation import (
    ClusterEnvironment,
    OgaSched,
    RecordedArrivals,
    play_slots,
)
from marketsched.mechanisms.allocation.slot_loop import sealed
from peeking import find_peeking
from refusals import refused
from slot_policies import COUNTS, Blind, Sighted, SpiedArrivals, cluster_of

# -- nobody looks ------------------------------------------------------------------------------------------


def test_a_policy_that_declares_nothing_is_handed_nothing():
    class Mislabelled(Sighted):
        observes = "nothing"

    with pytest.raises(TypeError, match="arrivals"):
        play_slots(Mislabelled(cluster_of()), ClusterEnvironment(cluster_of(), RecordedArrivals(COUNTS)))


def test_a_policy_cannot_ask_the_environment():
    class Asking(Sighted):
        name, observes = "asking", "nothing"

        def allocate(self):
            return super().allocate(*self.environment.observation("arrivals"))

    cheat = Asking(cluster_of())
    cheat.environment = ClusterEnvironment(cluster_of(), RecordedArrivals(COUNTS))
    refused(lambda: play_slots(cheat, cheat.environment), "slot 1 is observed twice", error=DecisionError)


def test_the_declaration_is_read_once():
    class Turncoat(Sighted):
        name = "turncoat"
        calls = 0

        @property
        def observes(self):
            self.calls += 1
            return "nothing" if self.calls <= 1 else "arrivals"

        def allocate(self, *observed):
            return Sighted.allocate(self, *observed) if observed else np.zeros(self.shape)

        def update(self, arrivals):
            pass

    class TurncoatLater(Turncoat):
        @property
        def observes(self):
            return "arrivals" if self.started else "nothing"

        started = False

        def update(self, arrivals):
            self.started = True

    environment = ClusterEnvironment(cluster_of(), RecordedArrivals(COUNTS))
    for kind in (Turncoat, TurncoatLater):
        record = play_slots(kind(cluster_of()), environment)
        assert (record.observes, record.total("reward")) == ("nothing", 0.0)


def test_what_is_handed_out_is_a_read_only_copy():
    class Meddling(Sighted):
        name = "meddling"

        def allocate(self, arrivals):
            with pytest.raises(ValueError, match="read-only"):
                arrivals[:] = 1
            decision = super().allocate(arrivals)
            arrivals.flags.writeable = True  # its own copy: nobody minds
            arrivals[:] = 1
            return decision

        def update(self, arrivals):
            arrivals.flags.writeable = True
            arrivals[:] = 7

    environment = ClusterEnvironment(cluster_of(), RecordedArrivals(COUNTS))
    honest = play_slots(Sighted(cluster_of()), environment)
    meddled = play_slots(Meddling(cluster_of()), environment)
    assert np.array_equal(meddled["reward"], honest["reward"])
    assert np.array_equal(meddled["jobs"], honest["jobs"])
    assert environment.arrival_counts.tolist() == [2, 2, 2]


def test_a_decision_that_runs_code_when_it_is_read_runs_it_before_the_draw():
    log = []

    class Late:
        def __init__(self, decision):
            self.decision = decision

        def __array__(self, dtype=None, copy=None):
            log.append("read")
            return self.decision

    class Evasive(Blind):
        def allocate(self):
            return Late(super().allocate())

    cluster = cluster_of()
    play_slots(Evasive(cluster), ClusterEnvironment(cluster, SpiedArrivals(COUNTS, log)))
    assert log == ["read", "draw"] * len(COUNTS)  # read once: it cannot show one thing and play another


@dataclasses.dataclass
class Loose:
    environment: object


@pytest.mark.parametrize("handed", [Loose(1), object(), [1], {"a": 1}, lambda: 1, np.array([object()])])
def test_nothing_through_which_more_could_be_reached_is_handed_out(handed):
    refused(lambda: sealed((1.0, (handed,))), "hands out a", error=InvalidParameterError)


# -- looking is seen in what is decided ---------------------------------------------------------------------


def test_playing_out_of_turn_is_refused():
    class Impatient(Blind):
        """Plays the slot, looks at it, and goes back to the beginning."""

        def allocate(self):
            seen = self.environment.play(np.zeros(self.shape)).feedback
            self.environment.begin()
            return Sighted.allocate(self, *seen)

    cheat = Impatient(cluster_of())
    cheat.environment = ClusterEnvironment(cluster_of(), RecordedArrivals(COUNTS))
    refused(lambda: play_slots(cheat, cheat.environment), "slot 1 is played before it is observed", error=DecisionError)


def worlds(make_policy, common, counts, changed):
    """Return two worlds that agree in the first slots and differ from then on."""
    other = counts.copy()
    other[common] = changed
    cluster = cluster_of()
    return [(make_policy(cluster), ClusterEnvironment(cluster, RecordedArrivals(c))) for c in (counts, other)]


@pytest.mark.parametrize("common", [0, 1, 5])
@pytest.mark.parametrize("kind", [Blind, Sighted, lambda c: OgaSched(c, 8), lambda c: OgaSched(c, 8, peek=True)])
def test_honest_policies_are_not_accused(kind, common):
    counts = np.random.default_rng(common).integers(0, 2, (8, 3))
    assert find_peeking(*worlds(kind, common, counts, 1 - counts[common]), common) is None
