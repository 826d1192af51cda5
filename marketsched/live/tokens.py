"""Tokens: the account that each belongs to, and the file with the first operator's."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO


class Tokens(Mapping[str, str]):
    """Whose each good token is, by its digest; never changed, so that every thread may ask."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = dict(known or {})
        self._by_beginning: dict[str, list[tuple[str, str]]] = {}
        for digest, account in self._known.items():
            self._by_beginning.setdefault(digest[:16], []).append((digest, account))

    def __getitem__(self, digest: str) -> str:
        return self._known[digest]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def account_of(self, token: str) -> str | None:
        """Return whose token this is, if it is good.

        A token is looked up by the beginning of its SHA-256, and the rest is compared in constant time.
        """
        digest = token_digest(token)
        for known, account in self._by_beginning.get(digest[:16], ()):
            if hmac.compare_digest(known, digest):
                return account
        return None


def token_digest(token: str) -> str:
    """Return the digest of a token, which the database keeps."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def check_new_file(path: str | Path | None) -> None:
    """Raise OSError unless a file can be made there: a market without its first token would have no operator."""
    if path is None:
        return
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "the first operator's token needs a new file", str(path))
    if not os.access(Path(path).absolute().parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the operator's token cannot be written there", str(path))


def new_private_file(path: str | Path) -> IO[str]:
    """Open a new file that only its owner can read; FileExistsError if it is there."""
    return open(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600))
