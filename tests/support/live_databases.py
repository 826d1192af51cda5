"""Databases for tests of live markets: an SQLite file, or a PostgreSQL server in a folder of the test's own."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

USERS = ("postgres", "nobody")  # PostgreSQL refuses to run as root


def binaries():
    """Return the folder of Debian's PostgreSQL programs; None: it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    return Path(there).parent if there else None


class Postgres:
    """A PostgreSQL server under one folder, on a socket of its own; as root it runs as another user."""

    def __init__(self, folder):
        self.folder, self.bin = Path(folder), binaries()
        self.user = None
        if os.getuid() == 0:
            self.user = next(user for user in USERS if _uid(user) is not None)
            shutil.chown(self.folder, self.user)
        self.data = self.folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", self.data, "-U", "market", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C")

    @property
    def url(self):
        """Of its database."""
        return f"postgresql://market@127.0.0.1:{self.port}/postgres"

    def start(self):
        """Start it, and wait until it answers."""
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", self.folder / "log", "-o", options, "start")

    def stop(self, mode="immediate"):
        """Stop it."""
        self._run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def _run(self, name, *arguments):
        command = [str(self.bin / name), *map(str, arguments)]
        if self.user is not None:
            command = ["runuser", "-u", self.user, "--", *command]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _uid(user):
    import pwd

    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


@contextmanager
def postgres(folder):
    """Give a running server; skip where there is none."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    server = Postgres(folder)
    server.start()
    try:
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()


@contextmanager
def database(kind, folder):
    """Give the URL of a new database of a kind."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/market.db"
        return
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # short enough for a socket, and open to its user
    folder.chmod(0o755)
    try:
        with postgres(folder) as server:
            yield server.url
    finally:
        shutil.rmtree(folder, ignore_errors=True)
