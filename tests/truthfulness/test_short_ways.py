"""Short ways to the end of a play at hand lead where the whole play leads, bit by bit; false turns are seen."""

from collections import Counter

import numpy as np
import pytest

from marketsched.agents.job import Job
from marketsched.mechanisms import (
    DeadlineValue,
    ExponentialPricing,
    FirstCome,
    MonteCarloOracle,
    PostedPriceMechanism,
    StatementOfWork,
    get_mechanism,
)
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.truthfulness.searches.evaluation import Candidate, prepared
from marketsched.truthfulness.searches.families import default_families
from marketsched.truthfulness.situations import owner_at_hand
from marketsched.truthfulness.situations.lotteries import fate_of
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.short_ways import ByPlan, trusted
from marketsched.truthfulness.situations.true_owners import Played

SIZES = {"capacity": 3, "horizon": 24, "max_delay": 15}
LIMITS = {"max_concurrency": 2, "max_duration": 6, "max_value": 10.0}
RULES = {
    "first-come": {"price": 0.3},
    "bid-price": {"lags": [3, 5]},
    "two-offers": {},
    "pay-as-bid": {},
    "conservative-backfill": {},
}


def jobs(seed, n=24, revealed=True):
    """Return jobs that arrive some rounds after their birth, with durations seen at the arrival or hidden."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        birth = 1 + i // 2
        arrival, value, last = (
            birth + int(rng.integers(0, 4)),
            float(rng.uniform(1, 10)),
            birth + int(rng.integers(5, 12)),
        )
        points = [(arrival, d, p, d if revealed else None) for d, p in ((1, 0.5), (3, 0.3), (5, 0.2))]
        truth = StatementOfWork(birth, int(rng.integers(1, 3)), DeadlineValue(value, last), points)
        duration = int(rng.choice([1, 3, 5], p=[0.5, 0.3, 0.2]))
        found.append(Job(f"job {i}", f"owner {i % 4}", truth, arrival, duration, duration if revealed else None))
    return found


def drawn_market(name, seed, revealed=True):
    return MarketAtHand(
        lambda rng: get_mechanism(name, **SIZES, **LIMITS, **RULES[name], rng=rng),
        jobs(seed, revealed=revealed), **SIZES, seed=seed,
    )  # fmt: skip


def lies_of(owner, each):
    """Return conduct of every family, inside and outside of the model."""
    found = [prepared(owner, lie) for f in default_families(owner.truth, owner.public) for lie in f.members[:each]]
    return [one.conduct for one in found if isinstance(one, Candidate)]


def end(play):
    try:
        return play()
    except InvalidReportError as error:
        return str(error)


def compared(short, whole, names, each):
    """Play the same conduct in two equal markets, in one of them whole; return how many conducts a look answered."""
    whole.shortens, looks, plays = False, 0, 0
    for one, other in zip(short.owners(names), whole.owners(names), strict=True):
        assert one.truthful == other.truthful
        for conduct in lies_of(one, each):
            assert end(lambda: one.play(conduct)) == end(lambda: other.play(conduct)), (one.name, conduct.key)  # noqa: B023
            noted = end(lambda: one.play(conduct, noted=True))  # noqa: B023
            assert noted == end(lambda: other.play(conduct)), (one.name, conduct.key)  # noqa: B023
            looks, plays = looks + one.answers(conduct), plays + 1
    assert short.shortens
    assert plays > len(names)
    return looks


@pytest.fixture
def nothing_played_whole(monkeypatch):
    monkeypatch.setattr(owner_at_hand, "PLAYED_WHOLE", 0.0)


@pytest.mark.slow
@pytest.mark.long_after(3)
@pytest.mark.usefixtures("nothing_played_whole")
@pytest.mark.parametrize("revealed", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_every_lie_in_drawn_markets_ends_as_played_whole(name, revealed):
    names = [f"job {i}" for i in range(0, 24, 5)]
    looks = compared(drawn_market(name, 3, revealed), drawn_market(name, 3, revealed), names, 3)
    assert (looks > 0) == (revealed and name in ("first-come", "bid-price", "two-offers"))


def posted_market(seed, eviction, revealed):
    """Return a tight market of posted prices, whose estimates are rough, so that jobs are evicted."""
    rules = {**LIMITS, "max_delay": 15, "epsilon": -1.0, "threshold": 0.5, "eviction": eviction}
    return MarketAtHand(
        lambda rng: PostedPriceMechanism(3, 24, ExponentialPricing(), MonteCarloOracle(64), rng=rng, **rules),
        jobs(seed, n=30, revealed=revealed), **SIZES, seed=seed,
    )  # fmt: skip


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("revealed", [True, False])
@pytest.mark.parametrize("eviction", ["all", "running"])
def test_plans_tell_the_end_of_every_report_in_every_case(eviction, revealed, monkeypatch):
    monkeypatch.setattr(owner_at_hand, "PLAYED_WHOLE", 0.0)
    short, whole = (posted_market(3, eviction, revealed) for _ in range(2))
    whole.shortens, ended = False, Counter()
    names = [f"job {i}" for i in range(1, 30, 7)]
    for one, other in zip(short.owners(names), whole.owners(names), strict=True):
        for conduct in lies_of(one, 2):
            for fate in [None, *(case.fate for case in one.own_law)]:
                played = end(lambda: one.play(conduct, fate))  # noqa: B023
                assert played == end(lambda: other.play(conduct, fate)), (one.name, conduct.key, fate)  # noqa: B023
                planned = end(lambda: one.planned(conduct, fate or fate_of(one.job), one._wanted))  # noqa: B023
                if isinstance(planned, Played):
                    ended[planned.completion is not None] += 1
    assert short.shortens
    assert eviction == "running" or min(ended[True], ended[False]) > 20  # of running jobs others may go first


def test_a_plan_that_tells_another_end_is_noticed(monkeypatch):
    monkeypatch.setattr(owner_at_hand, "PLAYED_WHOLE", 1.0)
    ends = ByPlan.ends
    monkeypatch.setattr(ByPlan, "ends", lambda *a: (None, 0.0) if ends(*a)[0] is not None else ends(*a))
    short, whole = (posted_market(3, "all", True) for _ in range(2))
    whole.shortens = False
    (one,), (other,) = short.owners(["job 1"]), whole.owners(["job 1"])
    played = [(one.play(c), other.play(c)) for c in lies_of(one, 2)]
    assert all(a == b for a, b in played) and any(a.completion for a, _ in played)
    assert not short.shortens


def test_what_is_not_the_packages_own_is_played_from_the_birth():
    class Own(FirstCome):
        def serve(self, waiting):
            return super().serve(waiting)

    sizes = {"capacity": 3, "horizon": 24, "max_delay": 15} | LIMITS
    assert trusted(FirstCome(**sizes))
    assert not trusted(Own(**sizes))
    changed = FirstCome(**sizes)
    changed.serve = lambda waiting: [None for _ in waiting]
    assert not trusted(changed)


def test_menus_of_all_owners_are_those_of_each():
    market = drawn_market("bid-price", 4)
    owners = market.owners([f"job {i}" for i in range(6)])
    alone = drawn_market("bid-price", 4)
    for owner in owners:
        assert owner.menu == alone.menus_of([owner.name]).get(owner.name)
    assert any(owner.menu is not None for owner in owners)
