"""The best mechanism by linear program: published optima, known formulas, and a certificate that can fail."""

from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest

from draws import many
from marketsched.finite import audit_finite, check_certificate, design
from marketsched.finite.designing import _program, _solved
from marketsched.finite.program import Programmer
from marketsched.mechanisms import InvalidParameterError, SolverError, TooLargeError
from marketsched.mechanisms.finite.prior import prior_of

FREE = {"objective": "welfare", "payments": False}
UNIFORM3 = [Fraction(1, 3)] * 3
GOODS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def item(owner, value, winner):
    return value if winner == owner else 0


def additive(owner, values, sold):
    return values[0] * sold[0] + values[1] * sold[1]


def myerson(values, chances, n):
    """Return E[max(0, max_i phi_i)], phi(v_k) = v_k - (v_{k+1} - v_k)(1 - F(v_k)) / f(v_k), by adding up profiles."""
    cumulative = list(accumulate(chances))
    above = [(b - a) * (1 - F) for a, b, F in zip(values, values[1:], cumulative, strict=False)] + [0]
    virtual = [v - step / f for v, step, f in zip(values, above, chances, strict=True)]
    total = Fraction(0)
    for profile in product(range(len(values)), repeat=n):
        chance = Fraction(1)
        for k in profile:
            chance *= chances[k]
        total += chance * max(0, *(virtual[k] for k in profile))
    return total


def is_sound(found, prior, *, incentive="dominant", participation="ex post"):
    """Tell whether a design in fractions keeps what it was asked for, by the audit, which knows of no program."""
    audit = audit_finite(found.mechanism, prior)
    truthful = audit.is_dominant if incentive == "dominant" else audit.is_bayesian
    rational = audit.is_rational if participation == "ex post" else audit.is_interim_rational
    return audit.is_exact and truthful and rational


@pytest.mark.parametrize("incentive", ["dominant", "bayesian"])
@pytest.mark.parametrize(
    ("n", "grid"), [(1, range(6)), (1, range(3, 12)), (2, range(5)), (2, range(0, 16, 2)), (3, range(1, 5))]
)
def test_revenue_is_that_of_myersons_auction_on_uniform_grids(n, grid, incentive):
    values = list(grid)
    participation = "ex post" if incentive == "dominant" else "interim"
    best = design([values] * n, utilities=item, outcomes=n + 1, incentive=incentive, participation=participation)
    expected = myerson(values, [Fraction(1, len(values))] * len(values), n)
    assert best.certificate.is_exact and best.certificate.holds
    assert best.value == best.certificate.bound == expected
    assert audit_finite(best.mechanism, "uniform").expected_revenue == expected
    assert is_sound(best, "uniform", incentive=incentive, participation=participation)


def test_revenue_where_values_are_not_equally_likely():
    regular = [Fraction(2, 5), Fraction(3, 10), Fraction(1, 5), Fraction(1, 10)]
    best = design([[1, 2, 3, 4]] * 2, [regular] * 2, utilities=item, outcomes=3)
    assert best.value == myerson([1, 2, 3, 4], regular, 2)
    # Virtual values 3, -55, 20 fall and rise: the formula without ironing promises what no price brings.
    values, chances = [4, 5, 20], [Fraction(1, 2), Fraction(1, 10), Fraction(2, 5)]
    prices = {4: 4, 5: Fraction(5, 2), 20: 8}
    best = design([values], [chances], utilities=item, outcomes=2)
    assert best.value == max(prices.values()) < myerson(values, chances, 1)


def test_two_goods_worth_0_1_or_2_are_sold_at_2_each_and_3_together():
    """Hart and Nisan (2017): the unique optimum for two i.i.d. uniform goods on {0, 1, 2}, revenue 13/9."""
    types = list(product(range(3), repeat=2))
    best = design([types], utilities=additive, outcomes=GOODS)
    assert best.value == Fraction(13, 9) and best.certificate.is_exact
    menu = {0: 0, 1: 2, 2: 2, 3: 3}  # outcome: price
    for values, chances, paid in zip(types, best.mechanism.lottery, best.mechanism.payments[:, 0], strict=True):
        assert max(chances) == 1  # no lottery
        assert paid == menu[int(np.argmax(chances))]
        assert additive(0, values, GOODS[int(np.argmax(chances))]) - paid >= 0
    assert is_sound(best, "uniform")


def test_two_goods_worth_1_2_or_4_are_sold_by_lotteries():
    """Hart and Reny (2015): half of a good at 1 beside both at 4; no menu of prices alone brings as much."""
    chances = {1: Fraction(1, 6), 2: Fraction(1, 2), 4: Fraction(1, 3)}
    types = list(product(chances, repeat=2))
    prior = [[chances[a] * chances[b] for a, b in types]]
    best = design([types], prior, utilities=additive, outcomes=GOODS)
    assert best.value == Fraction(61, 18) and best.certificate.is_exact and is_sound(best, prior)
    assert list(best.mechanism.lottery[types.index((1, 2))]) == [Fraction(1, 2), Fraction(1, 2), 0, 0]
    without = max(
        sum(
            p * max((additive(0, t, s) - price, price) for s, price in zip(GOODS, (0, *prices), strict=True))[1]
            for t, p in zip(types, prior[0], strict=True)
        )
        for prices in product(range(9), repeat=3)
    )
    assert without == Fraction(10, 3) < best.value


def test_types_that_depend_on_each_other_leave_nothing_to_owners():
    """Cremer and McLean (1988): with correlated types, the seller takes the whole expected surplus."""
    joint = np.array([[Fraction(2, 5), Fraction(1, 10)], [Fraction(1, 10), Fraction(2, 5)]], dtype=object)
    arguments = {"utilities": item, "outcomes": 3, "incentive": "bayesian", "participation": "interim"}
    best = design([[1, 2]] * 2, joint, **arguments)
    assert best.value == Fraction(8, 5) and best.certificate.is_exact  # E[max value] = 1 * 2/5 + 2 * 3/5
    assert is_sound(best, joint, incentive="bayesian", participation="interim")
    apart = design([[1, 2]] * 2, "uniform", **arguments)
    assert apart.value == myerson([1, 2], [Fraction(1, 2)] * 2, 2) < Fraction(7, 4)


def test_welfare_without_payments_and_a_reward_of_ones_own():
    """One owner: it gets what it likes best. Two that disagree: no lottery beats the best of all constant outcomes."""
    alone = design([[0, 1]], objective="welfare", utilities=[[[0, 3], [5, 1]]], payments=False)
    assert alone.value == 4 and alone.mechanism.payments.tolist() == [[0], [0]]
    reward = np.array([[1, 0], [0, 1]])  # against the owner's will: all it can get is a constant
    against = design([[0, 1]], objective=reward, utilities=[[[0, 3], [5, 1]]], payments=False, participation="none")
    assert against.value == Fraction(1, 2)
    paid = design([[0, 1]], objective=reward, utilities=[[[0, 3], [5, 1]]], participation="none")
    assert paid.value == Fraction(1, 2)  # money does not help: the order of preferences is the wrong one


def test_budgets_are_kept_and_cost_something():
    """A seller that values its item at 0 or 4, a buyer at 1 or 5: welfare under each budget."""
    trade = {"utilities": lambda i, v, sold: (-v if i == 0 else v) * sold, "outcomes": [0, 1], "objective": "welfare"}
    values = {}
    for budget in ("any", "no expected deficit", "no deficit", "balanced"):
        best = design([[0, 4], [1, 5]], budget=budget, **trade)
        audit = audit_finite(best.mechanism, "uniform")
        assert is_sound(best, "uniform") and audit.expected_welfare == best.value
        assert audit.has_no_deficit or budget not in ("no deficit", "balanced")
        assert audit.is_balanced or budget != "balanced"
        assert audit.expected_revenue >= 0 or budget == "any"
        values[budget] = best.value
    assert values["any"] == Fraction(7, 4)  # all good trades: 1, 5 and 1 of four profiles
    assert values["any"] >= values["no expected deficit"] >= values["no deficit"] >= values["balanced"]
    assert values["balanced"] < values["any"]  # Myerson and Satterthwaite (1983)


def test_floats_get_a_certificate_in_floating_point():
    rng = np.random.default_rng(6)
    for _ in range(many(12)):
        values = [sorted(rng.uniform(0, 9, 4)) for _ in range(2)]
        prior = [rng.dirichlet(np.ones(4)) for _ in range(2)]
        best = design(values, prior, utilities=item, outcomes=3)
        assert best.certificate.holds and not best.certificate.is_exact
        audit = audit_finite(best.mechanism, prior, tolerance=1e-6)
        assert audit.is_dominant and audit.is_rational
        assert audit.expected_revenue == pytest.approx(best.value, abs=1e-7)


@pytest.mark.parametrize("size", [1e-8, 1e9])
def test_the_unit_of_money_does_not_matter(size):
    values = [[size * v for v in (1.0, 2.5, 3.0)]] * 2
    best = design(values, utilities=item, outcomes=3)
    one = design([[v / size for v in each] for each in values], utilities=item, outcomes=3)
    assert best.certificate.holds and best.value == pytest.approx(one.value * size, rel=1e-6)
    reward = np.arange(27.0).reshape(9, 3)
    rewarded = [design(values, objective=each, utilities=item, outcomes=3).value for each in (reward, reward * size)]
    assert rewarded[1] == pytest.approx(rewarded[0] * size, rel=1e-6)


def test_numbers_too_large_for_the_solver_get_floats():
    best = design([[10**30, 3 * 10**30]], utilities=item, outcomes=2)
    assert best.certificate.holds and not best.certificate.is_exact and best.value == pytest.approx(1.5e30)


@pytest.fixture(scope="module")
def small():
    """The program of one item, two owners with values 0 to 2, and the numbers of its solution."""
    programmer = Programmer(
        tuple(np.array([[v * (k == i) for k in range(3)] for v in range(3)]) for i in range(2)),
        prior_of("uniform", (3, 3)),
        money=True,
    )
    program = _program(programmer, "revenue", "dominant", "ex post", "any")
    solution = _solved(program)
    exact = []
    for numbers in solution:
        read = np.empty(numbers.size, dtype=object)
        read[:] = [Fraction(x).limit_denominator(1000) for x in numbers.tolist()]
        exact.append(read)
    return program, exact, [np.array(numbers, dtype=float) for numbers in exact]


@pytest.mark.parametrize("form", [1, 2], ids=["fractions", "floats"])
def test_a_certificate_fails_where_a_number_is_wrong(small, form):
    program, numbers = small[0], small[form]
    sound = check_certificate(program, *numbers)
    assert (
        sound.holds
        and sound.is_exact == (form == 1)
        and sound.value == pytest.approx(float(myerson([0, 1, 2], UNIFORM3, 2)))
    )
    tiny = Fraction(1, 1000) if form == 1 else 1e-3
    for which, name in enumerate(("primal_violation", "dual_violation", "dual_violation")):
        for sign in (1, -1):
            noticed = 0
            for place in range(numbers[which].size):
                wrong = [each.copy() for each in numbers]
                wrong[which][place] += sign * tiny
                found = check_certificate(program, *wrong)
                noticed += not found.holds
                assert found.holds or getattr(found, name) > 0 or found.value != found.bound
            assert noticed > 0
    for place in range(numbers[1].size):  # a negative multiplier proves nothing, whatever it multiplies
        wrong = [each.copy() for each in numbers]
        wrong[1][place] = -tiny
        assert not check_certificate(program, *wrong).holds
    idle = [each * 0 for each in numbers]
    assert not check_certificate(program, *idle).holds


def test_multipliers_are_given_by_the_name_of_their_rows(small):
    program, (_, at_most, equal), _ = small
    named = check_certificate(program, *small[1]).multipliers
    assert list(named) == [
        "owner 0 gains by no lie", "owner 1 gains by no lie", "owner 0 never loses", "owner 1 never loses",
        "probabilities",
    ]  # fmt: skip
    assert [each.size for each in named.values()] == [18, 18, 9, 9, 9]
    assert [x for each in named.values() for x in each] == [*at_most, *equal]
    assert program.right.size == equal.size


def plain_certificate(program, solution, at_most, equal):
    """Return value, bound and both violations by loops over the entries, in Fractions."""
    rows, begin = [Fraction(0)] * at_most.size, 0
    reduced = [Fraction(-int(c)) for c in program.objective]
    for block in program.at_most:
        for r, c, v in zip(block.rows.tolist(), block.columns.tolist(), block.values.tolist(), strict=True):
            rows[begin + r] += v * solution[c]
            reduced[c] += v * at_most[begin + r]
        begin += block.n_rows
    (block,) = program.equal
    sums = [Fraction(-int(b)) for b in program.right]
    for r, c, v in zip(block.rows.tolist(), block.columns.tolist(), block.values.tolist(), strict=True):
        sums[r] += v * solution[c]
        reduced[c] += v * equal[r]
    n, scale = program.n_probabilities, int(program.scale)
    primal = max(0, *(-x for x in solution[:n]), *rows, *(abs(x) for x in sums))
    dual = max(0, *(-x for x in at_most), *(-x for x in reduced[:n]), *(abs(x) for x in reduced[n:])) / Fraction(scale)
    value = sum(int(c) * x for c, x in zip(program.objective, solution, strict=True)) / scale
    return value, sum(int(b) * x for b, x in zip(program.right, equal, strict=True)) / scale, primal, dual


def test_a_certificate_in_fractions_is_that_of_plain_loops_whatever_the_denominators(small):
    program, numbers, _ = small
    rng = np.random.default_rng(7)
    for size in (10, 10**9, 10**18, 10**25):
        for _ in range(many(8, least=2)):
            noisy = []
            for each in numbers:
                noise = [Fraction(int(k), size + int(rng.integers(9))) for k in rng.integers(-9, 10, each.size)]
                noisy.append(each + np.array(noise, dtype=object))
            found = check_certificate(program, *noisy)
            expected = plain_certificate(program, *noisy)
            assert (found.value, found.bound, found.primal_violation, found.dual_violation) == expected
            assert found.is_exact and not found.holds
    assert plain_certificate(program, *numbers)[2:] == (0, 0)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"objective": "profit"}, InvalidParameterError, "objective = 'profit'"),
        ({"objective": np.ones((2, 5))}, InvalidParameterError, r"objective has shape \(2, 5\)"),
        ({"payments": False}, InvalidParameterError, "objective = 'revenue': expected 'welfare'"),
        ({**FREE, "budget": "balanced"}, InvalidParameterError, "budget = 'balanced'"),
        ({"types": [[]]}, InvalidParameterError, r"types\[0\]"),
        ({"prior": [[1, 1]]}, InvalidParameterError, r"prior\[0\] adds up to 2"),
        ({"participation": "none"}, SolverError, "no best mechanism"),
        ({**FREE, "utilities": lambda *_: -1}, SolverError, "no mechanism meets"),
        ({"types": [range(60)] * 3, "outcomes": 40}, TooLargeError, "a linear program of .* entries"),
    ],
)  # fmt: skip
def test_bad_requests_are_named(changes, error, message):
    arguments = {"types": [[1, 2]], "utilities": item, "outcomes": 2, **changes}
    with pytest.raises(error, match=message):
        design(**arguments)
