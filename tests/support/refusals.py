"""What a refusal names: place, value seen and what is legal, whatever the wording around them."""

from collections.abc import Callable
from typing import Any

from marketsched.mechanisms.errors import UNSEEN, MarketschedError, shown


def refused(
    call: Callable[[], Any],
    *words: str,
    place: str = "",
    seen: Any = UNSEEN,
    legal: str = "",
    error: type[Exception] = MarketschedError,
) -> Any:
    """Call, and return the error that is raised; fail if there is none, or if it names something else.

    ``place`` may be the last parts of the place; ``legal`` and ``words`` are parts of what is legal and of the message.
    """
    try:
        answer = call()
    except error as found:
        message = str(found)
        before, _, after = message.partition("expected ")
        assert "\n" not in message, f"more than a line: {message}"
        named = getattr(found, "place", "").endswith(place) or f"{place} " in before or f"{place}:" in before
        assert named, f"{place!r} is not the place: {message}"
        assert seen is UNSEEN or shown(seen) in before, f"{seen!r} is not what was seen: {message}"
        assert legal in after, f"{legal!r} is not what is legal: {message}"
        for word in words:
            assert word in message, f"{word!r} does not stand in: {message}"
        return found
    raise AssertionError(f"nothing was refused; the answer is {answer!r}")
