"""What a live market prints of its promises is what its mechanism, as it is configured, states."""

from collections import Counter

import pytest

from live_tools import PLAIN, config, sow
from marketsched.live.client import LiveClient
from marketsched.live.machine import LiveMarket
from marketsched.live.market_view import EVICTED_PAYS, market_view
from marketsched.live.serving import serving
from marketsched.mechanisms.promises import TRUTH, printed_promises

HIDDEN = f"durations hidden: {TRUTH['in expectation']}"


@pytest.mark.parametrize(
    "name, changes, kept, not_kept",
    [
        ("first-come", {}, "durations hidden: truth is not promised", HIDDEN),
        ("first-come", {"parameters": {"stop_at_loss": True}}, HIDDEN, "truth is not promised"),
        ("bid-price", {"parameters": {"stop_at_deadline": False}}, TRUTH["in expectation"], "truth is not promised"),
        ("posted-price", {}, EVICTED_PAYS, "best for each job, whatever happens"),
        ("posted-price", {"evicted_pay": "nothing"}, TRUTH["up to regret"], EVICTED_PAYS),
    ],
)
def test_what_is_printed_follows_the_instance(name, changes, kept, not_kept):
    market = LiveMarket(config(name, **changes))
    printed = market_view(market, 0)["promises"]
    assert printed.startswith(printed_promises(market.mechanism))
    assert kept in printed and not_kept not in printed


def test_view_quote_and_status_print_the_same(tmp_path):
    token = tmp_path / "token"
    with serving({**PLAIN, "evicted_pay": "own"}, f"{tmp_path}/m.db", operator_token_file=token) as url:
        with LiveClient(url, token.read_text().strip()) as operator:
            with LiveClient(url, operator.create_owner("ann")["token"]) as ann:
                printed = ann.market()["promises"]
                assert TRUTH["up to regret"] in printed and EVICTED_PAYS in printed
                assert ann.quote(sow())["promises"] == printed


def test_the_queue_is_told_in_steps_and_changes_with_rounds():
    market = LiveMarket(config("first-come"))
    found = {}
    for count in (0, 1, 10, 11, 30, 31, 100, 101, 1001):
        market.tally = Counter(arrived=count + 2)
        market.reported = [{}, {}]  # of the open round
        found[count] = market.waiting_at_most
    assert found == {0: 0, 1: 10, 10: 10, 11: 30, 30: 30, 31: 100, 100: 100, 101: 300, 1001: 3000}
