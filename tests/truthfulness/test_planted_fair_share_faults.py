"""Faults planted in the accounts of a fair share, looked for by the audit of conduct.

What one job announces changes its owner's later jobs, so that lies of a single job show none of them. The third,
`LeakingPenalty` (`tests/support/faulty_fair_share.py`), is found by the longest wall time: a small case by hand is in
`test_conduct_gains.py`.
"""

import pytest

import faulty_fair_share  # noqa: F401 - registers them
from marketsched.truthfulness.conduct.conduct_audit import BEST, audit_conduct

MARKET = {
    "name": "recurring jobs at a load of 1.5",
    "workload": {
        "kind": "synthetic-pipelines",
        "recurring_jobs": 40,
        "birth_rounds": 96,
        "durations": "hidden",
        "utilisation": 1.5,
    },
}


@pytest.mark.long
@pytest.mark.slow
def test_usage_that_is_charged_as_announced_is_found_and_the_rule_itself_is_not():
    names = ["usage-announced", "usage-as-run"]
    found = audit_conduct(MARKET, names, owners=1, past_owners=20, runs=12, families=["estimates"], seed=100)
    rows = found.summary[found.summary["conduct"] != BEST].set_index(["mechanism", "conduct"])
    pays = rows[rows["gain_low"] > 0].index.tolist()
    assert ("usage-announced", "times 0.25") in pays
    assert {name for name, _ in pays} == {"usage-announced"}


@pytest.mark.long
@pytest.mark.slow
def test_usage_over_the_number_of_jobs_is_found_by_parts_and_the_rule_itself_is_not():
    names = ["usage-average", "usage-as-run"]
    found = audit_conduct(MARKET, names, owners=1, past_owners=20, runs=12, families=["parts"], seed=300)
    rows = found.summary[found.summary["conduct"] != BEST].set_index("mechanism")
    assert rows.index[rows["gain_low"] > 0].tolist() == ["usage-average"]
