"""Compare policies once for each value of a key of a cluster scenario: size, contention, utility, ..."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import pandas as pd

from marketsched.comparisons.comparing import compare
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import read_scenario, with_changes
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.play.running import Progress
from marketsched.results.result import Result, versions


def compare_over(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    key: str,
    values: Sequence[Any],
    mechanisms: Sequence[str] | None = None,
    runs: int = 20,
    seed: int = 0,
    *,
    source: str = "scenario",
    progress: Progress | None = None,
    keep_interrupted: bool = False,
    **options: Any,
) -> Result:
    """Compare policies once for each value of one dotted key of a cluster scenario, as ``cluster.instance.contention``.

    All values are checked before anything is run, and have the same seeds; other arguments are those of
    :func:`marketsched.comparisons.comparing.compare`, and ``source`` is what an error line calls the scenario. The
    result, of kind ``over``, has ``runs`` and ``summary`` of the comparisons below each other, with the value in column
    ``value``, as text if not all are numbers. If it was interrupted it holds the values that were finished.
    """
    if not values:
        raise InvalidParameterError(place="values", value=list(values), legal=f"at least one value of {key}")
    if isinstance(scenario, Scenario):
        content: Mapping[str, Any] = scenario.to_dict()
    elif isinstance(scenario, Mapping):
        content = scenario
    else:
        content, source = read_scenario(scenario)
    base = Scenario.from_dict(content, source=source, kind="cluster")
    texts = [dump_yaml(value).removesuffix("...\n").strip() for value in values]
    scenarios = [
        Scenario.from_dict(with_changes(content, [f"{key}={text}"]), source=f"{source} with {key} = {text}")
        for text in texts
    ]
    began, complete = time.perf_counter(), True
    found: list[tuple[Any, Result]] = []
    try:
        for value, text, each in zip(values, texts, scenarios, strict=True):
            step = _texts(progress, len(found), len(values), text)
            found.append((value, compare(each, mechanisms, runs, seed, growth=False, progress=step, **options)))
    except KeyboardInterrupt:
        if not keep_interrupted or not found:
            raise
        complete = False
    first = found[0][1].meta
    meta = {
        **{name: first[name] for name in ("scenario", "core", "policies", "lead", "seed", "runs", "confidence")},
        "key": key,
        "values": list(values),
        "finished": [value for value, _ in found],
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 3),
    }
    meta["complete"] = complete
    runs_table = _with_values([(value, each.runs) for value, each in found])
    summary = _with_values([(value, each.summary) for value, each in found])
    kept = [each for _, result in found for each in result.kept]
    return Result("over", {"runs": runs_table}, summary, meta, {"scenario.yaml": base.to_yaml()}, kept)


def _texts(progress: Progress | None, done: int, total: int, text: str) -> Progress | None:
    """Return the progress of one comparison as a part of the whole."""
    if progress is None:
        return None
    return lambda step, steps, what: progress(done * steps + step, total * steps, f"{text}: {what}")


def _with_values(tables: Sequence[tuple[Any, pd.DataFrame]]) -> pd.DataFrame:
    """Return the tables below each other, the values in the first column: numbers, or else text."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value, _ in tables)
    parts = [table.assign(value=value if numbers else str(value)) for value, table in tables]
    table = pd.concat(parts, ignore_index=True)
    return table[["value", *[name for name in table if name != "value"]]]
