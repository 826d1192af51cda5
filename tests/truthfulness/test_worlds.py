"""Fresh worlds of an owner: the agents' market plays the same, no report moves them, and the past stays."""

import numpy as np
import pytest

from draws import many
from marketsched.agents import InflateConcurrency, Job, Market, MarketSetup, ScaleDuration, ScaleValue, Truthful
from marketsched.agents.conduct import plain
from marketsched.agents.lies import DelaySubmission
from marketsched.agents.loop import Fate
from marketsched.mechanisms import (
    BidPrice,
    DeadlineValue,
    FirstCome,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
)
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.registry import get_mechanism
from marketsched.truthfulness.searches.families import default_families, interleaved
from marketsched.truthfulness.situations import owner_at_hand
from marketsched.truthfulness.situations.lotteries import of_arrived, of_statement, of_waiting
from marketsched.truthfulness.situations.worlds import Worlds
from small_mechanisms import OpenMarket, owner_in
from strict_mechanism import StrictMechanism

LIMITS = {"max_concurrency": 3, "max_duration": 4, "max_value": 12.0, "max_delay": 9}
SIZES = {"capacity": 5, "horizon": 16, **LIMITS}
PATHS = {"oracle": {"kind": "monte-carlo", "samples": 70}, "epsilon": -0.5}
FACTORIES = {
    "exact": lambda rng: get_mechanism("posted-price", rng=rng, **SIZES),
    "monte-carlo": lambda rng: get_mechanism("posted-price", rng=rng, **PATHS, **SIZES),
    "running": lambda rng: get_mechanism("posted-price", rng=rng, eviction="running", epsilon=-1.0, **SIZES),
    "first-come": lambda rng: FirstCome(price=0.3, **SIZES),
    "bid-price": lambda rng: BidPrice(lags=(1, 2), **SIZES),
    "pay-as-bid": lambda rng: get_mechanism("pay-as-bid", **SIZES),
    "strict": lambda rng: StrictMechanism(5, 16, max_duration=4),
}


def random_statement(rng, birth):
    revealed = bool(rng.random() < 0.6)
    points = {}
    for _ in range(int(rng.integers(1, 4))):
        points[(int(birth + rng.integers(0, 4)), int(rng.integers(1, 5)))] = float(rng.integers(1, 5))
    total = sum(points.values()) + float(rng.integers(0, 2))
    rows = [(a, d, w / total, d if revealed else None) for (a, d), w in points.items()]
    value = DeadlineValue(float(rng.integers(1, 13)), int(birth + rng.integers(3, 9)))
    return StatementOfWork(birth, int(rng.integers(1, 4)), value, rows)


def random_owner(factory, seed, n=9):
    """Return an owner in the middle of a market."""
    rng = np.random.default_rng(seed)
    others = [random_statement(rng, int(b)) for b in np.sort(rng.integers(1, 7, n))]
    truth = random_statement(rng, int(rng.integers(1, 6)))
    ahead = int(rng.integers(0, sum(other.birth == truth.birth for other in others) + 1))
    return owner_in(factory, truth, others, capacity=5, horizon=16, max_delay=9, ahead=ahead, seed=seed)


def by_the_market(owner, strategy, worlds, seed):
    """Return the owner's utility in the agents' market, played from round 1 as all happens in the world of a seed."""
    world, setup = worlds.world(seed), owner.market.setup
    own = Job(owner.name, owner.name, owner.truth, world.own.arrival, world.own.duration, world.own.signal)
    jobs = [own if job is owner.job else worlds._redrawn(world, job) for job in setup.jobs]
    played = MarketSetup(
        "market",
        jobs,
        owner.market.factory(np.random.default_rng(0)),
        setup.capacity,
        setup.horizon,
        setup.max_delay,
        strategy=lambda job: strategy if job is own else Truthful(),
    )
    table = Market(played).run().jobs
    return float(table.loc[table["name"] == owner.name, "utility"].iloc[0])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", sorted({*FACTORIES} - {"monte-carlo"}))  # which draws
def test_a_play_is_what_the_agents_market_does(name):
    strategies = [Truthful(), ScaleValue(0.4), InflateConcurrency(1), InflateConcurrency(-1), ScaleDuration(0.5)]
    differ = set()
    for seed in range(many(12, least=4)):
        owner = random_owner(FACTORIES[name], seed)
        worlds = Worlds(owner)
        for strategy in [*strategies, DelaySubmission(2)]:
            try:
                report = strategy.report(owner.truth, owner.public)
                owner.check(report)
            except InvalidReportError:
                continue
            ours = worlds.play(plain(report, owner.truth.concurrency), seed).utility
            assert ours == pytest.approx(by_the_market(owner, strategy, worlds, seed), abs=1e-12)
            differ.add(round(ours, 9))
    assert len(differ) > many(12, least=4) // 2 - 1


def conducts(owner, most=40):
    """Return the truth and lies of all families."""
    yield plain(owner.truth, owner.truth.concurrency)
    for _, lie in list(interleaved(default_families(owner.truth, owner.public)))[:most]:
        try:
            yield lie.conduct(owner.truth, owner.truth, owner.public)
        except InvalidReportError:
            continue


def outcome(worlds, conduct, seed):
    try:
        return worlds.play(conduct, seed)[:3]
    except (InvalidReportError, MechanismFault) as error:
        return type(error), str(error)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", FACTORIES)
def test_short_plays_end_as_whole_ones(name, monkeypatch):
    monkeypatch.setattr(owner_at_hand, "PLAYED_WHOLE", 0.0)
    planned = 0
    for seed in range(many(16, least=2)):
        short, whole = (random_owner(FACTORIES[name], seed) for _ in range(2))
        whole.market.shortens = whole.market.settles = False
        ours, others = Worlds(short), Worlds(whole)
        for conduct in conducts(short):
            for world in range(3):
                assert outcome(ours, conduct, world) == outcome(others, conduct, world)
        planned += short.ways is not None
    assert (planned > 0) is (name in ("exact", "monte-carlo", "running"))


# --- worlds -----------------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_world_whatever_is_reported():
    """Everybody's arrivals and signals, the owner's included, are those of the truth under another report, too."""
    built = []

    def market(rng):
        built.append(StrictMechanism(5, 16, max_duration=4))
        built[-1].keep = lambda: None  # cannot be copied, so each play leaves its calls behind
        return built[-1]

    owner = random_owner(market, 3)
    worlds, seen = Worlds(owner), set()
    other = ScaleValue(0.5).report(owner.truth, owner.public)
    for seed in range(30):
        calls = []
        for report in (owner.truth, other):
            worlds.play(plain(report, owner.truth.concurrency), seed)
            calls.append([call for call in built[-1].calls if call[0] == "arrive"])
        shared = min(map(len, calls))
        assert calls[0][:shared] == calls[1][:shared]
        seen.add(tuple(calls[0]))
    assert len(seen) > 5


def test_worlds_have_the_frequencies_of_their_laws():
    truth = StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(2, 1, 0.5), (3, 2, 0.2)])
    other = StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(1, 1, 0.25), (1, 2, 0.75)])
    sizes, n = {"capacity": 5, "horizon": 16, "max_delay": 9}, 4000
    for ahead in (0, 1):  # submitted later, or in the market
        owner = owner_in(FACTORIES["first-come"], truth, [other], ahead=ahead, **sizes)
        worlds, counts = Worlds(owner), {}
        job = next(job for job in owner.market.setup.jobs if job.name == "other-1")
        for world in map(worlds.world, range(n)):
            key = (world.own.arrival, worlds._redrawn(world, job).duration)
            counts[key] = counts.get(key, 0) + 1
        for arrival, p in ((2, 0.5), (3, 0.2), (None, 0.3)):
            for duration, q in ((1, 0.25), (2, 0.75)):
                weight = p * q
                assert abs(counts[arrival, duration] / n - weight) < 5 * np.sqrt(weight * (1 - weight) / n)


def test_what_is_left_of_a_law():
    sow = StatementOfWork(
        1, 1, DeadlineValue(5.0, 9), [(2, 1, 0.2, "x"), (2, 3, 0.2, "x"), (2, 2, 0.1, "y"), (4, 2, 0.3, "y")]
    )
    assert of_statement(sow).weights == pytest.approx((0.2, 0.2, 0.1, 0.3, 0.2))
    waiting = of_waiting(sow, 3)  # not arrived in round 2: it comes in 4 (0.3) or never (0.2)
    assert [fate.arrival for _, fate in waiting.outcomes] == [4, None]
    assert waiting.weights == pytest.approx((0.6, 0.4))
    running = of_arrived(sow, Fate(2, 99, "x"), 2, 3, 5)  # has run one round: the duration is not 1
    assert [(fate.duration, w) for (_, fate), w in zip(running.outcomes, running.weights, strict=True)] == [(3, 1.0)]
    arrived = of_arrived(sow, Fate(2, 99, "x"), None, 3, 5)
    assert [fate.duration for _, fate in arrived.outcomes] == [1, 3]
    outlived = of_arrived(sow, Fate(2, 99, "y"), 2, 5, 5)
    assert [fate.duration for _, fate in outlived.outcomes] == [5]
    assert of_waiting(sow, 5).outcomes[0][1].arrival is None


# --- the past ---------------------------------------------------------------------------------------


def test_the_past_stays_and_the_rest_is_drawn():
    """One other came in round 1, and runs 2 or 4 rounds, or never comes; the owner, born in 2, wants round 3."""
    other = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(1, 2, 0.25, None), (1, 4, 0.25, None)])
    truth = StatementOfWork(2, 1, DeadlineValue(6.0, 4), [(3, 1, 1.0)])
    sizes = {"capacity": 1, "horizon": 9, "max_delay": 8}
    for happened, utilities in ((Fate(1, 4), {0.0, 5.0}), (Fate(None, 1), {5.0})):
        job = Job("other", "other", other, happened.arrival, happened.duration)
        worlds = Worlds(owner_in(lambda rng: OpenMarket(1, 9, lambda *_: 1.0), truth, [job], **sizes))
        assert {worlds.play(plain(truth, 1), seed).utility for seed in range(20)} == utilities


def test_a_job_that_is_submitted_again_is_there():
    """The other arrives outside its own law in round 1, is dropped, and comes back in round 2, as in the market."""
    sow = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(2, 3, 1.0)])
    truth = StatementOfWork(3, 1, DeadlineValue(6.0, 6), [(3, 1, 1.0)])
    sizes = {"capacity": 5, "horizon": 16, "max_delay": 9}
    for resubmit in (False, True):
        owner = owner_in(FACTORIES["exact"], truth, [Job("late", "ann", sow, 1, 3, 3)], resubmit=resubmit, **sizes)
        assert list(owner.at_turn().entries) == (["late+"] if resubmit else [])
        assert Worlds(owner).play(plain(truth, 1), 0).value == 6


# --- copies -----------------------------------------------------------------------------------------


def test_copies_of_a_market_can_grow():
    """Arrays of a copy do not own their memory: the oracle's paths must find room for more jobs all the same."""

    def market(rng):
        return PostedPriceMechanism(60, 20, PostedPricing([0.0]), MonteCarloOracle(samples=8), rng=rng, **LIMITS)

    others = [StatementOfWork(b, 1, DeadlineValue(5.0, b + 6), [(b + 1, 2, 1.0)]) for b in (1, 2) for _ in range(60)]
    truth = StatementOfWork(2, 1, DeadlineValue(9.0, 9), [(4, 1, 1.0)])
    owner = owner_in(market, truth, others, capacity=60, horizon=20, max_delay=9, ahead=0)
    assert owner.plays.whole(owner.at_turn(), plain(truth, 1), Fate(4, 1, 1), settles=False).utility == 9.0


def test_a_mechanism_that_cannot_be_pickled_is_played_from_the_start():
    def unpicklable(rng):
        mechanism = FirstCome(price=0.3, **SIZES)
        mechanism.hook = lambda: None
        return mechanism

    for seed in (1, 2):
        owner, other = random_owner(FACTORIES["first-come"], seed), random_owner(unpicklable, seed)
        assert other.kept is None is not owner.kept
        truth, worlds, others = plain(owner.truth, owner.truth.concurrency), Worlds(owner), Worlds(other)
        assert all(worlds.play(truth, world) == others.play(truth, world) for world in range(10))
