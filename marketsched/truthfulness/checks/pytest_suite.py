"""Checks by name as one test for pytest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from marketsched.mechanisms.errors import InvalidParameterError


def suite(checks: Mapping[str, Callable[[], None]], except_for: Mapping[str, str] | None) -> Callable[..., None]:
    """Return a test for pytest, parametrised with ``checks`` by name; those of ``except_for`` are skipped.

    Raises InvalidParameterError if a check is not known.
    """
    import pytest

    excused = dict(except_for or {})
    for name in excused:
        if name not in checks:
            raise InvalidParameterError(place="except_for", value=name, legal=f"some of {', '.join(checks)}")

    @pytest.mark.parametrize("check", list(checks))
    def test(check: str) -> None:
        if check in excused:
            pytest.skip(f"not claimed: {excused[check]}")
        checks[check]()

    return test
