"""`check_truthful` fails what invites lies, and passes what does not; so does the suite for one's own mechanism."""

import re
import time

import pytest

from draws import many
from faulty_mechanisms import FAULTS, UNFAIR
from marketsched.mechanisms import FirstCome, InvalidParameterError, get_mechanism
from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid
from marketsched.testing import mechanism_tests
from marketsched.truthfulness import check_mechanism, check_truthful
from marketsched.truthfulness.checks.check_report import CheckReport, CheckResult, MechanismCheckError
from marketsched.truthfulness.checks.tiny_domains import tiny_domains
from marketsched.truthfulness.checks.truth_tests import DRAWN, replay_drawn, replay_tiny, truthful_checks
from refusals import refused

RULES = {"pricing": {"kind": "posted", "prices": [0.3]}, "oracle": {"kind": "exact"}}


def built(name, **rules):
    return lambda **sizes: get_mechanism(name, **sizes, **rules)


def failed(report):
    return {result.name for result in report.failed}


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize(
    ("build", "domains"),
    [
        (built("posted-price", **RULES), None),
        (built("posted-price", oracle={"kind": "exact"}, epsilon=-1.5), None),  # its prices need room
        (built("bid-price"), None),
        (built("spot"), ["one round"]),  # of jobs of one node: the second price
        (built("vcg"), ["one round", "widths"]),
    ],
    ids=["posted prices", "exponential prices", "bid prices", "second price", "VCG within a round"],
)
def test_what_is_truthful_passes(build, domains):
    report = check_truthful(build, domains=domains, n_markets=many(4, least=2) if domains is None else 0, plays=150)
    report.raise_if_failed()
    assert "a proof for this domain" in report["truthful, one round"].detail


@pytest.mark.parametrize(
    ("build", "domain", "gain"),
    [
        (built("pay-as-bid"), "one round", 4.0),  # worth 5, and 1 wins
        (built("spot"), "widths", 1.0),
        (built("armada", version=2026), "one round", 4.0),  # worth 5, sets the price, and pays what another bids: 1
        (built("armada", version=2024), "one round", 4.0),
        (built("vcg"), "two rounds", 5.0),
    ],
    ids=["pay-as-bid", "spot", "armada 2026", "armada 2024", "VCG over rounds"],
)
def test_what_invites_lies_fails_and_the_lie_replays(build, domain, gain):
    result = check_truthful(build, domains=[domain], n_markets=0)[f"truthful, {domain}"]
    assert result.outcome == "failed"
    assert f"gains {gain:g} credits" in result.detail
    call = re.search(r"replay_tiny\(build, '([a-z ]+)', (\d+), \(([\d, ]+)\), (\d+)\)", result.detail)
    owner, profile, lie = int(call[2]), tuple(map(int, call[3].split(","))), int(call[4])
    honest, lying = replay_tiny(build, call[1], owner, profile, lie)
    assert lying - honest == pytest.approx(gain)


@pytest.mark.slow
@pytest.mark.long_after(4)
@pytest.mark.parametrize("fault", [*FAULTS, *UNFAIR])
def test_planted_faults_fail(fault):
    """All but prices that fall: who submits late gains by those, which is no misreport (`check_mechanism` finds it)."""
    rules = RULES if "seed" not in fault else {"pricing": RULES["pricing"]}
    make = {**FAULTS, **UNFAIR}[fault]

    def build(**sizes):
        return make(**sizes, **rules)

    if fault == "prices fall over time":
        assert not failed(check_truthful(build, n_markets=2, plays=150))
    else:
        assert any(name.startswith("truthful") for name in failed(check_truthful(build, n_markets=0)))


def test_a_call_that_replays_names_what_was_checked():
    (found,) = check_truthful("pay-as-bid", domains=["one round"], n_markets=0).failed
    assert "; replay_tiny('pay-as-bid', 'one round', " in found.detail


def test_a_lie_found_by_search_replays():
    build = built("pay-as-bid")
    (result,) = check_truthful(build, domains=[], n_markets=6, plays=500)
    assert (result.name, result.outcome) == (DRAWN, "failed")
    call = re.search(r"replay_drawn\(build, (\d+), (\{.*\}), '(job \d+)', form='(\w+)'\)", result.detail)
    honest, lying = replay_drawn(build, int(call[1]), eval(call[2]), call[3], form=call[4])
    said = float(re.search(r"gains (?:exactly|about) ([\d.]+) credits", result.detail)[1])
    assert lying - honest == pytest.approx(said, rel=1e-6)


def test_a_refund_makes_a_deficit_and_an_entry_fee_a_loss():
    def refunds(**sizes):
        return UNFAIR["refund on eviction"](**sizes, **RULES)

    assert "no deficit, evicted" in failed(check_truthful(refunds, domains=["evicted"], n_markets=0))

    def dear(**sizes):
        return FAULTS["wide is cheap"](**{**sizes, **RULES, "pricing": {"kind": "posted", "prices": [0.3]}})

    report = check_truthful(dear, domains=["one round"], n_markets=0)
    assert not failed(report)
    assert report["participation, one round"].seen == 64 * 3


def test_a_mechanism_that_raises_fails_by_name():
    class Breaks(PayAsBid):
        def settle(self, bids, free):
            raise ZeroDivisionError("no luck")

    report = check_truthful(Breaks, n_markets=2)
    assert {result.outcome for result in report} == {"failed"}
    assert "no luck" in report["truthful, one round"].detail
    assert "no luck" in report[DRAWN].detail


class NeedsMore(PayAsBid):
    def __init__(self, reserve, **sizes):
        super().__init__(**sizes)


def without_luck(**sizes):
    raise ZeroDivisionError("no luck")


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (NeedsMore, "mechanism 'NeedsMore' lacks reserve: expected reserve, capacity, horizon, max_concurrency"),
        (without_luck, "cannot be built: ZeroDivisionError: no luck"),
        (3, "mechanism = 3: expected a name, a class, or a function that builds a mechanism"),
        ("second-price", "mechanism 'second-price' is unknown"),
    ],
)
@pytest.mark.parametrize("check", [check_truthful, check_mechanism, mechanism_tests])
def test_what_cannot_be_built_is_one_error_at_once(check, mechanism, message):
    began = time.process_time()
    refused(lambda: check(mechanism), message)
    assert time.process_time() - began < 2


def test_a_class_and_a_name_are_checked_as_a_builder_is():
    by_class, by_name, by_builder = (
        repr(check_truthful(each, domains=["one round"], n_markets=0))
        for each in (PayAsBid, "pay-as-bid", built("pay-as-bid"))
    )
    named = re.compile(r"play_tiny\([^,]+,")  # what was passed
    assert len({named.sub("", each) for each in (by_class, by_name, by_builder)}) == 1


def test_bad_input():
    with pytest.raises(InvalidParameterError, match=r"domains = 'one': expected some of one round, two rounds"):
        check_truthful(built("vcg"), domains=["one"])
    with pytest.raises(InvalidParameterError, match="plays = 3: expected a whole number >= 100"):
        check_truthful(built("vcg"), plays=3)
    with pytest.raises(InvalidParameterError, match="except_for = 'truth': expected some of truthful, one round"):
        check_truthful(built("vcg"), except_for={"truth": ""})
    refused(lambda: replay_tiny(built("vcg"), "one", 0, (0, 0, 0), 1), "domain = 'one'", error=InvalidParameterError)
    assert len(tiny_domains()["one round"].owners) == 3
    assert next(iter(truthful_checks(built("vcg"), domains=["widths"], n_markets=0))) == "truthful, widths"


test_posted_prices_in_one_line = mechanism_tests(built("posted-price", **RULES), n_markets=2, plays=100)


def test_the_one_line_suite_fails_where_the_check_does():
    suite = mechanism_tests(built("pay-as-bid"), n_markets=1, plays=100, domains=["one round"])
    with pytest.raises(AssertionError, match="gains 4 credits"):
        suite("truthful, one round")
    suite("capacity is held")
    with pytest.raises(InvalidParameterError, match="except_for = 'capacity'"):
        mechanism_tests(built("vcg"), except_for={"capacity": ""})


def test_checks_that_fail_for_one_reason_share_a_line():
    reason = "AttributeError: 'Bids' object has no attribute 'width'"
    results = [CheckResult(f"check {i}", "failed", reason) for i in range(5)]
    report = CheckReport((*results, CheckResult("the last", "passed", "fine")))
    assert str(report).splitlines() == [f"check 0, and 4 more  failed  {reason}", "the last             passed  fine"]
    assert repr(report) == f"CheckReport(5 failed, 1 passed; check 0, and 4 more: {reason})"
    with pytest.raises(MechanismCheckError) as raised:
        report.raise_if_failed()
    assert str(raised.value) == f"check 0, and 4 more: {reason}"


class PaysItsBidWhereHidden(FirstCome):
    truthful_hidden = "ex post"

    def foresee(self, x, signal):
        super().foresee(x, signal)
        self.seen = {**getattr(self, "seen", {}), x.job: signal}

    def charge(self, x):
        return super().charge(x) if self.seen[x.job] is not None else 0.9 * x.sow.value(self.round)


@pytest.mark.slow
def test_hidden_durations_are_played_where_truth_is_promised_for_them():
    (result,) = check_truthful(PaysItsBidWhereHidden, domains=[], n_markets=4)
    assert result.outcome == "failed" and ", hidden=True)" in result.detail
    call = re.search(r"replay_drawn\(PaysItsBidWhereHidden, (\d+), (\{.*\}), '(job \d+)', form='(\w+)'", result.detail)
    drawn = int(call[1]), eval(call[2]), call[3]
    honest, lying = replay_drawn(PaysItsBidWhereHidden, *drawn, form=call[4], hidden=True)
    assert lying > honest
    silent = type("PromisesNothingThere", (PaysItsBidWhereHidden,), {"truthful_hidden": "none"})
    check_truthful(silent, domains=[], n_markets=4).raise_if_failed()


class FromThree(FirstCome):
    def charge(self, x):
        return super().charge(x) * (0.6 if x.width >= 3 else 1.0)


class OtherJob(FirstCome):
    def charge(self, x):
        less = any(y.owner == x.owner and y.highest > x.highest for y in self._jobs.values())
        return super().charge(x) * (0.5 if less else 1.0)


class LastRound(FirstCome):
    def charge(self, x):
        return super().charge(x) if self.round <= self.horizon else 0.7 * x.value(self.round)


class ByValue(FirstCome):
    def serve(self, waiting):
        order = sorted(waiting, key=lambda x: -x.highest * (x.width >= 3))
        starts = dict(zip(order, super().serve(order), strict=True))
        return [starts[x] for x in waiting]


@pytest.mark.parametrize("fault", [FromThree, OtherJob, LastRound, ByValue, FirstCome])
def test_faults_of_wide_jobs_of_a_second_job_and_of_the_last_round_are_found(fault):
    (result,) = check_truthful(lambda **sizes: fault(price=0.5, **sizes), domains=[])
    assert result.outcome == ("passed" if fault is FirstCome else "failed"), result.detail
    assert "up to five nodes a job" in result.detail or fault is not FirstCome
