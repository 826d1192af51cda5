"""The constants of the theorems: printed figures, exact tails, adaptive worst cases, brute force."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from marketsched.mechanisms import (
    DeadlineValue,
    ExponentialPricing,
    MonteCarloOracle,
    PostedPriceMechanism,
    StatementOfWork,
)
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.posted.guarantees import (
    _admissible_overload,
    _block_failure_tail,
    _chernoff,
    _hidden_truthfulness_gain,
    _simple_overload_probability,
    _sufficient_capacity,
    failure_tail,
    guarantees,
    overload_probability,
    price_ends,
    relaxed_ratio,
    sample_size,
    smallest_capacity,
    smallest_supply,
    stochastic_ratio,
)
from refusals import refused

W5 = {"max_concurrency": 2, "max_duration": 4, "max_value": 10.0, "max_delay": 20}

markets = st.fixed_dictionaries(
    {
        "max_concurrency": st.integers(1, 8),
        "max_duration": st.integers(1, 48),
        "max_value": st.floats(1.0, 1e4),
        "max_delay": st.integers(1, 200),
        "epsilon": st.floats(0.02, 0.4),
    }
)


# -- figures printed in docs/mathematics.md: W5, section 13 and in the scenarios' findings ----------------


def test_w5_overload_probabilities():
    assert f"{overload_probability(1000, 2, 0.2):.4e}" == "1.1774e-05"
    assert f"{_simple_overload_probability(1000, 2, 0.2):.4f}" == "0.0821"
    assert f"{overload_probability(100, 1, 0.4):.4e}" == "2.5502e-05"
    assert f"{failure_tail(overload_probability(1000, 2, 0.2), 20, 0.01):.5f}" == "0.02355"


def test_w5_sample_sizes():
    assert sample_size(0.01, 0.01, max_delay=20, max_duration=4) == 48402
    assert sample_size(0.05, 0.05, max_delay=10, max_duration=4) == 1476


@pytest.mark.parametrize(("epsilon", "smallest"), [(0.1, 8693), (0.2, 1904), (0.3, 754), (0.4, 378)])
def test_w5_smallest_capacity(epsilon, smallest):
    constants = guarantees(**W5, epsilon=epsilon)
    assert constants.smallest_capacity == constants.capacity == smallest
    assert constants.admissible and not guarantees(**W5, epsilon=epsilon, capacity=smallest - 1).admissible


def test_w5_alpha_and_sufficient_capacity():
    constants = guarantees(**W5, epsilon=0.2)
    assert f"{constants.alpha:.3f}" == "23.073"
    assert constants.sufficient_capacity == 8723
    assert constants.nominal_ratio == pytest.approx(4 * math.log(320) / (1 - 2.4 * 0.2))


def test_w5stochastic_ratio():
    assert stochastic_ratio(bundles=20, max_duration=4) == 10.0  # H = 2
    assert stochastic_ratio(bundles=20, max_duration=3) == 10.0
    assert stochastic_ratio(bundles=2 * (5 + 2), max_duration=32) == 16.0  # B = 2 (H + 2)
    assert stochastic_ratio(bundles=10**9, max_duration=32) == pytest.approx(8.0)


def test_ratio_forms():
    assert f"{relaxed_ratio(*price_ends(1, 2, 4.0)):.3f}" == "13.863"  # W4
    assert smallest_supply(1, *price_ends(1, 2, 4.0)) == 5.0  # W4: equality
    assert f"{relaxed_ratio(*price_ends(2, 4, 10.0, kappa=0.25)):.1f}" == "34.2"  # section 13
    assert price_ends(2, 4, 10.0, kappa=0.25) == (0.25 / 16, 40.0)
    calibrated = price_ends(4, 48, 7680.0, floor=0.001, ceiling=20.0)  # 15.2
    assert relaxed_ratio(*calibrated) == pytest.approx(4 * math.log(40_000))


def test_nothing_is_proven_where_a_legal_value_lies_outside_of_the_price_curve():
    """Two values, 1.2 and 1,000: at a ceiling of 1 the first half of the jobs buys all nodes, and 1,000 is lost."""
    sizes = {"max_concurrency": 1, "max_duration": 1, "max_value": 1000.0, "max_delay": 2}
    asked = {**sizes, "epsilon": 0.2, "oracle": "exact"}
    whole = guarantees(**asked)
    assert whole.admissible and whole.ratio < 50
    assert guarantees(**asked, floor=whole.floor, ceiling=whole.ceiling).ratio == whole.ratio
    for ends in ({"ceiling": 1.0}, {"floor": 2 * whole.floor}, {"floor": 0.5, "ceiling": 1.0}):
        found = guarantees(**asked, **ends)
        assert not found.admissible and found.ratio == math.inf
    market = PostedPriceMechanism(
        8,
        2,
        ExponentialPricing(floor=0.5, ceiling=1.0),
        MonteCarloOracle(samples=1),
        epsilon=0.2,
        threshold=0.0,
        **sizes,
    )
    sold = []
    for i in range(16):
        value = 1.2 if i < 8 else 1000.0
        plan = market.submit(i, StatementOfWork(1, 1, DeadlineValue(value, 2), [(1, 1, 1.0)]))
        sold += [value] if plan.starts[0][2] is not None else []
    assert len(sold) >= 6 and sum(sold) < 8 * 1000.0 / 100


# -- Lemma C -----------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.floats(0.02, 0.95), st.integers(1, 5), st.integers(0, 60))
def test_lemma_c_bounds_the_binomial_tail(n, p, width, threshold):
    tail = stats.binom.sf(threshold - 1, n, p)  # Pr[sum of n >= threshold], each 0 or 1
    assert tail <= _chernoff(threshold * width, n * p * width, width) * (1 + 1e-9)


def test_lemma_c_at_its_ends():
    assert _chernoff(5.0, 5.0, 1.0) == _chernoff(4.0, 5.0, 1.0) == 1.0
    assert _chernoff(5.0, 0.0, 1.0) == 0.0
    refused(lambda: _chernoff(5.0, 1.0, 0), place="width", seen=0, error=InvalidParameterError)


# -- the conditions on the capacity ------------------------------------------------------------------------


@given(st.integers(1, 6), st.floats(0.05, 0.9), st.integers(2, 4000))
def test_forms_of_rho_are_ordered_and_fall_with_capacity(c_max, epsilon, capacity):
    capacity = max(capacity, c_max + 1)
    exact = overload_probability(capacity, c_max, epsilon)
    if c_max <= epsilon * capacity / 2:
        middle = math.exp(-((epsilon - c_max / capacity) ** 2) * capacity / (2 * c_max))
        assert exact <= middle * (1 + 1e-9)
        assert middle <= _simple_overload_probability(capacity, c_max, epsilon) * (1 + 1e-9)
    else:
        assert _simple_overload_probability(capacity, c_max, epsilon) == 1.0
    assert overload_probability(capacity + 1, c_max, epsilon) <= exact


@given(st.integers(1, 3), st.floats(1.0, 20.0), st.integers(1, 20), st.floats(0.25, 0.8))
def test_smallest_capacity_is_the_first_that_qualifies(c_max, v_max, delay, epsilon):
    market = (relaxed_ratio(*price_ends(c_max, 2, v_max)), c_max, v_max, delay, epsilon)
    largest = _admissible_overload(*market)
    first = next(c for c in range(c_max + 1, 10**6) if overload_probability(c, c_max, epsilon) <= largest)
    assert smallest_capacity(*market) == first
    enough = _sufficient_capacity(*market)
    assert first <= enough
    assert _simple_overload_probability(enough, c_max, epsilon) <= largest * (1 + 1e-9)


@given(markets, st.sampled_from(["exact", "monte-carlo"]))
def test_admissible_capacity_gives_the_promised_ratio(market, oracle):
    """Steps (a) to (d) of Theorem 4.1 with their actual numbers never do worse than 1 - 2.4 eps."""
    constants = guarantees(**market, oracle=oracle)
    assert constants.admissible and constants.rho <= constants.admissible_rho
    assert constants.supply >= constants.smallest_supply * (1 - 1e-9)
    assert constants.alpha <= constants.ratio <= constants.nominal_ratio * (1 + 1e-9)
    assert constants.truthfulness == pytest.approx(market["epsilon"])  # eps-truthful


def test_levels_of_both_oracles():
    sampled, exact = (guarantees(**W5, epsilon=0.2, oracle=oracle) for oracle in ("monte-carlo", "exact"))
    assert sampled.delta == sampled.gamma == sampled.eta == pytest.approx(0.2 / 80)
    assert sampled.theta == pytest.approx(0.2 / 40)
    assert (exact.gamma, exact.eta, exact.samples, exact.samples_all) == (0.0, 0.0, None, None)
    assert exact.delta == exact.theta == exact.mu == pytest.approx(0.2 / 20)


def test_a_small_market_has_no_proven_ratio():
    constants = guarantees(**W5, epsilon=0.2, capacity=100)
    assert not constants.admissible and constants.ratio == math.inf
    assert constants.failure_tail == constants.block_failure_tail == 1.0


def test_block_of_births_counts_the_longer_window_when_durations_are_hidden():
    assert _block_failure_tail(1e-6, 20, 4, 0.01) == pytest.approx(40e-4)
    assert _block_failure_tail(1e-6, 20, 4, 0.01, revealed=False) == pytest.approx(44e-4)
    assert guarantees(**W5, epsilon=0.2).window == 20
    assert guarantees(**W5, epsilon=0.2, revealed=False).window == 24


def test_hidden_durations_promise_less():
    constants = guarantees(**W5, epsilon=0.2, revealed=False, kappa=0.25)
    assert constants.truthfulness == constants.ratio == constants.nominal_ratio == math.inf
    assert constants.hidden_truthfulness == pytest.approx(2 * 0.0025 / 0.9975 * 10)
    assert f"{constants.alpha:.1f}" == "34.2"


# -- sampling and truthfulness -----------------------------------------------------------------------------


@given(st.floats(0.001, 0.3), st.floats(1e-6, 0.5), st.integers(1, 100), st.integers(1, 20), st.integers(1, 5))
def test_sample_size_is_the_first_that_hoeffding_accepts(gamma, eta, delay, duration, c_max):
    pairs = delay * duration * c_max
    n = sample_size(gamma, eta, delay, duration, c_max)
    assert 2 * pairs * math.exp(-2 * n * gamma**2) <= eta * (1 + 1e-9)
    assert 2 * pairs * math.exp(-2 * (n - 1) * gamma**2) > eta * (1 - 1e-9)


@given(st.data())
def test_hidden_gain_bound_holds_for_every_deviation(data):
    """(8): zero estimates, failures up to delta; one case with random duration, all starts and widths."""
    v_max, delta = 10.0, data.draw(st.sampled_from([0.05, 0.3, 0.7]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    starts, durations, widths = 3, 3, 2
    law = rng.dirichlet(np.full(durations, 0.5))
    value = np.sort(rng.integers(0, 11, starts + durations).astype(float))[::-1]  # by completion
    worth = np.array([[value[s + d] for d in range(durations)] for s in range(starts)])
    price = np.cumsum(np.cumsum(rng.exponential(rng.choice([1.0, 8.0]), (widths, starts, durations)), 2), 0)
    failure = np.minimum(np.cumsum(rng.exponential(delta / 4, (widths, starts, durations)), 0), delta)
    failure = np.maximum.accumulate(failure, 2)
    estimated = ((worth - price) * law).sum(2)
    true = ((1 - failure) * (worth - price) * law).sum(2)
    chosen = int(estimated[0].argmax())
    truthful = true[0, chosen] if estimated[0, chosen] > 0 else 0.0
    assert max(true.max(), 0.0) - truthful <= _hidden_truthfulness_gain(delta, v_max) + 1e-9


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": -0.3}, r"epsilon = -0\.3: expected a number in \(0, 1\)"),
        ({"epsilon": 1.0}, "epsilon"),
        ({"capacity": 2}, r"capacity = 2: expected a whole number >= 3"),
        ({"capacity": 3, "epsilon": 0.4}, r"\(1 - epsilon\) capacity = 1\.8: expected more than max_concurrency = 2"),
        ({"floor": 2.0, "ceiling": 1.0}, r"floor = 2\.0, ceiling = 1\.0"),
        ({"delta": 0.0}, r"delta = 0\.0"),
        ({"gamma": 1.0}, r"gamma = 1\.0"),
    ],
)
def test_bad_parameters_are_named(wrong, message):
    with pytest.raises(InvalidParameterError, match=message):
        guarantees(**{**W5, "epsilon": 0.2, **wrong})


def test_too_few_bundles():
    with pytest.raises(InvalidParameterError, match="bundles = 4: expected more than 4"):
        stochastic_ratio(bundles=4, max_duration=4)
