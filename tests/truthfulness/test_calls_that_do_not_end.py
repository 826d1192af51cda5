"""A mechanism that never comes back from a call is interrupted and named, and the others go on."""

import json
import signal
import time

import pytest
from typer.testing import CliRunner

from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within, timed
from marketsched.agents.lies import ScaleValue
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms import get_mechanism, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.show.cli import app
from marketsched.truthfulness import check_mechanism, check_truthful
from marketsched.truthfulness.audit import audit
from refusals import refused
from small_mechanisms import BIDDER, ONE_ROUND, HighestBid, on_worlds, owner_in


class Endless(FirstCome):
    """Never comes back from one of its calls, and catches all errors on the way."""

    call = "advance"

    def _for_ever(self, call):
        while call == self.call:
            try:
                time.sleep(0.001)
            except Exception:  # its own alarm would not be one
                continue

    def submit(self, job, sow, owner=None):
        self._for_ever("submit")
        return super().submit(job, sow, owner)

    def arrive(self, job, signal=None):
        self._for_ever("arrive")
        super().arrive(job, signal)

    def advance(self):
        self._for_ever("advance")
        return super().advance()

    def complete(self, job):
        self._for_ever("complete")
        return super().complete(job)


class EndlessUnderALie(HighestBid):
    """A pay-as-bid auction that does not end where the owner reports less than 3."""

    def submit(self, job, sow):
        while job == "owner" and 0 < sow.value.highest < 3:
            pass
        return super().submit(job, sow)


@pytest.fixture(autouse=True, scope="module")
def _registered():
    for name in ("submit", "arrive", "advance", "complete", "construction"):

        @register(f"endless-{name}")
        def build(*, capacity, horizon, name=name, **sizes):
            while name == "construction":
                pass
            kind = type("Endless", (Endless,), {"call": name})
            limits = {key: sizes[key] for key in ("max_concurrency", "max_duration", "max_value", "max_delay")}
            return kind(capacity, horizon, **limits)


def market():
    jobs = [
        {
            "name": f"worth {value}",
            "owner": f"owner of {value}",
            "birth": 1,
            "concurrency": 1,
            "value": {"kind": "deadline", "value": value, "deadline": 2},
            "requirements": [{"arrival": 1, "duration": 1, "probability": 1}],
        }
        for value in (10, 7)
    ]
    sizes = {"capacity": 1, "horizon": 3, "max_concurrency": 1, "max_duration": 2, "max_value": 10, "max_delay": 3}
    return {"name": "two for one", "workload": {"kind": "jobs", **sizes, "jobs": jobs}}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("call", ["submit", "arrive", "advance", "complete", "construction"])
def test_an_audit_names_the_call_and_goes_on(call):
    found = audit(market(), [f"endless-{call}", "pay-as-bid"], plays=200, call_seconds=0.4)
    stuck, fine = found.mechanisms
    assert not stuck.audited and f"{call} in round" in " ".join(stuck.errors)
    assert "did not end within 0.04 s" in " ".join(stuck.errors)  # in the search: the certificates waited first
    assert fine.audited and fine.regret_lower > 0 and fine.truth_fails == ""
    assert [*found.not_audited, *found.truth_fails] == [f"endless-{call}"]


@pytest.mark.slow
def test_the_command_says_so_and_exits_with_6(tmp_path):
    (tmp_path / "market.yaml").write_text(dump_yaml(market()))
    asked = ["--mechanism", "endless-advance", "--mechanism", "first-come", "--plays", "200", "--call-seconds", "0.4"]
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "market.yaml"), *asked, "--out", str(tmp_path / "o")])
    assert done.exit_code == 6  # the truth fails of every owner that was searched
    assert "endless-advance: no lie could be compared" in done.output and "did not end within" in done.output
    stuck, fine = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert (stuck["audited"], stuck["regret_lower"], fine["audited"]) == (False, None, True)
    refused(lambda: audit(market(), ["vcg"], call_seconds=0), place="call_seconds", seen=0, error=InvalidParameterError)


def test_a_lie_under_which_it_does_not_end_is_named_and_others_are_played():
    owner = owner_in(lambda rng: EndlessUnderALie("first", rng=rng, rivals=1), BIDDER, **ONE_ROUND)
    with calls_end_within(0.4):
        found = on_worlds(owner, [ScaleValue(0.25), ScaleValue(0.5)])
    best = found.confirmed[0]
    assert best.gain_low <= 2.375 <= best.gain_high
    assert found.failures and all("submit in round 1: did not end within" in each for each in found.failures)


@pytest.mark.slow
def test_checks_fail_by_it_and_all_are_reported():
    def build(**sizes):
        return get_mechanism("endless-advance", **sizes)

    report = check_mechanism(build, n_markets=1, call_seconds=0.3)
    assert "advance in round 1: did not end within" in report["capacity is held"].detail
    assert len(report) > 10 and len(report.failed) > 5
    truthful = check_truthful(build, domains=["one round"], n_markets=1, call_seconds=0.3)
    assert [each.outcome for each in truthful] == ["failed"] * 5
    assert "did not end within" in truthful["truthful in drawn markets"].detail


def test_somebody_elses_alarm_goes_on_afterwards():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    begin, left = time.monotonic(), signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with calls_end_within(0.05):
            for _ in range(2):
                with pytest.raises(CallDidNotEnd, match="advance in round 7"), timed("advance", 7):
                    time.sleep(5)
            with calls_end_within(9), pytest.raises(CallDidNotEnd), timed("submit", 8):  # the outer block holds
                time.sleep(5)
        while not rung and time.monotonic() < begin + 5:
            time.sleep(0.01)
        assert rung and rung[0] - begin >= 0.29
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *left)
