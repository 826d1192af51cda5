"""A real Slurm with accounts and fair share on this machine: MariaDB and slurmdbd beside the cluster.

It takes Debian's ``slurmdbd mariadb-server`` besides what `OneHostCluster` takes. All of it is in the cluster's folder,
on sockets and loopback, and ends with it. The clock is a fast one, so that every job is one of the user who runs the
cluster; what differs between jobs is their account.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marketsched.slurm.cluster import PATIENCE_S, OneHostCluster, _free_ports
from marketsched.slurm.commands import SlurmError

PROGRAMS = ("slurmdbd", "sacctmgr", "sshare", "sprio", "mariadbd", "mariadb-install-db")
FAIR_SHARE = {
    "PriorityType": "priority/multifactor",
    "PriorityDecayHalfLife": "7-0",
    "PriorityCalcPeriod": "1",
    "PriorityMaxAge": "7-0",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairshare": "10000",
    "PriorityWeightJobSize": "1000",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageHost": "127.0.0.1",
    "AccountingStorageEnforce": "associations",
}
FIRST_DAY_S = 120.0  # MariaDB makes its tables


def missing_accounting() -> list[str]:
    """Return which programs accounts need that this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class AccountingCluster(OneHostCluster):
    r"""A cluster whose jobs are charged to accounts, with multifactor priority; between ``with`` and its end.

    Parameters
    ----------
    folder, nodes
        As of `OneHostCluster`.
    accounts : mapping of str to int
        Shares by place, in the form of `marketsched.mechanisms.schedulers.share_tree`, accounts alone:
        ``{"physics/": 2, "physics/optics/": 1}``. The user who runs the cluster has one share in each.
    qos : mapping, optional
        Priority and usage factor by the name of a QOS, besides ``normal``; jobs of every account may ask for each.
    rate : float
        How fast the clock runs, above 1.
    settings : mapping, optional
        Lines of slurm.conf, in place of `FAIR_SHARE` and those of `OneHostCluster`.

    Raises
    ------
    SlurmError
        As of `OneHostCluster`, and where accounting does not start.

    Examples
    --------
    >>> with AccountingCluster(Path("/tmp/c"), 2, accounts={"ann/": 1, "bob/": 1}) as cluster:  # doctest: +SKIP
    ...     cluster.slurm.submit("#!/bin/sh\nsleep 600\n", "--account=ann")
    1
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 4,
        *,
        accounts: Mapping[str, int],
        qos: Mapping[str, tuple[float, float]] | None = None,
        rate: float = 60.0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        if lacking := missing_accounting():
            raise SlurmError(f"{', '.join(lacking)} not found", legal="Debian's slurmdbd and mariadb-server")
        if rate <= 1.0:
            raise SlurmError(place="rate", value=rate, legal="a number > 1")
        self._database, self._dbd = _free_ports(2)
        merged = {**FAIR_SHARE, "AccountingStoragePort": str(self._dbd), **(settings or {})}
        super().__init__(folder, nodes, rate=rate, settings=merged)
        self.accounts, self.qos = dict(accounts), dict(qos or {})

    def start_controller(self, *options: str) -> None:
        """Start slurmctld, and at first what keeps its accounts."""
        if "mariadbd" not in self.daemons:
            self._start_database()
            self._start_slurmdbd()
        super().start_controller(*options)

    def shares(self) -> list[dict[str, Any]]:
        """Return ``sshare``, one row for each account and user: account, user, shares, usage, level, factor."""
        fields = "Account,User,RawShares,RawUsage,LevelFS,FairShare,EffectvUsage,NormShares"
        lines = self.slurm.run("sshare", "-a", "-n", "-P", "-o", fields).splitlines()
        names = ("account", "user", "shares", "usage", "level", "factor", "effective", "norm")
        return [dict(zip(names, (part.strip() for part in line.split("|")), strict=True)) for line in lines]

    def _start_database(self) -> None:
        data, log = self.folder / "db", self.folder / "log"
        plain = {name: value for name, value in self.environment.items() if name not in self.clock.environment}
        user = getpass.getuser()
        own = self.folder / "tmp"  # two databases that are made at once would meet in the machine's own
        own.mkdir(exist_ok=True)
        install = [
            "mariadb-install-db",
            "--no-defaults",
            f"--tmpdir={own}",
            f"--user={user}",
            f"--datadir={data}",
            "--skip-test-db",
        ]
        install.append("--auth-root-authentication-method=normal")
        made = subprocess.run(install, env=plain, capture_output=True, text=True, timeout=FIRST_DAY_S, check=False)
        if made.returncode:
            raise SlurmError(made.stderr[-300:], source="mariadb-install-db")
        options = [f"--user={user}", f"--datadir={data}", f"--socket={self.folder}/db.sock", f"--port={self._database}"]
        options += [
            f"--tmpdir={own}",
            "--bind-address=127.0.0.1",
            f"--pid-file={self.folder}/db.pid",
            "--innodb-buffer-pool-size=64M",
        ]
        with open(log / "mariadbd.out", "ab") as out:
            self.daemons["mariadbd"] = subprocess.Popen(
                ["mariadbd", "--no-defaults", *options],
                env=plain,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        client = ["mariadb", "--no-defaults", f"--socket={self.folder}/db.sock", f"--user={user}"]
        grant = "create user if not exists 'slurm'@'127.0.0.1' identified by 'slurm';"
        grant += "create user if not exists 'slurm'@'localhost' identified by 'slurm';"
        grant += "grant all on *.* to 'slurm'@'127.0.0.1'; grant all on *.* to 'slurm'@'localhost';"
        self._patiently("mariadbd", [*client, "-e", grant], plain)

    def _start_slurmdbd(self) -> None:
        folder, etc = self.folder, self.folder / "etc"
        lines = {
            "AuthType": "auth/none",
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "DbdPort": str(self._dbd),
            "SlurmUser": getpass.getuser(),
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StoragePort": str(self._database),
            "StorageUser": "slurm",
            "StoragePass": "slurm",
            "LogFile": f"{folder}/log/slurmdbd.log",
            "PidFile": f"{folder}/log/slurmdbd.pid",
            "MessageTimeout": "6000",
            "TCPTimeout": "6000",
        }
        conf = etc / "slurmdbd.conf"
        conf.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        os.chmod(conf, 0o600)
        self._start("slurmdbd", "slurmdbd", "-D")
        self._patiently("slurmdbd", ["sacctmgr", "-i", "-n", "show", "cluster"], self.environment)
        manage = ["sacctmgr", "-i", "-Q"]
        self.slurm.run(*manage, "add", "cluster", "market")
        for name, (priority, factor) in self.qos.items():
            self.slurm.run(*manage, "add", "qos", name, f"priority={priority:.0f}", f"usagefactor={factor:.6f}")
        allowed = [f"qos={','.join(['normal', *self.qos])}", "defaultqos=normal"] if self.qos else []
        for place, share in self.accounts.items():
            *above, name = place.rstrip("/").split("/")
            parent = above[-1] if above else "root"
            self.slurm.run(*manage, "add", "account", name, f"parent={parent}", f"fairshare={share}")
        user = getpass.getuser()
        for place in self.accounts:
            name = place.rstrip("/").split("/")[-1]
            if not any(other != place and other.startswith(place) for other in self.accounts):
                self.slurm.run(*manage, "add", "user", user, f"account={name}", "fairshare=1", *allowed)

    def _patiently(self, what: str, command: list[str], environment: Mapping[str, str]) -> None:
        """Run a command again and again until it works."""
        deadline, fault = time.monotonic() + PATIENCE_S, ""
        while time.monotonic() < deadline:
            done = subprocess.run(
                command, env=dict(environment), capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            if done.returncode == 0:
                return
            fault = (done.stderr or done.stdout)[-300:]
            time.sleep(0.2)
        raise SlurmError(f"{what} did not start in {PATIENCE_S:g} s: {fault}")
