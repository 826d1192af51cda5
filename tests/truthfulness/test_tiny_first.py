"""Tiny domains at the beginning of an audit: every kind of mechanism of scenarios is played in them."""

import pytest

from marketsched.config.scenario import Scenario
from marketsched.mechanisms import register
from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid
from marketsched.truthfulness.tiny_first import in_tiny_domains


class Boasts(PayAsBid):
    """Promises what it does not keep."""

    truthful = "ex post"


@pytest.fixture(autouse=True, scope="module")
def boasts():
    @register("boasts-in-tests")
    def build(*, capacity, horizon, max_concurrency, max_duration, max_value, max_delay, **others):
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        return Boasts(capacity, horizon, max_value=max_value, **limits)


def played(name, most=2_000, **parameters):
    scenario = Scenario.of({**Scenario.load("stochastic-mix").to_dict(), "mechanism": {"name": name, **parameters}})
    return in_tiny_domains(scenario, 0.0, most)


@pytest.mark.parametrize("name", ["first-come", "bid-price"])
def test_no_lie_pays_under_rules_that_keep_their_promise(name):
    found = played(name)
    assert (found.gain, found.domains, found.left_out, found.breaks) == (None, 8, "", False)
    assert found.asked > 7000


@pytest.mark.parametrize("name, breaks", [("pay-as-bid", False), ("boasts-in-tests", True)])
def test_a_gain_breaks_the_promise_where_there_is_one(name, breaks):
    found = played(name)
    assert found.gain is not None and found.gain.gain == 9.0  # worth 10, and 1 is enough
    assert (found.domains, found.breaks) == (8, breaks)
    assert "gains 9 credits" in found.words
    assert "worth 10 in round 4" in found.words and "its lie 1 node, worth 1 in round 4" in found.words


def test_domains_that_do_not_suit_a_mechanism_are_named_with_the_reason():
    found = played("exponential")
    assert 0 < found.domains < 8
    assert "others were not played: two rounds, " in found.words and "relaxed supply" in found.words


def test_an_audit_without_tiny_domains_says_so():
    found = played("pay-as-bid", most=0)
    assert found.domains == 0 and found.words.startswith("no tiny domain was played: ")
