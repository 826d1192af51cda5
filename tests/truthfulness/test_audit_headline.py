"""What an audit prints first: the best confirmed lie, and nothing at all where nothing was audited."""

import numpy as np
import pytest

from claims import claiming
from marketsched.agents.lies import ScaleValue
from marketsched.mechanisms import DeadlineValue, register
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.mechanism import Event
from marketsched.truthfulness import replay_gain
from marketsched.truthfulness.audit import audit

VALUES = (10.0, 7.0, 4.0, 2.0)


def four_for_three(values=VALUES, nodes=3, **changes):
    """Return owners of one node for one round, all in round 1."""
    jobs = [
        {
            "name": f"worth {value:g}",
            "owner": f"owner of {value:g}",
            "birth": 1,
            "concurrency": 1,
            "value": {"kind": "deadline", "value": value, "deadline": 2},
            "requirements": [{"arrival": 1, "duration": 1, "probability": 1}],
        }
        for value in values
    ]
    sizes = {"capacity": nodes, "horizon": 3, "max_concurrency": 1, "max_duration": 2, "max_value": 10, "max_delay": 3}
    return {"name": "four for three", "workload": {"kind": "jobs", **sizes, "jobs": jobs}, **changes}


@claiming
class ByReport(FirstCome):
    """Charges .4 for each round of the longest reported duration, not for those used."""

    def complete(self, job):
        longest = int(self._jobs[job].sow.law.durations.max())
        event = super().complete(job)
        return Event(event.round, event.kind, job, event.completion, 0.4 * longest)


@claiming
class RaisesAlways(FirstCome):
    def advance(self):
        raise ZeroDivisionError("no luck")


@claiming
class RaisesUnderLies(FirstCome):
    """Knows what the truth is in the market below, and refuses to go on with anything else."""

    def submit(self, job, sow, owner=None):
        if float(sow.value.highest) != float(job.split()[1]) or sow.law.durations.tolist() != [1] or sow.mass != 1:
            raise ZeroDivisionError("no lies")
        if float(sow.value(2)) != sow.value.highest or sow.value.last != 2 or sow.law.arrivals.tolist() != [1]:
            raise ZeroDivisionError("no lies")
        if type(sow.value) is not DeadlineValue or not sow.restarts:  # the same numbers, said otherwise
            raise ZeroDivisionError("no lies")
        return super().submit(job, sow, owner)

    def withdraw(self, job, fee=0.0):
        raise ZeroDivisionError("no lies")


def _named(name, kind, **fixed):
    @register(name)
    def build(*, capacity, horizon, max_concurrency, max_duration, max_value, max_delay, **others):
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        return kind(capacity, horizon, max_value=max_value, **limits, **fixed)

    return build


def cannot_be_built(**sizes):
    raise EventError("no such luck")


@pytest.fixture(autouse=True, scope="module")
def names():
    """Registered when the tests run, not when they are collected: other tests list all names."""
    register("cannot-be-built-in-tests")(cannot_be_built)
    _named("raises-always-in-tests", RaisesAlways)
    _named("raises-under-lies-in-tests", RaisesUnderLies)
    _named("by-report-in-tests", ByReport)


def test_the_headline_is_the_best_confirmed_lie():
    found = audit(four_for_three(), ["pay-as-bid"], plays=4000)
    (row,) = found.summary.to_dict(orient="records")
    assert row["regret_lower"] >= 7.7  # 10 is worth, and a bid just above 2 wins
    assert row["worst_job"] == "worth 10"
    exact = found.mechanisms[0].at_hand
    assert row["regret_lower"] == max(g.counted for g in (*exact.gains, *exact.checked))
    assert row["sentence"].startswith("in this market worth 10 reports ")


def test_the_witness_file_replays_the_headline(tmp_path):
    found = audit(four_for_three(), ["pay-as-bid"], plays=1000)
    found.result().save(tmp_path / "out")
    again = replay_gain(tmp_path / "out" / "exact-pay-as-bid-worth-10.yaml")
    assert again.same and again.recorded == found.mechanisms[0].regret_lower


def test_a_charge_for_the_reported_duration_is_found_in_full():
    """One round or two: who declares one round at most pays .4 instead of .8, whatever it then uses."""
    market = four_for_three((9.0,))
    points = [{"arrival": 1, "duration": d, "probability": p} for d, p in ((1, 0.5), (2, 0.5))]
    market["workload"]["jobs"][0]["requirements"] = points
    market["workload"]["jobs"][0]["value"]["deadline"] = 4
    market["workload"] |= {"max_duration": 4, "horizon": 6, "max_delay": 6}
    (one,) = audit(market, ["by-report-in-tests"], plays=4000).mechanisms
    assert one.regret_lower == pytest.approx(0.4)


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["cannot-be-built-in-tests", "raises-always-in-tests", "raises-under-lies-in-tests"])
def test_what_was_not_audited_is_no_zero(name):
    found = audit(four_for_three(), [name, "vcg"], plays=800)
    table = found.summary.set_index("mechanism")
    assert np.isnan(table.loc[name, "regret_lower"])
    assert not table.loc[name, "audited"] and table.loc[name, "errors"]
    assert table.loc["vcg", "regret_lower"] == 0.0
    assert found.not_audited == ([] if name == "raises-always-in-tests" else [name])
    assert found.truth_fails == (["raises-always-in-tests"] if name == "raises-always-in-tests" else [])
    assert not found.profitable


def test_a_budget_too_small_to_play_is_not_audited():
    found = audit(four_for_three(), ["vcg"], budget=1e-9)
    assert found.not_audited == ["vcg"]


@pytest.mark.slow
def test_plays_in_place_of_seconds_reproduce_every_figure():
    first, second = (audit(four_for_three(), ["pay-as-bid", "spot"], plays=400, seed=3) for _ in range(2))
    one, two = first.result(), second.result()
    assert one.summary.to_csv() == two.summary.to_csv()
    assert {name: text for name, text in one.texts.items()} == two.texts
    assert all(one.tables[name].to_csv() == two.tables[name].to_csv() for name in one.tables)


def test_a_lie_is_told_from_the_truth_by_its_digits():
    assert ScaleValue(0.9999512).words(None) == "reports 0.99995 of its value"
    assert ScaleValue(1 - 1e-9).words(None) == "reports 0.999999999 of its value"
    assert ScaleValue(0.25).words(None) == "reports 0.25 of its value"
