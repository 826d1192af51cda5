"""The JSON Schema of a scenario, for editors: completion of keys, and a mark at the illegal ones."""

from __future__ import annotations

from typing import Any

from marketsched.config.ranges_schema import RangesSchema
from marketsched.config.scenario import Scenario
from marketsched.config.sections import WorkloadSection, workload_class
from marketsched.mechanisms.registry import names


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario file; installed packages' workloads are among them.

    Examples
    --------
    >>> schema = scenario_schema()
    >>> schema["required"], schema["properties"]["workload"]["anyOf"][0]["properties"]["kind"]["type"]
    (['name'], 'string')
    """
    schema = Scenario.model_json_schema(schema_generator=RangesSchema, mode="validation")
    kinds: list[type[WorkloadSection]] = [workload_class(name) for name in names("workload")]
    found = [kind.model_json_schema(schema_generator=RangesSchema) for kind in kinds]
    defs = schema.setdefault("$defs", {})
    for each in found:
        defs |= each.pop("$defs", {})
    schema["properties"]["workload"] = {"anyOf": found}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
