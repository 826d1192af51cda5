"""The table of mechanisms, and the contract that every entry keeps."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import (
    DeadlineValue,
    EventKind,
    ExactOracle,
    ExponentialPricing,
    InvalidParameterError,
    LinearValue,
    Mechanism,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    UnknownNameError,
    get_mechanism,
    legal,
    mechanism_names,
    register,
    registry,
)
from marketsched.mechanisms.auctions.first_come import FirstCome
from refusals import refused

BUILT_IN = sorted(registry._MARKET["mechanism"])
HORIZON = 10
SIZES = {"capacity": 2, "horizon": HORIZON, "max_concurrency": 1, "max_duration": 3, "max_value": 9.0, "max_delay": 8}
COMMON = {
    **SIZES,
    "epsilon": 0.1,
    "threshold": 0.0,
    "pricing": {"kind": "posted", "prices": [0.5]},
    "oracle": {"kind": "exact"},
    "eviction": "all",
}


def random_jobs(seed, n=8):
    """Return (statement, arrival or None, duration) rows, drawn from their own laws."""
    rng = np.random.default_rng(seed)
    rows = []
    for birth in np.sort(rng.integers(1, 6, n)).tolist():
        value, last = float(rng.integers(1, 9)), birth + int(rng.integers(2, 7))
        curve = DeadlineValue(value, last) if rng.random() < 0.5 else LinearValue(value, birth + 1, 0.5, last)
        cases = [(birth + int(a), int(d)) for a, d in rng.integers((0, 1), (3, 4), (2, 2))]
        sow = StatementOfWork(birth, 1, curve, [(a, d, p) for (a, d), p in zip(cases, (0.5, 0.3), strict=True)])
        which = rng.choice(3, p=[0.5, 0.3, 0.2])
        rows.append((sow, None, 1) if which == 2 else (sow, *cases[which]))
    return rows


def play(market, rows):
    """Drive a mechanism through the protocol; return all it said and did, and its loads."""
    said, loads, running, ends, active = [], [], set(), {}, set()
    for now in range(1, market.horizon + 1):
        assert market.round == now
        for j, (sow, _, _) in enumerate(rows):
            if sow.birth == now:
                said.append(market.submit(j, sow))
                active.add(j)
        for j, (_, arrival, duration) in enumerate(rows):
            if arrival == now and j in active:
                market.arrive(j, duration)
        for event in market.advance():
            said.append(event)
            if event.kind is EventKind.START:
                running.add(event.job)
                ends[event.job] = now + rows[event.job][2] - 1  # of a run that begins again its new end
            else:
                running.discard(event.job)
                active.discard(event.job)
        loads.append(sum(rows[j][0].concurrency for j in running))
        for j in sorted(running):
            if ends[j] == now:
                said.append(market.complete(j))
                running.discard(j)
                active.discard(j)
    return said, loads


# -- the table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reductoin", "", None, ["posted-price"]])
def test_unknown_name_lists_the_known_ones(name):
    with pytest.raises(UnknownNameError, match="expected one of armada, bid-price, cluster-bid-price, "):
        get_mechanism(name)
    with pytest.raises(KeyError):
        get_mechanism(name)


@pytest.mark.parametrize("name", BUILT_IN)
def test_wrong_parameters_give_one_clear_error(name):
    with pytest.raises(
        InvalidParameterError, match=f"mechanism '{name}' does not take capactiy: expected capacity, horizon"
    ):
        get_mechanism(name, **SIZES, capactiy=3)
    with pytest.raises(InvalidParameterError, match=f"mechanism '{name}' lacks max_delay: expected capacity, horizon"):
        get_mechanism(name, **{key: value for key, value in SIZES.items() if key != "max_delay"})
    with pytest.raises(InvalidParameterError, match="capacity = 0"):
        get_mechanism(name, **{**SIZES, "capacity": 0}, **({"laws": []} if name == "stochastic" else {}))


def test_names_of_one_pricing_refuse_the_others():
    with pytest.raises(InvalidParameterError, match=r"pricing = .*'posted'.*: expected prices of kind 'exponential'"):
        get_mechanism("exponential", **COMMON)
    with pytest.raises(InvalidParameterError, match="expected prices of kind 'stochastic'"):
        get_mechanism("stochastic", **COMMON, laws=[])
    with pytest.raises(InvalidParameterError, match="laws are missing: expected one law per job"):
        get_mechanism("stochastic", **SIZES)
    with pytest.raises(
        InvalidParameterError, match="laws are given: expected them with pricing kind 'stochastic' only"
    ):
        get_mechanism("posted-price", **COMMON, laws=[])


def test_users_add_their_own():
    def open_house(**limits):
        return FirstCome(price=0.0, **limits)

    assert register("test: open house")(open_house) is open_house
    assert isinstance(get_mechanism("test: open house", **SIZES), FirstCome)
    register("test: open house")(open_house)  # the same one again, as from a notebook cell run twice
    with pytest.raises(InvalidParameterError, match="'test: open house' is already in the table"):
        register("test: open house")(FirstCome)
    with pytest.raises(InvalidParameterError, match="'posted-price' is already in the table"):
        register("posted-price")(FirstCome)
    refused(lambda: register(""), place="name", seen="", error=InvalidParameterError)
    refused(lambda: register("test: nothing")(3), "cannot be called", error=InvalidParameterError)
    assert "test: nothing" not in mechanism_names()


# -- the built-in entries ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pricing", "built"),
    [
        ({"kind": "posted", "prices": [0.5, 1.0]}, lambda: PostedPricing(prices=[0.5, 1.0])),
        ({"kind": "exponential", "kappa": 0.5}, lambda: ExponentialPricing(kappa=0.5)),
        ({"kind": "exponential", "floor": 0.1, "ceiling": 9.0}, lambda: ExponentialPricing(floor=0.1, ceiling=9.0)),
        (None, ExponentialPricing),
    ],
)
@pytest.mark.parametrize(
    ("oracle", "estimator"),
    [
        (None, ExactOracle),
        ({"kind": "exact"}, ExactOracle),
        (
            {"kind": "monte-carlo", "samples": 50, "refresh": "round"},
            lambda: MonteCarloOracle(samples=50, refresh="round"),
        ),
    ],
)
def test_posted_price_from_plain_data_is_the_mechanism_itself(pricing, built, oracle, estimator):
    limits = {key: value for key, value in SIZES.items() if key not in ("capacity", "horizon")}
    direct = PostedPriceMechanism(2, HORIZON, built(), estimator(), **limits, epsilon=0.1, rng=np.random.default_rng(7))
    plain = get_mechanism("posted-price", **{**COMMON, "pricing": pricing, "oracle": oracle}, seed=7)
    given_objects = get_mechanism("posted-price", **{**COMMON, "pricing": built(), "oracle": estimator()}, rng=7)
    rows = random_jobs(0)
    assert play(plain, rows) == play(direct, rows) == play(given_objects, rows)


def test_a_mechanism_takes_its_own_rules_and_no_others():
    assert get_mechanism("first-come", **SIZES, pricing={"kind": "posted", "prices": [0.5]}).price == 0.5
    assert get_mechanism("first-come", **SIZES, price=0.25).price == 0.25
    assert get_mechanism("first-come", **SIZES).price == 0.0
    with pytest.raises(InvalidParameterError, match="one flat price"):
        get_mechanism("first-come", **SIZES, pricing={"kind": "posted", "prices": [0.5, 1.0]})
    with pytest.raises(InvalidParameterError, match="expected prices of kind 'posted'"):
        get_mechanism("first-come", **SIZES, pricing={"kind": "exponential", "floor": 0.5})
    with pytest.raises(InvalidParameterError, match="price and pricing are both given"):
        get_mechanism("first-come", **SIZES, pricing={"kind": "posted", "prices": [0.5]}, price=0.5)
    for name in ("first-come", "pay-as-bid", "spot", "vcg"):
        with pytest.raises(InvalidParameterError, match=f"mechanism '{name}' does not take epsilon: expected capacity"):
            get_mechanism(name, **SIZES, epsilon=0.0)


# -- the contract of every mechanism -----------------------------------------------------------------------

every_mechanism = pytest.mark.parametrize("name", BUILT_IN)
seeds = st.integers(0, 10_000)


def parameters_of(name, rows, **changes):
    """Return legal parameters: one configuration but for prices, and the size that bundles need."""
    own = {"exponential": {"pricing": {"kind": "exponential"}}}
    own["stochastic"] = {
        "pricing": {"kind": "stochastic"},
        "laws": [[(sow, 1.0)] for sow, _, _ in rows],
        "capacity": 14,
    }
    known = legal.parameters_of(registry.get("mechanism", name))
    return {key: x for key, x in {**COMMON, **own.get(name, {}), **changes}.items() if key in known}


@every_mechanism
@settings(max_examples=many(40))
@given(seed=seeds)
def test_never_oversold_and_nobody_pays_above_the_report(name, seed):
    rows = random_jobs(seed)
    parameters = parameters_of(name, rows)
    market = get_mechanism(name, **parameters)
    assert isinstance(market, Mechanism)
    said, loads = play(market, rows)
    assert max(loads) <= parameters["capacity"]
    started = {}
    for event in said:
        kind = getattr(event, "kind", None)
        if kind is EventKind.START:
            started[event.job] = event.round
        elif kind is EventKind.COMPLETE:
            sow, arrival, duration = rows[event.job]
            assert event.completion == started[event.job] + duration > arrival
            assert 0 <= event.payment <= sow.value(event.completion) + 1e-9
        elif kind is not None:
            assert event.payment == 0 and event.completion is None


@every_mechanism
@settings(max_examples=many(15))
@given(seed=seeds)
def test_same_input_same_output_and_inputs_unchanged(name, seed):
    rows = random_jobs(seed)
    before = pickle.dumps(rows)
    parameters = parameters_of(name, rows, oracle={"kind": "monte-carlo", "samples": 20}, seed=seed)
    runs = [play(get_mechanism(name, **parameters), rows) for _ in range(2)]
    assert runs[0] == runs[1]
    assert pickle.dumps(rows) == before
    assert pickle.loads(pickle.dumps(runs[0])) == runs[0]
