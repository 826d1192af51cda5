"""The bodies of requests: the checks of each, and its part of the OpenAPI document.

A statement of work is checked where it is made (`marketsched.config.sow_codec`); its form for the document stands here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, StrictBool, WithJsonSchema

from marketsched.config.strict_yaml import Strict, validated
from marketsched.live.accounts import MOST_CREDITS, OWNER_NAME, Role
from marketsched.live.job import LABEL, OUTCOMES
from marketsched.live.principal import Said
from marketsched.mechanisms.limits import LARGEST_CAPACITY, LAST_ROUND

MOST_ROUNDS = 1000  # cleared by one request
MOST_CALLS = 100  # in one batch
LONGEST_SIGNAL = 100  # characters
KINDS = ("submit", "advance", "arrive", "complete")  # of calls in a batch

_WORDS = {"type": "string", "description": "Such as now, in 6 rounds, in 2 h, 90 min, 2026-11-22T18:00:00Z."}
_ROUND = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": LAST_ROUND}, _WORDS]}
_TIME = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": LAST_ROUND}, _WORDS]}
_VALUE = {"type": "number", "minimum": 0}
_SIGNAL = {
    "anyOf": [{"type": "integer"}, {"type": "string", "maxLength": LONGEST_SIGNAL}, {"type": "null"}],
    "description": "What the platform sees when the job is ready.",
}


def _object(required: tuple[str, ...], /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _curve(kind: str, **fields: Any) -> dict[str, Any]:
    return _object(("kind", *fields), kind={"const": kind, "type": "string"}, **fields)


_LINEAR = {"value": _VALUE, "from": _TIME, "slope": _VALUE, "deadline": _TIME}
_CURVES = [
    _curve("deadline", value=_VALUE, deadline=_TIME),
    _curve("linear", **_LINEAR),
    _curve("falling", value=_VALUE, **{"from": _TIME}, half={"type": "number", "exclusiveMinimum": 0}, deadline=_TIME),
    _curve("table", values={"type": "object", "additionalProperties": _VALUE}),
]
_RANK = _curve("rank", rank={"type": "integer", "minimum": 1, "maximum": 9}, deadline=_TIME)
_REQUIREMENT = _object(
    ("arrival", "duration", "probability"),
    arrival=_ROUND,
    duration=_ROUND,
    probability={"type": "number", "minimum": 0, "maximum": 1},
    signal=_SIGNAL,
)
_ROUNDS = {"anyOf": [_ROUND, {"type": "array", "items": _ROUND, "minItems": 1}]}
_SHAPE = _object(
    ("each", "on"),
    each={"type": "object", "additionalProperties": _VALUE, "description": "What one task needs, by resource."},
    on={"type": "object", "additionalProperties": _ROUNDS, "description": "Rounds by kind of node."},
    tasks={"type": "integer", "minimum": 1},
    per_node={"type": "integer", "minimum": 1},
    worth={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    law={"type": "array", "items": {"type": "number"}, "description": "Probabilities, one for each duration."},
)
_CHECKPOINT = _object(
    ("every",),
    every={"type": "integer", "minimum": 1, "description": "Rounds of work after which it is saved, each time."},
    cost={"const": 0, "description": "What saving takes is in the durations."},
)
_OF_NODES = _object(
    ("concurrency", "value", "requirements"),
    concurrency={"type": "integer", "minimum": 1},
    value={"anyOf": [*_CURVES, _RANK]},
    requirements={"type": "array", "items": _REQUIREMENT, "minItems": 1},
    restarts={"type": "boolean", "description": "False: a run that was taken back cannot start again."},
    patience={**_TIME, "description": "Rounds to wait for a start, where patience is sold."},
    checkpoint=_CHECKPOINT,
)
_ON_CLUSTER = _object(
    ("value", "arrival", "shapes"),
    value={"anyOf": _CURVES},
    arrival=_ROUND,
    shapes={"type": "array", "items": _SHAPE, "minItems": 1, "description": "Ways to run: any of them will do."},
    revealed={"type": "boolean", "description": "Whether the case of the law is seen at arrival."},
)
_STATEMENT = {"anyOf": [_OF_NODES, _ON_CLUSTER]}
_JOB = {"type": "string", "description": "Of the calls arrive and complete."}

Statement = Annotated[Any, WithJsonSchema(_STATEMENT)]
Signal = Annotated[Any, WithJsonSchema(_SIGNAL)]
Owner = Annotated[str, Field(pattern=OWNER_NAME)]
Label = Annotated[str, Field(pattern=f"^{LABEL}$", description="1 to 64 of A-Z, a-z, 0-9, _, . and -")]
Credits = Annotated[float, Field(ge=0, le=MOST_CREDITS)]
Share = Annotated[float, Field(ge=0, le=MOST_CREDITS)]


class Body(Strict):
    """A body: no value is converted to another type."""

    model_config = ConfigDict(strict=True, revalidate_instances="never")


class Submission(Body):
    """A statement of work; for an operator also whose it is."""

    sow: Statement
    owner: Owner | None = None
    name: Label | None = None


class Arrival(Body):
    """The signal of a ready job."""

    signal: Signal = None
    duration: Annotated[int, Field(ge=1, le=LAST_ROUND)] | None = None


class Completion(Body):
    """How a job ended."""

    outcome: Literal[OUTCOMES] = "done"  # type: ignore[valid-type]
    exit_code: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None = None


class Withdrawal(Body):
    """Nothing."""


class Rounds(Body):
    """How many rounds are to be cleared."""

    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = 1


class Nodes(Body):
    """How many nodes can be used, and which jobs were held back or removed for it."""

    usable: Annotated[int, Field(ge=0, le=LARGEST_CAPACITY)]
    held: list[str] = Field(default_factory=list)
    removed: list[str] = Field(default_factory=list)


class NewShare(Body):
    """A share of the machine for an account, ``physics/``, or for an owner, ``physics/ann`` or ``bob``.

    An account that is not there yet takes its part from all others: it has to be called ``new``.
    """

    place: Annotated[str, Field(min_length=1, max_length=256)]
    share: Share
    new: StrictBool = False


class NewOwner(Body):
    """An account; ``share`` in ``account`` where credits renew."""

    owner: Owner
    role: Role = "owner"
    deposit: Credits = 0.0
    limit: Credits | None = Field(0.0, description="Credits below zero to which jobs may bring it; null: no limit.")
    group: Owner | None = None
    share: Share | None = None
    account: Annotated[str, Field(max_length=256)] = ""


class Deposit(Body):
    """Credits."""

    credits: Annotated[float, Field(ge=0, le=MOST_CREDITS)]


class Call(Body):
    """One call of a batch."""

    call: Literal[KINDS]  # type: ignore[valid-type]
    job: Annotated[str | None, WithJsonSchema(_JOB)] = None
    body: dict[str, Any] = Field(default_factory=dict, description="As of the call by itself.")


class Batch(Body):
    """Several calls; each is read by itself, so that a faulty one is no fault of the others."""

    calls: Annotated[
        list[Any],
        Field(min_length=1, max_length=MOST_CALLS),
        WithJsonSchema({"type": "array", "minItems": 1, "maxItems": MOST_CALLS, "items": Call.model_json_schema()}),
    ]


Model = TypeVar("Model", bound=Body)


def read(model: type[Model], said: Said) -> Model:
    """Return a request as a body.

    Raises InvalidParameterError if it is illegal; the message names the place, the value and the legal values.
    """
    return validated(model, dict(said))
