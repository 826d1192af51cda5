"""A test suite for one's own mechanism, in one line (``pip install marketsched[testing]``).

In a file of tests::

    from marketsched.testing import mechanism_tests

    test_mine = mechanism_tests(MyRule)  # the class, a registered name, or what builds a fresh mechanism

which pytest collects as one test per check of `check_mechanism` and of `check_truthful`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from marketsched.truthfulness.checks.checks import CALL_SECONDS, mechanism_checks
from marketsched.truthfulness.checks.pytest_suite import suite
from marketsched.truthfulness.checks.truth_tests import raising, truthful_checks


def mechanism_tests(
    build: str | Callable[..., Any],
    *,
    except_for: Mapping[str, str] | None = None,
    n_markets: int = 10,
    seed: int = 0,
    call_seconds: float = CALL_SECONDS,
    **options: Any,
) -> Callable[..., None]:
    """Return a test for pytest, parametrised with all checks of a mechanism.

    Parameters
    ----------
    build : str, class, or function
        As for `check_mechanism`.
    except_for : mapping of str to str, optional
        Checks that the mechanism does not claim, and why: they are skipped.
    n_markets, seed, call_seconds
        As for `check_mechanism` and `check_truthful`.
    **options
        As for `check_truthful`.

    Raises
    ------
    InvalidParameterError
        If the mechanism cannot be built, an option is out of range, or a check is not known.
    """
    given: dict[str, Any] = {"seed": seed, "call_seconds": call_seconds}
    checks: dict[str, Callable[[], None]] = dict(mechanism_checks(build, n_markets=max(1, n_markets), **given))
    for name, check in truthful_checks(build, n_markets=n_markets, **given, **options).items():
        checks[name] = partial(raising, name, check)
    return suite(checks, except_for)
