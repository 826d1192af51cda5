"""The length of a round decides nothing: every registered mechanism on one log at rounds of 15 and of 5 minutes."""

from __future__ import annotations

import numpy as np
import pytest

from marketsched.agents.market_run import MarketRun
from marketsched.config.named_mechanisms import named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.registry import names

QUARTER_S, SEED = 900, 3
NEEDS_LAWS = {"stochastic"}  # of all jobs, which no log has
IN_ROUNDS = {"bid-price", "cluster-bid-price"}  # their windows and lags are stated in rounds


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Jobs whose submissions, runs and requests are whole quarters of an hour, on twelve nodes at a load of 1.2."""
    rng, n = np.random.default_rng(11), 500
    runs = rng.geometric(0.12, n)
    submits, nodes = np.sort(rng.integers(0, 1400, n)), rng.choice([1, 1, 2, 4, 8], n)
    columns = (QUARTER_S * submits, QUARTER_S * runs, nodes, QUARTER_S * rng.integers(runs, 2 * runs + 2))
    rows = "".join(f"{s},{r},{w},{a},u{i % 9}\n" for i, (s, r, w, a) in enumerate(zip(*columns, strict=True)))
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_text("submit_s,run_s,processors,requested_s,user\n" + rows)
    return str(path)


def played(log, name, length):
    """Return the share of all values that is delivered, %, and the mean wait of jobs that start, hours."""
    rule = {"round_seconds": length, "deadlines": "drawn"}  # which are missed by a little: values that fall hide more
    workload = {"kind": "csv", "path": log, "capacity": 12, "rule": rule}
    base = Scenario.from_dict({"name": "refined", "workload": workload})
    (named,) = named_mechanisms(base, [name])
    setup = named.scenario.setup(np.random.default_rng(np.random.SeedSequence(SEED)))
    result = MarketRun(setup, lookahead=0).run()
    total = sum(job.truth.value.highest for job in base.workload_of(SEED).jobs)
    began = result.jobs[result.jobs["start"].notna()]
    wait = float((began["start"] - began["arrival"]).mean()) * length / 3600
    return 100 * result.outcome["welfare"] / total, wait


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(names("mechanism")) - NEEDS_LAWS - IN_ROUNDS))
def test_a_finer_round_changes_nothing_to_speak_of(log, name):
    (coarse, waited), (fine, waits) = (played(log, name, length) for length in (QUARTER_S, QUARTER_S / 3))
    assert abs(coarse - fine) <= 2.5
    assert abs(waited - waits) <= 0.05 + 0.2 * waited
