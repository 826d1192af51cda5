"""Scenario files: where they are, and how they are read and changed."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from typing import Any

from marketsched.config.strict_yaml import parse_yaml, read_yaml
from marketsched.mechanisms.errors import (
    InvalidParameterError,
    MarketschedError,
    MissingDataError,
    UnknownNameError,
    shown,
)
from marketsched.mechanisms.registry import get, mechanism_names, names
from marketsched.worlds.logs import KINDS

OF_LISTED = "bid-price"  # the mechanism of jobs that a file lists, which may be few on few nodes
LISTED = ("jobs", "mixtures")  # kinds of workloads
OF_CLUSTERS = "cluster-bid-price"  # the mechanism of jobs with shapes for which none is named
WHOLE_LOG = 1_000_000  # jobs of a log that are compared at most, where nobody says how many
OF_REQUESTS = "sacct-shapes"  # the workload of requests in a log, on a cluster that is written out
OF_LOGS = "two-offers"  # the mechanism of a log for which none is named: its durations are hidden


def scenario_names() -> tuple[str, ...]:
    """Return the names of the built-in scenarios, sorted.

    Examples
    --------
    >>> "synthetic-pipelines" in scenario_names()
    True
    """
    return tuple(sorted(_built_in()))


def built_in_text(name: str) -> str:
    """Return the file of a built-in scenario, comments included.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    if name not in scenario_names():
        raise UnknownNameError(f"scenario {name!r} is unknown: expected one of {', '.join(scenario_names())}")
    return _built_in()[name].read_text(encoding="utf-8")


def read_scenario(where: str | PathLike[str]) -> tuple[Any, str]:
    """Return the content of a scenario file (or a built-in scenario), unchecked, and its name.

    Raises
    ------
    UnknownNameError
        If ``where`` is neither the name of a built-in scenario nor an existing file.
    InvalidParameterError
        If it is a folder, not YAML, or no table of keys.
    OSError
        If the file cannot be read.
    """
    if isinstance(where, str) and where in scenario_names():
        return parse_yaml(built_in_text(where), f"{where}.yaml"), where
    if not isinstance(where, (str, PathLike)):
        legal = "the name of a built-in one, a file, or a mapping (Scenario.from_dict)"
        raise InvalidParameterError(place="scenario", value=where, legal=legal)
    if Path(where).is_dir():
        inside = Path(where) / "scenario.yaml"
        such = f", such as {inside}" if inside.is_file() else ", or the name of a built-in one"
        raise InvalidParameterError(f"scenario {str(where)!r} is a folder: expected a YAML file{such}")
    if not Path(where).exists():
        if _is_log_file(Path(where)):
            return _of_log(_in_data_folder(Path(where))), str(where)
        near = difflib.get_close_matches(Path(where).stem.lower(), scenario_names(), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        if isinstance(where, str) and where in mechanism_names():
            hint = f" ({where!r} is a mechanism: a scenario names one as mechanism.name)"
        names = ", ".join(scenario_names())
        raise UnknownNameError(f"scenario {str(where)!r}: no such file, and the built-in ones are {names}{hint}")
    if _is_log_file(Path(where)):
        return _of_log(Path(where)), str(where)
    try:
        data = read_yaml(where)
    except InvalidParameterError:
        if not _is_named_scenario(Path(where)):
            _format_of(Path(where))  # whose error says what a log is
        raise
    if data is None:
        raise InvalidParameterError(
            f"{where}: the file is empty: expected a scenario or a log; "
            "`marketsched scenarios synthetic-pipelines` prints a scenario to begin with"
        )
    if not isinstance(data, Mapping):
        if not _is_named_scenario(Path(where)):
            _format_of(Path(where))
        raise InvalidParameterError(
            f"{where}: the document = {shown(data)}: expected a table of keys; "
            "`marketsched scenarios synthetic-pipelines` prints a scenario to begin with"
        )
    return _found_beside(data, Path(where).parent), str(where)


def _found_beside(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a scenario with what it names by a relative path, and is not here, named in the folder of its file.

    That is the log of its workload, and the files of its mechanism and policies (``own.py:Rule``).
    """

    def moved(named: Any) -> Any:
        if not isinstance(named, str) or not named:
            return named
        file = named[: named.index(".py:") + 3] if ".py:" in named else named
        return str(folder / named) if not Path(file).exists() and (folder / file).is_file() else named

    found = dict(data)
    for section, key in (("workload", "path"), ("mechanism", "name"), ("cluster", "policies")):
        content = found.get(section)
        if isinstance(content, Mapping) and key in content:
            named = content[key]
            beside = [moved(each) for each in named] if isinstance(named, list) else moved(named)
            found[section] = {**content, key: beside}
    rules = found.get("mechanism")
    if isinstance(rules, Mapping) and isinstance(own := rules.get("parameters"), Mapping):
        found["mechanism"] = {**rules, "parameters": {key: moved(each) for key, each in own.items()}}
    if "mechanism" in found:
        found["mechanism"] = moved(found["mechanism"])
    return found


def _in_data_folder(log: Path) -> Path:
    """Return where a log is that is not here: in the folder of recorded traces, if that is known."""
    from marketsched.worlds.logs.formats import find_log  # pandas

    with suppress(MissingDataError):
        if (found := find_log(str(log))).is_file():
            return found
    raise UnknownNameError(f"log {str(log)!r}: no such file, here or in the folder that MARKETSCHED_DATA names")


def _is_log_file(path: Path) -> bool:
    """Tell whether a file is a log: by its name, or by a first line that no scenario has."""
    name = path.name.removesuffix(".gz")
    if name.endswith((".swf", ".csv", ".tsv")):
        return True
    if _is_named_scenario(path) or not path.is_file():
        return False
    try:
        _format_of(path)
    except MarketschedError:
        return False
    return True


def _is_named_scenario(path: Path) -> bool:
    """Tell whether a file's name is one of scenarios."""
    return path.name.removesuffix(".gz").endswith((".yaml", ".yml", ".json"))


def _of_log(path: Path) -> dict[str, Any]:
    """Return the scenario that is made of a log: a market of its last runs, with the defaults of its kind."""
    name = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    workload = {"kind": _format_of(path), "path": str(path)}
    return {"name": name, "workload": workload, "mechanism": {"name": OF_LOGS}}


def _format_of(path: Path) -> str:
    from marketsched.worlds.logs.formats import format_of  # pandas, which other scenarios are checked without

    return format_of(path)


def is_log(scenario: Mapping[str, Any]) -> bool:
    """Tell whether the workload of a scenario, as plain data, is a log."""
    workload = scenario.get("workload")
    return isinstance(workload, Mapping) and workload.get("kind") in KINDS


def with_whole_log(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a scenario of a log with all of its jobs, up to `WHOLE_LOG`, where it does not say how many."""
    if not is_log(scenario) or "most_jobs" in scenario["workload"]:
        return scenario
    return {**scenario, "workload": {**scenario["workload"], "most_jobs": WHOLE_LOG}}


def is_on_cluster(scenario: Mapping[str, Any]) -> bool:
    """Tell whether the jobs of a scenario, as plain data, have shapes."""
    workload = scenario.get("workload")
    if not isinstance(workload, Mapping):
        return False
    kind = workload.get("kind")
    known = isinstance(kind, str) and kind in names("workload")
    always = known and getattr(get("workload", str(kind)), "on_cluster", False) is True  # of a section it is a property
    return "cluster" in workload or always


def default_mechanism(scenario: Mapping[str, Any]) -> str | None:
    """Return the mechanism of a scenario, as plain data, that names none; None: that of any other market."""
    workload = scenario.get("workload")
    if is_log(scenario):
        return OF_LOGS
    if is_on_cluster(scenario):
        return OF_CLUSTERS
    return OF_LISTED if isinstance(workload, Mapping) and workload.get("kind") in LISTED else None


def with_changes(data: Any, changes: Sequence[str], option: str = "--set ") -> Any:
    """Return a copy of scenario ``data`` with every ``a.b.c=value`` of ``changes`` made.

    Values are read as YAML, list places are numbers. With another ``mechanism.name`` rules of the file that the
    mechanism of that name does not take are left out; ``expected`` figures, too, which are of the file as it
    stands, unless they are set themselves. A change of the cluster that requests of a log run on does not change what
    they are worth. Keys are checked with the whole scenario. An error shows the change behind its ``option``.

    Raises
    ------
    InvalidParameterError
        If a change is not of that form, or its place is inside something that has no parts.
    """
    for change in changes:
        if not isinstance(change, str):
            raise InvalidParameterError(place="changes", value=change, legal="texts, as 'mechanism.epsilon=0.1'")
    before, data = data, copy.deepcopy(data)
    if isinstance(data, dict) and any(
        not change.startswith(("name=", "description=", "expected")) for change in changes
    ):
        data.pop("expected", None)
    for change in sorted(changes, key=lambda change: not change.startswith("mechanism.name=")):  # then its rules
        path, equals, text = change.partition("=")
        if not equals or not path:
            raise InvalidParameterError(f"{option}{change}: expected key=value, as in mechanism.epsilon=0.1")
        *above, last = path.split(".")
        here = data
        for step in above:
            here = _inside(here, step, option + change)
        value = parse_yaml(text, option + change)
        if path == "mechanism.name" and isinstance(here, dict):
            from marketsched.config.mechanism_choice import section_under  # numpy, which plain text needs not

            data["mechanism"] = section_under(here, value)
        elif isinstance(here, dict):
            here[last] = value
        else:
            _inside(here, last, option + change)  # complains where there is no such place
            here[int(last)] = value
    if isinstance(data, dict) and any(f"{each.partition('=')[0]}.".startswith("workload.cluster.") for each in changes):
        _keep_values(before.get("workload"), data.get("workload"))
    return data


def values_over(text: str) -> tuple[str, list[Any]]:
    """Read ``key=value,value,...``; values are YAML.

    Raises
    ------
    InvalidParameterError
        If it is not of that form, or a value is written twice.

    Examples
    --------
    >>> values_over("cluster.instance.contention=0.1,1")
    ('cluster.instance.contention', [0.1, 1])
    """
    key, equals, values = text.partition("=")
    if not equals or not key or not values:
        raise InvalidParameterError(
            f"--over {text}: expected key=value,value,..., as in cluster.instance.contention=1,10"
        )
    found = [parse_yaml(value, f"--over {text}") for value in values.split(",")]
    if len({str(value) for value in found}) < len(found):
        raise InvalidParameterError(f"--over {text}: expected every value once")
    return key, found


def _keep_values(before: Any, after: Any) -> None:
    """Give a workload of requests, whose cluster was changed, the amounts of the one before as its ``valued_on``.

    So the change does not change what a job is worth. Other workloads, those that say it and those that are not legal
    stay as they are.
    """
    if not isinstance(after, dict) or after.get("kind") != OF_REQUESTS or after.get("valued_on"):
        return
    whole: dict[str, float] = {}
    with suppress(TypeError, KeyError, AttributeError):
        for group in before["cluster"]["groups"]:
            for name, amount in group["each"].items():
                whole[name] = whole.get(name, 0) + group["nodes"] * amount
        there = {name: amount for name, amount in whole.items() if amount and name in after["cluster"]["resources"]}
        after |= {"valued_on": there} if there else {}


def _inside(here: Any, step: str, change: str) -> Any:
    if isinstance(here, dict):
        return here.setdefault(step, {})
    if isinstance(here, list) and re.fullmatch("[0-9]{1,9}", step) and int(step) < len(here):
        return here[int(step)]
    legal = f"a place in 0 .. {len(here) - 1}" if isinstance(here, list) else "no more parts here"
    raise InvalidParameterError(f"{shown(change)[1:-1]}: {shown(step)}: expected {legal}")


def _built_in() -> dict[str, Traversable]:
    """Return the files of the built-in scenarios by name: those of every package registered as ``scenarios``."""
    paths = [path for name in names("scenarios") for path in files(get("scenarios", name)).iterdir()]
    return {path.name.removesuffix(".yaml"): path for path in paths if path.name.endswith(".yaml")}


def without_none(data: Any) -> Any:
    """Remove None, that is, missing values, from mappings.

    Lists stay as they are: a job's ``arrival: null`` means something.
    """
    if isinstance(data, dict):
        return {key: without_none(value) for key, value in data.items() if value is not None}
    return list(data) if isinstance(data, tuple) else data
