"""The market at hand: what is fixed is fixed, what gains is exact, and luck is told from a lie that pays."""

import itertools

import numpy as np
import pytest

from marketsched import Scenario, run
from marketsched.agents.conduct import plain
from marketsched.agents.job import Job
from marketsched.agents.lies import ScaleDuration, ScaleValue
from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.screened import SCREENED
from marketsched.truthfulness.searches.screening import Screening, drawn_owners, over_law
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

SIZES = {"capacity": 3, "horizon": 20, "max_delay": 15}
LIMITS = {"max_concurrency": 2, "max_duration": 6, "max_value": 10.0}


def jobs(seed, n=12, revealed=True):
    """Return jobs of an uncertain duration, each with what really happens to it."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        birth = 1 + i // 3
        value, last = float(rng.uniform(1, 10)), birth + int(rng.integers(4, 9))
        points = [(birth, d, p, d if revealed else None) for d, p in ((1, 0.5), (3, 0.3), (5, 0.2))]
        truth = StatementOfWork(birth, int(rng.integers(1, 3)), DeadlineValue(value, last), points)
        duration = int(rng.choice([1, 3, 5], p=[0.5, 0.3, 0.2]))
        found.append(Job(f"job {i}", f"owner {i % 4}", truth, birth, duration, duration if revealed else None))
    return found


def built(name, **parameters):
    return lambda rng: get_mechanism(name, **{k: SIZES[k] for k in SIZES}, **LIMITS, **parameters, rng=rng)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", ["first-come", "pay-as-bid", "bid-price", "spot"])
@pytest.mark.parametrize("revealed", [True, False])
def test_every_lie_ends_as_in_a_market_played_whole(name, revealed):
    """An independent way to the same figure: the owner's job with the false report in a fresh run of all jobs."""
    rates = {"price": 0.3} if name == "first-come" else {}
    given = jobs(3, revealed=revealed)
    market = MarketAtHand(built(name, **rates), given, **SIZES, seed=5)
    for owner in market.owners([job.name for job in given]):
        assert owner.truthful.utility == pytest.approx(market.outcomes[owner.name].utility)
        for lie in (ScaleValue(0.5), ScaleDuration(1.5)):
            report = lie.report(owner.truth, owner.public)
            played = owner.play(plain(report, owner.truth.concurrency))
            other = [
                Job(j.name, j.owner, report if j.name == owner.name else j.truth, j.arrival, j.duration, j.signal)
                for j in given
            ]
            whole = MarketAtHand(built(name, **rates), other, **SIZES, seed=5).outcomes[owner.name]
            assert (played.completion, played.payment) == (whole.completion, pytest.approx(whole.payment))


def test_the_market_at_hand_is_that_of_run():
    scenario = Scenario.of("stochastic-mix").with_mechanism("bid-price")
    market, table = MarketAtHand.of(scenario, 4), run(scenario, seed=4).jobs.set_index("name")
    for name in list(market.outcomes)[::37]:
        assert market.outcomes[name].payment == pytest.approx(table.loc[name, "payment"])


def test_the_mean_over_the_own_law_is_the_weighted_mean_of_fixed_fates():
    given = jobs(1, revealed=False)
    market = MarketAtHand(built("pay-as-bid"), given, **SIZES)
    (owner,) = market.owners(["job 4"])
    report = ScaleValue(0.5).report(owner.truth, owner.public)
    by_hand = 0.0
    for duration, share in ((1, 0.5), (3, 0.3), (5, 0.2)):
        other = [Job(j.name, j.owner, j.truth, j.arrival, j.duration, j.signal) for j in given]
        other[4] = Job("job 4", other[4].owner, other[4].truth, other[4].arrival, duration)
        (alike,) = MarketAtHand(built("pay-as-bid"), other, **SIZES).owners(["job 4"])
        by_hand += share * (alike.play(plain(report, owner.truth.concurrency)).utility - alike.truthful.utility)
    assert over_law(owner, plain(report, owner.truth.concurrency))[0] == pytest.approx(by_hand)


def screened(name, given, plays=2000, **parameters):
    screening = Screening(MarketAtHand(built(name, **parameters), given, **SIZES), Budget(plays, None), lambda _: None)
    screening.screen(0, plays)
    screening.own_laws(screening.found.paying)
    return screening.found


def over_their_laws(found):
    return [gain for gain in found.checked if (gain.own_law or 0.0) > 0 and not gain.drew]


@pytest.mark.long
@pytest.mark.slow
def test_luck_under_hidden_durations_is_no_lie_that_pays():
    """First come at a flat price, far from the horizon: some reports gain in hindsight, none over the own law."""
    going_on, stopped = (
        [screened("first-come", jobs(seed, revealed=False), price=0.7, **rule) for seed in range(8)]
        for rule in ({"stop_at_deadline": False}, {"stop_at_loss": True})
    )
    assert all(sum(found.gainers for found in rule) > 0 for rule in (going_on, stopped))
    assert not any(over_their_laws(found) for found in (*going_on, *stopped))
    assert over_their_laws(screened("pay-as-bid", jobs(0, revealed=False)))


def test_owners_are_drawn_among_those_who_pay():
    market = MarketAtHand(built("pay-as-bid"), jobs(0), **SIZES)
    chosen = drawn_owners(market, 6, 0)
    assert len(set(chosen)) == 6
    assert sum(market.outcomes[name].payment > 0 for name in chosen) >= 3


def test_lies_are_played_lie_by_lie():
    found = screened("pay-as-bid", jobs(0), plays=20)
    order = [SCREENED.index(g.misreport) for g in found.gains]
    assert order == sorted(order)
    assert len(found.owners) == 4
    assert found.cut


def test_what_does_not_pickle_is_played_from_its_beginning():
    class Local(PayAsBid):
        pass

    given = jobs(0, n=6)

    def build(rng):
        return Local(SIZES["capacity"], SIZES["horizon"], max_delay=SIZES["max_delay"], **LIMITS)

    pairs = zip(
        MarketAtHand(build, given, **SIZES).owners([j.name for j in given]),
        MarketAtHand(built("pay-as-bid"), given, **SIZES).owners([j.name for j in given]),
        strict=True,
    )
    for local, own in itertools.islice(pairs, 6):
        report = ScaleValue(0.5).report(own.truth, own.public)
        assert local.kept is None
        assert local.play(plain(report, 2)).utility == own.play(plain(report, 2)).utility


def test_state_outside_of_the_mechanism_is_named():
    seen = []

    class Outside(PayAsBid):
        def charge(self, x):
            seen.append(x.job)
            return float(len(seen))

    market = MarketAtHand(
        lambda rng: Outside(SIZES["capacity"], SIZES["horizon"], max_delay=SIZES["max_delay"], **LIMITS),
        jobs(0),
        **SIZES,
    )
    screening = Screening(market, Budget(100, None), lambda _: None)
    screening.screen(0, 100)
    assert "keeps state outside of itself" in next(iter(screening.found.truth_fails.values()))
