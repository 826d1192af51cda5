"""The file of a sweep, and its runs: cases (scenarios with their changes made) times seeds.

All are checked before any is run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import read_scenario, scenario_names, with_changes
from marketsched.config.strict_yaml import Strict, dump_yaml, read_yaml, validated
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.mechanisms.legal import Whole
from marketsched.play.kept_results import canonical, run_key
from marketsched.results.output import plain

DEFAULT_SEEDS = 20
LARGEST_SEED = 2**63 - 1  # a whole number of a Parquet column
_seed = Whole(0, LARGEST_SEED)


def _scenario(x: object) -> str | dict[str, Any]:
    if isinstance(x, str) and x:
        return x
    if isinstance(x, Mapping):
        return dict(x)
    raise ValueError("the name of a built-in scenario, a file, or a scenario written out")


def _grid(x: object) -> dict[str, list[Any]]:
    if not isinstance(x, Mapping):
        raise ValueError("a table of keys, each with a list of values")
    return {_key(key): _values(str(key), values) for key, values in x.items()}


def _values(key: str, values: object) -> list[Any]:
    if not isinstance(values, (list, tuple)) or not values:
        raise InvalidParameterError(f"{key}: {values!r}: expected a list of one or more values")
    seen: set[str] = set()
    for value in values:
        _whole(key, value)
        text = dump_yaml(value)
        if text in seen:
            shown = text.removesuffix("...\n").strip()
            raise InvalidParameterError(f"{key}: {shown} is there twice: expected every value once")
        seen.add(text)
    return list(values)


def _whole(key: str, value: object) -> None:
    """Refuse what has no end: YAML can name a part inside itself."""
    try:
        json.dumps(value, default=str)
        dump_yaml(value)  # from Python 3.12 on JSON goes deeper than YAML can
    except (ValueError, RecursionError):
        raise InvalidParameterError(f"{key}: a value that is nested without end: expected a plain one") from None


def _changes(x: object) -> dict[str, Any]:
    if not isinstance(x, Mapping):
        raise ValueError("a table of keys and values, as in {mechanism.epsilon: 0.1}")
    for key, value in x.items():
        _whole(str(key), value)
    return {_key(key): value for key, value in x.items()}


def _key(key: object) -> str:
    if not isinstance(key, str) or "=" in key or not all(key.split(".")):
        raise InvalidParameterError(f"{key}: expected the place of a value, as in mechanism.epsilon")
    return key


def _seeds(x: object) -> tuple[int, ...]:
    legal = "how many seeds, or a list of different seeds >= 0"
    if isinstance(x, (list, tuple)):
        try:
            found = tuple(_seed(seed) for seed in x)
        except ValueError:
            raise ValueError(legal) from None
        if not found or len(set(found)) < len(found):
            raise ValueError(legal)
        return found
    try:
        return tuple(range(Whole(1, 10**7)(x)))
    except ValueError:
        raise ValueError(legal) from None


class SweepSpec(Strict):
    """Scenarios, changes, seeds.

    Every scenario is run with every entry of ``overrides``, at every point of the ``grid``, with every
    seed: all compare like with like, because all have the same seeds.

    Examples
    --------
    >>> spec = SweepSpec.from_dict({"scenario": "synthetic-pipelines", "seeds": 3,
    ...                             "grid": {"mechanism.epsilon": [0, 0.1]}})
    >>> spec.seeds, len(spec.changes())
    ((0, 1, 2), 2)
    >>> SweepSpec.from_dict({"scenario": "synthetic-pipelines", "sedes": 3})
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: sweep: sedes: unknown key (did you mean 'seeds'?): \
known here are name, description, scenario, scenarios, grid, overrides, seeds, optimum
    """

    name: Annotated[str, Field(min_length=1)] = "sweep"
    description: str = ""
    scenario: Annotated[str | dict[str, Any] | None, BeforeValidator(lambda x: None if x is None else _scenario(x))] = (
        None
    )
    scenarios: tuple[Annotated[str | dict[str, Any], BeforeValidator(_scenario)], ...] = ()
    grid: Annotated[dict[str, list[Any]], BeforeValidator(_grid)] = Field(default_factory=dict)
    overrides: tuple[Annotated[dict[str, Any], BeforeValidator(_changes)], ...] = ()
    seeds: Annotated[tuple[int, ...], BeforeValidator(_seeds)] = tuple(range(DEFAULT_SEEDS))
    optimum: StrictBool = True

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.scenario is None) == (not self.scenarios):
            raise InvalidParameterError("scenario: expected one scenario, or a list of them under scenarios")
        for i, entry in enumerate(self.overrides):
            both = next((key for key in entry if key in self.grid), None)
            if both is not None:
                raise InvalidParameterError(f"overrides[{i}].{both}: is in the grid too: expected it in one of them")
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "sweep") -> Self:
        """Return the sweep that ``data``, as in a sweep file, describes; ``source`` is its name in an error line.

        InvalidParameterError if a key is unknown or missing.
        """
        return validated(cls, data, source)

    def bases(self) -> tuple[str | dict[str, Any], ...]:
        """Return the scenarios to start from, by name or written out."""
        return self.scenarios if self.scenario is None else (self.scenario,)

    def changes(self) -> list[dict[str, Any]]:
        """Return the changes of each case: entries of the list in order, the grid inside each.

        The last key of the grid moves fastest.
        """
        found: list[dict[str, Any]] = [dict(entry) for entry in self.overrides] or [{}]
        for key, values in self.grid.items():
            found = [{**changes, key: value} for changes in found for value in values]
        return found

    def size(self) -> int:
        """Return the number of runs."""
        points = len(self.bases()) * max(len(self.overrides), 1) * len(self.seeds)
        for values in self.grid.values():
            points *= len(values)
        return points


MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Case:
    """One scenario of a sweep, to be run with many seeds.

    ``labels`` are columns of the table: the changed keys, or other labels that distinguish the cases.

    Examples
    --------
    >>> case = Case(0, Scenario.load("stochastic-mix"), {"mechanism.epsilon": 0.1})
    >>> case.scenario.name, dict(case.labels)
    ('stochastic-mix', {'mechanism.epsilon': 0.1})
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
    """One case with one seed. ``optimum``: whether a cluster run looks for the best fixed allocation.

    Examples
    --------
    >>> run = SweepRun(Case(0, Scenario.load("stochastic-mix")), seed=3)
    >>> run.seed, run.optimum
    (3, True)
    """

    case: Case
    seed: int
    optimum: bool = True

    @cached_property
    def key(self) -> str:
        """The name the run is kept under; see `marketsched.play.kept_results.run_key`."""
        return run_key(self.case.text, self.seed, self.optimum)


def read_spec(where: str | PathLike[str]) -> tuple[SweepSpec, Path]:
    """Return the sweep that a file describes, and the folder that files named in it are looked for in.

    Raises OSError if the file cannot be read, and InvalidParameterError if it is not there, or not a sweep.
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
    if isinstance(found, dict) and Path(where).is_file():  # so that two without a name have folders of their own
        found = {"name": Path(where).stem, **found}
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

    Files named in the sweep are looked for in ``folder``; ``source`` is its name in an error line. ``changes`` are made
    in every scenario first, as by ``--set`` of `marketsched run`; ``first_seed`` is added to every seed.

    Raises InvalidParameterError or UnknownNameError if a scenario, a place or a value is at fault; the message names
    the case. Raises OSError if a scenario file cannot be read.

    Examples
    --------
    >>> spec = SweepSpec.from_dict({"scenario": "stochastic-mix", "seeds": 3, "grid": {"mechanism.epsilon": [0, 0.1]}})
    >>> runs = runs_of(spec)
    >>> len(runs), runs[-1].case.labels, runs[-1].seed
    (6, {'mechanism.epsilon': 0.1}, 2)
    """
    if spec.size() > MOST_RUNS:
        raise InvalidParameterError(f"{source}: {spec.size():,} runs: expected at most {MOST_RUNS:,}")
    Whole(0, LARGEST_SEED - max(spec.seeds)).check("first_seed", first_seed)
    cases: list[Case] = []
    points = spec.changes()
    keys = list(dict.fromkeys(key for changed in points for key in changed))
    for place in (change.partition("=")[0].strip() for change in changes):
        if place in spec.grid or all(place in entry for entry in spec.overrides or [{}]):
            raise InvalidParameterError(
                f"{source}: {place} is varied there", place="--set", value=place, legal="another key"
            )
    for base in spec.bases():
        content, name = (base, f"{source}: scenario") if isinstance(base, dict) else _read(base, Path(folder), source)
        content = with_changes(content, changes)
        for changed in points:
            cases.append(_case(len(cases), content, changed, keys, name))
    _tell_apart(cases, len(points), source)
    return [SweepRun(case, first_seed + seed, spec.optimum) for case in cases for seed in spec.seeds]


def runs_from(listed: Sequence[Any]) -> list[SweepRun]:
    """Return runs written out one by one: each a `SweepRun`, (scenario, seed) or (scenario, seed, labels).

    A scenario is one of either sort, the name of a built-in one, a file, or its content. Labels are columns of the
    table. Raises InvalidParameterError or UnknownNameError if an entry is none of these; the message names its place.
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
        runs.append(SweepRun(case, Whole(0, LARGEST_SEED).check(f"runs[{i}][1]", seed)))
    if not runs:
        raise InvalidParameterError("runs: none: expected at least one")
    return runs


def _read(name: str, folder: Path, source: str) -> tuple[Any, str]:
    """Return the content of a scenario that a sweep names; a file is looked for beside the sweep."""
    with placed(source=source):
        content, called = read_scenario(name if name in scenario_names() else str(folder / name))
    return content, f"{source}: {called}"


def _case(number: int, content: Any, changed: Mapping[str, Any], keys: Sequence[str], source: str) -> Case:
    """Return the case with ``changed`` made; its labels are what it then holds at all the ``keys``."""
    settings = [f"{key}={_one_line(value)}" for key, value in changed.items()]
    where = f"{source} with {', '.join(settings)}" if settings else source
    with placed(source=source):
        content = with_changes(content, settings, option="")
    scenario = Scenario.from_dict(content, source=where)
    resolved = scenario.to_dict()
    return Case(number, scenario, {key: _at(resolved, key, changed.get(key)) for key in keys})


def _one_line(value: Any) -> str:
    """Return ``value`` as YAML in one line; JSON is YAML, and odd characters are written by number."""
    text = dump_yaml(value).removesuffix("\n").removesuffix("\n...")
    if text.isprintable():
        return text
    text = json.dumps(value, ensure_ascii=False)
    return "".join(x if x.isprintable() else f"\\U{ord(x):08x}" for x in text)


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
