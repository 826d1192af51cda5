"""Lies to the allocation cores: known ones are found, the truthful are not accused, fresh worlds decide."""

from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from marketsched.cores.agents.channels import ChannelGame
from marketsched.cores.agents.games import OwnersSlot, play_out
from marketsched.cores.agents.ports import PortGame, believed_cluster
from marketsched.cores.agents.reports import (
    CoreLie,
    CorePublic,
    JobReport,
    Several,
)
from marketsched.cores.audit.core_audit import published_cases
from marketsched.cores.audit.searching import _scored, score_lie, search_core_lies
from marketsched.cores.audit.worlds import PublishedGames
from marketsched.cores.core import OPM
from marketsched.mechanisms.allocation import (
    BinPacking,
    BipartiteCluster,
    Esdp,
    OgaSched,
    RecordedArrivals,
    RecordedUtilities,
    small_integer_instance,
)
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.show.commands.audit import status_of_lies
from small_core_games import SLOTS, fair, fixed, one_job, parts, two_channels, two_ports

PortWorld, ChannelWorld, JobWorld = (partial(PublishedGames, core) for core in ("ogasched", "esdp", "opm"))

pytestmark = pytest.mark.compiled  # audits play thousands of slots: too long for plain kernels

# What owners get.


def test_what_is_beyond_the_true_requirement_is_worth_nothing():
    cluster = BipartiteCluster([[1.0]], [[4.0], [4.0]], [[True, False]], "linear", 1.0, 0.25)
    game = PortGame(cluster, RecordedArrivals([[1]] * 3), 3, fair)
    for lie in (CoreLie("requirements", 4.0), CoreLie("claimed edges", 1.0)):
        told = {0: lie.report(game.truth(0), game.public)}
        assert play_out(game, told).values == pytest.approx(play_out(game, {}).values) == [2.25]


def test_an_absent_port_gets_nothing_and_half_a_need_half_of_a_linear_gain():
    cluster = BipartiteCluster([[2.0], [1.0]], [[4.0]], [[True], [True]], "linear", 1.0, 0.25)
    game = PortGame(cluster, RecordedArrivals([[1, 0], [1, 1]]), 2, fair)
    assert play_out(game, {}).values == pytest.approx([3.0, 0.75])
    half = {0: CoreLie("requirements", 0.5).report(game.truth(0), game.public)}
    assert play_out(game, half).values == pytest.approx([1.5, 0.75])


def test_a_channel_with_less_than_it_needs_runs_at_the_scarcest_types_speed():
    channels = Channels([[2, 4]], [4, 4], [0])
    game = ChannelGame(
        channels,
        RecordedArrivals([[1]] * 4),
        RecordedUtilities([[0.8]]),
        4,
        lambda told, rng: Esdp(*parts(told)),
    )
    for requests, speed in (([[2, 1]], 0.25), ([[1, 3]], 0.5), ([[4, 4]], 1.0)):
        told = {0: replace(game.truth(0), requests=np.array(requests))}
        assert play_out(game, told).values == pytest.approx([4 * 0.8 * speed])


def test_work_after_the_true_deadline_is_worth_nothing():
    game = one_job()
    late = {0: CoreLie("deadline", 1.5).report(game.truth(0), game.public)}
    richer = {0: Several((CoreLie("deadline", 1.5), CoreLie("budget", 10.0))).report(game.truth(0), game.public)}
    assert play_out(game, late).values[0] == pytest.approx(play_out(game, {}).values[0]) == 5**0.5
    total = play_out(game, richer)
    assert total.values[0] == pytest.approx(10**0.5)
    assert total.values[1] < 5**0.5  # the other shares its slots with a job that has nothing left to win


def test_a_port_that_says_worth_two_is_believed():
    """Stationary: 2 / (1 + y) = 1 / (2 - y) beyond the bound of 1; with 3/2 instead y = 4/5."""
    game = two_ports(lambda c, t: OgaSched(c, t), "log", 0.0, slots=400)
    for worth, share in ((2.0, 1.0), (1.5, 0.8), (0.5, 0.0)):
        *_, last = game.play({0: replace(game.truth(0), worth=worth)})
        assert last.values[0] == pytest.approx(np.log1p(share), abs=0.02)
        assert last.values[1] == pytest.approx(np.log1p(1.0 - share), abs=0.02)


def test_coefficients_are_pooled_over_the_ports_of_an_instance():
    cluster = BipartiteCluster([[1.0]] * 2, [[1.0]] * 3, [[True, True, False], [True, False, False]], "log", 2.0, 0.1)
    truth = [PortGame(cluster, RecordedArrivals([[1, 1]]), 1, fair).truth(port) for port in (0, 1)]
    believed = believed_cluster(cluster, [replace(truth[0], coefficient=3.0), truth[1]])
    assert believed.alpha[:, 0] == pytest.approx([4.0, 6.0, 2.0])
    assert (believed.gain == cluster.gain).all()


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("world", [PortWorld(), ChannelWorld(), JobWorld()])
def test_a_world_is_the_same_every_time_and_saying_the_truth_aloud_changes_nothing(world):
    game = world(7)
    first = play_out(game, {})
    aloud = {owner: game.truth(owner) for owner in range(game.n_owners)}
    for other in (play_out(game, {}), play_out(world(7), {}), play_out(game, aloud)):
        assert (other.values == first.values).all() and (other.payments == first.payments).all()
    assert (play_out(world(8), {}).values != first.values).any()


@pytest.mark.parametrize(
    ("world", "kinds"),
    [
        (PortWorld, ("none", "capacity prices")),
        (ChannelWorld, ("none", "displaced utility")),
        (JobWorld, ("none", "displaced work", "spending")),
    ],
)
def test_payments_are_transfers(world, kinds):
    """They change nobody's value, are never negative, and without a rule nobody pays."""
    totals = [play_out(world(payment=kind)(3), {}) for kind in kinds]
    assert not totals[0].payments.any()
    for total in totals[1:]:
        assert (total.values == totals[0].values).all()
        assert (total.payments >= 0.0).all() and total.payments.any()


def test_capacity_prices_leave_the_truthful_something():
    total = play_out(two_ports(lambda c, t: OgaSched(c, t), "log", 0.0, 200, "capacity prices"), {})
    # Each holds 1/2 at the price 2/3 from the second slot on, and values it at ln(3/2) > 1/3.
    assert total.payments == pytest.approx([199 / 3] * 2)
    assert (total.utilities > 0.0).all()


# The search.


def test_the_lie_that_takes_all_from_fairness_is_found():
    """Asking for s times as much brings the share s / (1 + s) of the device: the more, the better."""
    (found,) = search_core_lies(
        fixed(two_ports()), [CoreLie("requirements", s) for s in (0.5, 2.0, 16.0)], search_worlds=4, fresh_worlds=20
    )
    s = found.lie.size
    assert found.pays and found.best and s > 16.0
    assert found.gain_share.value == pytest.approx(2 * s / (1 + s) - 1)
    assert found.others_share.value == pytest.approx(2 / (1 + s) - 1)


@pytest.mark.slow
def test_understating_a_request_is_found_and_displaces_nobody():
    """1 unit instead of 2 fits beside the other's 2: half speed in every slot instead of one try, which costs 0.6."""
    lies = [CoreLie("requests", 1), CoreLie("requests", -1), CoreLie("hidden edges", 0.5)]
    for payment, tried in (("none", 0.5), ("displaced utility", 0.5 - 0.6)):
        found = search_core_lies(fixed(two_channels(payment)), lies, search_worlds=4, fresh_worlds=20)
        assert found[0].lie == CoreLie("requests", -1)
        assert found[0].pays and found[0].best
        assert found[0].gain.value == pytest.approx(SLOTS * 0.25 - tried)


def test_a_gain_above_0_by_itself_but_not_among_all_lies_seems_to_pay():
    """Gains of -6 to 13 credits in 20 worlds: Student's t is 2.6, above 2.1 for 95 % and below 3.6 for 99.8 %."""
    nothing = np.zeros(1)
    plays = SimpleNamespace(
        owner=0,
        truth=lambda place: (None, OwnersSlot(nothing, nothing)),
        lie=lambda place, lie: OwnersSlot(np.array([place - 6.0]), nothing),
    )
    candidate = SimpleNamespace(lie=CoreLie("utility", 2.0), mean=3.5)
    scored = {c: _scored(plays, candidate, range(20), (0.95, c), best=True) for c in (0.95, 0.998)}
    assert [(each.pays, each.seems_to_pay) for each in scored.values()] == [(True, False), (False, True)]
    table = pd.DataFrame([{"pays": each.pays, "seems_to_pay": each.seems_to_pay} for each in scored.values()])
    assert [status_of_lies(rows) for rows in (table, table[1:], table[:0])] == [3, 5, 0]


def test_overstating_utility_takes_the_others_place_until_it_is_charged():
    """Said to bring 1 instead of 0.5, the channel displaces one of 0.6."""
    free = score_lie(fixed(two_channels()), CoreLie("utility", 2.0), worlds=20)
    assert free.pays and free.gain.value == pytest.approx(0.5 * (SLOTS - 2))
    charged = score_lie(fixed(two_channels("displaced utility")), CoreLie("utility", 2.0), worlds=20)
    assert not charged.pays and charged.gain.value == pytest.approx((0.5 - 0.6) * (SLOTS - 2))


def test_a_budget_that_nobody_collects_is_overstated_and_one_that_is_paid_is_not():
    lies = [CoreLie("budget", 2.0), CoreLie("budget", 0.5)]
    (free,) = search_core_lies(fixed(one_job()), lies, search_worlds=4, fresh_worlds=20)
    assert free.pays and free.lie.size >= 2.0
    assert free.gain.value == pytest.approx(10**0.5 - 5**0.5)
    spent = score_lie(fixed(one_job("spending", weight=3.0)), CoreLie("budget", 2.0), worlds=20)
    assert not spent.pays and spent.gain.value == pytest.approx(3 * (10**0.5 - 5**0.5) - 5.0)
    (less,) = search_core_lies(fixed(one_job("spending", weight=3.0)), lies, search_worlds=4, fresh_worlds=20)
    assert less.pays and less.lie.size < 1.0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("owner", [0, 3])
def test_a_serial_dictatorship_is_not_accused(owner):
    """Ports take what is left in an order that no report changes; with linear gains more is never worse."""

    def world(seed):
        rng = np.random.default_rng(seed)
        cluster = small_integer_instance(rng, gain="linear")
        return PortGame(cluster, RecordedArrivals(rng.integers(0, 2, (6, 4))), 6, lambda c, t: BinPacking(c))

    found = search_core_lies(world, owner=owner, search_worlds=8, fresh_worlds=20)
    assert found and not any(scored.pays for scored in found)
    assert max(scored.gain.value for scored in found) <= 0.0


@dataclass(frozen=True)
class Noise:
    """A game in which a lie brings nothing but luck."""

    seed: int
    core, n_owners, slots = OPM, 2, 1
    public = CorePublic(np.ones(1), 1, np.zeros(0, dtype=np.int64))

    def truth(self, owner):
        return (JobReport(0, 1, 1.0, 1.0, 0.5),)

    def play(self, reports):
        luck = 0.0
        if 0 in reports:
            budget = int(1000 * reports[0][0].budget)
            luck = float(np.random.default_rng([self.seed, budget]).normal())
        yield OwnersSlot(np.array([10.0 + luck, 10.0]), np.zeros(2))


def test_the_best_of_many_looks_good_in_the_search_and_not_on_fresh_worlds():
    """Of 40 winners by luck alone about one lies above 0 at 95 %; eight do with probability below 1e-4."""
    lies = [CoreLie("budget", 1.0 + i / 10) for i in range(1, 11)]
    found = [
        search_core_lies(Noise, lies, search_worlds=8, fresh_worlds=20, seed=seed, confidence=0.95)[0]
        for seed in range(40)
    ]
    assert min(scored.searched_gain for scored in found) > 0.0
    assert np.mean([scored.searched_gain for scored in found]) > 0.5
    assert sum(scored.pays for scored in found) < 8
    assert sum(scored.gain.low <= 0.0 <= scored.gain.high for scored in found) >= 32


def test_the_same_seed_finds_the_same_and_progress_counts():
    told, lies = [], [CoreLie("utility", 2.0)]
    options = {"search_worlds": 4, "fresh_worlds": 20, "seed": 3}
    first = search_core_lies(PortWorld(slots=10), lies, progress=lambda *x: told.append(x), **options)
    assert first == search_core_lies(PortWorld(slots=10), lies, **options)
    assert told == [("play", n) for n in range(1, len(told) + 1)]
    assert len(told) > 2 * (4 + 20)  # truth and lie in every world, and what was refined
    assert first != search_core_lies(PortWorld(slots=10), lies, **{**options, "seed": 4})


def test_every_published_case_can_be_played():
    for case in published_cases():
        total = play_out(replace(case.world, slots=3)(0), {})
        assert np.isfinite(total.utilities).all()
        assert total.payments.any() <= (case.payment != "none")


# What the table says, each on worlds of its own.


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "lie", "pays"),
    [
        (PortWorld(), CoreLie("utility", 8.0), True),
        (PortWorld(payment="capacity prices"), CoreLie("utility", 8.0), False),
        (PortWorld(payment="capacity prices"), CoreLie("alpha", 0.3), True),
        (PortWorld("fairness"), CoreLie("requirements", 16.0), True),
        (ChannelWorld(), CoreLie("utility", 8.0), True),
        (ChannelWorld(payment="displaced utility"), CoreLie("utility", 8.0), False),
        (JobWorld(), CoreLie("budget", 8.0), True),
        (JobWorld(payment="displaced work"), CoreLie("budget", 8.0), False),
        (JobWorld(payment="displaced work"), CoreLie("weight", 0.5), True),
    ],
)
def test_which_lies_pay(world, lie, pays):
    scored = score_lie(world, lie, worlds=40, confidence=0.99, seed=11)
    assert scored.pays == pays
    if pays and world.payment == "none":
        assert scored.others_share is not None and scored.others_share.high < 0.0
