"""The bridge between a live market and a real Slurm: what each side does, the other follows."""

from dataclasses import replace

import pytest

from marketsched.live.client import LiveClient
from marketsched.live.slurm import SlurmError
from marketsched.live.slurm_bridge import SlurmBridge
from marketsched.mechanisms.errors import InvalidParameterError
from slurm_trials import WITH_SLURM, Trial, until

pytestmark = WITH_SLURM


@pytest.mark.slow
def test_a_job_is_announced_held_started_and_charged(tmp_path):
    with Trial(tmp_path) as trial:
        job = trial.announce("a", nodes=2, rounds=(1, 2))
        number = trial.batch(job, "exit 3", nodes=2, minutes=2)
        early = trial.announce("early", later=1)
        trial.batch(early)
        assert trial.slurm_state(number) == "HELD"
        trial.bridge.step()
        trial.bridge.step()  # taken twice, it arrives once
        assert trial.state(job) == "arrived" and trial.slurm_state(number) == "HELD"
        assert trial.state(early) == "submitted" and not any("early" in line for line in trial.said)
        trial.operator.advance()
        assert trial.state(job) == "running"
        trial.step_until(lambda: trial.state(job) == "completed" and trial.state(early) == "arrived")
        found = trial.operator.job(job)
        assert (found["outcome"], found["exit_code"], found["charge"]) == ("failed", 3, 1.0)  # 2 nodes, 1 round, 0.5
        before = trial.operator.ledger()["entries"]
        trial.bridge.step()
        assert trial.operator.ledger()["entries"] == before
        assert trial.bridge.taken == {"arrive": 2, "release": 1, "complete": 1}


def test_the_plugin_refuses_what_the_market_does_not_know(tmp_path):
    with Trial(tmp_path) as trial:
        job = trial.announce("a", nodes=2)
        for comment, nodes, why in (
            ("hello", 2, "expected --comment=market:JOB"),
            (f"market:{trial.me}.b", 2, r"\.b is not announced"),
            (f"market:{job}", 1, "was announced with 2 nodes: expected --nodes=2"),
        ):
            with pytest.raises(SlurmError, match=why):
                trial.slurm.submit("#!/bin/sh\n", f"--comment={comment}", f"--nodes={nodes}", "-t1")
        assert trial.slurm.jobs() == []


@pytest.mark.slow
def test_what_the_market_evicts_goes_back_to_the_queue_and_pays_nothing(tmp_path):
    config = {
        "pricing": {"kind": "posted", "prices": [0.5]},
        "epsilon": -3.0,
        "threshold": 1.0,
        "evicted_pay": "nothing",
    }
    with Trial(tmp_path, config=config) as trial:
        wide, last = trial.announce("wide", 2, later=1), trial.announce("last", 1, (3,))
        trial.batch(wide, nodes=2)
        number = trial.batch(last, minutes=3)
        trial.bridge.step()
        trial.operator.advance()
        trial.step_until(lambda: trial.slurm_state(number) == "RUNNING")
        trial.bridge.step()
        trial.operator.advance()  # the wide one starts: who was submitted last makes room
        assert trial.state(last) == "evicted" and trial.state(wide) == "running"
        assert "last come, first out" in trial.operator.job(last)["reason"]
        trial.step_until(lambda: trial.slurm_state(number) == "HELD")
        assert trial.operator.account(trial.me)["balance"] == 100.0


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [False, True])
def test_a_job_that_runs_on_pays_for_what_it_booked_and_ends(tmp_path, hidden):
    config = {"pricing": {"kind": "posted", "prices": [0.5]}, "max_duration": 4}
    with Trial(tmp_path, config=config) as trial:
        job, waits = trial.announce("on", 2, (2,), hidden=hidden), trial.announce("waits", 1, (1,), later=2)
        number, next_ = trial.batch(job, nodes=2, minutes=600 if hidden else 2), trial.batch(waits)
        trial.bridge.step()
        trial.operator.advance()
        trial.step_until(lambda: trial.slurm_state(number) == "RUNNING")
        trial.operator.advance()
        trial.bridge.step()
        assert trial.state(job) == "running"
        trial.operator.advance()  # it has used its two rounds
        found = trial.operator.job(job)
        assert (found["state"], found["outcome"], found["charge"]) == ("completed", "overrun", 2.0)
        trial.step_until(lambda: trial.slurm_state(number) == "CANCELLED" and trial.slurm_state(next_) == "RUNNING")
        charges = trial.operator.ledger()["entries"]
        trial.bridge.step()
        assert trial.operator.ledger()["entries"] == charges


def test_processes_have_to_end_with_their_job(tmp_path):
    with Trial(tmp_path) as trial, pytest.raises(InvalidParameterError, match="proctrack/cgroup"):
        trial.bridge.check_cluster()


@pytest.mark.slow
def test_a_bridge_that_would_not_see_everything_does_not_start(tmp_path):
    """With an owner's token, or of a partition that is not there, it would cancel and complete the jobs of others."""
    with Trial(tmp_path) as trial:
        job = trial.announce("a")
        number = trial.batch(job)
        trial.bridge.step()
        trial.operator.advance()
        trial.step_until(lambda: trial.slurm_state(number) == "RUNNING")
        with (
            LiveClient(trial.url, trial.token) as owner,
            pytest.raises(InvalidParameterError, match="expected an oper"),
        ):
            SlurmBridge(owner, trial.slurm, trial.rules).step()
        elsewhere = replace(trial.rules, partition="markt")
        with pytest.raises(InvalidParameterError, match="partition = 'markt': expected one of Slurm's: market"):
            SlurmBridge(trial.operator, trial.slurm, elsewhere).step()
        assert trial.slurm_state(number) == "RUNNING" and trial.state(job) == "running"


@pytest.mark.slow
def test_a_job_that_waits_for_another_comes_after_it(tmp_path):
    with Trial(tmp_path) as trial:
        first, second = trial.announce("first"), trial.announce("second", rounds=(1, 2, 3, 4))
        numbers = [trial.batch(first)]
        numbers.append(trial.batch(second, options=(f"--dependency=afterany:{numbers[0]}",)))
        trial.bridge.step()
        assert [trial.state(job) for job in (first, second)] == ["arrived", "submitted"]
        trial.slurm.cancel(numbers[0])
        trial.step_until(lambda: trial.state(second) == "arrived")


@pytest.mark.slow
def test_a_failed_node_costs_nothing(tmp_path):
    with Trial(tmp_path) as trial:
        job = trial.announce("a", nodes=2, rounds=(1, 2))
        number = trial.batch(job, nodes=2)
        trial.bridge.step()
        trial.operator.advance()
        trial.step_until(lambda: trial.slurm_state(number) == "RUNNING")
        trial.slurm.update(NodeName="n2", State="DOWN", Reason="smoke")
        trial.step_until(lambda: trial.state(job) == "completed")
        found = trial.operator.job(job)
        assert (found["outcome"], found["charge"]) == ("node-failed", 0.0), (trial.said, trial.slurm.jobs())
        assert trial.operator.account(trial.me)["balance"] == 100.0


@pytest.mark.slow
def test_with_fewer_nodes_the_last_goes_and_starts_wait(tmp_path):
    with Trial(tmp_path, node_patience=0.0) as trial:
        first, second = trial.announce("first", rounds=(4,)), trial.announce("second")
        numbers = trial.batch(first, minutes=4), trial.batch(second)
        trial.bridge.step()
        trial.operator.advance()
        trial.step_until(lambda: [trial.slurm_state(number) for number in numbers] == ["RUNNING", "RUNNING"])
        trial.slurm.update(NodeName="n1", State="DRAIN", Reason="a new fan")
        until(lambda: trial.slurm.node_states("market")["n1"] == "draining")
        trial.bridge.step()  # its job ends there in peace, and the other has a node that is well
        assert [trial.slurm_state(number) for number in numbers] == ["RUNNING", "RUNNING"]
        trial.slurm.update(NodeName="n1", State="RESUME")
        trial.slurm.update(NodeName="n1", State="FAIL", Reason="it will not last")
        again = f"{second}.r1"
        trial.step_until(lambda: trial.state(second) == "completed" and trial.state(again) == "arrived")
        assert trial.operator.job(second)["outcome"] == "node-failed"
        assert trial.operator.account(trial.me)["balance"] == 100.0
        trial.step_until(lambda: [trial.slurm_state(number) for number in numbers] == ["RUNNING", "HELD"])
        waits = trial.announce("waits")
        third = trial.batch(waits)
        trial.step_until(lambda: trial.state(waits) == "arrived")
        trial.operator.advance()  # the market sells two nodes: it starts one of those that wait
        trial.bridge.step()
        assert trial.slurm_state(numbers[1]) == trial.slurm_state(third) == "HELD"  # and the bridge holds it back
        assert trial.operator.market()["usable_nodes"] == 1
        remarks = [event for event in trial.operator.events(follow=False) if event["event"] == "nodes"]
        assert remarks[0]["removed"] == [second] and remarks[-1]["held"]
        assert trial.operator.market()["rounds_short_of_nodes"] == 1
        trial.slurm.update(NodeName="n1", State="RESUME")
        trial.step_until(lambda: "RUNNING" in (trial.slurm_state(numbers[1]), trial.slurm_state(third)))


@pytest.mark.slow
def test_a_statement_in_the_comment_is_announced_and_arrives(tmp_path):
    with Trial(tmp_path) as trial:
        number = trial.slurm.submit(
            "#!/bin/sh\nexit 0\n", "--nodes=1", "--time=1", "--output=/dev/null", "--chdir=/",
            '--comment=market:{"value": {"kind": "deadline", "value": 9, "deadline": 9}, '
            '"requirements": [{"duration": 1, "probability": 1}]}',
        )  # fmt: skip
        assert trial.slurm_state(number) == "HELD"
        trial.step_until(lambda: len(trial.operator.jobs(state="arrived")) == 1)
        (job,) = trial.operator.jobs()
        assert job["owner"] == trial.me
        trial.operator.advance()
        trial.step_until(lambda: trial.state(job["job"]) == "completed")
        bad = trial.slurm.submit("#!/bin/sh\n", "--time=1", '--comment=market:{"value": 3}', "--output=/dev/null")
        trial.step_until(lambda: trial.slurm_state(bad) == "CANCELLED")


@pytest.mark.slow
def test_what_is_let_go_by_hand_does_not_run(tmp_path):
    with Trial(tmp_path) as trial:
        job = trial.announce("a")
        number = trial.batch(job)
        trial.bridge.step()
        trial.slurm.release(number)
        until(lambda: trial.slurm_state(number) == "RUNNING")
        trial.step_until(lambda: trial.slurm_state(number) == "HELD")
        assert trial.state(job) == "arrived"
        stranger = trial.slurm.submit("#!/bin/sh\nsleep 9\n", "--hold", f"--comment=market:{trial.announce('b')}")
        trial.slurm.update(JobId=stranger, Comment="market:nobody.knows")
        trial.step_until(lambda: trial.slurm_state(stranger) == "CANCELLED")
