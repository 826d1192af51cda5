"""What an audit says holds: on a busy machine, under rules that draw on their own, and for payments beside a menu."""

import json
import random
import time

import numpy as np
import pytest
from numba import njit
from typer.testing import CliRunner

from claims import claiming
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms import BidPrice, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.show.cli import app
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.searches import processor
from marketsched.truthfulness.searches.evaluation import Budget
from small_mechanisms import crowd


class Fee(FirstCome):
    """Charges a fee, whatever is reported, that each kind below draws in another way."""

    def charge(self, x):
        self.give_back(x)
        return 0.5 * self.share(x)


class WithRandom(Fee):
    def share(self, x):
        return random.random()


class WithOneOfItsOwn(Fee):
    def __init__(self, *sizes, **limits):
        super().__init__(*sizes, **limits)
        self.own = np.random.default_rng()

    def share(self, x):
        return self.own.random()


class ByHash(Fee):
    def share(self, x):
        return hash(x.job) % 1000 / 1000


class OnlyUnderLies(Fee):
    """Draws on its own where the deadline is none of those that are true here."""

    def share(self, x):
        true = x.sow.value.last - x.sow.birth - int(x.sow.law.durations[0]) == 3
        return 0.9 if true else np.random.default_rng().random()


class Reseeds(Fee):
    """Draws with the module `random`, from a seed of its own: two whole plays end the same."""

    def __init__(self, *sizes, **limits):
        super().__init__(*sizes, **limits)
        random.seed(3)

    def share(self, x):
        return random.random()


@claiming
class Adds(BidPrice):
    """Charges a little more than its menu says, unless menus are kept."""

    certified_as = "its menus at arrival, which does not hold where it is not looked at"

    def charge(self, x):
        return super().charge(x) + (0.0 if self._menus is not None else 0.125)


@claiming
class AddsAlways(BidPrice):
    """Charges a little more than its menu says."""

    def charge(self, x):
        return super().charge(x) + 0.125


class AddsUnpromised(AddsAlways):
    """Charges a little more, and promises nothing."""

    truthful = truthful_hidden = "none"


DRAWING = (WithRandom, WithOneOfItsOwn, ByHash, Reseeds, OnlyUnderLies)


@pytest.fixture(autouse=True, scope="module")
def _names():
    for kind in (*DRAWING, Fee, Adds, AddsAlways, AddsUnpromised):

        @register(f"{kind.__name__.lower()}-of-sound-tests")
        def build(*, capacity, horizon, kind=kind, **sizes):
            limits = {name: sizes[name] for name in ("max_concurrency", "max_duration", "max_value", "max_delay")}
            return kind(capacity, horizon, **limits)


# --- same seed, same outcome --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DRAWING)
def test_a_rule_that_draws_on_its_own_is_not_audited_and_never_accused(kind):
    found = audit(crowd(), [f"{kind.__name__.lower()}-of-sound-tests"], plays=200)
    (one,) = found.mechanisms
    assert found.status == 4
    assert one.irreproducible
    assert one.exact is None and not one.claims and not found.profitable
    assert "generator that was not passed" in one.irreproducible or "order of their hashes" in one.irreproducible


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", ["first-come", "bid-price:buckets=4", "pay-as-bid", "posted-price", "fair-share"])
def test_rules_that_do_not_are_audited(name):
    found = audit(crowd(), [name], plays=150, owners=2)
    assert not found.mechanisms[0].irreproducible
    assert found.status != 4


# --- what a budget counts -----------------------------------------------------------------------------------


def test_waiting_costs_no_budget_and_workers_do():
    budget = Budget(None, 0.2)
    time.sleep(0.25)
    assert not budget.out_of_time
    processor.counted(processor.Measured(None, 0.3, -1))
    assert budget.out_of_time
    here = processor.measured("found", processor.thread_seconds())
    seconds = processor.processor_seconds()
    assert processor.counted(here._replace(seconds=1e6)) == "found"  # the clock of this process has them already
    assert processor.processor_seconds() - seconds < 1e3


@pytest.mark.slow
def test_an_audit_that_was_cut_has_a_status_of_its_own(tmp_path):
    (tmp_path / "market.yaml").write_text(dump_yaml(crowd()))
    call = ["audit", str(tmp_path / "market.yaml"), "-m", "first-come:price=.4", "--out"]
    cut = CliRunner().invoke(app, [*call, str(tmp_path / "cut"), "--budget", "0.15", "--plays", "100000"])
    assert cut.exit_code == 7
    assert "exit status 7: the seconds ended" in cut.stdout.splitlines()[0] + cut.stdout.splitlines()[1]
    whole = CliRunner().invoke(app, [*call, str(tmp_path / "whole"), "--plays", "200", "--json"])
    assert whole.exit_code == 0
    assert (json.loads(whole.stdout)["status"], json.loads(whole.stdout)["cut"]) == (0, [])


# --- payments beside a menu -----------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", ["adds-of-sound-tests", "addsalways-of-sound-tests"])
def test_a_payment_that_is_none_of_its_menu_is_a_finding(name):
    found = audit(crowd(), [name], plays=200)
    assert found.status == 8
    assert "its menu said" in found.mechanisms[0].mischarged


def test_a_rule_that_promises_nothing_may_charge_beside_its_menu():
    found = audit(crowd(), ["addsunpromised-of-sound-tests"], plays=200)
    assert found.mechanisms[0].beside_menu and not found.mechanisms[0].mischarged
    assert found.status == 0


# --- power ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_power_is_said_of_the_lies_that_were_played_for_all():
    found = audit(crowd(30), ["first-come:price=.4"], plays=1500)
    (row,) = found.summary.to_dict(orient="records")
    assert row["detectable_by"].startswith("ScaleValue(f=0.5), ")
    assert row["detectable_share"] == pytest.approx(1 - 0.1 ** (1 / (row["screened_owners"] // 2)))


def test_a_rule_that_draws_has_no_share_that_would_have_been_seen():
    class Drawn(Fee):
        def __init__(self, *sizes, rng, **limits):
            super().__init__(*sizes, **limits)
            self.rng = rng

        def share(self, x):
            return float(self.rng.random())

    @register("drawn-fee-of-sound-tests")
    def build(*, capacity, horizon, rng=None, **sizes):
        limits = {name: sizes[name] for name in ("max_concurrency", "max_duration", "max_value", "max_delay")}
        return Drawn(capacity, horizon, rng=rng, **limits)

    found = audit(crowd(), ["drawn-fee-of-sound-tests"], plays=300)
    assert found.status in (0, 5)
    assert np.isnan(found.summary["detectable_share"].iloc[0])


@pytest.mark.compiled
def test_seconds_of_the_compiler_are_not_those_of_a_budget():
    """Two kernels, one of which calls the other: each second of compiling counts once, and not as work."""

    @njit
    def inner(x):
        return np.sqrt(x) + x**3

    @njit
    def outer(x):
        total = 0.0
        for i in range(x):
            total += inner(float(i)) / (1.0 + total)
        return total

    began, counted, compiled = time.process_time(), processor.processor_seconds(), processor._compiling.seconds
    outer(3)
    spent, compiling = time.process_time() - began, processor._compiling.seconds - compiled
    assert 0.02 < compiling <= spent and processor.processor_seconds() - counted == pytest.approx(
        spent - compiling, abs=0.02
    )
