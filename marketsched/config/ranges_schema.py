"""JSON Schemas of types whose fields have the ranges of `marketsched.mechanisms.ranges`."""

from __future__ import annotations

import inspect

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from marketsched.mechanisms.legal import LARGEST_WHOLE, Finite, ListOf, Maybe, Named, Whole


class RangesSchema(GenerateJsonSchema):
    """Knows ranges; what only a function can check is left open."""

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        """Return the schema of a range."""
        return _of_range(schema["function"]["function"])

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Return the schema of a model behind its own check; of what any other function reads, one that takes all."""
        own = inspect.ismethod(schema["function"]["function"])  # of a model: keys are those of its fields
        return self.generate_inner(schema["schema"]) if own else {}


def _of_range(legal: object) -> JsonSchemaValue:
    if isinstance(legal, Whole):
        ends = {"minimum": legal.lowest, "maximum": legal.highest}
        return {"type": "integer"} | {end: each for end, each in ends.items() if abs(each) < LARGEST_WHOLE}
    if isinstance(legal, Finite):
        low, high = legal.ends
        least = "exclusiveMinimum" if legal.interval[0] == "(" else "minimum"
        most = "exclusiveMaximum" if legal.interval[-1] == ")" else "maximum"
        return {"type": "number"} | {
            end: each for end, each in ((least, low), (most, high)) if abs(each) < float("inf")
        }
    if isinstance(legal, Named):
        listed: JsonSchemaValue = {"enum": list(legal.names)}
        return listed if legal.otherwise is None else {"anyOf": [listed, _of_range(legal.otherwise)]}
    if isinstance(legal, Maybe):
        return {"anyOf": [_of_range(legal.range), {"type": "null"}]}
    if isinstance(legal, ListOf):
        return {"type": "array", "items": _of_range(legal.range)}
    return {}
