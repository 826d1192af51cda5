"""What a search plays: the same market as the agents' one, worlds that no report moves, and histories."""

import numpy as np
import pytest

from draws import many
from marketsched.agents import InflateConcurrency, Job, Market, MarketSetup, ScaleDuration, ScaleValue, Truthful
from marketsched.agents.conduct import plain
from marketsched.agents.lies import DelaySubmission
from marketsched.agents.loop import Fate
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import (
    DeadlineValue,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
)
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, UnknownNameError
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.truthfulness import Other, Situation, situations_of
from marketsched.truthfulness.situations.lotteries import as_job, of_arrived, of_statement, of_waiting
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.streams import MECHANISM, stream
from refusals import refused
from small_mechanisms import OpenMarket
from strict_mechanism import StrictMechanism

LIMITS = {"max_concurrency": 3, "max_duration": 4, "max_value": 12.0, "max_delay": 9}
FACTORIES = {
    "exact": lambda rng: get_mechanism("posted-price", capacity=5, horizon=16, rng=rng, **LIMITS),
    "monte-carlo": lambda rng: get_mechanism(
        "posted-price",
        capacity=5,
        horizon=16,
        rng=rng,
        oracle={"kind": "monte-carlo", "samples": 20},
        epsilon=-0.5,
        **LIMITS,
    ),
    "running": lambda rng: get_mechanism(
        "posted-price", capacity=5, horizon=16, rng=rng, eviction="running", epsilon=-1.0, **LIMITS
    ),
    "first-come": lambda rng: get_mechanism("first-come", capacity=5, horizon=16, price=0.3, **LIMITS),
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


def random_situation(factory, seed, n=9, **keywords):
    rng = np.random.default_rng(seed)
    others = [random_statement(rng, int(b)) for b in np.sort(rng.integers(1, 7, n))]
    truth = random_statement(rng, int(rng.integers(1, 6)))
    same = sum(other.birth == truth.birth for other in others)
    ahead = int(rng.integers(0, same + 1))
    return Situation(factory, truth, others, capacity=5, horizon=16, max_delay=9, ahead=ahead, **keywords)


def by_the_market(situation, strategy, seed):
    """Return the owner's utility in the agents' market, in the world of ``seed``."""
    stage = situation.stage
    world = stage.world(seed)
    outcomes = [world.outcome(i, stage._lottery(i)) for i in range(len(situation.others))]
    jobs = [as_job(o.name, sow, fate) for o, (sow, fate) in zip(situation.others, outcomes, strict=True) if sow]
    own = as_job(situation.name, situation.truth, world.owner)
    jobs.insert(sum(job.truth.birth < situation.truth.birth for job in jobs) + situation.n_ahead, own)
    setup = MarketSetup(
        "market",
        jobs,
        situation.factory(stream(seed, MECHANISM)),
        situation.capacity,
        situation.horizon,
        situation.max_delay,
        strategy=lambda job: strategy if job is own else Truthful(),
    )
    table = Market(setup).run().jobs
    return float(table.loc[table["name"] == situation.name, "utility"].iloc[0])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", FACTORIES)
def test_a_play_is_what_the_agents_market_does(name):
    strategies = [Truthful(), ScaleValue(0.4), InflateConcurrency(1), InflateConcurrency(-1), ScaleDuration(0.5)]
    differ = set()
    for seed in range(many(12, least=4)):
        situation = random_situation(FACTORIES[name], seed)
        for strategy in [*strategies, DelaySubmission(2)]:
            try:
                report = strategy.report(situation.truth, situation.public)
                situation.check(report)
            except InvalidReportError:
                continue
            conduct = plain(report, situation.truth.concurrency)
            ours = situation.utility(conduct, seed)
            assert ours == pytest.approx(by_the_market(situation, strategy, seed), abs=1e-12)
            differ.add(round(ours, 9))
    assert len(differ) > many(12, least=4) // 2 - 1


def test_a_play_of_random_statements_of_others():
    laws = [StatementLaw([(random_statement(np.random.default_rng(k), 2), 0.5), (None, 0.5)]) for k in range(4)]
    truth = StatementOfWork(2, 1, DeadlineValue(9.0, 8), [(2, 2, 0.5), (4, 1, 0.5)])
    situation = Situation(FACTORIES["exact"], truth, laws, capacity=5, horizon=16, max_delay=9, ahead=2)
    for seed in range(10):
        world = situation.stage.world(seed)
        there = [world.outcome(i, situation.stage._lottery(i))[0] is not None for i in range(4)]
        assert situation.utility(truth, seed) >= 0
        if seed == 0:
            first = there
        elif there != first:
            return
    pytest.fail("the others' statements never change")


# --- worlds -----------------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_world_whatever_is_reported():
    """Everybody's arrivals and signals, the owner's included, are those of the truth under another report, too."""
    built = []

    def market(rng):
        built.append(StrictMechanism(5, 16, max_duration=4))
        built[-1].keep = lambda: None  # cannot be copied, so each play leaves its calls behind
        return built[-1]

    situation = random_situation(market, 3)
    other = ScaleValue(0.5).report(situation.truth, situation.public)
    worlds = set()
    for seed in range(30):
        calls = []
        for report in (situation.truth, other):
            situation.play(report, seed)
            calls.append([call for call in built[-1].calls if call[0] == "arrive"])
        shared = min(map(len, calls))
        assert calls[0][:shared] == calls[1][:shared]
        worlds.add(tuple(calls[0]))
        assert situation.stage.world(seed) == situation.stage.world(seed)
    assert len(worlds) > 5


def test_worlds_have_the_frequencies_of_their_laws():
    truth = StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(2, 1, 0.5), (3, 2, 0.2)])
    other = StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(1, 1, 0.25), (1, 2, 0.75)])
    situation = Situation(FACTORIES["first-come"], truth, [other], capacity=5, horizon=16, max_delay=9)
    listed = situation.stage.worlds(10)
    assert sum(weight for _, weight in listed) == pytest.approx(1)
    n = 4000
    counts = {}
    for seed in range(n):
        key = situation.stage.world(seed).key
        counts[key] = counts.get(key, 0) + 1
    for world, weight in listed:
        assert abs(counts[world.key] / n - weight) < 5 * np.sqrt(weight * (1 - weight) / n)
    assert situation.stage.worlds(5) is None


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


# --- histories --------------------------------------------------------------------------------------


def history_situation(history):
    """One other arrives in round 1 or never, and then runs 2 or 4 rounds; the owner, born in 2, wants round 3."""
    other = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(1, 2, 0.25, None), (1, 4, 0.25, None)])
    truth = StatementOfWork(2, 1, DeadlineValue(6.0, 4), [(3, 1, 1.0)])
    market = lambda rng: OpenMarket(1, 9, lambda *_: 1.0)  # noqa: E731
    return Situation(market, truth, [other], capacity=1, horizon=9, max_delay=8, history=history)


def test_plays_of_one_history_share_the_past_and_draw_the_rest():
    kinds = set()
    for history in range(20):
        situation = history_situation(history)
        utilities = {situation.utility(situation.truth, seed) for seed in range(20)}
        came = bool(situation.mechanism_at_turn().running)
        # If it came, whether it still runs in round 3 is open; if not, the node is free for certain.
        assert utilities == ({0.0, 5.0} if came else {5.0})
        kinds.add(came)
        assert len(situation.stage.worlds(10)) == (2 if came else 1)
    assert kinds == {False, True}
    assert {len(history_situation(None).stage.worlds(10))} == {3}


def test_what_happened_counts_before_the_owners_turn_only():
    base = history_situation(5)
    law = base.others[0].law
    came = Other("other-1", law, Fate(1, 99, None))
    never = Other("other-1", law, Fate(None, 1, None))
    for other, utilities in ((came, {0.0, 5.0}), (never, {5.0})):
        situation = Situation(base.factory, base.truth, [other], capacity=1, horizon=9, max_delay=8, history=5)
        assert {situation.utility(situation.truth, seed) for seed in range(20)} == utilities


def test_the_history_of_a_scenario_is_its_run(tmp_path):
    """At the owner's turn the mechanism is as in the run: the plan of the truth is the one of the run."""
    scenario = {
        "name": "small",
        "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 15, "birth_rounds": 40},
        "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 50}, "epsilon": -0.3},
    }
    from marketsched.config.scenario import Scenario

    rng = np.random.default_rng(np.random.SeedSequence(7))
    market = Market(Scenario.of(scenario).setup(rng))
    jobs = market.setup.jobs
    plans = {}
    submit = market.mechanism.submit

    def noted(name, sow):
        plans[name] = submit(name, sow)
        return plans[name]

    market.mechanism.submit = noted
    market.run()
    for place in range(0, len(jobs), 4):
        (situation,) = situations_of(scenario, [place], 7)
        assert situation.name == jobs[place].name
        mechanism = situation.mechanism_at_turn()
        assert mechanism.submit(situation.name, situation.truth) == plans[situation.name]


def test_a_job_of_the_history_that_is_submitted_again_is_there():
    """The other arrives outside its own law in round 1, is dropped, and comes back in round 2, as in the market."""
    sow = StatementOfWork(1, 1, DeadlineValue(9.0, 9), [(2, 3, 1.0)])
    truth = StatementOfWork(3, 1, DeadlineValue(6.0, 6), [(3, 1, 1.0)])
    surprised = Job("late", "ann", sow, 1, 3, 3)
    for resubmit in (False, True):
        situation = Situation(
            FACTORIES["exact"], truth, [surprised], capacity=5, horizon=16, max_delay=9, history=0, resubmit=resubmit
        )
        names = list(situation.stage.at_turn(situation.stage.world(0)).entries)
        assert names == (["late+"] if resubmit else [])


def test_nobody_later_changes_nothing_where_fate_depends_on_earlier_jobs():
    scenario = {
        "name": "small",
        "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 20, "birth_rounds": 60},
        "mechanism": {"epsilon": -0.5, "oracle": {"kind": "monte-carlo", "samples": 20}},
    }
    for place in (3, 11):
        (alone,) = situations_of(scenario, [place], 1, nobody_later=True)
        (crowd,) = situations_of(scenario, [place], 1)
        assert len(alone.others) == place < len(crowd.others)
        assert alone.worth(alone.truth.birth + 1) == crowd.worth(alone.truth.birth + 1)
        # The lotteries are numbered alike, so the same seed is the same world for those who are there.
        assert [alone.utility(alone.truth, k) for k in range(5)] == [crowd.utility(crowd.truth, k) for k in range(5)]


# --- copies -----------------------------------------------------------------------------------------


def test_copies_of_a_market_can_grow():
    """Arrays of a copy do not own their memory: the oracle's paths must find room for more jobs all the same."""

    def market(rng):
        return PostedPriceMechanism(60, 20, PostedPricing([0.0]), MonteCarloOracle(samples=8), rng=rng, **LIMITS)

    others = [StatementOfWork(b, 1, DeadlineValue(5.0, b + 6), [(b + 1, 2, 1.0)]) for b in (1, 2) for _ in range(60)]
    truth = StatementOfWork(2, 1, DeadlineValue(9.0, 9), [(4, 1, 1.0)])
    situation = Situation(market, truth, others, capacity=60, horizon=20, max_delay=9, ahead=0)
    assert situation.utility(truth, 0) == 9.0


def test_a_mechanism_that_cannot_be_pickled_is_played_from_the_start():
    for history in (None, 4):
        plain_one = random_situation(FACTORIES["strict"], 1, history=history)

        def unpicklable(rng):
            mechanism = StrictMechanism(5, 16, max_duration=4)
            mechanism.hook = lambda: None
            return mechanism

        other = random_situation(unpicklable, 1, history=history)
        for seed in range(10):
            assert other.play(other.truth, seed) == plain_one.play(plain_one.truth, seed)
        assert all(turn.market is None for turn in other.stage._turns.values())


# --- errors -----------------------------------------------------------------------------------------


def test_wrong_situations_are_refused():
    truth = StatementOfWork(2, 1, DeadlineValue(9.0, 9), [(4, 1, 1.0)])
    sizes = {"capacity": 5, "horizon": 16, "max_delay": 9}
    strict = FACTORIES["strict"]
    for keywords, message in (
        ({"capacity": 0}, "capacity = 0"),
        ({"history": -1}, "history = -1"),
        ({"ahead": 1}, r"ahead = 1: expected a whole number in \[0, 0\]"),
        ({"others": [Other("owner", StatementLaw.of(truth))]}, "two jobs are named 'owner'"),
        ({"horizon": 17}, "horizon = 17: expected at most the mechanism's last round 16"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            Situation(strict, truth, **{**sizes, **keywords}).check(truth)
    refused(lambda: situations_of("synthetic-pipelines", ["nobody"]), "job 'nobody' is unknown", error=UnknownNameError)


@pytest.mark.slow
def test_a_turn_that_is_adopted_ends_as_one_that_is_played():
    at_hand = MarketAtHand.of("stochastic-mix", 3)
    names = [job.name for job in at_hand.setup.jobs if job.arrival is not None][5:20:7]
    scenario = Scenario.of("stochastic-mix", kind="market")
    adopting, playing = (situations_of(scenario, names, 3) for _ in range(2))
    kept = {owner.name: owner.kept for owner in at_hand.owners(names)}
    for mine, other in zip(adopting, playing, strict=True):
        mine.stage.adopt(kept[mine.name])
        for factor in (1.0, 0.5):
            report = ScaleValue(factor).report(mine.truth, mine.public)
            conduct = plain(report, mine.truth.concurrency)
            for seed in range(3):
                assert mine.stage.world(seed) == other.stage.world(seed)
                played = mine.stage.play(conduct, mine.stage.world(seed))
                assert played == other.stage.play(conduct, other.stage.world(seed))
