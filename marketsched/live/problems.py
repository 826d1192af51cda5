"""Errors as they travel over HTTP: problem details (RFC 9457), filled from the fields of the library's own errors."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from marketsched.live.principal import ForbiddenError
from marketsched.live.service import UnavailableError
from marketsched.mechanisms.errors import UNSEEN, EventError, MarketschedError, UnknownNameError, shown

MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL = 2000  # characters
_STATUS = ((ForbiddenError, 403), (UnknownNameError, 404), (EventError, 409), (UnavailableError, 503))


def problem(status: int, detail: str, **more: Any) -> JSONResponse:
    """Return problem details."""
    headers = more.pop("headers", None)
    return JSONResponse(_details(status, detail, **more), status, headers, MEDIA_TYPE)


def problem_of(error: MarketschedError) -> JSONResponse:
    """Return an error of the library as problem details: its place, the value seen there, and the legal values."""
    found = details_of(error)
    headers = {"Retry-After": "1"} if found["status"] == 503 else None
    return JSONResponse(found, found["status"], headers, MEDIA_TYPE)


def details_of(error: MarketschedError) -> dict[str, Any]:
    """Return the same as plain data."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
    more: dict[str, Any] = {}
    if error.place:
        more["place"] = _short(error.place)
    if error.value is not UNSEEN:
        more["value"] = _short(shown(error.value))
    if error.legal:
        more["legal"] = _short(error.legal)
    return _details(status, str(error), **more)


def _details(status: int, detail: str, **more: Any) -> dict[str, Any]:
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": _short(detail)}
    return {**content, **more}


def _short(text: str) -> str:
    """Return a text that can be sent: bounded, and without halves of characters."""
    return text[:LONGEST_DETAIL].encode("utf-8", "replace").decode()
