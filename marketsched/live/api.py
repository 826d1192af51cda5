"""The HTTP calls of a live market (FastAPI); what each does stands in `calls` and `credit_calls`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import Parameter, Signature
from itertools import islice
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from marketsched import __version__
from marketsched.live import bodies
from marketsched.live.calls import Seq, batch
from marketsched.live.figures import Figures
from marketsched.live.guard import Guard
from marketsched.live.market_view import PRICED_ROUNDS, public_at, shown_at
from marketsched.live.owner_view import seen
from marketsched.live.page import PAGES, page_answer
from marketsched.live.principal import Principal
from marketsched.live.problems import problem, problem_of
from marketsched.live.routes import ROUTES, Route, body, problems
from marketsched.live.service import LiveService, Repeatable, UnavailableError
from marketsched.live.turn import Turn, Work
from marketsched.mechanisms.errors import InvalidReportError, MarketschedError

ROWS_AT_ONCE = 100  # of a stream, before others have their turn
KEEP_ALIVE = 15.0  # seconds

Call = Callable[..., Awaitable[Response]]


def make_app(service: LiveService, hosts: Iterable[str] = ()) -> Guarded:
    """Return the application of a service that is reached under these names, beside the loopback's."""
    app = FastAPI(
        title="marketsched live market",
        version=__version__,
        docs_url=None,  # its pages load scripts from other sites
        redoc_url=None,
        openapi_url="/openapi.json",
        responses=problems(400, 401, 403, 409, 413, 415, 421, 422, 429, 503),
    )
    guard, figures = Guard(service, hosts), Figures(service)
    streams = Streams(service)

    @app.exception_handler(MarketschedError)
    async def refused(_: Request, error: MarketschedError) -> Response:
        return problem_of(error)

    @app.exception_handler(RequestValidationError)
    async def unreadable(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        return problem(422, f"{place}: {first['msg']}", place=place)

    @app.exception_handler(HTTPException)
    async def no_route(_: Request, error: HTTPException) -> Response:
        return problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))

    async def done(request: Request, work: Work, status: int = 200) -> Response:
        _check_query(request)
        return JSONResponse(await asyncio.wrap_future(service.ask(work, _repeatable(request))), status)

    def endpoint(route: Route) -> Call:
        async def made(request: Request, **given: Any) -> Response:
            said = () if route.body is None else (request.state.said,)
            parameters = (given[name] for name in route.parameters)
            return await done(request, route.call(request.state.who, *parameters, *said), route.status)

        asked = Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request)
        own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in route.parameters.values()]
        made.__signature__ = Signature([asked, *own])  # type: ignore[attr-defined]
        app.add_api_route(
            route.path, made, methods=[route.method], name=route.call.__name__, description=route.call.__doc__,
            status_code=route.status, responses=problems(*route.refusals),
            openapi_extra=None if route.body is None else body(route.body),
        )  # fmt: skip
        return made

    @app.get("/v1/market")
    async def market(request: Request, rounds: Annotated[int, Query(ge=0, le=PRICED_ROUNDS)] = 100) -> Response:
        """Round, clock, limits, capacity, and prices of the coming rounds."""
        _check_query(request)
        if service.down:
            raise UnavailableError(f"unavailable: {service.down}")
        return JSONResponse(shown_at(service.view, service.clock, rounds, request.state.who))  # it waits for nothing

    endpoints = {(route.method, route.path): endpoint(route) for route in ROUTES}

    @app.post("/v1/batch", openapi_extra=body(bodies.Batch))
    async def several(request: Request) -> Response:
        """Several calls in one transaction, in their order; each has its own status and answer."""
        who, said = request.state.who, request.state.said
        work = batch(who, said)
        guard.charge(who.name, len(said["calls"]) - 1)
        return await done(request, work)

    @app.get("/v1/events", responses={200: {"content": {"text/event-stream": {}}}})
    async def events(request: Request, after: Seq = 0, follow: bool = True) -> Response:
        """Events of the journal, from any row on, as server-sent events."""
        last = request.headers.get("last-event-id", "")
        begin = int(last) if last.isascii() and last.isdigit() and len(last) <= 16 else after
        return streams.open(request, begin, follow)

    # -- for everybody --------------------------------------------------------------------------------------

    @app.get("/v1/public")
    async def public(rounds: Annotated[int, Query(ge=0, le=PRICED_ROUNDS)] = 48) -> Response:
        """Round, busy nodes and prices of the coming rounds; without a token."""
        if service.down:
            raise UnavailableError("unavailable: the market takes no requests now")
        return JSONResponse(public_at(service.view, service.clock, rounds))

    for path in PAGES:
        app.add_api_route(path, partial(page_answer, path), methods=["GET"], include_in_schema=False)

    # -- supervision ----------------------------------------------------------------------------------------

    @app.get("/v1/health")
    async def health() -> Response:
        """Whether requests are taken."""
        if service.down:
            return problem(503, "the market takes no requests now", headers={"Retry-After": "1"})
        warning = service.warning
        more = {"warning": warning} if warning else {}
        return JSONResponse({"status": "warning" if warning else "ok", "version": __version__, **more})

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Figures for Prometheus; for operators and readers."""
        request.state.who.must_be("operator", "reader")
        text = await asyncio.wrap_future(service.ask(lambda _: figures.text()))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    # The most frequent calls go past FastAPI, which takes a third of a millisecond to find them.
    direct = {path: endpoints["POST", path] for path in ("/v1/jobs", "/v1/quotes")} | {"/v1/batch": several}
    return Guarded(app, guard, figures, direct, streams)


def _check_query(request: Request) -> None:
    """Raise InvalidReportError for a parameter that this call does not take: a slip would change nothing unseen."""
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    known = [each.alias for each in route.dependant.query_params]
    for name in request.query_params:
        if name not in known:
            legal = f"one of {', '.join(known)}" if known else "none"
            raise InvalidReportError(place="query", value=name, legal=legal)


def _repeatable(request: Request) -> Repeatable | None:
    """Return what makes a request safe to send again, if it says so."""
    key = request.headers.get("idempotency-key")
    if key is None or request.method == "GET":
        return None
    asked = b"\n".join([request.method.encode(), request.scope["path"].encode(), request.state.raw])
    return Repeatable(request.state.who.name, key, hashlib.sha256(asked).hexdigest())


class Guarded:
    """The application: the guard looks at every request, answers are timed, and some POST calls are made at once."""

    def __init__(
        self, app: ASGIApp, guard: Guard, figures: Figures, direct: Mapping[str, Call], streams: Streams
    ) -> None:
        self._app, self._guard, self._figures, self._direct, self.streams = app, guard, figures, direct, streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, request = time.monotonic(), Request(scope, receive)

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope["path"] if direct else getattr(scope.get("route"), "path", "none")
                labels = (scope["method"] if route != "none" else "none", route, str(message["status"]))
                self._figures.seconds.labels(*labels).observe(time.monotonic() - began)
            await send(message)

        direct = self._direct.get(scope["path"]) if scope["method"] == "POST" else None
        answer: ASGIApp | None = await self._guard.refusal(request)
        if answer is None and direct is not None:
            answer = await _made(direct, request)
        await (answer or self._app)(scope, receive, timed)


async def _made(call: Call, request: Request) -> Response:
    try:
        return await call(request)
    except MarketschedError as error:
        return problem_of(error)


class Streams:
    """Server-sent events: every stream waits for the next row, and reads from where it is."""

    def __init__(self, service: LiveService) -> None:
        self._service = service
        self._pulse: asyncio.Event | None = None
        self.closing = False
        service.on_rows = self._rows_written

    def open(self, request: Request, after: int, follow: bool) -> Response:
        """Answer with a stream of the rows behind ``after``."""
        who: Principal = request.state.who
        if who.role == "owner":
            after = self._service.cursors.find(who.name, after)
        self._loop = asyncio.get_running_loop()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        lines = self._lines(request, who, after, follow)
        return StreamingResponse(lines, media_type="text/event-stream", headers=headers)

    def stop(self) -> None:
        """End all streams; from any thread."""
        self.closing = True
        self._rows_written()

    async def _lines(self, request: Request, who: Principal, after: int, follow: bool) -> AsyncIterator[str]:
        token = request.headers["authorization"]
        while not self.closing and self._still_good(token, who):
            self._pulse = self._pulse or asyncio.Event()
            pulse = self._pulse
            try:
                last, text = await asyncio.wrap_future(self._service.ask(partial(self._page, who, after)))
            except MarketschedError:  # it is being made anew
                last, text = after, ""
            if text:
                yield text
            if last > after:
                after = last
                continue
            if not follow:
                return
            try:
                await asyncio.wait_for(pulse.wait(), KEEP_ALIVE)
            except TimeoutError:
                yield ": keep-alive\n\n"

    def _still_good(self, authorization: str, who: Principal) -> bool:
        return self._service.account_of(authorization.partition(" ")[2].strip()) == who.name

    def _page(self, who: Principal, after: int, turn: Turn) -> tuple[int, str]:
        """Return the events behind ``after`` as they are sent, and the last row looked at; in the service's thread."""
        recent, last = self._service.recent, self._service.published
        if after >= last:
            return after, ""
        if recent and recent[0].seq <= after + 1:
            begin = after + 1 - recent[0].seq
            rows = [row for row in islice(recent, begin, begin + ROWS_AT_ONCE) if row.seq <= last]
        else:
            rows = list(turn.journal.rows(after, ROWS_AT_ONCE))
        found = filter(None, (seen(who, row, self._service.cursors) for row in rows))
        lines = (f"id: {each['seq']}\nevent: {each['event']}\ndata: {json.dumps(each)}\n\n" for each in found)
        return rows[-1].seq, "".join(lines)

    def _rows_written(self) -> None:
        """Wake all streams; from the thread of the service."""
        pulse, self._pulse = self._pulse, None
        if pulse is not None:
            self._loop.call_soon_threadsafe(pulse.set)
