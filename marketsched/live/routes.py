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
from marketsched.live.turn import Work

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
