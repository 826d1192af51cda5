"""The bodies of requests: the checks of each, and its part of the OpenAPI document.

A statement of work is described, and checked where it is made, in `marketsched.config.sow_codec`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, StrictBool, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from marketsched.config.ranges_schema import RangesSchema
from marketsched.config.sow_codec import NodesStatement, ShapedStatement
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
_SIGNAL = {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": LONGEST_SIGNAL}, {"type": "null"}]}


class _TimesInWords(RangesSchema):
    """Over HTTP times may be words."""

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        found = super().function_plain_schema(schema)
        return {"anyOf": [found, _WORDS]} if found.get("maximum") == LAST_ROUND else found


def _inlined(schema: Any, parts: dict[str, Any]) -> Any:
    """Return a schema with its parts where they are referred to: it stands inside another document."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _inlined(parts[schema["$ref"].rpartition("/")[2]], parts)
        return {key: _inlined(each, parts) for key, each in schema.items() if key != "$defs"}
    return [_inlined(each, parts) for each in schema] if isinstance(schema, list) else schema


def _schema_of(model: type[Strict]) -> Any:
    found = model.model_json_schema(schema_generator=_TimesInWords)
    return _inlined(found, found.get("$defs", {}))


_STATEMENT = {"anyOf": [_schema_of(NodesStatement), _schema_of(ShapedStatement)]}
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
