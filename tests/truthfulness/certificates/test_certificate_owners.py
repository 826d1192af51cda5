"""Certificates of the owners of a run, and what they say about all owners."""

import numpy as np
import pandas as pd
import pytest

from marketsched import run
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.truthfulness import certify_owners, certify_population
from marketsched.truthfulness.certificates import owners
from marketsched.truthfulness.certificates.owners import _one_of_each_part

pytestmark = pytest.mark.compiled  # whole markets: too long for plain kernels

SMALL = {
    "name": "small",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 30, "birth_rounds": 40},
    "mechanism": {
        "epsilon": 0.05,
        "threshold": 0.05,
        "pricing": {"kind": "exponential", "floor": 0.02, "ceiling": 20},
        "oracle": {"kind": "monte-carlo", "samples": 128, "refresh": 0.1},
    },
}


def test_owners_of_a_run_are_certified_at_their_submission():
    calls = []
    found = certify_owners(SMALL, 12, seed=3, samples=400, progress=lambda done, all_: calls.append((done, all_)))
    assert len(found) == 12 and calls == [(k, 12) for k in range(1, 13)]
    assert found["job"].is_unique and found["round"].is_monotonic_increasing
    assert (found["regret_lower"] <= found["regret_upper"]).all() and found["confidence"].isin([0.99, 1.0]).all()
    assert (found["regret_upper"] <= 0.1 * found["highest_value"]).all()
    births = run(SMALL, seed=3).jobs.set_index("name")["birth"]
    np.testing.assert_array_equal(found["round"], births.loc[found["job"]])


def test_equal_seeds_certify_alike_and_others_choose_other_owners():
    first, again = (certify_owners(SMALL, 6, seed=1, samples=200) for _ in range(2))
    assert first.equals(again)
    assert list(certify_owners(SMALL, 6, seed=2, samples=200)["job"]) != list(first["job"])


def test_more_owners_than_jobs():
    n_jobs = len(run(SMALL).jobs)
    assert len(certify_owners(SMALL, 10_000, samples=64)) == n_jobs


def test_the_run_is_the_one_without_certificates(monkeypatch):
    """Event by event, up to the last certificate."""
    played = []

    class Remembered(owners.MarketRun):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            played.append(self)

    monkeypatch.setattr(owners, "MarketRun", Remembered)
    found = certify_owners(SMALL, 9, seed=5, samples=64)
    until = found["round"].max()
    certified, plain = played[0].result().events, run(SMALL, seed=5).events
    assert len(certified) > 50
    pd.testing.assert_frame_equal(certified, plain[plain["round"] <= until].reset_index(drop=True))


def test_one_owner_of_each_part():
    class Job:
        def __init__(self, k):
            self.name, self.truth = k, type("Truth", (), {"birth": k // 3})

    jobs = [Job(k) for k in range(100)]
    seen = np.zeros(100)
    for seed in range(2000):
        chosen = sorted(_one_of_each_part(jobs, 7, np.random.default_rng(seed)))
        seen[chosen] += 1
        assert all(abs(job - (k + 0.5) * 100 / 7) <= 100 / 14 + 2 for k, job in enumerate(chosen))
    assert abs(seen.mean() - 140) < 1 and seen.min() > 80 and seen.max() < 210  # 140 +- 12


def test_a_mechanism_without_a_menu():
    with pytest.raises(InvalidParameterError, match=r"FirstCome.*marketsched\.audit"):
        certify_owners(SMALL | {"mechanism": {"name": "first-come"}}, 2)


# --- all owners --------------------------------------------------------------------------------------


def test_459_owners_without_exceedance():
    assert certify_population([0.0] * 459, 0.0) >= 0.99 > certify_population([0.0] * 458, 0.0)
    assert certify_population([0.1] * 458 + [0.3], 0.2) < 0.99
    assert certify_population([0.5], 0.2) == 0.0


@pytest.mark.parametrize(
    ("certificates", "tolerance", "confidence", "words"),
    [
        ([], 0.0, 0.99, "bounds is empty"),
        ([float("nan")], 0.0, 0.99, r"bounds\[0\] = nan"),
    ],
)
def test_population_of_wrong_input(certificates, tolerance, confidence, words):
    with pytest.raises(InvalidParameterError, match=words):
        certify_population(certificates, tolerance, confidence)
