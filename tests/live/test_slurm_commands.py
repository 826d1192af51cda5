"""Slurm's commands: what the bridge relies on, by hand and by Slurm itself."""

import json
import stat
from dataclasses import asdict

import pytest

from marketsched.live.slurm import Slurm, SlurmError, SlurmJob
from marketsched.live.slurm_demand import NodeDemand, SlurmNode
from slurm_cluster import OneHostCluster
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


ROW = {
    "job_id": 12, "name": "train", "user_name": "ann", "comment": "market:x", "job_state": "FAILED", "nice": 50,
    "state_reason": "NonZeroExitCode", "priority": 0, "node_count": 2, "submit_time": 5, "start_time": 7,
    "end_time": 9, "exit_code": 3 << 8, "restart_cnt": 1, "time_limit": 10, "partition": "market,debug", "qos": "high",
    "array_job_id": 11, "dependency": "afterok:3", "eligible_time": 6, "tres_req_str": "cpu=8,mem=3G,node=2",
    "tres_per_node": "gres:gpu:a100:4", "tres_per_job": "gres:gpu:8", "shared": "none",
}  # fmt: skip


def test_each_field_of_a_job_is_read_from_its_own_word():
    found = asdict(SlurmJob.of(ROW))
    assert found == {
        "id": 12, "name": "train", "user": "ann", "comment": "market:x", "state": "FAILED", "nice": 50,
        "reason": "NonZeroExitCode", "held": False, "nodes": 2, "submitted": 5.0, "started": 7.0, "ended": 9.0,
        "exit_code": 3, "restarts": 1, "limit": 10, "partitions": ("market", "debug"), "leader": 11,
        "parts": "an array", "begins_later": False, "depends": False, "qos": "high",
        "demand": {"cpus": 4.0, "memory": 1536.0, "gpus": {"a100": 4}, "unclear": "--gpus, --exclusive"},
    }  # fmt: skip
    waiting = SlurmJob.of(ROW | {"job_state": "PENDING", "het_job_id": 10})
    assert (waiting.held, waiting.begins_later, waiting.depends, waiting.started) == (True, True, True, 0.0)
    assert (waiting.leader, waiting.parts) == (10, "a heterogeneous job")
    cancelled = [SlurmJob.of(ROW | {"job_state": "CANCELLED", "start_time": start}).started for start in (7, 9)]
    assert cancelled == [7.0, 0.0]  # as it ran, as it waited
    none = dict.fromkeys(set(ROW) - {"job_id", "name", "user_name", "job_state", "state_reason", "priority"})
    bare = asdict(SlurmJob.of(ROW | none))
    assert bare["demand"] == asdict(NodeDemand()) and (bare["leader"], bare["parts"], bare["qos"]) == (12, "", "")
    assert not any(bare[name] for name in ("nodes", "submitted", "started", "ended", "exit_code", "restarts", "limit"))


def test_jobs_are_those_of_the_partition_by_number():
    class Answers(Slurm):
        def run(self, *command, text=None):
            return json.dumps({"errors": [], "jobs": [ROW, ROW | {"job_id": 3, "partition": "debug"}]})

    assert [[job.id for job in Answers().jobs(name)] for name in (None, "market", "debug")] == [[3, 12], [12], [3, 12]]


def test_nodes_are_those_of_the_partition_with_what_jobs_can_have():
    class Answers(Slurm):
        def run(self, *command, text=None):
            return {
                "sinfo": "n1 IDLE\nn2 mixed\nn3 down*\nn4 draining\nn5 draining*\nn6 Drained\n",
                "scontrol": "NodeName=n1 CPUEfctv=7 CPUTot=8 RealMemory=900 MemSpecLimit=100 Gres=gpu:a100:2(S:0) "
                "ActiveFeatures=fast,new Partitions=market,debug\n"
                "NodeName=n2 CPUTot=8 RealMemory=900 Gres=(null) ActiveFeatures=(null) Partitions=market\n"
                "NodeName=n3 CPUTot=4 RealMemory=50 Gres= Partitions=market\nNodeName=other CPUTot=1 RealMemory=1\n",
            }[command[0]]

    slurm = Answers()
    assert slurm.nodes("market") == [
        SlurmNode("n1", 7, 800, {"a100": 2}, ("fast", "new"), ("market", "debug"), True),
        SlurmNode("n2", 8, 900, {}, (), ("market",), True),
        SlurmNode("n3", 4, 50, {}, (), ("market",), False),
    ]
    assert slurm.usable_nodes("market") == 3  # n1, n2, and n4 behind its last job


STAND_INS = {  # for programs that are not installed: each notes its command in a file
    "squeue": """echo '{"errors": [], "jobs": []}'""",
    "sinfo": "echo n1 idle; echo n2 idle",
    "sacctmgr": "",
    "sbatch": 'cat > "$COUNT"; echo "12;market"',
    "scontrol": "echo AccountingStorageType = accounting_storage/slurmdbd",
    "scancel": "",
}


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """Put programs on the PATH that stand for Slurm's, and return a function that gives the commands of one."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in STAND_INS.items():
        (programs / name).write_text(f'#!/bin/sh\necho "$@" >> {programs}/{name}.calls\n{script}\n')
        (programs / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    return lambda name: (programs / f"{name}.calls").read_text().splitlines()


def test_actions_are_slurm_s_own_commands(stand_ins, tmp_path):
    slurm = Slurm()
    assert slurm.submit("#!/bin/sh\nsleep 9\n", "--hold", "--nodes=2") == 12
    assert (tmp_path / "count").read_text() == "#!/bin/sh\nsleep 9\n" and slurm.run("sbatch") == "12;market\n"
    assert (tmp_path / "count").read_text() == ""  # without a script its input is empty, and not this process's
    assert stand_ins("sbatch") == ["--parsable --hold --nodes=2", ""]
    for action in (slurm.release, slurm.requeue_held, slurm.hold, slurm.cancel):
        action(7)
    slurm.update(JobId=7, TimeLimit="+2")
    assert slurm.configuration() == {"AccountingStorageType": "accounting_storage/slurmdbd"}
    assert slurm.qos_names() == []  # of an accounting that knows none yet
    assert stand_ins("scancel") == ["7"] and stand_ins("sacctmgr") == ["-nP show qos format=name"]
    actions = ["release 7", "requeuehold 7", "hold 7", "update JobId=7 TimeLimit=+2", *["show config"] * 2]
    assert stand_ins("scontrol") == actions
    assert slurm.node_states("market") == {"n1": "idle", "n2": "idle"} and slurm.usable_nodes("market") == 2


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
