"""A test suite for one's own policy of an allocation core and its payments, in one line (``marketsched[testing]``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from marketsched.cores.audit.checking import policy_checks
from marketsched.truthfulness.checks.pytest_suite import suite
from marketsched.truthfulness.checks.truth_tests import raising


def policy_tests(
    world: Callable[[int], Any], *, except_for: Mapping[str, str] | None = None, **options: Any
) -> Callable[..., None]:
    """Return a test for pytest, parametrised with all checks of a policy of an allocation core and its payments.

    ``world`` is the game of a seed; ``except_for`` names checks that are not claimed, and why; ``options`` are those of
    `policy_checks`.
    """
    checks = policy_checks(world, **options)
    return suite({name: partial(raising, name, check) for name, check in checks.items()}, except_for)
