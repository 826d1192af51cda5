"""Short plays of a search end as whole plays do, bit by bit; and what would make them differ is noticed."""

import numpy as np
import pytest

from draws import many
from marketsched.agents.conduct import plain
from marketsched.mechanisms import BidPrice, DeadlineValue, FirstCome, LinearValue, StatementOfWork
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.registry import get_mechanism
from marketsched.truthfulness import Situation
from marketsched.truthfulness.searches.families import default_families, interleaved
from marketsched.truthfulness.situations.short_plays import ShortPlays
from strict_mechanism import StrictMechanism

SIZES = {"capacity": 5, "horizon": 16, "max_concurrency": 3, "max_duration": 4, "max_value": 12.0, "max_delay": 9}
PATHS = {"oracle": {"kind": "monte-carlo", "samples": 70}, "epsilon": -0.5}


def built(name, **keywords):
    return lambda rng: get_mechanism(name, rng=rng, **SIZES, **keywords)


FIRST_COME = lambda rng: FirstCome(price=0.3, **SIZES)  # noqa: E731
BID_PRICE = lambda rng: BidPrice(lags=(1, 2), **SIZES)  # noqa: E731
FACTORIES = {
    "first-come": FIRST_COME,
    "bid-price": BID_PRICE,
    "bid-price sealed": lambda rng: BidPrice(lags=(1, 2), hidden_order="sealed", buckets=2, **SIZES),
    "pay-as-bid": lambda rng: get_mechanism("pay-as-bid", **SIZES),
    "vcg": lambda rng: get_mechanism("vcg", **SIZES),
    "posted-price": built("posted-price", **PATHS),
    "posted-price, running": built("posted-price", eviction="running", **PATHS),
    "posted-price, fresh paths": built(
        "posted-price", **{**PATHS, "oracle": {**PATHS["oracle"], "refresh": "submission"}}
    ),
    "posted-price, exact": built("posted-price"),
    "strict": lambda rng: StrictMechanism(5, 16, max_duration=4),
}


def statement(rng, birth):
    revealed = bool(rng.random() < 0.7)
    points = {}
    for _ in range(int(rng.integers(1, 4))):
        points[(int(birth + rng.integers(0, 4)), int(rng.integers(1, 5)))] = float(rng.integers(1, 5))
    total = sum(points.values()) + float(rng.integers(0, 2))
    rows = [(a, d, w / total, d if revealed else None) for (a, d), w in points.items()]
    worth, last = float(rng.integers(1, 13)), int(birth + rng.integers(4, 9))
    value = DeadlineValue(worth, last) if rng.random() < 0.5 else LinearValue(worth, birth + 3, 0.5, last)
    return StatementOfWork(birth, int(rng.integers(1, 4)), value, rows)


def drawn(factory, seed, *, alone=False):
    """Return a situation with a history; ``alone``: nobody submits after the owner."""
    rng = np.random.default_rng(seed)
    truth = statement(rng, int(rng.integers(3, 7)))
    births = np.sort(rng.integers(1, truth.birth + 1 if alone else 10, 16))
    others = [statement(rng, int(birth)) for birth in births]
    return Situation(factory, truth, others, capacity=5, horizon=16, max_delay=9, history=seed)


def conducts(situation, most=40):
    """Return the truth and lies of all families, those outside of the model included."""
    yield plain(situation.truth, situation.truth.concurrency)
    families = default_families(situation.truth, situation.public)
    for _, lie in list(interleaved(families))[:most]:
        try:
            yield lie.conduct(situation.truth, situation.truth, situation.public)
        except InvalidReportError:
            continue


def outcome(play, conduct, world):
    try:
        return tuple(play(conduct, world))[:3]
    except (InvalidReportError, MechanismFault) as error:
        return type(error), str(error)


def differences(situation, worlds):
    """Play lies both ways; return how many were played, and the plays that end differently."""
    stage, short, played, wrong = situation.stage, ShortPlays(situation, situation.stage), 0, []
    for world in map(stage.world, range(worlds)):
        for conduct in conducts(situation):
            both = [outcome(play, conduct, world) for play in (short.play, stage.play)]
            played += 1
            wrong += [(conduct, world.seed, *both)] if both[0] != both[1] else []
    return played, wrong, short


@pytest.mark.slow
@pytest.mark.long_after(5)
@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", FACTORIES)
def test_short_plays_end_as_whole_ones(name, alone):
    settled = 0
    for seed in range(many(16, least=3)):
        played, wrong, short = differences(drawn(FACTORIES[name], seed, alone=alone), worlds=3)
        assert played > 60 and not wrong
        settled += short.settles
    assert (settled > 0) is name.startswith(("first-come", "bid-price"))


# --- what would make them differ --------------------------------------------------------------------


class BooksWrongly(FirstCome):
    """Says another payment than it charges."""

    def booked(self, job, duration):
        found = super().booked(job, duration)
        return found and (found[0], None if found[1] is None else found[1] + 0.5)


class Moves(FirstCome):
    """Books as its base class, and charges otherwise: what the base class says is not its own word."""

    def charge(self, x):
        return super().charge(x) + 0.25


FAULTY = {kind.__name__: lambda rng, kind=kind: kind(price=0.3, **SIZES) for kind in (BooksWrongly, Moves)}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", FAULTY)
def test_what_does_not_hold_is_noticed_and_played_whole(name):
    for seed in range(many(12, least=3)):
        played, wrong, short = differences(drawn(FAULTY[name], seed), worlds=3)
        assert played > 60 and not wrong
        assert not short.settles


@pytest.mark.parametrize("name", FAULTY)
def test_without_its_guard_each_of_them_would_go_wrong(name, monkeypatch):
    monkeypatch.setattr(ShortPlays, "settles", True)
    assert any(differences(drawn(FAULTY[name], seed), worlds=3)[1] for seed in range(12))
