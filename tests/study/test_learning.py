"""Repeated markets, their counterfactuals, learning owners and what is measured of them."""

import numpy as np
import pytest

from bidding_market import HighestBidEachDay, bidding, recurring
from marketsched.agents import Market, MarketSetup, ScaleValue, ShiftDeadline, Truthful
from marketsched.agents.job import Job
from marketsched.agents.learning import Learning, Menu, misreport_menu, value_menu
from marketsched.agents.lies import DelaySubmission
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.study.learning.best_response import BestResponding
from marketsched.study.learning.curves import figures_of, interval_of_mean, learning_curves
from marketsched.study.learning.markets import contested_market, repeated_scenario
from marketsched.study.learning.repeated_market import RepeatedMarket
from marketsched.study.learning.runs import learn
from refusals import refused
from small_mechanisms import HighestBid

MECHANISMS = ["exponential", "posted-price", "pay-as-bid", "vcg", "spot", "first-come"]


# -- days and replays ---------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_day_is_what_a_market_makes_of_it(mechanism):
    market = contested_market(mechanism, n_owners=5, menu=misreport_menu())
    for day in market.schedule(4, np.random.default_rng(3)):
        lies = dict(zip(market.owners, [ScaleValue(0.5), Truthful(), ShiftDeadline(-1), ScaleValue(2.0)], strict=False))
        outcome = market.play(day, market.reports(day, lies)).outcome
        mechanism_of_day = market.factory(np.random.default_rng(day.seed))
        setup = MarketSetup(
            "day",
            day.jobs,
            mechanism_of_day,
            market.capacity,
            market.horizon,
            market.max_delay,
            strategy=lambda job, lies=lies: lies.get(job.owner, Truthful()),
        )
        result = Market(setup).run()
        by_owner = result.jobs.groupby("owner")["utility"].sum()
        assert outcome.utilities == pytest.approx([by_owner[owner] for owner in market.owners])
        assert outcome.welfare == pytest.approx(result.outcome["welfare"])
        assert outcome.revenue == pytest.approx(result.outcome["revenue"])


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_counterfactual_is_the_day_played_with_that_report(mechanism):
    """Also where replays leave out who submits later: under LIFO nothing changes."""
    market = contested_market(mechanism, n_owners=5, menu=misreport_menu((0.3, 0.7)))
    assert market.nobody_later == (mechanism in ("exponential", "posted-price"))
    for day in market.schedule(3, np.random.default_rng(8)):
        chosen = {market.owners[1]: ScaleValue(0.6), market.owners[3]: ScaleValue(0.2)}
        played = market.play(day, market.reports(day, chosen), turns=True)
        for i, owner in enumerate(market.owners):
            expected = [
                market.play(day, market.reports(day, chosen | {owner: strategy})).outcome.utilities[i]
                for strategy in market.menu.strategies
            ]
            assert market.counterfactuals(played, owner) == pytest.approx(expected)


def test_leaving_out_later_owners_is_wrong_where_they_matter():
    """Negative control: pay-as-bid is not LIFO, and the comparison above sees it."""
    market = contested_market("pay-as-bid", n_owners=6)
    wrong = contested_market("pay-as-bid", n_owners=6)
    object.__setattr__(wrong, "nobody_later", True)
    differ = 0
    for day in market.schedule(5, np.random.default_rng(8)):
        played = market.play(day, market.reports(day, {}), turns=True)
        for owner in market.owners:
            differ += not np.allclose(market.counterfactuals(played, owner), wrong.counterfactuals(played, owner))
    assert differ > 0


def test_owners_of_several_jobs_and_of_none():
    def draw(rng):
        law = [(1, 1, 1.0)]
        return [Job(f"j{i}", "ann", StatementOfWork(1, 1, DeadlineValue(4.0, 2), law), 1, 1, 1) for i in range(2)]

    market = RepeatedMarket(
        "two jobs", HighestBidEachDay("first"), draw, ("ann", "bob"), capacity=1, horizon=1, max_delay=2,
        menu=value_menu((0.5,)),
    )  # fmt: skip
    (day,) = market.schedule(1, np.random.default_rng(0))
    played = market.play(day, market.reports(day, {}), turns=True)
    assert played.outcome.utilities.tolist() == [0.0, 0.0]
    assert market.counterfactuals(played, "ann").tolist() == [2.0, 0.0]  # both jobs are told to be worth 2
    assert market.counterfactuals(played, "bob").tolist() == [0.0, 0.0]


def test_schedules_are_the_same_days_under_all_mechanisms_and_lengths():
    first = list(contested_market("vcg").schedule(6, np.random.default_rng(5)))
    second = list(contested_market("spot").schedule(9, np.random.default_rng(5)))
    assert [day.jobs for day in first] == [day.jobs for day in second[:6]]
    same = list(contested_market("vcg", days=1).schedule(4, np.random.default_rng(5)))
    assert len({id(day) for day in same}) == 1
    few = list(contested_market("vcg", days=3).schedule(60, np.random.default_rng(5)))
    assert {day.number for day in few} == {0, 1, 2}


# -- learning -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
def test_two_bidders_learn_what_the_price_rule_makes_best():
    """Second price: the truth. First price: half the value wins as often as anything and pays least."""
    second = learn(bidding("second"), episodes=400, seed=1, bound_every=None)
    late = second.plays[second.plays.episode > 300]
    assert late.truth_probability.mean() > 0.9
    first = learn(bidding("first"), episodes=400, seed=1, bound_every=None)
    late = first.plays[first.plays.episode > 300]
    assert late.truth_probability.mean() < 0.02 and late.factor.mean() < 0.7


@pytest.mark.slow
def test_the_regret_of_hedge_in_a_market_is_within_its_theorem():
    """Its bound is on what it expects to earn; the realised play adds noise, here by 4 standard deviations at most."""
    market = bidding("first")
    rule = [lambda rng: Learning(market.menu, "hedge", rng=rng, low=-10, high=10, horizon=300)] * 2
    run = learn(market, rule, episodes=300, seed=2, bound_every=None)
    bound = 20 * np.sqrt(300 * np.log(4) / 2)
    noise = 4 * 10 * np.sqrt(300)
    assert run.gains.sum(axis=0).max() <= bound + noise
    assert run.equilibrium_distance() == pytest.approx(max(0.0, run.gains.mean(axis=0).max()))


def test_gains_of_fixed_play_are_counted_by_hand():
    """Both tell the truth at a first price: the one who wins gains what it shades, while it still wins."""
    market = bidding("first", menu=Menu({"half": ScaleValue(0.5)}))
    assert market.menu.names == ("truth", "half")
    run = learn(market, "truthful", episodes=30, seed=4, bound_every=None)
    expected = np.zeros((2, 2))
    for day in market.schedule(30, np.random.default_rng([4, 0])):
        ann, bob = (job.truth.value.highest for job in day.jobs)
        expected[0, 1] += ann / 2 if ann / 2 >= bob else 0.0
        expected[1, 1] += bob / 2 if bob / 2 > ann else 0.0
    assert run.gains.sum(axis=0) == pytest.approx(expected)
    table = run.average_gains()
    assert table["gain"].tolist() == pytest.approx((expected / 30).ravel().tolist())
    assert run.equilibrium_distance() == pytest.approx(expected.max() / 30)


@pytest.mark.slow
def test_tables_fit_together_and_are_reproducible():
    market = contested_market("vcg", n_owners=4)
    seen = []
    run = learn(
        market, "exp3", episodes=20, seed=3, measure_every=5, bound_every=10, progress=lambda *a: seen.append(a)
    )
    again = learn(market, "exp3", episodes=20, seed=3, measure_every=5, bound_every=10)
    assert run.plays.equals(again.plays) and run.episodes.equals(again.episodes)
    assert not run.plays.equals(learn(market, "exp3", episodes=20, seed=4).plays)
    assert seen[-1] == (20, 20) and len(run.plays) == 80 and run.measured.tolist() == [5, 10, 15, 20]
    per_day = run.plays.groupby("episode")["utility"].sum().to_numpy()
    assert per_day == pytest.approx((run.episodes.welfare - run.episodes.revenue).to_numpy())
    looked = run.episodes.dropna()
    assert looked.episode.tolist() == [10, 20]
    assert (looked.welfare <= looked.bound + 1e-9).all() and (looked.bound_low <= looked.bound).all()
    assert (looked.truthful_welfare <= looked.bound + 1e-9).all()
    assert set(run.plays.choice) <= set(market.menu.names)


def test_measuring_more_changes_nothing_that_is_played():
    market = contested_market("vcg", n_owners=4)
    seldom = learn(market, "ucb1", episodes=12, measure_every=12, bound_every=None)
    often = learn(market, "ucb", episodes=12, measure_every=1, bound_every=3)  # its other name
    assert seldom.plays.equals(often.plays)


def test_owners_may_differ():
    market = contested_market("pay-as-bid", n_owners=4)
    rules = {"owner-1": "adahedge", "owner-2": ScaleValue(0.5), "owner-3": "best-responding"}
    run = learn(market, rules, episodes=4, bound_every=None)
    assert run.plays.groupby("owner")["rule"].first().tolist() == [
        "adahedge",
        "ScaleValue(f=0.5)",
        "best-responding",
        "truthful",
    ]
    assert (run.plays[run.plays.owner == "owner-2"].factor == 0.5).all()
    assert (run.plays[run.plays.owner == "owner-4"].choice == "truth").all()


def test_a_best_responder_finds_the_lie_and_under_the_second_price_none():
    """Against a truthful rival of the same day, the best lie at a first price is one that still wins."""
    minds = {}

    def mind(rng):
        minds.setdefault("last", []).append(BestResponding(every=5, max_plays=400, rng=rng))
        return minds["last"][-1]

    run = learn(bidding("first"), {"ann": mind}, episodes=20, seed=6, bound_every=None)
    (ann,) = minds.pop("last")
    assert [days for days, _ in ann.found] == [0, 5, 10, 15]
    found = [deviation for _, deviation in ann.found if deviation is not None]
    assert found and all(d.confirmed and d.gain_low > 0 for d in found)
    assert (run.plays[run.plays.owner == "ann"].factor < 1).any()
    learn(bidding("second"), {"ann": mind}, episodes=20, seed=6, bound_every=None)
    assert all(deviation is None for _, deviation in minds["last"][0].found)


def test_an_interrupted_run_keeps_what_was_played():
    def stop(done, of):
        if done == 7:
            raise KeyboardInterrupt

    market = bidding("first")
    run = learn(market, episodes=50, bound_every=None, progress=stop, keep_interrupted=True)
    assert (
        len(run.episodes) == 7 and len(run.plays) == 14 and run.gains.shape == (7, 2, 4) and run.episodes_planned == 50
    )
    with pytest.raises(KeyboardInterrupt):
        learn(market, episodes=50, bound_every=None, progress=stop)


def test_a_scenario_can_be_repeated():
    market = repeated_scenario(recurring(), menu=value_menu((0.5,)), days=2)
    assert market.owners == ("ann",) and market.public.max_value == 4
    days = list(market.schedule(3, np.random.default_rng(0)))
    assert {day.number for day in days} <= {0, 1} and len(days[0].jobs) == 12
    played = market.play(days[0], market.reports(days[0], {}), turns=True)
    assert played.outcome.welfare == played.outcome.revenue == 48
    assert market.counterfactuals(played, "ann").tolist() == [24.0, 0.0]
    run = learn(market, "adahedge", episodes=3, bound_every=1)  # 12 jobs a day: more than max_value can be earned
    assert run.episodes.bound.tolist() == pytest.approx([48.0] * 3) and run.plays.utility.max() <= 24


# -- in one market ------------------------------------------------------------------------------


def many_jobs(n=60):
    return [
        Job(f"{owner}-{t}", owner, StatementOfWork(t, 1, DeadlineValue(8.0, t + 1), [(t, 1, 1.0)]), t, 1, 1)
        for t in range(1, n + 1)
        for owner in ("ann", "bob")
    ]


def test_owners_learn_inside_one_market_from_what_they_earned():
    jobs = many_jobs()
    ann = Learning(value_menu((0.5,)), "ucb1", rng=np.random.default_rng(0))
    mechanism = HighestBid("first", horizon=60)
    setup = MarketSetup(
        "m", jobs, mechanism, 1, 60, 3, strategy=lambda job: ann.next_job() if job.owner == "ann" else ScaleValue(0.25)
    )
    result = Market(setup).run()
    earned = result.jobs[result.jobs.owner == "ann"].utility.tolist()
    assert [utility for _, utility in ann.past] == earned
    assert {name for name, _ in ann.past} == {"value x 0.5", "truth"}
    told = [0.0 if name == "truth" else 4.0 for name, _ in ann.past]  # both beat bob's 2, and pay what they say
    assert told == earned and np.mean(earned) > 2.0


def test_a_scenario_file_can_ask_for_learning_owners():
    data = recurring(owners={"misreporting": 1, "strategy": {"kind": "learning", "learner": "ucb1"}})
    scenario = Scenario.from_dict(data)
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    result = Market(scenario, 3).run()
    paid = (result.jobs.payment / 4).round(6).tolist()
    assert sorted(paid[:5]) == [0.2, 0.4, 0.6, 0.8, 1.0]  # each is tried once, first
    assert result.jobs.payment.equals(Market(scenario, 3).run().jobs.payment)
    bad = data | {"owners": {"misreporting": 1, "strategy": {"kind": "learning", "learner": "hedge"}}}
    refused(lambda: Scenario.from_dict(bad), place="owners.strategy.learner", seen="hedge", error=InvalidParameterError)


# -- what is wrong is said ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Menu({"truth": ScaleValue(0.5)}), InvalidParameterError, "expected Truthful"),
        (lambda: Menu({"late": DelaySubmission(2)}), InvalidParameterError, "reports at birth"),
        (lambda: Menu({"none": 3}), InvalidParameterError, "menu 'none' = 3"),
        (lambda: learn(bidding("first"), "clever"), UnknownNameError, "rule 'clever' is unknown"),
        (lambda: learn(bidding("first"), {"eve": "hedge"}), InvalidParameterError, "rules are given for 'eve'"),
        (lambda: learn(bidding("first"), ["hedge"]), InvalidParameterError, "1 rules for 2 owners"),
        (lambda: learn(bidding("first"), DelaySubmission(1), episodes=1), InvalidParameterError, "submits late"),
        (lambda: learning_curves(seeds=[1]), InvalidParameterError, "at least two"),
        (lambda: learning_curves(episodes=20, measure_every=10), InvalidParameterError, "expected at most 5"),
        (lambda: interval_of_mean([1.0]), InvalidParameterError, "at least two"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_full_information_is_refused_in_a_market():
    setup = MarketSetup("m", many_jobs(2), HighestBid("first"), 1, 3, 3)
    ann = Learning(value_menu(), "hedge", rng=np.random.default_rng(0))
    with pytest.raises(InvalidParameterError, match="expected exp3 or ucb1, or a repeated market"):
        ann.next_job().report(setup.jobs[0].truth, setup.public)


# -- over seeds ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_curves_and_figure_over_seeds():
    from marketsched.results.learning_kind import learning_figure

    markets = {"first price": bidding("first"), "second price": bidding("second")}
    told = []
    result = learning_curves(
        markets,
        ("adahedge", "ucb1"),
        episodes=24,
        seeds=(1, 2, 3),
        bound_every=3,
        window=5,
        progress=lambda *a: told.append(a),
    )
    assert told[-1][1:] == (12, 12) and len(result.runs) == 12
    assert result.curves.episode.unique().tolist() == [5, 10, 15, 20, 24]
    row = result.summary.set_index(["mechanism", "rule", "figure"]).loc[("first price", "ucb1", "welfare_share")]
    own = result.runs[(result.runs.mechanism == "first price") & (result.runs.rule == "ucb1")].welfare_share
    assert row["mean"] == pytest.approx(own.mean()) and row.low <= row["mean"] <= row.high and row.n_seeds == 3
    assert (result.runs.welfare_share <= 1 + 1e-9).all()
    figure = learning_figure(result)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "reported value / true value" and len(titles) == 4


def test_figures_of_a_run_are_those_of_its_tables():
    run = learn(bidding("first"), episodes=16, seed=1, bound_every=1)
    figures = figures_of(run)
    late = run.episodes[run.episodes.episode > 12]
    assert figures["factor"] == pytest.approx(late.factor.mean())
    assert figures["welfare_share"] == pytest.approx(late.welfare.sum() / late.bound.sum())
    assert figures["distance"] == pytest.approx(max(0.0, run.gains[12:].mean(axis=0).max()))
