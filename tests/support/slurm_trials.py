"""Real Slurm clusters for tests; where its packages are missing, the tests are skipped and say which."""

import getpass
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from marketsched.live.slurm import Slurm, SlurmError
from slurm_cluster import OF_ACCOUNTING, PROGRAMS, OneHostCluster, missing_programs

WITH_SLURM = pytest.mark.skipif(
    bool(missing_programs()),
    reason=f"not installed (Debian: slurmctld slurmd slurm-client munge): {missing_programs()}",
)
WITH_ACCOUNTING = pytest.mark.skipif(
    bool(missing_programs(PROGRAMS + OF_ACCOUNTING)),
    reason=f"not installed (Debian's Slurm, slurmdbd and MariaDB): {missing_programs(PROGRAMS + OF_ACCOUNTING)}",
)
WITH_USERS = pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("useradd") is None or shutil.which("runuser") is None,
    reason="users of Unix are made: needs root, useradd and runuser",
)
QOS = {  # of a market of credits, and one of the operator's own that takes what is free
    "free": ["PreemptMode=requeue", "UsageFactor=0", "Priority=1"],
    "credit": ["UsageFactor=1", "Priority=2"],
    "urgent": ["Preempt=free", "Priority=9"],
}
PREEMPTING = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}


@contextmanager
def users(*names):
    """Make users of this machine, for a while."""
    made = []
    try:
        for name in names:
            subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", name], check=True, capture_output=True)
            made.append(name)
        yield
    finally:
        for name in made:
            subprocess.run(["userdel", name], check=False, capture_output=True)


class SlurmOf(Slurm):
    """Slurm's commands as another user."""

    def __init__(self, slurm, user):
        super().__init__(slurm.environment, slurm.timeout)
        self.user = user

    def run(self, *command, text=None):
        return super().run("runuser", "-u", self.user, "--", *command, text=text)


PATIENCE = 300.0  # seconds; daemons share the machine with other work
SETTINGS = {"MessageTimeout": "1", "ReturnToService": "0"}  # s; a node that was set down stays so


def until(what, seconds=PATIENCE):
    """Wait until something is true; while Slurm does not answer, it is not."""
    end = time.monotonic() + seconds
    while True:
        try:
            if what():
                return
        except SlurmError:
            pass
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


class Trial:
    """A market with a manual clock in front of a real cluster, with a bridge that looks when it is told to."""

    def __init__(
        self, folder, nodes=2, *, config=None, node_patience=30.0, settings=None, plugin=True, equipment=None,
        credits=False, one_user=False, users=(),
    ):  # fmt: skip
        from marketsched.live.client import LiveClient
        from marketsched.live.serving import serving
        from marketsched.live.slurm_actions import BridgeRules
        from marketsched.live.slurm_bridge import SlurmBridge
        from marketsched.live.slurm_plugin import plugin_text

        self.me = getpass.getuser()
        self.stack = ExitStack()
        self.folder, self.announced, self.said = folder, folder / "announced", []
        lua = folder / "job_submit.lua"
        begin = {"free_qos": "free"} if credits else {}
        lua.write_text(plugin_text(self.announced, default=False, check_users=not one_user, **begin))
        if credits:
            settings = {**PREEMPTING, **(settings or {})}
            equipment = {**(equipment or {}), "qos": QOS, "users": dict.fromkeys(users, "free")}
        sizes = {"capacity": nodes, "max_concurrency": nodes, "max_duration": 4, "max_value": 99.0, "max_delay": 40}
        self.config = {
            **sizes,
            "announced_nodes": "unlimited",
            **(config or {"pricing": {"kind": "posted", "prices": [0.5]}}),
        }
        self.rules = BridgeRules(announced=self.announced, node_patience=node_patience, check_users=not one_user)
        try:
            self.cluster = self.stack.enter_context(
                OneHostCluster(
                    folder / "c",
                    nodes,
                    lua=lua if plugin else None,
                    settings={**SETTINGS, **(settings or {})},
                    **(equipment or {}),
                )
            )
            token = folder / "token"
            self.url = self.stack.enter_context(
                serving(self.config, str(folder / "market.db"), operator_token_file=token)
            )
            self.operator = self.stack.enter_context(LiveClient(self.url, token.read_text().strip()))
            self.token = self.operator.create_owner(
                self.me, deposit=0.0 if self.config.get("mechanism") == "credits" else 100.0
            )["token"]
            self.slurm = self.cluster.slurm
            self.bridge = SlurmBridge(self.operator, self.slurm, self.rules, self.said.append)
            self.bridge.step()
        except BaseException:
            self.stack.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def announce(
        self, label, nodes=1, rounds=(1,), *, worth=50.0, bridge=True, later=0, hidden=False, patience=30, owner=None,
        terms=None,
    ):  # fmt: skip
        """Submit a statement that is due now, or ``later`` rounds from now; return the job.

        ``patience``: rounds to its deadline; ``terms``: what else the statement says.
        """
        here = self.operator.market()["round"] + later
        sow = {
            "concurrency": nodes,
            "value": {"kind": "deadline", "value": worth, "deadline": here + patience},
            "requirements": [{"arrival": here, "duration": d, "probability": 1 / len(rounds)} for d in rounds],
            **(terms or {}),
        }
        if hidden:
            sow["requirements"] = [{**row, "signal": None} for row in sow["requirements"]]
        job = self.operator.submit(sow, name=label, owner=owner or self.me)["job"]
        if bridge:
            self.bridge.step()
        return job

    def batch(self, job, script="exec sleep 60", nodes=1, minutes=1, options=()):
        """Submit a script for a job of the market; return Slurm's number."""
        return self.slurm.submit(
            f"#!/bin/sh\n{script}\n", f"--comment=market:{job}", f"--nodes={nodes}", f"--time={minutes}",
            "--output=/dev/null", "--chdir=/", *options,
        )  # fmt: skip

    def state(self, job):
        """Return the state of a job of the market."""
        return self.operator.job(job)["state"]

    def slurm_state(self, number):
        """Return the state of a job of Slurm; HELD for one that waits, held."""
        (found,) = [each for each in self.slurm.jobs() if each.id == number]
        return "HELD" if found.held else found.state

    def step_until(self, what, seconds=PATIENCE):
        """Let the bridge look until something is true."""

        def looked():
            self.bridge.step()
            return what()

        try:
            until(looked, seconds)
        except AssertionError as error:
            error.add_note(f"the bridge: {self.said[-8:]}; Slurm: {self.slurm.jobs()}")
            raise


class BridgeProcess:
    """The bridge as a process."""

    def __init__(self, trial):
        self.trial = trial
        self.start()

    def start(self):
        """Start it as an operator does."""
        trial = self.trial
        command = [sys.executable, "-m", "marketsched", "live", "slurm", "--url", trial.url, "--interval", "0.1"]
        command.append("--any-proctrack")  # the cluster of these tests knows no cgroups
        with open(trial.folder / "bridge.log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, "--token-file", str(trial.folder / "token"), "--announced", str(trial.announced)],
                env=trial.cluster.environment, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self):
        """End it without a word."""
        self.process.kill()
        self.process.wait()
