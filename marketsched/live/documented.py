"""Bodies and problems in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from marketsched.live.bodies import Body
from marketsched.live.problems import MEDIA_TYPE

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
