"""A real Slurm cluster on this machine alone, for tests and trials: slurmctld, one slurmd for each node, munged.

Every file is in one folder, every port on loopback and free, and all of it ends with the ``with`` block. It takes
Debian's ``slurmctld slurmd slurm-client munge``, and ``faketime`` for a clock that runs faster. Under a fast clock
daemons trust each other without munge, whose two seconds for an answer would be over in no time; every job is then
one of the user who runs the cluster.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from marketsched.slurm.accounting import Accounting
from marketsched.slurm.clock import FastClock
from marketsched.slurm.commands import Slurm, SlurmError

PROGRAMS = ("slurmctld", "slurmd", "squeue", "sbatch", "munged")
OTHERS = ("SLURM", "FAKETIME", "LD_PRELOAD")  # variables of another cluster or clock
LONGEST_FOLDER = 90  # characters: a socket's name has no room for more
PATIENCE_S = 60.0
SETTINGS = {
    "ClusterName": "market",
    "SlurmctldHost": "localhost(127.0.0.1)",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "SwitchType": "switch/none",
    "MpiDefault": "none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "sched_interval=1,bf_interval=1",
    "PriorityType": "priority/basic",
    "PreemptType": "preempt/none",
    "JobRequeue": "1",
    "MinJobAge": "6000000",  # what is over stays in the queue's memory
    "KillWait": "1",
    "ReturnToService": "2",
    "AccountingStorageType": "accounting_storage/none",
    "JobCompType": "jobcomp/none",
}
DEVICES = {  # of a cluster with GPUs; nodes may then have more than this machine
    "GresTypes": "gpu",
    "SelectTypeParameters": "CR_CPU_Memory",
    "SlurmdParameters": "config_overrides",
}
PATIENT = {  # seconds that are over in no time where the clock runs fast
    "MessageTimeout": "6000",
    "TCPTimeout": "6000",
    "BatchStartTimeout": "60000",
    "UnkillableStepTimeout": "60000",
    "SlurmdTimeout": "60000",
    "SlurmctldTimeout": "6000",
    "EpilogMsgTime": "1",
}


def missing_programs(*, fast: bool = False) -> list[str]:
    """Return which programs a cluster (with a fast clock) lacks on this machine.

    Examples
    --------
    >>> missing_programs()  # where all are installed  # doctest: +SKIP
    []
    """
    return [name for name in (*PROGRAMS, *(("faketime",) if fast else ())) if shutil.which(name) is None]


class OneHostCluster:
    """A cluster of ``nodes`` nodes with one partition, ``market``, between ``with`` and its end.

    Parameters
    ----------
    folder : Path
        For all its files; made, and left. Absolute and short.
    nodes : int
        Nodes ``n1`` to ``nN``, one slurmd each.
    cpus : int
        Of a node.
    memory : int
        Of a node, MiB.
    gpus : sequence of str
        Of each node in turn, such as ``"a100:2"``; empty: none. They are files that stand for devices.
    rate : float
        How fast its clock runs; above 1: by libfaketime.
    lua : Path, optional
        A ``job_submit.lua``.
    settings : mapping, optional
        Lines of slurm.conf, in place of `SETTINGS`.
    accounting : Accounting, optional
        Qualities of service; only with a clock that runs as usual.

    Attributes
    ----------
    environment : dict
        For programs that shall use this cluster (``SLURM_CONF``, and the clock).
    slurm : Slurm
        Its commands.
    clock : FastClock

    Raises
    ------
    SlurmError
        If programs are missing, the folder's name is too long, or the nodes are not up in 60 s.

    Examples
    --------
    >>> with OneHostCluster(Path("/tmp/c"), nodes=2) as cluster:  # doctest: +SKIP
    ...     cluster.slurm.usable_nodes("market")
    2
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 4,
        *,
        cpus: int = 1,
        memory: int = 100,
        gpus: Sequence[str] = (),
        rate: float = 1.0,
        lua: Path | None = None,
        settings: Mapping[str, str] | None = None,
        accounting: Accounting | None = None,
    ) -> None:
        if lacking := missing_programs(fast=rate != 1.0):
            legal = "Debian's slurmctld, slurmd, slurm-client, munge, and faketime for a fast clock"
            raise SlurmError(f"{', '.join(lacking)} not found", legal=legal)
        self.folder, self.nodes, self.cpus = folder.resolve(), nodes, cpus
        self.memory, self.gpus = memory, tuple(gpus)
        if len(str(self.folder)) > LONGEST_FOLDER:
            raise SlurmError(place="folder", value=str(folder), legal=f"at most {LONGEST_FOLDER} characters")
        if accounting is not None and rate != 1.0:
            raise SlurmError(place="rate", value=rate, legal="1 with accounting: without munge slurmdbd trusts nobody")
        self.accounting = accounting
        self.clock = FastClock(rate)
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._lua, self._own = lua, dict(settings or {})
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "FAKETIME", "LD_PRELOAD"))
        }
        self.slurm = Slurm(self.environment)

    def __enter__(self) -> Self:
        """Start all daemons and wait for the nodes."""
        for name in ("state", "spool", "log", "munge", "etc"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        try:
            self.clock.start(self.environment)
            self.environment |= {**self.clock.environment, "SLURM_CONF": str(self._write_configuration())}
            self.slurm = Slurm(self.environment)
            if self.clock.rate == 1.0:
                self._start_munged()
            if self.accounting is not None:
                self.accounting.start(self._start, self.slurm, (self._ports[-1], self._ports[-2]))
            self.start_controller("-c")
            for i in range(1, self.nodes + 1):
                self.start_node(f"n{i}")
            self.wait_for_nodes()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End all daemons; jobs that still run end with them."""
        self.stop()

    def stop(self) -> None:
        """End the started daemons; files stay."""
        if "slurmctld" in self.daemons and self.daemons["slurmctld"].poll() is None:
            for job in self._jobs_on_nodes():
                self.slurm.cancel(job)
            deadline = time.monotonic() + 3.0
            while self._jobs_on_nodes() and time.monotonic() < deadline:
                time.sleep(0.05)
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons.clear()
        self.clock.stop()

    def start_controller(self, *options: str) -> None:
        """Start slurmctld; without options it goes on from the state it had."""
        self._start("slurmctld", "slurmctld", "-D", *options)

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        self._start(name, "slurmd", "-D", "-N", name)

    def kill(self, name: str) -> None:
        """SIGKILL a daemon: ``slurmctld``, or a node."""
        daemon = self.daemons.pop(name)
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.wait()

    def wait_for_nodes(self) -> None:
        """Wait until every node can run jobs.

        Raises
        ------
        SlurmError
            If that takes more than 60 s; with the end of the controller's log.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                if self.slurm.usable_nodes("market") == self.nodes:
                    return
            except SlurmError:
                pass  # not listening yet
            time.sleep(0.02)
        log = self.folder / "log" / "slurmctld.log"
        raise SlurmError(f"nodes not up in {PATIENCE_S:g} s: {log.read_text()[-300:] if log.exists() else 'no log'}")

    def _jobs_on_nodes(self) -> list[int]:
        try:
            return [job.id for job in self.slurm.jobs() if job.active]
        except SlurmError:
            return []

    def _start(self, name: str, *command: str) -> None:
        with open(self.folder / "log" / f"{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def _start_munged(self) -> None:
        key, place = self.folder / "munge" / "key", self.folder / "munge"
        place.chmod(0o755)  # every user of the cluster comes here
        if not key.exists():
            key.write_bytes(os.urandom(1024))
            key.chmod(0o400)
        files = {"key-file": "key", "socket": "munge.sock", "pid-file": "munged.pid", "seed-file": "seed"}
        options = [f"--{option}={place / name}" for option, name in files.items()]
        self._start("munged", "munged", "-F", "--force", *options, f"--log-file={self.folder / 'log' / 'munged.log'}")
        deadline = time.monotonic() + PATIENCE_S
        while not (place / "munge.sock").exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _write_configuration(self) -> Path:
        """Write slurm.conf; return its path."""
        folder, user = self.folder, getpass.getuser()
        self._ports = ports = _free_ports(self.nodes + 3)
        lines = {
            **SETTINGS,
            **({} if self.clock.rate == 1.0 else PATIENT),
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthType": "auth/munge" if self.clock.rate == 1.0 else "auth/none",
            "CredType": "cred/munge" if self.clock.rate == 1.0 else "cred/none",
            "SlurmctldPort": str(ports[0]),
            "StateSaveLocation": f"{folder}/state",
            "SlurmdSpoolDir": f"{folder}/spool/%n",
            "SlurmctldPidFile": f"{folder}/log/slurmctld.pid",
            "SlurmdPidFile": f"{folder}/log/slurmd-%n.pid",
            "SlurmctldLogFile": f"{folder}/log/slurmctld.log",
            "SlurmdLogFile": f"{folder}/log/slurmd-%n.log",
        }
        if self.clock.rate == 1.0:
            lines["AuthInfo"] = f"socket={folder}/munge/munge.sock"
        if self._lua is not None:
            lines["JobSubmitPlugins"] = "lua"
            shutil.copy(self._lua, folder / "etc" / "job_submit.lua")
        if self.gpus:
            lines |= DEVICES
            self._write_devices()
        if self.accounting is not None:
            lines |= self.accounting.lines(ports[-1])
        lines |= self._own
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        for i, port in enumerate(ports[1 : self.nodes + 1], start=1):
            text += f"NodeName=n{i} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} "
            gpus = self.gpus[i - 1] if i <= len(self.gpus) else ""
            text += f"RealMemory={self.memory} {f'Gres=gpu:{gpus} ' if gpus else ''}State=UNKNOWN\n"
        text += f"PartitionName=market Nodes=n[1-{self.nodes}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n"
        path = folder / "etc" / "slurm.conf"
        path.write_text(text)
        return path

    def _write_devices(self) -> None:
        """Make a file for each GPU, and write gres.conf."""
        text = ""
        for i, each in enumerate(self.gpus, start=1):
            kind, _, count = each.partition(":")
            for number in range(int(count or 0)):
                device = self.folder / "etc" / f"n{i}-gpu{number}"
                device.touch()
                text += f"NodeName=n{i} Name=gpu Type={kind} File={device}\n"
        (self.folder / "etc" / "gres.conf").write_text(text)


def _free_ports(number: int) -> list[int]:
    """Return ports that are free just now."""
    held = [socket.socket() for _ in range(number)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports
