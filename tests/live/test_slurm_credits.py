"""Credits in front of a real Slurm: regular and free nodes are two QOS, which nobody but the bridge sets."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from marketsched.live.slurm import SlurmError
from marketsched.mechanisms.errors import InvalidParameterError
from slurm_trials import WITH_ACCOUNTING, WITH_USERS, SlurmOf, Trial, until, users

pytestmark = [WITH_ACCOUNTING, pytest.mark.slow]
CREDITS = {"mechanism": "credits", "max_duration": 8}
SLEEP = "#!/bin/sh\nexec sleep 60\n"
URGENT = {"rounds": (3,), "hidden": True, "patience": 3}  # late at once: it is regular
ANN = f"ms-ann-{os.getpid()}"


def qos_of(trial, number):
    (found,) = [each for each in trial.slurm.jobs() if each.id == number]
    return found.qos


def of(owners, **parameters):
    """Return a configuration in which these owners have equal shares."""
    return {**CREDITS, "parameters": {"shares": dict.fromkeys(owners, 1), **parameters}}


def started(trial, job, number):
    trial.step_until(lambda: trial.slurm_state(number) == "RUNNING")
    return trial.operator.job(job)["class"], qos_of(trial, number)


@pytest.mark.long
def test_regular_jobs_take_free_nodes_and_slurm_takes_only_free_ones(tmp_path):
    beside = {"PartitionName": "other Nodes=n[1-2] MaxTime=INFINITE State=UP"}
    with Trial(tmp_path, config=of(["ann", "bob"]), credits=True, one_user=True, settings=beside) as trial:
        for owner in ("ann", "bob"):
            trial.operator.create_owner(owner)
        wide = trial.announce("wide", 2, (4,), hidden=True, owner="ann")
        number = trial.batch(wide, nodes=2, minutes=8)
        trial.bridge.step()
        trial.operator.advance()
        assert started(trial, wide, number) == ("free", "free")
        urgent = trial.announce("urgent", 1, owner="bob", **URGENT)
        other = trial.batch(urgent, minutes=8)
        assert qos_of(trial, other) == "free"  # until the market says more
        trial.bridge.step()
        trial.operator.advance()
        assert (trial.state(wide), trial.state(urgent)) == ("arrived", "running")
        assert started(trial, urgent, other) == ("regular", "credit")
        assert trial.slurm_state(number) == "HELD"
        narrow = trial.announce("narrow", 1, (4,), hidden=True, owner="ann")
        third = trial.batch(narrow, minutes=8)
        trial.bridge.step()
        trial.operator.advance()
        assert started(trial, narrow, third) == ("free", "free")
        # Beside the market the operator's own QOS takes what is free, and waits for what is regular.
        takers = [trial.slurm.submit(SLEEP, "--partition=other", "--qos=urgent", "-N1", "--chdir=/") for _ in range(2)]
        until(lambda: trial.slurm_state(takers[0]) == "RUNNING" and trial.slurm_state(third) == "PENDING")
        assert trial.slurm_state(other) == "RUNNING"
        trial.bridge.step()
        assert trial.slurm_state(takers[1]) == "PENDING" and trial.state(narrow) == "running"


@pytest.mark.long
def test_who_sets_a_qos_is_put_back(tmp_path):
    with Trial(tmp_path, config=of(["ann"]), credits=True, one_user=True, plugin=False) as trial:
        trial.operator.create_owner("ann")
        job = trial.announce("a", 1, (2,), hidden=True, owner="ann")
        number = trial.slurm.submit(
            SLEEP, f"--comment=market:{job}", "--hold", "--qos=credit", "-t8", "--chdir=/",
            "--output=/dev/null",
        )  # fmt: skip
        trial.bridge.step()
        assert qos_of(trial, number) == "free"
        trial.slurm.update(JobId=number, QOS="credit")
        trial.bridge.step()
        assert qos_of(trial, number) == "free"
        trial.operator.advance()
        assert started(trial, job, number) == ("free", "free")


def test_a_statement_in_a_comment_takes_its_rank_from_nice(tmp_path):
    with Trial(tmp_path, config=of(["ann"]), credits=True, one_user=True) as trial:
        trial.operator.create_owner("ann")
        said = '{"owner": "ann", "value": {"kind": "rank", "deadline": 30}, "requirements": [%s]}'
        comment = said % '{"duration": 2, "probability": 1, "signal": null}'
        for nice in ("--nice=3", "--nice=50"):
            trial.slurm.submit(SLEEP, f"--comment=market:{comment}", nice, "-N1", "-t8", "--chdir=/")
        trial.step_until(lambda: len(trial.operator.jobs(state="arrived")) == 2)
        jobs = [trial.operator.job(row["job"])["sow"]["value"] for row in trial.operator.jobs()]
        assert [value["rank"] for value in jobs] == [6, 1]
        trial.slurm.submit(
            SLEEP, "--comment=market:{}", "-N1", "-t8", "--chdir=/"
        )  # no value: cancelled, and nothing else
        trial.step_until(lambda: [job.state for job in trial.slurm.jobs()][-1] == "CANCELLED")


@pytest.mark.long
@WITH_USERS
def test_no_user_sets_a_qos():
    folder = Path(tempfile.mkdtemp(prefix="credits-", dir="/tmp"))  # the folders of pytest are root's alone
    folder.chmod(0o755)
    try:
        with users(ANN), Trial(folder, config=of([ANN]), credits=True, users=[ANN]) as trial:
            trial.operator.create_owner(ANN)
            ann = SlurmOf(trial.slurm, ANN)
            job = trial.announce("a", owner=ANN, **URGENT)
            options = ["-N1", "-t8", "--chdir=/", "--output=/dev/null"]
            with pytest.raises(SlurmError, match="expected no --qos: the market decides"):
                ann.submit(SLEEP, f"--comment=market:{job}", "--qos=credit", *options)
            number = ann.submit(SLEEP, f"--comment=market:{job}", *options)
            assert qos_of(trial, number) == "free"
            with pytest.raises(SlurmError):
                ann.update(JobId=number, QOS="credit")
            trial.bridge.step()
            trial.operator.advance()
            assert started(trial, job, number) == ("regular", "credit")  # which ANN may not have by herself
            with pytest.raises(SlurmError):
                ann.run("scontrol", "requeue", str(number))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_cluster_without_the_two_qos_is_refused(tmp_path):
    with pytest.raises(
        InvalidParameterError, match=r"QOS of regular nodes is not in Slurm's accounting: expected 'credit'"
    ):
        Trial(tmp_path, config=of(["ann"]))
