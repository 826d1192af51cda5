"""An audit on several workers, or interrupted, finds what it finds on one: what is made ahead is only looked up."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.searches import plays_ahead

MECHANISMS = ["pay-as-bid", "bid-price"]
JOBS = [
    {
        "name": f"job {i}",
        "birth": 1 + i % 2,
        "concurrency": 1 + i % 2,
        "value": {"kind": "deadline", "value": 8 - i, "deadline": 6},
        "requirements": [
            {"arrival": 2, "duration": 1 + i % 3, "probability": 0.7},
            {"arrival": 3, "duration": 2, "probability": 0.3},
        ],
        "arrival": 2,
        "duration": 1 + i % 3,
    }
    for i in range(4)
]
SIZES = {"capacity": 2, "horizon": 9, "max_concurrency": 2, "max_duration": 3, "max_value": 9, "max_delay": 8}
MARKET = {
    "name": "four for two",
    "workload": {"kind": "jobs", **SIZES, "jobs": JOBS},
    "mechanism": {"pricing": {"kind": "exponential", "floor": 0.01}},
}


class Counting(ThreadPoolExecutor):
    """Counts what it is given."""

    def __init__(self):
        super().__init__(2)
        self.given = []

    def submit(self, function, *args, **kwargs):
        self.given.append(function.__name__)
        return super().submit(function, *args, **kwargs)


def tables(found):
    result = found.result()
    return {name: result.tables[name].to_csv() for name in result.tables} | {"summary": result.summary.to_csv()}


def audited(**more):
    return audit(MARKET, MECHANISMS, owners=4, plays=100, budget=None, seed=5, **more)


@pytest.fixture(scope="module")
def alone():
    return tables(audited())


@pytest.mark.slow
def test_plays_made_ahead_change_nothing(alone):
    with Counting() as workers:
        assert tables(audited(executor=workers)) == alone
    assert workers.given.count("perform") > 10 * len(MECHANISMS)


@pytest.mark.slow
def test_what_is_made_ahead_is_what_is_looked_up(alone, monkeypatch):
    """The negative control: a worker whose payments are wrong is seen in the tables."""
    right = plays_ahead.played

    def wrong(held, asked):
        found = right(held, asked)
        return found._replace(payment=found.payment + 1) if hasattr(found, "_replace") and asked.lie else found

    monkeypatch.setattr("marketsched.truthfulness.searches.plays_ahead.played", wrong)
    with Counting() as workers:
        assert tables(audited(executor=workers)) != alone


@pytest.mark.slow
def test_an_interrupted_audit_goes_on(tmp_path, alone):
    def stop(what, share):
        if what.startswith("bid-price: lies in the market") and share > 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audited(keep=tmp_path, progress=stop)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.task")}
    assert len(kept) > 20
    again = audited(keep=tmp_path)
    assert tables(again) == alone
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    again.result().save(tmp_path / "whole")
    assert not any(tmp_path.glob("*/*.task"))


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_change_nothing(alone):
    assert tables(audited(workers=2)) == alone
