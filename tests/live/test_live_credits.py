"""A live market whose credits renew: purses are in the ledger, shares in place of deposits, quotes in words."""

import json

import numpy as np
import pytest

from live_tools import ANN, OPERATOR, SIZES, Owners, check_journal, config, refused
from marketsched.live import calls, credit_calls
from marketsched.live.configuration import live_config
from marketsched.live.credit_calls import in_words, outlook_of
from marketsched.live.machine import LiveMarket
from marketsched.live.principal import Principal
from marketsched.live.service import LiveService
from marketsched.live.snapshots import frozen, thawed
from marketsched.mechanisms.credits.outlook import Outlook
from marketsched.mechanisms.errors import EventError, InvalidParameterError, InvalidReportError

SHARES = {"lab/": 2, "lab/ann": 1, "lab/ben": 1, "zoe": 1}
RULES = {**SIZES, "mechanism": "credits", "parameters": {"shares": SHARES, "carry_rounds": 6.0, "start": 1.0}}


def ranked(t, rank=4, *, nodes=1, rounds=2, deadline=None):
    """A statement with a rank, due now, of hidden duration."""
    value = {"kind": "rank", "rank": rank, "deadline": t + rounds if deadline is None else deadline}
    row = {"arrival": t, "duration": rounds, "probability": 1.0, "signal": None}
    return {"concurrency": nodes, "value": value, "requirements": [row]}


def balances(market):
    accounts = market.accounts
    return {name: each.balance for name, each in accounts.known.items()} | accounts.unopened


def purses(market):
    found = market.mechanism.purses
    return {str(name): int(held) for name, held in zip(found.names, found.held, strict=True)}


def check_round(market, postings):
    """After a round the ledger has the purses, and every booking is double."""
    have = balances(market)
    assert {name: have.get(name, 0) for name in purses(market)} == purses(market)
    assert sum(posting.micro for posting in postings) == 0
    assert market.accounts.of_owners + market.accounts.market == market.accounts.deposited
    assert market.accounts.market == market.mechanism.purses.spent.sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_ledger_has_every_purse_after_every_round(seed):
    rng = np.random.default_rng(seed)
    market, rows, what, paid = LiveMarket(live_config(RULES)), [], set(), {}

    def act(event):
        applied = market.apply(event, len(rows) + 1)
        rows.append(event)
        what.update(posting.what for posting in applied.postings)
        paid.update({job.name: job.charge or 0 for job in applied.ended})
        if event["event"] == "advance":
            check_round(market, applied.postings)

    owners = Owners(rng, hidden=1.0)
    for name in owners.owners:  # cid has no share
        act({"event": "owner", "owner": name, "role": "owner"})
    for n in range(40):
        if n in (0, 15, 30):
            place = str(rng.choice(["lab/", "lab/ann", "zoe", "cid", "new/"]))
            act({"event": "share", "place": place, "share": float(rng.integers(0, 4))})
        owners.round(market, act)
        if n == 20:
            market = thawed(frozen(market), market.config)
    assert what == {"income", "expire", "regular"}
    paid |= {name: job.charge or 0 for name, job in market.jobs.items()}
    assert sum(paid.values()) == market.mechanism.purses.spent.sum() > 0


class Service:
    """A service on a database, with ann, ben and a guest."""

    def __init__(self, url, rules=RULES):
        self.service = LiveService(url, rules)
        self.service.start()
        for name in ("ann", "ben", "guest"):
            self.ask(calls.create_owner(OPERATOR, {"owner": name}))

    def ask(self, work):
        return self.service.ask(work).result(20)

    def come(self, owner, report):
        who = Principal(owner, "owner")
        job = self.ask(calls.submit(who, {"sow": report}))["job"]
        self.ask(calls.arrive(who, job, {}))
        return job


@pytest.fixture
def service(tmp_path):
    found = Service(f"{tmp_path}/m.db")
    yield found
    found.service.stop()
    check_journal(f"{tmp_path}/m.db")


def test_an_owner_sees_class_charge_and_purse(service):
    late = service.come("ann", ranked(1, nodes=3))
    guest = service.come("guest", ranked(1, nodes=3))
    starts = service.ask(calls.advance(OPERATOR, {}))["decisions"]
    assert {each["job"]: each["class"] for each in starts} == {late: "regular", guest: "free"}
    own = service.ask(credit_calls.purse(ANN, None))
    (held,) = own["regular"]
    # part 1/3 of .7 x 6 credits a round; six rounds of it at the start, of which the first costs three
    assert held == {"job": late, "state": "running", "nodes": 3, "start": 1, "paid": 3.0}
    assert (own["income"], own["cap"], own["credits"], own["spent"]) == pytest.approx((1.4, 8.4, 5.4, 3.0))
    assert own["credits"] == service.ask(calls.account(ANN, None))["balance"]
    assert own["starts_within"] == {"1": 8 + 14, "2": 8 + 31, "3": None}  # 25.2 credits over 1.8 and .8 nodes
    assert service.ask(credit_calls.purse(Principal("guest", "owner"), None))["credits"] == 0.0
    service.ask(calls.advance(OPERATOR, {}))
    done = service.ask(calls.complete(OPERATOR, late, {}))
    assert (done["charge"], done["class"]) == (6.0, "regular")
    assert service.ask(calls.job(ANN, late))["class"] == "regular"  # also once it has gone
    listed = service.ask(credit_calls.purse(OPERATOR, None))["purses"]
    assert [each["owner"] for each in listed] == ["zoe", "ann", "ben", "guest"]


def test_an_account_takes_over_the_purse_of_its_share(service):
    service.ask(calls.advance(OPERATOR, {}))
    token = service.ask(calls.create_owner(OPERATOR, {"owner": "zoe"}))
    assert token["balance"] == pytest.approx(8.4)
    made = service.ask(calls.create_owner(OPERATOR, {"owner": "eve", "share": 2.0, "account": "lab/"}))
    assert made["balance"] == 0.0  # who comes later has no savings
    service.ask(calls.advance(OPERATOR, {}))
    found = service.ask(credit_calls.purse(Principal("eve", "owner"), None))
    assert found["part"] == pytest.approx(1 / 3) and found["credits"] == found["income"]


@pytest.mark.parametrize(
    ("work", "error", "said"),
    [
        (calls.create_owner(OPERATOR, {"owner": "x", "deposit": 5.0}), EventError, "credits come by shares"),
        (calls.deposit(OPERATOR, "ann", {"credits": 5.0}), EventError, "credits come by shares"),
        (credit_calls.share(OPERATOR, {"place": "no/ann", "share": 1.0}), InvalidParameterError, "'no/' does not"),
        (credit_calls.share(OPERATOR, {"place": "nix/", "share": 2.0}), InvalidParameterError, "new: true"),
        (credit_calls.share(OPERATOR, {"place": "anna", "share": 2.0}), InvalidParameterError, "new: true"),
        (credit_calls.share(OPERATOR, {"place": "operator", "share": 2.0}), InvalidParameterError, "new: true"),
        (credit_calls.share(OPERATOR, {"place": "ann", "share": 1.0}), InvalidParameterError, "one place for"),
        (credit_calls.share(OPERATOR, {"place": "A B", "share": 1.0}), InvalidParameterError, "a-z"),
        (
            calls.quote(ANN, {"sow": ranked(1, rank=0)}),
            InvalidReportError,
            "value.rank = 0: expected a whole number in [1, 9]",
        ),
    ],
)
def test_what_is_refused_changes_nothing(service, work, error, said):
    before = service.service.last_seq
    found = refused(error, service.ask, work)
    assert said in str(found) and service.service.last_seq == before


def test_a_negative_share_is_refused_where_it_is_read():
    for body in ({"place": "ann", "share": -1.0}, {"place": "ann", "share": float("nan")}, {"place": ""}):
        refused(InvalidParameterError, credit_calls.share, OPERATOR, body)
    refused(InvalidParameterError, calls.create_owner, OPERATOR, {"owner": "x", "account": "lab/"})
    found = refused(InvalidParameterError, LiveMarket, live_config({**RULES, "parameters": {"shares": {"ann": -1}}}))
    assert "shares: ann" in str(found)
    refused(InvalidParameterError, LiveMarket, live_config({**RULES, "parameters": {"shares": {"Ann": 1}}}))
    found = refused(InvalidParameterError, live_config, {**RULES, "no_show_fee": 1.0})
    assert "no_show_fee = 1" in str(found) and config("fair-share").no_show_fee == 1.0


def test_a_quote_says_in_words_what_regular_and_free_nodes_are(service):
    quote = service.ask(calls.quote(ANN, {"sow": ranked(1, nodes=1, rounds=3, deadline=20)}))
    assert quote["in_words"] == (
        "regular: about 3 of your 8.4 credits, from round 12 on if it has not started by then; no bound on its start "
        "before its deadline. free: so far not known when they start"
    )
    far = service.ask(calls.quote(ANN, {"sow": ranked(1, nodes=1, rounds=3, deadline=60)}))
    assert "starts within 22 rounds" in far["in_words"]
    dear = service.ask(calls.quote(ANN, {"sow": ranked(1, 2, nodes=3, rounds=6)}))
    assert "which do not cover it now: it stays free until they do" in dear["in_words"]
    guest = service.ask(calls.quote(Principal("guest", "owner"), {"sow": ranked(1)}))
    assert guest["in_words"].startswith("regular: about 2 credits, and you have none: it stays free. ")
    json.dumps(quote)


def test_a_quote_that_its_owner_finds_less_important():
    said = in_words(Outlook(5.0, 50.0, 20.0, 3, 1.0, 2.5, None, 4, None, 0.25))
    assert said == (
        "regular: about 5 of your 50 credits (20 of them are held for your regular jobs), which go to your jobs of "
        "importance 2.5 and more, and it has 1: as things are it stays free. "
        "free: so far not known when they start; 25 % of free runs lost their nodes"
    )


def test_other_markets_have_no_outlook():
    market = LiveMarket(config("first-come"))
    assert outlook_of(market, None, ranked(1)) == {}
    refused(EventError, market.apply, {"event": "share", "place": "ann", "share": 1.0}, 1)
