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

    Parameters
    ----------
    world : function of int
        Game of a seed, as `search_core_lies` takes it.
    except_for : mapping of str to str, optional
        Checks that are not claimed, and why.
    **options
        As for `check_policy`.
    """
    checks = policy_checks(world, **options)
    return suite({name: partial(raising, name, check) for name, check in checks.items()}, except_for)
