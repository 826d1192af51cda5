"""The length of a round decides neither loads nor waits of a log."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.agents.market_run import MarketRun
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import with_changes
from marketsched.results.waits import waits_table
from marketsched.worlds.logs.round_length import LENGTHS_S, SHORT_S, added_share, carried, chosen_length

FOR_EVER = {"kill": False, "drop_hopeless": False, "stop_at_deadline": False}
RUNS = st.lists(st.tuples(st.floats(1.0, 1e5), st.integers(1, 64)), min_size=1, max_size=60)


@given(RUNS, st.sampled_from(LENGTHS_S))
def test_runs_are_right_to_a_round_and_add_up(runs, length):
    seconds, nodes = np.array([s for s, _ in runs]), np.array([n for _, n in runs])
    rounds = carried(seconds, nodes, length)
    assert (rounds >= np.maximum(1, np.floor(seconds / length))).all()
    assert (rounds <= np.maximum(1, np.ceil(seconds / length))).all()
    if (seconds >= length).all():  # nothing is added for runs of less than a round
        assert abs(float(rounds @ nodes) - float(seconds @ nodes) / length) <= nodes.max()


@given(RUNS)
def test_the_chosen_round_is_the_coarsest_that_is_fine_enough(runs):
    table = pd.DataFrame(runs, columns=["run_s", "processors"])
    median = float(table["run_s"].median())
    fine = [s for s in (*LENGTHS_S, *SHORT_S) if added_share(table, s) <= 0.01 and (s < 60 or 4 * s <= median)]
    assert chosen_length(table) == max(fine, default=10.0)


@pytest.mark.compiled
def test_a_wait_is_the_same_at_every_length_of_a_round(tmp_path):
    """Jobs of 20 minutes, one in fifty of fifty times that, under EASY."""
    rng = np.random.default_rng(4)
    n = 600
    runs = np.where(np.arange(n) % 50 == 0, 50.0, 1.0) * rng.uniform(900, 1500, n)
    submits = np.cumsum(rng.exponential(260.0, n))
    rows = "".join(f"{s:.0f},{r:.0f},1,{i % 7}\n" for i, (s, r) in enumerate(zip(submits, runs, strict=True)))
    (tmp_path / "log.csv").write_text("submit_s,run_s,processors,user\n" + rows)
    waits = {}
    for length in (300.0, 120.0, 60.0):
        section = {
            "name": "x",
            "workload": {"kind": "csv", "path": str(tmp_path / "log.csv"), "capacity": 10, "rule": {"slack": 100.0}},
            "mechanism": {"name": "easy-backfill", "parameters": FOR_EVER},
        }
        scenario = Scenario.from_dict(with_changes(section, [f"workload.rule.round_seconds={length}"]))
        result = MarketRun(scenario.setup(np.random.default_rng(0))).run()
        every = waits_table(result.jobs, length)
        waits[length] = float(every.loc[every["by"] == "all", "wait_rounds"].iloc[0]) * length / 3600
    assert max(waits.values()) <= 1.1 * min(waits.values()), waits
