"""The JSON Schema of a scenario, for editors: completion of keys, and a mark at the illegal ones."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from marketsched.config.scenario import Scenario
from marketsched.config.sections import WorkloadSection, workload_class
from marketsched.mechanisms.legal import LARGEST_WHOLE, Finite, ListOf, Maybe, Named, Whole
from marketsched.mechanisms.registry import names


class _Ranges(GenerateJsonSchema):
    """Knows the ranges of `marketsched.mechanisms.ranges`; what only a function can check is left open."""

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        return _of_range(schema["function"]["function"])

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        own = inspect.ismethod(schema["function"]["function"])  # of a model: keys are those of its fields
        return self.generate_inner(schema["schema"]) if own else {}


def _of_range(legal: object) -> JsonSchemaValue:
    if isinstance(legal, Whole):
        ends = {"minimum": legal.lowest, "maximum": legal.highest}
        return {"type": "integer"} | {end: each for end, each in ends.items() if abs(each) < LARGEST_WHOLE}
    if isinstance(legal, Finite):
        return {"type": "number", "description": f"in {legal.interval}"}
    if isinstance(legal, Named):
        listed: JsonSchemaValue = {"enum": list(legal.names)}
        return listed if legal.otherwise is None else {"anyOf": [listed, _of_range(legal.otherwise)]}
    if isinstance(legal, Maybe):
        return {"anyOf": [_of_range(legal.range), {"type": "null"}]}
    if isinstance(legal, ListOf):
        return {"type": "array", "items": _of_range(legal.range)}
    return {}


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file; installed packages' workloads are among them.

    Examples
    --------
    >>> schema = scenario_schema()
    >>> schema["required"], schema["properties"]["workload"]["anyOf"][0]["properties"]["kind"]["type"]
    (['name'], 'string')
    """
    schema = Scenario.model_json_schema(schema_generator=_Ranges, mode="validation")
    kinds: list[type[WorkloadSection]] = [workload_class(name) for name in names("workload")]
    found = [kind.model_json_schema(schema_generator=_Ranges) for kind in kinds]
    defs = schema.setdefault("$defs", {})
    for each in found:
        defs |= each.pop("$defs", {})
    schema["properties"]["workload"] = {"anyOf": found}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
