"""Learners keep what their theorems promise, on utilities chosen against them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from draws import many
from marketsched.agents.learners import LEARNERS, AdaHedge, Draw, Exp3, Hedge, Ucb1, make_learner
from marketsched.agents.learning import Learning, value_menu
from marketsched.agents.lies import PublicInformation
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from refusals import refused

NOTHING = Draw(0, 1.0)


def expected_regret(learner, utilities):
    """Return the best action's sum less the expected utility of the learner's own probabilities."""
    earned = 0.0
    for row in utilities:
        earned += float(learner.probabilities @ row)
        learner.learn(NOTHING, row)
    return float(np.sum(utilities, axis=0).max()) - earned


tables = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.lists(st.floats(-3, 5), min_size=n, max_size=n), min_size=1, max_size=60)
)


@settings(deadline=None, max_examples=many(80))
@given(tables, st.booleans(), st.sampled_from([Hedge, AdaHedge]))
def test_full_information_regret_is_within_the_theorem(rows, known, kind):
    utilities = np.array(rows)
    horizon = len(utilities) if known else None
    learner = kind(utilities.shape[1], low=-3, high=5, horizon=horizon)
    regret = expected_regret(learner, utilities)
    assert regret <= learner.regret_bound(len(utilities)) + 1e-9


@pytest.mark.parametrize("kind", [Hedge, AdaHedge])
@pytest.mark.parametrize("known", [True, False])
def test_full_information_regret_against_one_who_looks(kind, known):
    """The adversary sees the probabilities and pays the action that is least likely."""
    T, n = 400, 4
    learner = kind(n, horizon=T if known else None)
    total, earned = np.zeros(n), 0.0
    for _ in range(T):
        p = learner.probabilities
        row = np.zeros(n)
        row[np.argmin(p)] = 1.0
        earned += float(p @ row)
        total += row
        learner.learn(NOTHING, row)
    assert 0 < total.max() - earned <= learner.regret_bound(T)


def test_a_learner_that_follows_the_leader_breaks_the_bound():
    """Negative control: the same adversary makes Follow the Leader lose in proportion to T."""
    T = 400
    total, earned = np.array([0.5, 0.0]), 0.0
    for _ in range(T):
        leader = int(np.argmax(total))
        row = np.zeros(2)
        row[1 - leader] = 1.0
        earned += row[leader]
        total += row
    assert total.max() - earned > Hedge(2, horizon=T).regret_bound(T)


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_expected_regret_of_exp3_is_within_the_theorem(known):
    """Utilities that were fixed beforehand, one action a little better. 99 % interval over 100 runs."""
    T, n = 400, 3
    utilities = (np.random.default_rng(4).random((T, n)) < [0.5, 0.5, 0.7]).astype(float)
    best, rng, regrets = utilities.sum(axis=0).max(), np.random.default_rng(5), []
    for _ in range(100):
        learner, earned = Exp3(n, horizon=T if known else None), 0.0
        for row in utilities:
            draw = learner.choose(rng)
            earned += row[draw.action]
            learner.learn(draw, row[draw.action])
        regrets.append(best - earned)
    reach = stats.t.ppf(0.995, len(regrets) - 1) * stats.sem(regrets)
    assert np.mean(regrets) + reach <= learner.regret_bound(T)
    assert np.mean(regrets) - reach > 0  # the sequence is not easy


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_draws_follow_the_probabilities(name):
    learner, rng = make_learner(name, 3), np.random.default_rng(2)
    for utility in (0.9, 0.2, 0.6, 0.1):
        draw = learner.choose(rng)
        learner.learn(draw, [utility, 0.5, 0.1] if learner.sees == "all" else utility)
    p, draws = learner.probabilities, [learner.choose(rng) for _ in range(3000)]
    assert p.sum() == pytest.approx(1)
    assert all(draw.probability == pytest.approx(p[draw.action]) for draw in draws)
    counts = np.bincount([draw.action for draw in draws], minlength=3)
    live = p > 0
    assert not counts[~live].any()
    assert live.sum() == 1 or stats.chisquare(counts[live], 3000 * p[live]).pvalue > 1e-4


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_one_action_and_equal_utilities_are_no_trouble(name):
    for n in (1, 3):
        learner, rng = make_learner(name, n, low=-1, high=1), np.random.default_rng(0)
        for _ in range(50):
            draw = learner.choose(rng)
            learner.learn(draw, np.zeros(n) if learner.sees == "all" else 0.0)
        assert np.isfinite(learner.probabilities).all() and learner.probabilities.sum() == pytest.approx(1)


def weights(exponents):
    """Return probabilities in proportion to exp of these numbers; of inf alone, equal ones."""
    top = max(exponents)
    parts = [1.0 * (x == top) if math.isinf(top) else math.exp(x - top) for x in exponents]
    return [part / sum(parts) for part in parts]


def by_formula(name, low, high, horizon, draws, seen):
    """Return the probabilities after these rounds, by the formulas of the four papers and sums written out."""
    n, t, spread = len(seen[0]), len(draws), high - low
    sums = [sum(row[k] for row in seen) for k in range(n)]
    if name == "hedge":
        return weights([math.sqrt(8 * math.log(n) / (horizon or t + 1)) / spread * x for x in sums])
    if name == "exp3":
        rate = math.sqrt(2 * math.log(n) / (n * horizon)) if horizon else math.sqrt(math.log(n) / (n * (t + 1)))
        lost = [
            sum((high - row[k]) / spread / d.probability for d, row in zip(draws, seen, strict=True) if d.action == k)
            for k in range(n)
        ]
        return weights([-rate * x for x in lost])
    if name == "ucb1":
        of = [[(row[k] - low) / spread for d, row in zip(draws, seen, strict=True) if d.action == k] for k in range(n)]
        if not all(of):
            return weights([0.0 if each else math.inf for each in of])
        index = [sum(each) / len(each) + math.sqrt(2 * math.log(t) / len(each)) for each in of]
        return [(x == max(index)) / sum(y == max(index) for y in index) for x in index]
    gap, earned = 0.0, [0.0] * n
    for row in seen:
        if gap == 0.0:
            p, mixed = weights([math.inf if x == max(earned) else 0.0 for x in earned]), None
        else:
            rate = math.log(n) / gap
            p = weights([rate * x for x in earned])
            mixed = math.log(sum(q * math.exp(rate * x) for q, x in zip(p, row, strict=True))) / rate
        if mixed is None:
            mixed = max(x for q, x in zip(p, row, strict=True) if q)
        gap += mixed - sum(q * x for q, x in zip(p, row, strict=True))
        earned = [x + y for x, y in zip(earned, row, strict=True)]
    return weights([math.log(n) / gap * x if gap else math.inf if x == max(earned) else 0.0 for x in earned])


@pytest.mark.parametrize("name", sorted(LEARNERS))
@pytest.mark.parametrize("horizon", [None, 40])
def test_probabilities_are_those_of_the_formulas(name, horizon):
    rng, low, high = np.random.default_rng(6), -1.0, 3.0
    learner, draws, seen = make_learner(name, 4, low=low, high=high, horizon=horizon), [], []
    for _ in range(25):
        draws.append(learner.choose(rng))
        seen.append(rng.choice([-1.0, 0.25, 1.0, 3.0], 4).tolist())
        learner.learn(draws[-1], seen[-1] if learner.sees == "all" else seen[-1][draws[-1].action])
        expected = by_formula(name, low, high, horizon, draws, seen)
        assert learner.probabilities.tolist() == pytest.approx(expected, abs=1e-9)
        assert draws[-1].action in range(4) and learner.rounds == len(draws)


def test_bounds_on_regret_are_numbers_of_the_theorems():
    """Four actions, utilities in [-1, 1], a hundred rounds; ln 4 = 1.386294."""
    sizes = {"low": -1.0, "high": 1.0}
    adahedge = AdaHedge(4)
    adahedge.learn(NOTHING, [0.25, 0.5, 0.0, 0.25])
    found = [
        Hedge(4, horizon=100, **sizes).regret_bound(100), Hedge(4, **sizes).regret_bound(100),
        Exp3(4, horizon=100, **sizes).regret_bound(100), Exp3(4, **sizes).regret_bound(100),
        adahedge.regret_bound(100), Ucb1(3, low=-2, high=2).pulls_bound(1000, 1.0),
    ]  # fmt: skip
    assert found == pytest.approx([16.6511, 34.1347, 66.6044, 94.1929, 7.81124, 888.4825], rel=1e-5)
    for kind in (Hedge, Exp3):  # with T known nothing is promised beyond, and as much before
        assert kind(4, horizon=100).regret_bound(101) == math.inf
        assert kind(4, horizon=100).regret_bound(7) == kind(4, horizon=100).regret_bound(100)
    assert Exp3(1, horizon=9).regret_bound(9) == 0.0 and Ucb1(3).regret_bound(5) == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hedge(2, low=1, high=1), "expected low < high"),
        (lambda: Hedge(2).learn(NOTHING, 0.5), r"shape \(\): expected \(2,\)"),
        (lambda: Exp3(2).learn(NOTHING, [0.5, 0.5]), r"shape \(2,\): expected \(\)"),
        (lambda: Exp3(2).learn(NOTHING, 1.5), r"utility 1.5: expected numbers in \[0, 1\], the range low and high"),
        (lambda: Hedge(2).learn(NOTHING, [0.0, math.nan]), "utility"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make()


def test_nothing_is_learned_from_a_refused_utility():
    learner = Exp3(2)
    before = learner.probabilities
    with pytest.raises(InvalidParameterError):
        learner.learn(Draw(0, 0.5), -7.0)
    assert (learner.probabilities == before).all() and learner.rounds == 0


def test_unknown_learners_are_refused():
    with pytest.raises(UnknownNameError, match="learner 'hodge' is unknown: expected one of adahedge, exp3"):
        make_learner("hodge", 2)


def test_adahedge_asks_for_no_range():
    learner = AdaHedge(2)
    learner.learn(NOTHING, [-700.0, 300.0])
    # Half and half has lost 500 to the better one, so the rate is ln 2 / 500, and weights are 1 to exp(2 ln 2).
    assert learner.probabilities == pytest.approx([0.2, 0.8]) and learner.spread == 1000
    refused(lambda: learner.learn(NOTHING, [0.0, math.inf]), "expected finite numbers", error=InvalidParameterError)


@pytest.mark.parametrize(
    ("given", "max_value", "expected"),
    [
        ({}, 10.0, (-10.0, 10.0)),
        ({"low": -1.0}, 10.0, (-1.0, 10.0)),
        ({"high": 0.0}, 10.0, (-10.0, 0.0)),  # 0 is a number like others
        ({"low": -1.0, "high": 3.0}, None, (-1.0, 3.0)),
        ({"low": -1.0}, None, None),
        ({"high": 3.0}, None, None),
        ({}, None, None),
    ],
)
def test_utilities_are_in_the_range_that_is_given_or_that_of_values(given, max_value, expected):
    """An owner gains at most the highest value, and loses at most that: it pays no more than it reports."""
    owner = Learning(value_menu((0.5,)), "exp3", rng=0, **given)
    public = PublicInformation(5, 20, 10, max_value=max_value)
    if expected is None:
        refused(lambda: owner.learner(public), "no max_value", error=InvalidParameterError)
        return
    learner = owner.learner(public)
    assert (learner.low, learner.high) == expected and owner.learner(public) is learner
