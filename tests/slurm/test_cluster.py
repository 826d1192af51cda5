"""A real cluster on this machine, and the commands: what a bridge relies on, by Slurm itself."""

import pytest

from marketsched.slurm import OneHostCluster, Slurm, SlurmError, SlurmJob, missing_programs
from slurm_trials import WITH_SLURM, until


def row(**more):
    """Return a job as ``squeue --json`` writes it."""
    fields = {
        "job_id": 7, "name": "wrap", "user_name": "ann", "comment": "market:ann.1", "job_state": "PENDING",
        "state_reason": "JobHeldAdmin", "priority": 0, "node_count": 2, "submit_time": 5, "start_time": 0,
        "end_time": 0, "exit_code": 0, "restart_cnt": 0, "time_limit": 10,
    }  # fmt: skip
    return fields | more


def test_jobs_are_read_as_the_controller_writes_them():
    held = SlurmJob.of(row())
    assert held.held and not held.active and not held.over and held.comment == "market:ann.1"
    assert not SlurmJob.of(row(priority=4294901759)).held
    assert not SlurmJob.of(row(job_state="RUNNING", priority=0)).held
    assert SlurmJob.of(row(job_state="RUNNING", start_time=9)).started == 9
    assert SlurmJob.of(row(job_state="PENDING", start_time=9)).started == 0  # a forecast
    assert SlurmJob.of(row(job_state="COMPLETING")).active and SlurmJob.of(row(job_state="NODE_FAIL")).over


@pytest.mark.parametrize(("status", "code"), [(0, 0), (768, 3), (15, 143), (9 + 128, 137)])
def test_exit_codes_are_those_of_a_shell(status, code):
    assert SlurmJob.of(row(job_state="FAILED", exit_code=status)).exit_code == code


def test_commands_that_fail_or_are_missing_are_one_error(tmp_path):
    nowhere = Slurm({"PATH": str(tmp_path)})
    with pytest.raises(SlurmError, match="squeue: No such file or directory: expected Slurm's commands on the PATH"):
        nowhere.jobs()
    with pytest.raises(SlurmError, match=r"no answer in 0\.1 s"):
        Slurm(timeout=0.1).run("sleep", "5")
    with pytest.raises(SlurmError, match="false: status 1"):
        Slurm().run("false")


def test_a_cluster_says_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_programs(fast=True) == ["slurmctld", "slurmd", "squeue", "sbatch", "munged", "faketime"]
    with pytest.raises(SlurmError, match=r"slurmctld, .* not found: expected Debian's slurmctld"):
        OneHostCluster(tmp_path)


@pytest.mark.slow
@WITH_SLURM
def test_a_job_is_held_let_go_put_back_and_ends_with_its_exit_code(tmp_path):
    with OneHostCluster(tmp_path, 2, settings={"MessageTimeout": "1"}) as cluster:
        slurm = cluster.slurm
        assert slurm.usable_nodes("market") == 2
        number = slurm.submit(
            "#!/bin/sh\nexec sleep 60\n", "--hold", "--nodes=2", "--comment=market:a b", "--output=/dev/null"
        )
        (job,) = slurm.jobs("market")
        assert (job.id, job.held, job.nodes, job.comment) == (number, True, 2, "market:a b")
        for _ in range(2):  # each is safe to take twice
            slurm.release(number)
        until(lambda: slurm.jobs()[0].state == "RUNNING")
        slurm.requeue_held(number)
        until(lambda: slurm.jobs()[0].held)
        assert slurm.jobs()[0].restarts == 1
        for _ in range(2):
            slurm.cancel(number)
        until(lambda: slurm.jobs()[0].state == "CANCELLED")
        second = slurm.submit("#!/bin/sh\nexit 3\n", "--output=/dev/null")
        until(lambda: slurm.jobs()[1].state == "FAILED")
        assert (slurm.jobs()[1].id, slurm.jobs()[1].exit_code) == (second, 3)
        cluster.kill("n2")
        cluster.kill("slurmctld")
        with pytest.raises(SlurmError, match="squeue --json: Failed while looking for jobs"):
            slurm.jobs()
        cluster.start_controller()
        until(lambda: slurm.jobs() is not None)  # it remembers what it saved: some seconds before it was killed
        slurm.update(NodeName="n2", State="DOWN", Reason="pulled out")
        until(lambda: slurm.usable_nodes("market") == 1)
