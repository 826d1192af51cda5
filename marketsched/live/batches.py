"""Several calls in one request: in their order, in one transaction, each answered by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from marketsched.live import calls
from marketsched.live.bodies import MOST_ROUNDS, Call, read
from marketsched.live.bodies import Batch as Several
from marketsched.live.database import JournalError
from marketsched.live.principal import Principal, Said
from marketsched.live.problems import details_of
from marketsched.live.turn import Turn, Work
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError

_OF_A_JOB: dict[str, Callable[[Principal, str, Said], Work]] = {"arrive": calls.arrive, "complete": calls.complete}
_OTHERS: dict[str, Callable[[Principal, Said], Work]] = {"submit": calls.submit, "advance": calls.advance}


def batch(who: Principal, said: Said) -> Work:
    """Make several calls, one after the other; one that is refused changes nothing, and the others go on."""
    who.must_be("owner", "operator")
    asked = read(Several, said).calls
    rounds = sum(_rounds(each) for each in asked)
    if rounds > MOST_ROUNDS:
        raise InvalidParameterError(place="calls", value=f"{rounds} rounds", legal=f"at most {MOST_ROUNDS} in all")

    def work(turn: Turn) -> dict[str, Any]:
        return {"answers": [_answered(turn, who, each) for each in asked]}

    return work


def _rounds(asked: object) -> int:
    """Return how many rounds a call would clear; 0 where it is no such call, or will be refused."""
    said = asked.get("body", {}) if isinstance(asked, Mapping) and asked.get("call") == "advance" else None
    rounds = said.get("rounds", 1) if isinstance(said, Mapping) else 0
    return rounds if isinstance(rounds, int) and rounds > 0 else 0


def _answered(turn: Turn, who: Principal, asked: object) -> dict[str, Any]:
    """Make one call; return its status, and its answer or the problem."""
    try:
        kind, work = _work(who, asked)
        answer = work(turn)
    except JournalError:
        raise  # nothing of the request has happened
    except MarketschedError as error:
        found = details_of(error)
        return {"status": found["status"], "problem": found}
    return {"status": 201 if kind == "submit" else 200, "answer": answer}


def _work(who: Principal, asked: object) -> tuple[str, Work]:
    if not isinstance(asked, Mapping):
        raise InvalidParameterError(place="calls", value=asked, legal="objects with call and body")
    one = read(Call, asked)
    if one.call in _OTHERS:
        if one.job is not None:
            raise InvalidParameterError(": is no field of this call", place="job")
        return one.call, _OTHERS[one.call](who, one.body)
    if one.job is None:
        raise InvalidParameterError("is missing", place="job")
    return one.call, _OF_A_JOB[one.call](who, one.job, one.body)
