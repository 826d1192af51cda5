"""Slurm's accounting on this machine alone, for a cluster that needs qualities of service: MariaDB and slurmdbd.

It takes Debian's ``slurmdbd slurm-wlm-mysql-plugin mariadb-server``. The database listens on loopback, with a password
of its own that nobody else can read.
"""

from __future__ import annotations

import getpass
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from marketsched.slurm.commands import Slurm, SlurmError

PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")
PATIENCE_S = 60.0
ACCOUNT = "market"  # that all users are in
Start = Callable[..., None]


def missing_accounting() -> list[str]:
    """Return which programs accounting lacks on this machine.

    Examples
    --------
    >>> missing_accounting()  # where all are installed  # doctest: +SKIP
    []
    """
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Accounting:
    """A database and slurmdbd for one cluster.

    Parameters
    ----------
    folder : Path
        Of the cluster, whose ``etc`` and ``log`` are there.
    qos : mapping of str to sequence of str
        Qualities of service, and what ``sacctmgr`` sets of each: ``{"free": ["UsageFactor=0"]}``.
    users : mapping of str to str
        Users beside the cluster's own, and the one quality that each may have.

    Raises
    ------
    SlurmError
        If slurmdbd or a database is not installed.

    Examples
    --------
    >>> Accounting(Path("/tmp/c"), {"free": ["UsageFactor=0"]}, {"ann": "free"}).lines(7031)[
    ...     "AccountingStoragePort"
    ... ]  # doctest: +SKIP
    '7031'
    """

    def __init__(self, folder: Path, qos: Mapping[str, Sequence[str]], users: Mapping[str, str]) -> None:
        if lacking := missing_accounting():
            legal = "Debian's slurmdbd, slurm-wlm-mysql-plugin and mariadb-server"
            raise SlurmError(f"{', '.join(lacking)} not found", legal=legal)
        self.folder, self.qos, self.users = folder, dict(qos), dict(users)

    def lines(self, port: int) -> dict[str, str]:
        """Return the lines of slurm.conf for a slurmdbd that listens on this port."""
        return {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePort": str(port),
            "AccountingStoragePass": f"{self.folder}/munge/munge.sock",
            "AccountingStorageEnforce": "associations,qos",
        }

    def start(self, start: Start, slurm: Slurm, ports: tuple[int, int]) -> None:
        """Start both daemons, and enter cluster, qualities of service and users.

        Parameters
        ----------
        start : callable
            Starts a daemon, given its name and command.
        slurm : Slurm
        ports : (int, int)
            Of slurmdbd and of the database.

        Raises
        ------
        SlurmError
            If they do not answer within a minute.
        """
        password, base = secrets.token_hex(16), self.folder / "db"
        init = self.folder / "etc" / "db.sql"
        _private(init, f"CREATE OR REPLACE USER slurm@'127.0.0.1' IDENTIFIED BY '{password}';\n"
                       "GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';\n")  # fmt: skip
        made = ["mariadb-install-db", "--no-defaults", f"--datadir={base}", "--skip-test-db"]
        done = subprocess.run([*made, f"--user={getpass.getuser()}"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SlurmError(f"mariadb-install-db: {done.stderr[-300:]}")
        start(
            "mariadbd", "mariadbd", "--no-defaults", f"--datadir={base}", f"--socket={self.folder}/db.sock",
            "--bind-address=127.0.0.1", f"--port={ports[1]}", f"--user={getpass.getuser()}", f"--init-file={init}",
            "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
        )  # fmt: skip
        _private(self.folder / "etc" / "slurmdbd.conf", self._configuration(ports, password))
        deadline = time.monotonic() + PATIENCE_S
        while not (self.folder / "db.sock").exists():
            if time.monotonic() > deadline:
                raise SlurmError(f"no database in {PATIENCE_S:g} s", source=str(self.folder / "log"))
            time.sleep(0.05)
        start("slurmdbd", "slurmdbd", "-D")
        while True:
            try:
                slurm.run("sacctmgr", "-nP", "show", "qos", "format=name")
                break
            except SlurmError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        self._enter(slurm)

    def _enter(self, slurm: Slurm) -> None:
        def add(*what: str) -> None:
            slurm.run("sacctmgr", "-i", "add", *what)

        add("cluster", "market")
        for name, settings in self.qos.items():
            add("qos", name, *settings)
        every = [f"qos={','.join(self.qos)}", f"defaultqos={next(iter(self.qos))}"]
        slurm.run("sacctmgr", "-i", "modify", "cluster", "market", "set", *every)
        add("account", ACCOUNT, "cluster=market")
        if getpass.getuser() != "root":  # who is in an account from the beginning
            add("user", getpass.getuser(), f"account={ACCOUNT}", *every)
        for user, only in self.users.items():
            add("user", user, f"account={ACCOUNT}", f"qos={only}", f"defaultqos={only}")

    def _configuration(self, ports: tuple[int, int], password: str) -> str:
        lines = {
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/munge/munge.sock",
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "DbdPort": str(ports[0]),
            "SlurmUser": getpass.getuser(),
            "LogFile": f"{self.folder}/log/slurmdbd.log",
            "PidFile": f"{self.folder}/log/slurmdbd.pid",
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StoragePort": str(ports[1]),
            "StorageUser": "slurm",
            "StoragePass": password,
            "StorageLoc": "slurm_acct_db",
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items())


def _private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_text(text)
