"""Two users of Unix in front of the bridge: nobody uses, changes or pays for what is another's."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from marketsched.live.slurm import SlurmError
from slurm_trials import WITH_SLURM, WITH_USERS, SlurmOf, Trial, users

pytestmark = [WITH_SLURM, WITH_USERS, pytest.mark.slow]
ANN, BOB = f"ms-ann-{os.getpid()}", f"ms-bob-{os.getpid()}"


@pytest.fixture
def trial():
    folder = Path(tempfile.mkdtemp(prefix="users-", dir="/tmp"))  # the folders of pytest are root's alone
    folder.chmod(0o755)
    try:
        with users(ANN, BOB), Trial(folder) as found:
            for name in (ANN, BOB):
                found.operator.create_owner(name, deposit=100.0)
            found.me = ANN
            (folder / "out").mkdir()
            (folder / "out").chmod(0o777)
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def batch(slurm, comment, *options, script="exec sleep 60"):
    return slurm.submit(f"#!/bin/sh\n{script}\n", f"--comment=market:{comment}", "-N1", "-t1", "--chdir=/", *options)


def test_another_user_can_neither_take_nor_change_nor_pay_with_a_job(trial):
    ann, bob = SlurmOf(trial.slurm, ANN), SlurmOf(trial.slurm, BOB)
    job = trial.announce("a")
    with pytest.raises(SlurmError, match=rf"{job} belongs to another user"):
        batch(bob, job, "--output=/dev/null")
    number = batch(ann, job, f"--output={trial.folder}/out/a", script="id -un; exec sleep 60")
    trial.step_until(lambda: trial.state(job) == "arrived")
    # Neither he nor she lets it start, or changes what it says.
    for slurm in (ann, bob):
        for command in ("release", "requeue", "requeuehold"):
            with pytest.raises(SlurmError):
                slurm.run("scontrol", command, str(number))
        for field in ("Priority=100", f"Comment=market:{BOB}.b", "NumNodes=2", "TimeLimit=4", "Partition=market"):
            with pytest.raises(SlurmError):
                slurm.run("scontrol", "update", f"JobId={number}", field)
    with pytest.raises(SlurmError):
        bob.cancel(number)
    assert trial.slurm_state(number) == "HELD"
    # Nor does a statement in a comment make another user pay.
    asked = '"requirements": [{"duration": 1, "probability": 1}]}'
    theft = batch(
        bob, f'{{"owner": "{ANN}", "value": {{"kind": "deadline", "value": 9, "deadline": 9}}, {asked}',
        "--output=/dev/null",
    )  # fmt: skip
    trial.step_until(lambda: trial.slurm_state(theft) == "CANCELLED")
    assert [each["job"] for each in trial.operator.jobs()] == [job]
    trial.operator.advance()
    trial.step_until(lambda: trial.slurm_state(number) == "RUNNING")
    written = trial.folder / "out" / "a"
    trial.step_until(lambda: written.exists() and ANN in written.read_text())  # a cancel may come before
    with pytest.raises(SlurmError):
        bob.cancel(number)
    with pytest.raises(SlurmError):
        ann.run("scontrol", "requeue", str(number))  # who starts pays
    ann.cancel(number)
    trial.step_until(lambda: trial.state(job) == "completed")
    assert written.read_text().split()[0] == ANN
    assert trial.operator.account(ANN)["balance"] == 99.5 and trial.operator.account(BOB)["balance"] == 100.0


def test_no_other_user_reads_tokens_or_reports(trial):
    trial.announce("a")
    secret = [trial.folder / name for name in ("token", "market.db", "market.db-wal", "market.db-shm")]
    assert all(path.exists() for path in secret)
    for path in secret:
        done = subprocess.run(["runuser", "-u", BOB, "--", "cat", path], capture_output=True, check=False)
        assert done.returncode != 0 and done.stdout == b"", path
    done = subprocess.run(["runuser", "-u", BOB, "--", "cat", trial.announced], capture_output=True, check=True)
    assert done.stdout.decode() == f"{ANN}.a {ANN} 1\n"  # Slurm's controller need not be root: names, and no values
