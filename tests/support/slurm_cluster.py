"""A real Slurm on this machine alone: slurmctld, one slurmd for each node, munged, and slurmdbd where QOS are needed.

Every file is in one folder and every port on loopback. It takes Debian's ``slurmctld slurmd slurm-client munge``, and
``slurmdbd slurm-wlm-mysql-plugin mariadb-server`` for QOS.
"""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time

from marketsched.live.slurm import Slurm, SlurmError

PROGRAMS = ("slurmctld", "slurmd", "squeue", "sbatch", "munged")
OF_ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")
ACCOUNT = "market"  # of all users
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
    "MinJobAge": "6000000",  # the controller remembers jobs that are over
    "KillWait": "1",
    "ReturnToService": "2",
    "AccountingStorageType": "accounting_storage/none",
    "JobCompType": "jobcomp/none",
    "AuthType": "auth/munge",
    "CredType": "cred/munge",
}
DEVICES = {  # of a cluster with GPUs; nodes may then have more than this machine
    "GresTypes": "gpu",
    "SelectTypeParameters": "CR_CPU_Memory",
    "SlurmdParameters": "config_overrides",
}


def missing_programs(needed=PROGRAMS):
    """Return the programs that this machine lacks."""
    return [name for name in needed if shutil.which(name) is None]


class OneHostCluster:
    """Nodes ``n1`` to ``nN`` with one partition, ``market``, between ``with`` and its end.

    ``gpus``: of each node in turn, such as ``"a100:2"`` (files stand for devices); ``lua``: a ``job_submit.lua``;
    ``settings``: lines of slurm.conf; ``qos``: what ``sacctmgr`` sets of each; ``users``: the one QOS of each user.
    """

    def __init__(
        self, folder, nodes=4, *, cpus=1, memory=100, gpus=(), lua=None, settings=None, qos=None, users=None
    ):  # fmt: skip
        self.folder, self.nodes, self.cpus, self.memory, self.gpus = folder.resolve(), nodes, cpus, memory, gpus
        self.qos, self.users = qos, users or {}
        self.daemons = {}
        self._lua, self._own = lua, settings or {}
        self.environment = {name: text for name, text in os.environ.items() if not name.startswith("SLURM")}
        self.environment["SLURM_CONF"] = str(self.folder / "etc" / "slurm.conf")
        self.slurm = Slurm(self.environment)

    def __enter__(self):
        for name in ("state", "spool", "log", "munge", "etc", "db"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        try:
            self._write_configuration()
            self._start_munged()
            if self.qos:
                self._start_accounting()
            self.start_controller("-c")
            for i in range(1, self.nodes + 1):
                self._start(f"n{i}", "slurmd", "-D", "-N", f"n{i}")
            self._until(lambda: self.slurm.usable_nodes("market") == self.nodes)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """End the jobs and the daemons; files stay."""
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

    def start_controller(self, *options):
        """Start slurmctld; without options it goes on from the state it had."""
        self._start("slurmctld", "slurmctld", "-D", *options)

    def kill(self, name):
        """SIGKILL a daemon: ``slurmctld``, or a node."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def _jobs_on_nodes(self):
        try:
            return [job.id for job in self.slurm.jobs() if job.active]
        except SlurmError:
            return []

    def _until(self, reached):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if reached():
                    return
            except SlurmError:
                pass  # not listening yet
            assert time.monotonic() < deadline, f"not up in {PATIENCE_S:g} s: see {self.folder / 'log'}"
            time.sleep(0.02)

    def _start(self, name, *command):
        with open(self.folder / "log" / f"{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def _start_munged(self):
        place = self.folder / "munge"
        place.chmod(0o755)  # every user of the cluster comes here
        (place / "key").write_bytes(os.urandom(1024))
        (place / "key").chmod(0o400)
        files = {"key-file": "key", "socket": "munge.sock", "pid-file": "munged.pid", "seed-file": "seed"}
        options = [f"--{option}={place / name}" for option, name in files.items()]
        self._start("munged", "munged", "-F", "--force", *options, f"--log-file={self.folder / 'log' / 'munged.log'}")
        self._until((place / "munge.sock").exists)

    def _write_configuration(self):
        folder, user = self.folder, getpass.getuser()
        self._ports = free_ports(self.nodes + 3)
        controller, *of_nodes, dbd, _ = self._ports
        lines = {
            **SETTINGS,
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthInfo": f"socket={folder}/munge/munge.sock",
            "SlurmctldPort": controller,
            "StateSaveLocation": f"{folder}/state",
            "SlurmdSpoolDir": f"{folder}/spool/%n",
            "SlurmctldPidFile": f"{folder}/log/slurmctld.pid",
            "SlurmdPidFile": f"{folder}/log/slurmd-%n.pid",
            "SlurmctldLogFile": f"{folder}/log/slurmctld.log",
            "SlurmdLogFile": f"{folder}/log/slurmd-%n.log",
        }
        if self._lua is not None:
            lines["JobSubmitPlugins"] = "lua"
            shutil.copy(self._lua, folder / "etc" / "job_submit.lua")
        if self.gpus:
            lines |= DEVICES
            self._write_devices()
        if self.qos:
            lines["AccountingStorageType"] = "accounting_storage/slurmdbd"
            lines |= {"AccountingStorageHost": "127.0.0.1", "AccountingStoragePort": dbd}
            lines |= {"AccountingStoragePass": f"{folder}/munge/munge.sock"}
            lines["AccountingStorageEnforce"] = "associations,qos"
        text = setting_lines(lines | self._own)
        for i, port in enumerate(of_nodes, start=1):
            text += f"NodeName=n{i} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} "
            gpus = self.gpus[i - 1] if i <= len(self.gpus) else ""
            text += f"RealMemory={self.memory} {f'Gres=gpu:{gpus} ' if gpus else ''}State=UNKNOWN\n"
        text += f"PartitionName=market Nodes=n[1-{self.nodes}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO\n"
        (folder / "etc" / "slurm.conf").write_text(text)

    def _write_devices(self):
        text = ""
        for i, gpus in enumerate(self.gpus, start=1):
            kind, _, count = gpus.partition(":")
            for number in range(int(count or 0)):
                device = self.folder / "etc" / f"n{i}-gpu{number}"
                device.touch()
                text += f"NodeName=n{i} Name=gpu Type={kind} File={device}\n"
        (self.folder / "etc" / "gres.conf").write_text(text)

    def _start_accounting(self):
        """Start MariaDB and slurmdbd; enter cluster, QOS and users."""
        folder, user, password = self.folder, getpass.getuser(), secrets.token_hex(16)
        base, init = folder / "db", folder / "etc" / "db.sql"
        *_, dbd, port = self._ports
        private(init, f"CREATE OR REPLACE USER slurm@'127.0.0.1' IDENTIFIED BY '{password}';\n"
                      "GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';\n")  # fmt: skip
        made = ["mariadb-install-db", "--no-defaults", f"--datadir={base}", "--skip-test-db", f"--user={user}"]
        subprocess.run(made, capture_output=True, check=True)
        self._start(
            "mariadbd", "mariadbd", "--no-defaults", f"--datadir={base}", f"--socket={folder}/db.sock",
            "--bind-address=127.0.0.1", f"--port={port}", f"--user={user}", f"--init-file={init}",
            "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
        )  # fmt: skip
        lines = {
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={folder}/munge/munge.sock",
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "DbdPort": dbd,
            "SlurmUser": user,
            "LogFile": f"{folder}/log/slurmdbd.log",
            "PidFile": f"{folder}/log/slurmdbd.pid",
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StoragePort": port,
            "StorageUser": "slurm",
            "StoragePass": password,
            "StorageLoc": "slurm_acct_db",
        }
        private(folder / "etc" / "slurmdbd.conf", setting_lines(lines))
        self._until((folder / "db.sock").exists)
        self._start("slurmdbd", "slurmdbd", "-D")
        self._until(lambda: self.slurm.run("sacctmgr", "-nP", "show", "qos", "format=name"))
        self._enter("add", "cluster", "market")
        for name, settings in self.qos.items():
            self._enter("add", "qos", name, *settings)
        every = [f"qos={','.join(self.qos)}", f"defaultqos={next(iter(self.qos))}"]
        self._enter("modify", "cluster", "market", "set", *every)
        self._enter("add", "account", ACCOUNT, "cluster=market")
        if user != "root":  # root is in an account from the beginning
            self._enter("add", "user", user, f"account={ACCOUNT}", *every)
        for name, only in self.users.items():
            self._enter("add", "user", name, f"account={ACCOUNT}", f"qos={only}", f"defaultqos={only}")

    def _enter(self, *what):
        self.slurm.run("sacctmgr", "-i", *what)


def setting_lines(settings):
    """Return the lines of a configuration of Slurm."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def private(path, text):
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_text(text)


def free_ports(number):
    """Return ports that are free just now."""
    held = [socket.socket() for _ in range(number)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports
