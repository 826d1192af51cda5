"""Snapshots: the state of a market, from which a restart plays on.

A snapshot is an event of the journal, which holds its digest and what it was made by, so the chain covers it. It is a
pickle: reading one may run anything, and whoever can write the database can write a chain that fits. So a service seals
its snapshots with a key in a file of its own, outside the database, and reads nothing before it has checked the seal. A
snapshot is read only by the very code that wrote it. In every other case, older snapshots among them, the whole journal
is played.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import inspect
import io
import pickle
import re
import secrets
import time
import zlib
from functools import cache
from pathlib import Path

from marketsched.live.configuration import LiveConfig
from marketsched.live.database import JournalError
from marketsched.live.machine import LiveMarket
from marketsched.live.tokens import new_private_file
from marketsched.mechanisms.errors import InvalidParameterError, shown
from marketsched.mechanisms.registry import get
from marketsched.results.result import versions

EVERY_ROWS = 10_000
ROWS_AT_STOP = 1000  # since the last one, for one to be taken at the end
SHARE = 0.05  # of the time, at most, is spent on snapshots
ROOMS = ("mechanisms", "agents", "config", "play", "live")  # whose code decides what a market does
KEY_BYTES = 32


def frozen(market: LiveMarket) -> bytes:
    """Return a market, without its configuration, as bytes; errors as of ``pickle``, if it holds an open file, say."""

    class Writer(pickle.Pickler):
        def persistent_id(self, found: object) -> str | None:
            return "config" if found is market.config else None

    into = io.BytesIO()
    Writer(into, pickle.HIGHEST_PROTOCOL).dump(market)
    return zlib.compress(into.getvalue(), 1)


def thawed(state: bytes, config: LiveConfig) -> LiveMarket:
    """Return the market that `frozen` wrote, which has this configuration; the seal has to be checked before.

    Raises JournalError if it is no snapshot.
    """

    class Reader(pickle.Unpickler):
        def persistent_load(self, _: object) -> LiveConfig:
            return config

    try:
        found = Reader(io.BytesIO(zlib.decompress(state))).load()
    except Exception as error:  # whatever bytes that are no snapshot lead to
        legal = "what a service wrote; --check-all plays all rows in its place"
        raise JournalError(f"the snapshot cannot be read: {shown(str(error))}", legal=legal) from error
    if not isinstance(found, LiveMarket):
        raise JournalError(f"the snapshot holds a {type(found).__name__}", legal="a market")
    return found


def digest_of(state: bytes) -> str:
    """Return the digest of a snapshot, as its event holds it."""
    return hashlib.sha256(state).hexdigest()


def seal_of(state: bytes, key: bytes) -> str:
    """Return the seal of a snapshot, which only who has the key can make."""
    return hmac.new(key, state, hashlib.sha256).hexdigest()


def sealed(state: bytes, seal: object, key: bytes | None) -> bool:
    """Tell whether a snapshot may be read: it has the seal of the key."""
    return bool(key and isinstance(seal, str) and hmac.compare_digest(seal.encode(), seal_of(state, key).encode()))


def key_in(path: Path) -> bytes:
    """Return the key of a file; a new one in a new file, which only its owner can read, if there is none.

    Raises OSError if the file can neither be read nor made, and InvalidParameterError if it holds something else.
    """
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        text = secrets.token_hex(KEY_BYTES)
        with new_private_file(path) as file:
            file.write(text + "\n")
    except UnicodeDecodeError:
        text = ""
    if not re.fullmatch(rf"[0-9a-f]{{{2 * KEY_BYTES}}}", text):
        raise InvalidParameterError(f"{path} holds no key", legal=f"{2 * KEY_BYTES} hexadecimal digits, or no file")
    return bytes.fromhex(text)


def made_by(config: LiveConfig) -> dict[str, str]:
    """Return the origin of a snapshot of such a market: versions, and a digest of the code that decides."""
    package = _package_of(config)
    names = [f"marketsched.{room}" for room in ROOMS] + ([] if package == "marketsched" else [package])
    return {**versions(), "code": _code_digest(tuple(names))}


@cache
def _code_digest(names: tuple[str, ...]) -> str:
    """Return a digest of the code of some packages or modules."""
    found = hashlib.sha256()
    for name in names:
        path = Path(inspect.getsourcefile(importlib.import_module(name)) or "")
        for each in sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]:
            found.update(f"{name} {each.name}\n".encode())
            found.update(each.read_bytes())
    return found.hexdigest()


def _package_of(config: LiveConfig) -> str:
    module: str = get("mechanism", config.mechanism).__module__
    return module.partition(".")[0]


class Schedule:
    """When a service takes its snapshots: every ``every`` rows, and never for more than a small share of its time.

    ``every`` 0: none is taken.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.last = 0  # the row behind which the market was as the last one has it
        self._took, self._when = 0.0, 0.0

    def due(self, seq: int) -> bool:
        """Tell whether one is to be taken behind row ``seq``."""
        late = seq - self.last >= self.every > 0
        return late and time.monotonic() - self._when >= self._took / SHARE

    def worth_while(self, seq: int) -> bool:
        """Tell whether one is to be taken behind row ``seq`` at the end of a service."""
        return self.every > 0 and seq - self.last >= ROWS_AT_STOP

    def taken(self, seq: int, seconds: float) -> None:
        """Note that one was taken behind row ``seq``, which was work for so long."""
        self.last, self._took, self._when = seq, seconds, time.monotonic()
