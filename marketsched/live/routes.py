"""The list of calls: which role may make each, where it is reached over HTTP, and its body.

Called in Python, a call takes the caller, the parameters of path and query, and its body as plain data, and returns the
work that `LiveService.ask` does. A fault of the request is raised before that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypeVar

from marketsched.live.bodies import Body, read
from marketsched.live.principal import Principal
from marketsched.live.problems import MEDIA_TYPE
from marketsched.live.turn import Work

_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "place": {**_TEXT, "description": "Where in what was sent."},
        "value": {**_TEXT, "description": "What was seen there."},
        "legal": {**_TEXT, "description": "What is legal there."},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": False,
}
_MEANINGS = {
    400: "Not one JSON object",
    401: "No good token",
    403: "Not for this role",
    404: "Unknown, or another owner's",
    409: "Does not fit the state of the market",
    413: "Body too large",
    415: "Not JSON",
    421: "Another host is meant",
    422: "Malformed, or outside a limit",
    429: "Too many requests",
    503: "Unavailable; nothing has happened, or that is not known yet: send it again with the same Idempotency-Key",
}


def body(model: type[Body]) -> dict[str, Any]:
    """Return the OpenAPI entry of a request with this body."""
    key: dict[str, Any] = {"name": "Idempotency-Key", "in": "header", "required": False}
    key["schema"] = {"type": "string", "minLength": 1, "maxLength": 255}
    schema = model.model_json_schema()
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"content": content, "required": "required" in schema}, "parameters": [key]}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entry of these refusals."""
    content = {MEDIA_TYPE: {"schema": _PROBLEM}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in statuses}


Asked = TypeVar("Asked", bound=Body)


class Route(NamedTuple):
    """One call over HTTP."""

    method: str
    path: str
    call: Callable[..., Work]
    parameters: dict[str, Parameter]  # of path and query
    body: type[Body] | None
    status: int  # of its answer
    refusals: tuple[int, ...]  # statuses beside those of all calls


ROUTES: list[Route] = []


def route(
    where: str,
    *roles: str,
    body: type[Asked] | None = None,
    check: Callable[[Principal, Asked], object] | None = None,
    status: int = 200,
    refusals: tuple[int, ...] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Work]]:
    """Return a decorator that makes a call of a function of a turn, the caller, parameters, and the body as ``body``.

    ``where`` is method and path; ``check`` raises what is wrong with a body before the thread of the market sees it.
    """

    def listed(function: Callable[..., Any]) -> Callable[..., Work]:
        @wraps(function)
        def call(who: Principal, *given: Any) -> Work:
            if roles:
                who.must_be(*roles)
            if body is not None:
                asked = read(body, given[-1])
                if check is not None:
                    check(who, asked)
                given = (*given[:-1], asked)
            return lambda turn: function(turn, who, *given)

        parameters = dict(list(signature(function, eval_str=True).parameters.items())[2:])
        if body is not None:
            parameters.popitem()
        method, path = where.split()
        ROUTES.append(Route(method, path, call, parameters, body, status, refusals))
        return call

    return listed
