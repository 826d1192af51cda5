"""The mechanism of a scenario: stochastic prices and their laws, and the same scenario with another mechanism."""

import numpy as np
import pytest

from marketsched import Scenario, run
from marketsched.config.job_list import JobList
from marketsched.config.scenario_file import with_changes
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.statement_law import StatementLaw
from tiny_scenarios import TINY, setup, tiny

# -- stochastic prices --------------------------------------------------------------------------


def stochastic(**changes):
    """Return TINY with durations revealed, on enough nodes for bundles, with stochastic prices."""
    return tiny(workload__capacity=40, mechanism={"name": "stochastic"}) | changes


def test_implied_stochastic_prices_go_with_their_name_by_either_way():
    """In Python, and as a change of the file's text, another name has the prices that it stands for."""
    for more in ({}, {"pricing": {"kind": "stochastic", "price_end": "high"}}):
        data = {**stochastic(), "mechanism": {"name": "stochastic", **more}}
        python = Scenario.from_dict(data).with_mechanism("posted-price")
        text = Scenario.from_dict(with_changes(data, ["mechanism.name=posted-price"]))
        assert python == text and python.mechanism.pricing.kind == "exponential"


def test_the_name_stochastic_stands_for_stochastic_prices():
    scenario = Scenario.from_dict(stochastic())
    assert scenario.mechanism.pricing.kind == "stochastic"
    written = scenario.to_dict()["mechanism"]["pricing"]
    assert written == {"kind": "stochastic", "price_end": "low", "widen": True}
    assert Scenario.from_dict(parse_yaml(scenario.to_yaml(), "x")) == scenario
    assert run(scenario).outcome["welfare"] > 0
    by_pricing = stochastic(mechanism={"pricing": {"kind": "stochastic"}})
    one, two = (run(data, 2).outcome for data in (stochastic(), by_pricing))
    assert one["welfare"] == two["welfare"] and one["revenue"] == two["revenue"] > 0


def test_stochastic_prices_need_revealed_durations_and_laws():
    rows = [{"arrival": 2, "duration": d, "probability": 0.5, "signal": None} for d in (1, 2)]
    hidden = stochastic()
    hidden["workload"]["jobs"][1]["requirements"] = rows
    with pytest.raises(InvalidParameterError, match=r"^workload: job 'B' hides its duration: .* revealed at arrival"):
        setup(hidden)
    scenario = Scenario.from_dict(stochastic())
    workload = scenario.workload.build(np.random.default_rng(0), None)
    with pytest.raises(InvalidParameterError, match=r"^mechanism: laws are missing"):
        scenario.mechanism.build(workload, np.random.default_rng(0))
    small = stochastic()
    small["workload"]["capacity"] = 12  # B = 3, and with D_max = 3 it takes 5
    with pytest.raises(InvalidParameterError, match=r"^mechanism: supply = 12 .* expected at least .* = 20"):
        setup(small)


def test_laws_are_asked_for_only_where_needed(monkeypatch):
    asked = []

    def told(self, workload, rng, data):
        asked.append(rng.random())
        return [StatementLaw.of(job.truth) for job in workload.jobs]

    monkeypatch.setattr(JobList, "statement_laws", told)
    setup(TINY)
    assert not asked
    setup(stochastic(), seed=5)
    assert asked == [np.random.default_rng(5).spawn(3)[0].random()]  # the workload's stream, from its beginning


# -- another mechanism --------------------------------------------------------------------------

CURVE = {"kind": "exponential", "kappa": 1.0, "floor": 0.5, "ceiling": 8.0}


def test_another_mechanism_keeps_what_it_understands():
    rules = {"epsilon": 0.1, "threshold": 0.05, "eviction": "running", "pricing": CURVE, "capacity": 30}
    scenario = Scenario.from_dict(tiny(mechanism=rules, expected={"welfare": 3}, description="d", resubmit=True))
    kept = {"epsilon": 0.1, "threshold": 0.05, "eviction": "running", "capacity": 30, "oracle": {"kind": "exact"}}
    for name, pricing in {
        "exponential": CURVE,
        "posted-price": CURVE,
        "stochastic": {"kind": "stochastic", "price_end": "low", "widen": True},
        "first-come": {"kind": "exponential", "kappa": 1.0},
    }.items():
        other = scenario.with_mechanism(name)
        assert other.mechanism.name == name
        taken = kept if name != "first-come" else kept | {"epsilon": 0.0, "threshold": 0.0, "eviction": "all"}
        assert other.mechanism.rule_parameters() | {"capacity": 30} == taken | {"pricing": pricing}
        assert (other.workload, other.owners, other.resubmit, other.name) == (
            scenario.workload,
            scenario.owners,
            True,
            "tiny",
        )
        assert other.expected == ({"welfare": (3.0, 0.0)} if name == "posted-price" else {})
        assert Scenario.from_dict(parse_yaml(other.to_yaml(), "x")) == other
    assert scenario.mechanism.eviction == "running" and scenario.expected  # never changed itself


@pytest.mark.parametrize(
    ("prices", "kept"),
    [
        ([0.5], ["first-come", "posted-price"]),
        ([0.5, 0.5], ["first-come", "posted-price"]),
        ([0.5, 1.0], ["posted-price"]),
    ],
)
def test_posted_prices_go_where_they_are_taken(prices, kept):
    scenario = Scenario.from_dict(tiny(mechanism={"pricing": {"kind": "posted", "prices": prices}}))
    names = ("exponential", "first-come", "posted-price", "stochastic")
    assert [n for n in names if scenario.with_mechanism(n).mechanism.pricing.kind == "posted"] == kept


def test_parameters_stay_with_the_name_they_are_for():
    scenario = Scenario.from_dict(tiny(mechanism={"name": "first-come", "parameters": {"price": 0.5}}))
    assert scenario.with_mechanism("first-come").mechanism.parameters == {"price": 0.5}
    assert scenario.with_mechanism("posted-price").mechanism.parameters == {}
    assert run(scenario.with_mechanism("first-come", {"parameters.price": 1.0})).outcome["revenue"] > 0


def test_changes_win():
    scenario = Scenario.from_dict(tiny(mechanism={"pricing": CURVE, "epsilon": 0.1}))
    other = scenario.with_mechanism(
        "stochastic", {"eviction": "running", "pricing.price_end": "high", "oracle": {"kind": "monte-carlo"}}
    ).mechanism
    assert (other.eviction, other.epsilon, other.pricing.price_end, other.oracle.samples) == (
        "running",
        0.1,
        "high",
        1000,
    )
    assert scenario.with_mechanism("exponential", {"pricing.floor": 0.25}).mechanism.pricing.ceiling == 8.0
    given = {"pricing": {"kind": "posted", "prices": [1.0]}}
    assert scenario.with_mechanism("posted-price", given).mechanism.pricing.prices == (1.0,)
    assert scenario.with_mechanism("posted-price") is scenario


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("lottery", {}, r"^scenario: mechanism.name = 'lottery': expected one of"),
        ("exponential", {"eviction": "nobody"}, r"^scenario: mechanism.eviction = 'nobody': expected"),
        ("exponential", {"colour": 1}, r"^scenario: mechanism.colour: unknown key"),
        ("exponential", {"epsilon.x": 1}, r"^mechanism.epsilon.x: expected a key of the mechanism, or a part of one$"),
        ("exponential", {"pricing": {"kind": "posted", "prices": [1]}}, r"pricing.kind = 'posted': expected 'expon"),
        ("stochastic", {"pricing.floor": 1}, r"^scenario: mechanism.pricing.floor: unknown key"),
    ],
)
def test_a_wrong_change_of_mechanism_is_refused(name, changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        Scenario.from_dict(TINY).with_mechanism(name, changes)


def test_a_mechanism_of_the_users_own_can_take_the_place(monkeypatch):
    from marketsched.mechanisms import registry
    from marketsched.mechanisms.auctions.first_come import FirstCome

    def own(capacity, horizon, price=0.25, **limits):
        return FirstCome(capacity, horizon, price, **{k: v for k, v in limits.items() if k.startswith("max_")})

    monkeypatch.setitem(registry._TABLES["mechanism"], "own", own)
    scenario = Scenario.from_dict(tiny(mechanism={}))
    assert run(scenario.with_mechanism("own")).outcome["revenue"] > 0
    assert scenario.with_mechanism("stochastic").with_mechanism("own").mechanism.pricing.kind == "exponential"


def test_who_the_owners_are_holds_for_every_mechanism_that_takes_it():
    shares = {"lab/": 2, "lab/ann": 1, "guests/": 1}
    parameters = {"shares": shares, "newcomers": "guests/", "kept": 0.5}
    scenario = Scenario.from_dict(tiny(mechanism={"name": "fair-turns", "parameters": parameters}))
    assert scenario.with_mechanism("credits").mechanism.parameters == {"shares": shares, "newcomers": "guests/"}
    assert scenario.with_mechanism("first-come").mechanism.parameters == {}
    by_name = scenario.with_changes("mechanism.name=credits")  # as the commands do
    assert by_name.mechanism == scenario.with_mechanism("credits").mechanism
    own = scenario.with_changes("mechanism.name=fair-share", "mechanism.parameters.shares={ann: 1}")
    assert own.mechanism.parameters["shares"] == {"ann": 1}


def test_jobs_without_shapes_are_not_sold_on_a_cluster_by_default():
    data = tiny()
    data.pop("mechanism", None)
    assert Scenario.from_dict(data).mechanism.name == "bid-price"
