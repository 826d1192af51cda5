"""What the OpenAPI document says of bodies and problems; the checks themselves stand where values are made."""

from __future__ import annotations

from typing import Any

from marketsched.live.accounts import MOST_CREDITS, OWNER_NAME, ROLES
from marketsched.live.batches import KINDS, MOST_CALLS
from marketsched.live.calls import MOST_ROUNDS
from marketsched.live.job import LABEL, OUTCOMES
from marketsched.live.machine import LONGEST_SIGNAL
from marketsched.live.problems import MEDIA_TYPE
from marketsched.mechanisms.limits import LARGEST_CAPACITY, LAST_ROUND

_ROUND = {"type": "integer", "minimum": 1, "maximum": LAST_ROUND}
_TIME = {"type": "integer", "minimum": 0, "maximum": LAST_ROUND}
_CREDITS = {"type": "number", "minimum": 0}
_SIGNAL = {
    "anyOf": [{"type": "integer"}, {"type": "string", "maxLength": LONGEST_SIGNAL}, {"type": "null"}],
    "description": "What the platform sees when the job is ready.",
}


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _value(kind: str, **properties: Any) -> dict[str, Any]:
    return _object(("kind", *properties), kind={"const": kind, "type": "string"}, **properties)


_VALUE = {
    "anyOf": [
        _value("deadline", value=_CREDITS, deadline=_TIME),
        _value("linear", value=_CREDITS, slope=_CREDITS, deadline=_TIME) | {"description": "and `from`, a round"},
        _value("table", values={"type": "object", "additionalProperties": _CREDITS}),
    ]
}
_VALUE["anyOf"][1]["properties"]["from"] = _TIME
_VALUE["anyOf"][1]["required"].append("from")
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_REQUIREMENT = _object(
    ("arrival", "duration", "probability"), arrival=_ROUND, duration=_ROUND, probability=_SHARE, signal=_SIGNAL
)
_SOW = _object(
    ("concurrency", "value", "requirements"),
    concurrency={"type": "integer", "minimum": 1},
    value=_VALUE,
    requirements={"type": "array", "items": _REQUIREMENT, "minItems": 1},
)
_OWNER = {"type": "string", "pattern": OWNER_NAME}
_JOBS = {"type": "array", "items": {"type": "string"}}
_CODE = {"anyOf": [{"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}, {"type": "null"}]}
_AMOUNT = {"type": "number", "minimum": 0, "maximum": MOST_CREDITS}

_BODIES = {
    "Submission": _object(("sow",), sow=_SOW, owner=_OWNER, name={"type": "string", "pattern": f"^{LABEL}$"}),
    "Arrival": _object((), signal=_SIGNAL, duration=_ROUND),
    "Completion": _object((), outcome={"type": "string", "enum": list(OUTCOMES)}, exit_code=_CODE),
    "Withdrawal": _object(()),
    "Rounds": _object((), rounds={"type": "integer", "minimum": 1, "maximum": MOST_ROUNDS}),
    "Nodes": _object(
        ("usable",),
        usable={"type": "integer", "minimum": 0, "maximum": LARGEST_CAPACITY},
        held=_JOBS,
        removed=_JOBS,
    ),
    "NewOwner": _object(
        ("owner",), owner=_OWNER, role={"type": "string", "enum": list(ROLES)}, deposit=_AMOUNT, limit=_AMOUNT
    ),
    "Deposit": _object(("credits",), credits=_AMOUNT),
    "Batch": _object(
        ("calls",),
        calls={
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_CALLS,
            "items": _object(
                ("call",),
                call={"type": "string", "enum": list(KINDS)},
                job={"type": "string", "description": "Of the calls arrive and complete."},
                body={"type": "object", "description": "As of the call by itself."},
            ),
        },
    ),
}
_PROBLEM = _object(
    ("type", "title", "status", "detail"),
    type={"type": "string"},
    title={"type": "string"},
    status={"type": "integer"},
    detail={"type": "string"},
    place={"type": "string", "description": "Where in what was sent."},
    value={"type": "string", "description": "What was seen there."},
    legal={"type": "string", "description": "What is legal there."},
)
_MEANINGS = {
    400: "Not one JSON object",
    401: "No good token",
    403: "Not for this role",
    404: "Unknown, or another owner's",
    408: "The body took too long",
    409: "Does not fit the state of the market",
    413: "Body too large",
    415: "Not JSON",
    421: "Another host is meant",
    422: "Malformed, or outside a limit",
    429: "Too many requests",
    503: "Unavailable; nothing has happened, or that is not known yet: send it again with the same Idempotency-Key",
}


def body(name: str) -> dict[str, Any]:
    """Return what the document says of a request with this body."""
    key: dict[str, Any] = {"name": "Idempotency-Key", "in": "header", "required": False}
    key["schema"] = {"type": "string", "minLength": 1, "maxLength": 255}
    schema = _BODIES[name]
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"content": content, "required": bool(schema["required"])}, "parameters": [key]}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the document says of these refusals."""
    content = {MEDIA_TYPE: {"schema": _PROBLEM}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in statuses}
