"""The runs of a sweep: cases (scenarios with their changes made) times seeds, all checked before any is run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import built_in_names, read_scenario, with_changes
from marketsched.config.strict_yaml import dump_yaml, read_yaml
from marketsched.mechanisms.checks import whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.results.output import plain
from marketsched.study.fingerprint import canonical, run_key
from marketsched.study.sweeps.spec import LARGEST_SEED, SweepSpec

MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Case:
    """One scenario of a sweep, to be run with many seeds.

    ``labels`` are columns of the table: what was changed, or whatever tells the cases apart.
    """

    number: int
    scenario: Scenario
    labels: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """The resolved scenario as JSON, equal for equal scenarios."""
        return canonical(plain(self.scenario.to_dict()))


@dataclass(frozen=True)
class SweepRun:
    """One case with one seed. ``optimum``: whether a cluster run looks for the best fixed allocation."""

    case: Case
    seed: int
    optimum: bool = True

    @cached_property
    def key(self) -> str:
        """The name the run is kept under; see `marketsched.study.fingerprint.run_key`."""
        return run_key(self.case.text, self.seed, self.optimum)


def read_spec(where: str | PathLike[str]) -> tuple[SweepSpec, Path]:
    """Return the sweep that a file describes, and the folder that files named in it are looked for in.

    Raises
    ------
    OSError
        If the file cannot be read.
    InvalidParameterError
        If it is not there, or not a sweep.
    """
    if Path(where).is_dir() or not Path(where).exists():  # a pipe will do
        seen = "is a folder" if Path(where).is_dir() else "no such file"
        raise InvalidParameterError(
            f"{where}: {seen}: expected a YAML file that names a scenario and what to vary, as docs/sweeps.md shows"
        )
    found = read_yaml(where)
    if isinstance(found, dict) and not {"scenario", "scenarios"} & set(found) and {"workload", "cluster"} & set(found):
        raise InvalidParameterError(
            f"{where} is a scenario: expected a sweep, that is `scenario: {Path(where).name}` in another file, "
            "with grid, overrides or seeds"
        )
    return SweepSpec.from_dict(found, source=str(where)), Path(where).parent


def runs_of(
    spec: SweepSpec,
    *,
    folder: str | PathLike[str] = ".",
    source: str = "sweep",
    changes: Sequence[str] = (),
    first_seed: int = 0,
) -> list[SweepRun]:
    """Return the runs of a sweep in the order of its table: cases as in the file, seeds inside each.

    Parameters
    ----------
    spec : SweepSpec
        Scenarios, changes, seeds.
    folder : path
        Where files named in the sweep are looked for.
    source : str
        What to call the sweep in an error line.
    changes : sequence of str
        Made in every scenario first, as ``--set`` of `marketsched run`.
    first_seed : int
        Added to every seed.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a scenario, a place or a value is at fault; the message names the case.
    OSError
        If a scenario file cannot be read.
    """
    if spec.size() > MOST_RUNS:
        raise InvalidParameterError(f"{source}: {spec.size():,} runs: expected at most {MOST_RUNS:,}")
    whole_parameter("first_seed", first_seed, 0, LARGEST_SEED - max(spec.seeds))
    cases: list[Case] = []
    points = spec.changes()
    keys = list(dict.fromkeys(key for changed in points for key in changed))
    for base in spec.bases():
        content, name = (base, f"{source}: scenario") if isinstance(base, dict) else _read(base, Path(folder), source)
        content = with_changes(content, changes)
        for changed in points:
            cases.append(_case(len(cases), content, changed, keys, name))
    _tell_apart(cases, len(points), source)
    return [SweepRun(case, first_seed + seed, spec.optimum) for case in cases for seed in spec.seeds]


def runs_from(listed: Sequence[Any]) -> list[SweepRun]:
    """Return runs written out one by one.

    Parameters
    ----------
    listed : sequence
        Of `SweepRun`, or of (scenario, seed) or (scenario, seed, labels); a scenario is one of either
        sort, the name of a built-in one, a file, or its content. Labels are columns of the table.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If an entry is none of these; the message names its place.
    """
    if len(listed) > MOST_RUNS:
        raise InvalidParameterError(f"runs: {len(listed):,} of them: expected at most {MOST_RUNS:,}")
    runs: list[SweepRun] = []
    cases: dict[str, Case] = {}
    for i, entry in enumerate(listed):
        if isinstance(entry, SweepRun):
            given = entry.case  # from one sweep or several: numbered anew
            case = cases.setdefault(f"#{id(given)}", Case(len(cases), given.scenario, given.labels))
            runs.append(SweepRun(case, entry.seed, entry.optimum))
            continue
        if not isinstance(entry, (tuple, list)) or len(entry) not in (2, 3):
            raise InvalidParameterError(f"runs[{i}] = {entry!r}: expected (scenario, seed) or (scenario, seed, labels)")
        scenario, seed, labels = (*entry, {})[:3]
        if not isinstance(labels, Mapping):
            raise InvalidParameterError(f"runs[{i}][2] = {labels!r}: expected a table of columns and values")
        case = Case(len(cases), Scenario.of(scenario), dict(labels))
        case = cases.setdefault(f"{case.text}\n{canonical(plain(labels))}", case)
        runs.append(SweepRun(case, whole_parameter(f"runs[{i}][1]", seed, 0, LARGEST_SEED)))
    if not runs:
        raise InvalidParameterError("runs: none: expected at least one")
    return runs


def _read(name: str, folder: Path, source: str) -> tuple[Any, str]:
    """Return the content of a scenario that a sweep names; a file is looked for beside the sweep."""
    with placed(source=source):
        content, called = read_scenario(name if name in built_in_names() else str(folder / name))
    return content, f"{source}: {called}"


def _case(number: int, content: Any, changed: Mapping[str, Any], keys: Sequence[str], source: str) -> Case:
    """Return the case with ``changed`` made; its labels are what it then holds at all the ``keys``."""
    told = [f"{key}={_one_line(value)}" for key, value in changed.items()]
    where = f"{source} with {', '.join(told)}" if told else source
    with placed(source=source):
        content = with_changes(content, told, option="")
    scenario = Scenario.from_dict(content, source=where)
    resolved = scenario.to_dict()
    return Case(number, scenario, {key: _at(resolved, key, changed.get(key)) for key in keys})


def _one_line(value: Any) -> str:
    """Return ``value`` as YAML in one line; JSON is YAML, and odd characters are written by number."""
    text = dump_yaml(value).removesuffix("\n").removesuffix("\n...")
    if text.isprintable():
        return text
    told = json.dumps(value, ensure_ascii=False)
    return "".join(x if x.isprintable() else f"\\U{ord(x):08x}" for x in told)


def _at(resolved: Any, key: str, value: Any) -> Any:
    """Return what the resolved scenario holds at ``key``: ``0`` in a file may be ``0.0`` there."""
    here = resolved
    for step in key.split("."):
        if isinstance(here, Mapping) and step in here:
            here = here[step]
        elif isinstance(here, (list, tuple)) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        else:
            return value
    return here


def _tell_apart(cases: Sequence[Case], per_base: int, source: str) -> None:
    """Refuse two scenarios of one name: the table tells scenarios apart by name."""
    names = [case.scenario.name for case in cases[::per_base]]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InvalidParameterError(f"{source}: scenarios: two have the name {twice!r}: expected different names")
