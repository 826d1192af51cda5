"""What a refusal names: place, value seen and what is legal, whatever the wording around them."""

from collections.abc import Callable
from typing import Any

from marketsched.mechanisms.errors import MarketschedError

ANYTHING = object()


def refused(
    call: Callable[[], Any],
    *words: str,
    place: str | None = None,
    seen: Any = ANYTHING,
    legal: str | None = None,
    error: type[Exception] = MarketschedError,
) -> Any:
    """Call, and return the error that is raised; fail if there is none, or if it names something else.

    ``place`` is the whole place, ``seen`` equals the value, ``legal`` and ``words`` are parts of the legal range and
    of the message.
    """
    try:
        answer = call()
    except error as found:
        assert "\n" not in str(found), f"more than a line: {found}"
        if place is not None:
            assert found.place == place, f"place {found.place!r} and not {place!r}: {found}"
        if seen is not ANYTHING:
            assert repr(found.value) == repr(seen), f"saw {found.value!r} and not {seen!r}: {found}"
        if legal is not None:
            assert legal in found.legal, f"{legal!r} is not what is legal: {found}"
        for word in words:
            assert word in str(found), f"{word!r} does not stand in: {found}"
        return found
    raise AssertionError(f"nothing was refused; the answer is {answer!r}")
