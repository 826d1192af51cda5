"""Why a live job waits: by hand, and the same where others' private values differ."""

import numpy as np
import pytest

from draws import many
from live_tools import ServedMarket, refused, sow
from marketsched.live import calls
from marketsched.live.principal import Principal
from marketsched.mechanisms.errors import EventError, UnknownNameError

RULES = {"mechanism": "fair-share", "capacity": 4, "horizon": 60, "max_concurrency": 4, "max_duration": 9}
RULES |= {"max_value": 90, "max_delay": 50, "clock": {"kind": "manual"}}
ANN = Principal("ann", "owner")


def explained(market, job, who=ANN):
    return market.ask(calls.explanation(who, job))


def hidden(now, rounds, nodes, value=4.0):
    return sow(now, rounds, nodes=nodes, value=value, deadline=now + 40, signal=None)


def test_a_job_that_waits_for_runs_before_ahead_and_behind_it(tmp_path):
    """Ben's first run holds all nodes to round 3; then ann, who used less, passes his second job, which came before."""
    market = ServedMarket(tmp_path / "m.db", RULES, {"ann": {}, "ben": {}}, 1000)
    market.submit("ben", hidden(1, 2, 4), "first")
    market.arrive("ben.first", None)
    market.advance()
    for owner, name, nodes in (("ben", "second", 2), ("ann", "wide", 4)):
        market.submit(owner, hidden(2, 3, nodes), name)
        assert refused(EventError, explained, market, "ann.wide") if owner == "ann" else True
        market.arrive(f"{owner}.{name}", None)
    market.advance()
    market.ask(calls.complete(Principal("operator", "operator"), "ben.first", {}))
    market.advance()
    found = explained(market, "ann.wide")
    assert (found["wait"], found["causes"]["before"]) == (1, 1) and "ben" not in str(found)
    assert not {"passed", "own"} & set(found)  # reasons of causes that it has
    assert found["held"] == {"before": {"jobs_at_most": 10, "node_rounds": 4}}
    passed = explained(market, "ben.second", Principal("ben", "owner"))
    assert passed["wait"] == 2 and (passed["causes"]["before"], passed["causes"]["passed"]) == (1, 1)
    assert "used less" in passed["passed"] and "own" not in passed
    assert passed["held"]["passed"] == {"jobs_at_most": 10, "node_rounds": 4} and "ann" not in str(passed)
    assert refused(UnknownNameError, explained, market, "ann.wide", Principal("ben", "owner"))
    market.service.stop()


def answers(path, seed, values):
    """Return what ann is told of her jobs in a market of drawn jobs; ``values`` are those of others."""
    rng = np.random.default_rng(seed)
    market = ServedMarket(path, RULES, {"ann": {}, "ben": {}}, 10_000)
    done, found = {}, []
    for now in range(1, 9):
        for owner in ("ben", "ann", "ben"):
            rounds, nodes = int(rng.integers(1, 5)), int(rng.integers(1, 5))
            value = 4.0 if owner == "ann" else float(values.uniform(1, 80))
            job = market.submit(owner, hidden(now, rounds, nodes, value))["job"]
            market.arrive(job, None)
            done[job] = rounds
        for each in market.advance():
            if each["event"] == "start":
                done[each["job"]] += now
        for job, end in done.items():
            if end == now + 1 and market.job(job)["state"] == "running":
                market.ask(calls.complete(Principal("operator", "operator"), job, {}))
        found.append([explained(market, job) for job in done if job.startswith("ann.")])
    market.service.stop()
    return found


@pytest.mark.parametrize("seed", range(many(4)))
def test_others_values_change_nothing_of_what_an_owner_is_told(seed, tmp_path):
    one, other = (answers(tmp_path / f"{n}.db", seed, np.random.default_rng(100 + n)) for n in range(2))
    assert one == other
    assert sum(each["wait"] for each in one[-1]) > 5
    assert all(sum(each["causes"].values()) == each["wait"] for told in one for each in told)
