"""A comparison under several rules of value: each is a comparison of its own, and the sentence counts them."""

import numpy as np
import pandas as pd
import pytest

from marketsched.comparisons.comparing import compare
from marketsched.comparisons.value_rules import VALUE_RULES, compare_values
from marketsched.config.scenario import Scenario
from refusals import refused

NAMES = ["easy-backfill:order=class", "easy-backfill"]


@pytest.fixture
def base(tmp_path):
    rng = np.random.default_rng(8)
    submit, run = np.cumsum(rng.integers(1, 900, 150)), rng.integers(200, 9000, 150)
    users = {"processors": rng.integers(1, 6, 150), "user": rng.integers(0, 5, 150)}
    table = pd.DataFrame({"submit_s": submit, "run_s": run, "requested_s": 2 * run, **users})
    table.to_csv(tmp_path / "mine.csv", index=False)
    workload = {"kind": "csv", "path": str(tmp_path / "mine.csv"), "capacity": 6, "rule": {"round_seconds": 300.0}}
    return Scenario.from_dict({"name": "mine", "workload": workload})


def test_each_rule_is_a_comparison_of_its_own(base):
    told = []
    found = compare_values(base, NAMES, runs=2, progress=lambda *step: told.append(step))
    assert max(done for done, _, _ in told) <= told[0][1] and {total for _, total, _ in told} == {told[0][1]}
    rule = {**base.workload.rule, **VALUE_RULES["deadlines, slack 4"]}
    own = compare(base.model_copy(update={"workload": base.workload.model_copy(update={"rule": rule})}), NAMES, runs=2)
    rows = found.values[found.values["rule"] == "deadlines, slack 4"].drop(columns="rule").reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, own.summary[rows.columns.tolist()])
    by_rule = found.values[found.values["mechanism"] == NAMES[0]].set_index("rule")
    equal = by_rule.loc["falling, equal for every node-hour"]
    assert equal["over_rival"] == 0  # one class: the order by class is the order of arrival
    holds = (by_rule["over_rival"] > 0) == (by_rule["over_rival"].iloc[0] > 0)
    assert f"under {holds.sum()} of 6 rules of value" in found.meta["values"]
    assert "falling, equal for every node-hour (+0.0)" in found.meta["values"]


def test_other_jobs_have_values_of_their_own(base):
    refused(lambda: compare_values(Scenario.load("stochastic-mix")), "--values", legal="a log")
    refused(lambda: compare_values(base, loads=[1.0]), "--values", legal="without --loads")
