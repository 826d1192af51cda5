"""What an audit may end with: certificates that are contradicted, truths that fail, and what stays undecided."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from claims import claiming
from marketsched.agents.lies import ScaleValue
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms import BidPrice, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.results.audit_kind import could_have_found
from marketsched.show.cli import app
from marketsched.truthfulness import MarketAtHand
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.contradictions import contradiction
from marketsched.truthfulness.searches.evaluation import Budget, prepared
from marketsched.truthfulness.searches.trials import Trial, Truth
from small_mechanisms import best_on_worlds, crowd


@claiming
class Defeats(BidPrice):
    """Charges half of what is declared, if that is less than its menu says, unless menus are kept."""

    certified_as = "its menus at arrival, which does not hold where it is not looked at"

    def charge(self, x):
        menu = super().charge(x)
        return menu if self._menus is not None else min(menu, 0.5 * x.sow.value.highest)


@claiming
class FailsUnseen(BidPrice):
    """Fails at every completion, unless menus are kept."""

    certified_as = "its menus at arrival, which does not hold where it is not looked at"

    def charge(self, x):
        if self._menus is None:
            raise ZeroDivisionError("no luck")
        return super().charge(x)


@claiming
class DrawnShare(FirstCome):
    """Charges a share of the declared value that it draws."""

    truthful = truthful_hidden = "none"

    def __init__(self, *sizes, rng, **limits):
        super().__init__(*sizes, **limits)
        self.rng = rng

    def charge(self, x):
        return float(self.rng.random()) * x.sow.value.highest


def named(name, kind, *, draws=False):
    @register(name)
    def build(*, capacity, horizon, max_concurrency, max_duration, max_value, max_delay, rng=None, **others):
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        own = {"rng": rng} if draws else {}
        return kind(capacity, horizon, max_value=max_value, **limits, **own)

    return build


@pytest.fixture(autouse=True, scope="module")
def names():
    """Registered when the tests run, not when they are collected: other tests list all names."""
    for kind in (Defeats, FailsUnseen):
        named(f"{kind.__name__.lower()}-in-tests", kind)
    named("drawn-share-in-tests", DrawnShare, draws=True)


def audited(name, tmp_path, plays="400", seed="0"):
    """Return exit status and JSON of the command."""
    (tmp_path / "market.yaml").write_text(dump_yaml(crowd(24, horizon=16)))
    call = ["audit", str(tmp_path / "market.yaml"), "-m", name, "--plays", plays, "--seed", seed, "--json"]
    got = CliRunner().invoke(app, [*call, "--out", str(tmp_path / f"{name}-{plays}-{seed}")])
    return got.exit_code, json.loads(got.stdout)


# --- certificates against what was played -----------------------------------------------------------------


@pytest.mark.slow
def test_a_certificate_is_crossed_by_an_exact_gain_in_the_market_at_hand(tmp_path):
    status, said = audited("defeats-in-tests", tmp_path)
    (row,) = said["mechanisms"]
    assert status == 3
    assert row["certified_owners"] == 0 and np.isnan(row["regret_upper"] or np.nan)
    assert "which gains exactly" in row["errors"] and "its certificate allows 0" in row["errors"]
    assert row["regret_lower"] > 0


def test_payments_under_the_lies_of_the_search_are_compared_and_counted():
    (found,) = audit(crowd(24, horizon=16), ["bid-price"], plays=400).mechanisms
    assert len(found.certificates) > 0
    assert found.at_hand.payments > 20 and found.at_hand.mischarged is None
    assert f"{found.at_hand.payments} under lies of the search" in found.rests_on


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("upper", "crossed"), [(0.5, True), (9.5, False)])
def test_a_certificate_is_crossed_by_a_confirmed_lie_of_its_owner(upper, crossed):
    (owner,) = MarketAtHand.of({**crowd(24, horizon=16), "mechanism": {"name": "pay-as-bid"}}).owners(["job-18"])
    lie = best_on_worlds(owner, [ScaleValue(0.5)], plays=300)
    assert lie is not None and lie.gain_low > 0.5
    words = contradiction(pd.DataFrame({"job": ["job-18"], "regret_upper": [upper]}), [lie], None)
    assert bool(words) is crossed
    if crossed:
        assert lie.words in words and "its certificate allows 0.5" in words


# --- the truth fails ----------------------------------------------------------------------------------------


def test_truths_that_all_fail_have_a_status_of_their_own_whatever_was_certified(tmp_path):
    status, said = audited("failsunseen-in-tests", tmp_path)
    (row,) = said["mechanisms"]
    assert status == 6
    assert (said["truth_fails"], said["not_audited"], said["profitable"]) == (["failsunseen-in-tests"], [], False)
    assert not row["audited"] and "no luck" in row["truth_fails"]


# --- what seems to pay --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_what_seems_to_pay_and_is_not_confirmed_ends_with_5(seed, tmp_path, monkeypatch):
    """The mechanism draws, so no gain is exact, and few plays confirm nothing."""
    monkeypatch.setattr("marketsched.truthfulness.at_hand.DECIDING", 0.0)
    monkeypatch.setattr("marketsched.truthfulness.searches.on_worlds.LEAST", 10)
    status, said = audited("drawn-share-in-tests", tmp_path, "400", seed)
    assert (status, said["seems_to_pay"]) == (5, ["drawn-share-in-tests"])
    assert "credits on average over" in said["mechanisms"][0]["seems_to_pay"]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_it_is_played_on_until_it_is_decided(seed, tmp_path, monkeypatch):
    monkeypatch.setattr("marketsched.truthfulness.searches.on_worlds.LEAST", 10)
    assert audited("drawn-share-in-tests", tmp_path, "400", seed)[0] == 3


def test_a_gain_that_is_the_same_in_all_worlds_seems_to_pay_too():
    """Pay as bid to one job alone: half of the bid saves the same in every world, and nothing spreads."""
    (owner,) = MarketAtHand.of({**crowd(24, horizon=16), "mechanism": {"name": "pay-as-bid"}}).owners(["job-18"])
    trial = Trial(Truth(owner, 0), prepared(owner, ScaleValue(0.9)), 0.0)
    trial.confidence = 0.99
    trial.score(10, Budget(None, None))
    known = trial.deviation
    assert known.error == 0.0 and known.gain_mean > 0 and not known.confirmed
    assert known.seems and trial.left is not None


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ("ex post", "breaks its promise in this market"),
        ("none", "gains on average over the owner's own law in this market"),
        ("ex post, none", "own law where nothing is promised, in this market"),
    ],
)
def test_a_clean_result_speaks_of_a_promise_where_there_is_one(promise, words):
    row = {"promise": promise, "screened_owners": 3, "detectable_share": np.nan, "power": np.nan}
    assert words in could_have_found(row) and ("promise in" in could_have_found(row)) is (promise == "ex post")
