"""The caller of a request, and its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marketsched.mechanisms.errors import MarketschedError

Said = Mapping[str, Any]


class ForbiddenError(MarketschedError, PermissionError):
    """The caller's role does not allow it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller: an account, by one of its tokens."""

    name: str
    role: str

    def must_be(self, *roles: str) -> None:
        """Raise ForbiddenError unless the role is one of these."""
        if self.role not in roles:
            raise ForbiddenError(f"not for the role {self.role}", legal=f"a token of the role {' or '.join(roles)}")
