"""Sections of a scenario whose keys are the parameters of a registered class or function.

The signature is the schema: keys are its parameters, what is legal is what its annotations say
(`marketsched.mechanisms.legal`), and any other key is refused. What is registered is one of

* a function or class: called with the section's values and with what its caller provides (``given``);
* a dataclass with a method ``build``: its fields are the section's keys, so that what it checks in
  ``__post_init__`` is said when the file is read, and ``build`` gets what is provided.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import PlainValidator, create_model, model_validator
from pydantic_core import PydanticCustomError

from marketsched.config.strict_yaml import Strict
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.registry import get, names
from marketsched.mechanisms.signatures import Parameter, parameters_of, takes_anything
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.worlds.workload import Workload, certain_laws


class Section(Strict):
    """The values of one section, checked against a signature; a subclass is made for each signature."""

    made_by: ClassVar[Callable[..., Any]]
    named: ClassVar[tuple[str, str]]  # kind and name in the registry

    @model_validator(mode="after")
    def _fits(self) -> Section:
        if _is_recipe(type(self).made_by):
            self.recipe()
        return self

    def recipe(self) -> Any:
        """Return the registered dataclass with these values.

        Raises
        ------
        InvalidParameterError
            If values do not fit each other.
        """
        return type(self).made_by(**self.values())

    def values(self) -> dict[str, Any]:
        """Return the parameters by name."""
        base: Any = type(self).__mro__[1]
        chooses = "kind" in base.model_fields  # which entry is meant; else it is a parameter
        return {name: getattr(self, name) for name in type(self).model_fields if name != "kind" or not chooses}

    def make(self, **given: Any) -> Any:
        """Return the object made from these values and the requested values of ``given``."""
        maker = type(self).made_by
        if _is_recipe(maker):
            made = self.recipe()
            return made.build(**_asked(made.build, given))
        return maker(**self.values(), **_asked(maker, given))

    @classmethod
    def of(cls, name: str) -> type[Section]:
        """Return the class of the entry registered under ``name``; a base class determines the kind."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name: the class is made again where it is read."""
        return _again, (type(self).__mro__[1], self.named[1], self.model_dump(exclude_unset=True))


class WorkloadSection(Strict):
    """The section ``workload``: builds jobs, and their laws known in advance."""

    kind: str

    @property
    def on_cluster(self) -> bool:
        """Whether its jobs have shapes, and its nodes differ."""
        return getattr(self, "cluster", None) is not None

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload.

        Parameters
        ----------
        rng : Generator
            Of everything that is drawn.
        data : path, optional
            Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.

        Raises
        ------
        MissingDataError, TraceError
            If it needs a trace that is not there or damaged.
        InvalidParameterError
            If values contradict each other or the recorded data.
        """
        raise NotImplementedError

    def statement_laws(
        self, workload: Workload, rng: np.random.Generator, data: str | PathLike[str] | None
    ) -> list[StatementLaw]:
        """Return the laws of the jobs known in advance: the workload's own laws, else every true statement.

        ``rng`` must be as it was before `build`.
        """
        return certain_laws(workload) if workload.laws is None else list(workload.laws)


class _RegisteredWorkload(Section, WorkloadSection):
    """The section of a workload that is registered as a function or dataclass."""

    @classmethod
    def of(cls, name: str) -> type[Section]:
        """Return the class of a registered workload."""
        return section_class(get("workload", name), ("workload", name), frozenset({"rng", "data"}), cls)

    @property
    def on_cluster(self) -> bool:
        return bool(getattr(type(self).made_by, "on_cluster", False))

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        found = self.make(rng=rng, data=data)
        if not isinstance(found, Workload):
            raise InvalidParameterError(f"workload {self.kind!r} made {found!r}: expected a Workload")
        return found

    def statement_laws(
        self, workload: Workload, rng: np.random.Generator, data: str | PathLike[str] | None
    ) -> list[StatementLaw]:
        maker = type(self).made_by
        if _is_recipe(maker) and hasattr(maker, "statement_laws"):
            return list(self.recipe().statement_laws(workload, rng, data))
        return super().statement_laws(workload, rng, data)


def _is_recipe(maker: Any) -> bool:
    """Return True if it is a dataclass with a method ``build`` of its own."""
    return is_dataclass(maker) and hasattr(maker, "build")


def asked_for(maker: Callable[..., Any]) -> dict[str, Parameter]:
    """Return all parameters of a registered class or function, also those that a file can set."""
    return parameters_of(getattr(maker, "build") if _is_recipe(maker) else maker)  # noqa: B009 - of a callable


@lru_cache(maxsize=256)
def section_class(
    maker: Callable[..., Any], named: tuple[str, str], given: frozenset[str], base: type[Section] = Section
) -> type[Section]:
    """Return the class of sections whose keys are the parameters of ``maker`` that are not ``given``.

    Raises
    ------
    InvalidParameterError
        If a parameter that must be set is of a type that no file can hold.
    """
    fields: dict[str, Any] = {"kind": (Literal[named[1]], named[1])} if "kind" in base.model_fields else {}
    for name, parameter in parameters_of(maker).items():
        if name in given or name == "self":
            continue
        if parameter.range is not None:
            fields[name] = (Annotated[Any, parameter.range], ... if parameter.required else parameter.default)
        elif parameter.required:
            raise InvalidParameterError(
                f"{named[0]} {named[1]!r} takes {name}, which no file can hold: expected plain data, or one of "
                f"{', '.join(sorted(given))}"
            )
    made: type[Section] = create_model(f"{base.__name__}[{named[1]}]", __base__=base, **fields)
    made.made_by, made.named = staticmethod(maker), named
    return made


def read_workload(x: object) -> Any:
    """Return the section ``workload`` that a mapping describes, by its ``kind``."""
    if isinstance(x, WorkloadSection):
        return x
    if not isinstance(x, Mapping):
        raise ValueError("a table of keys")
    legal = {"discriminator": "kind", "expected_tags": ", ".join(map(repr, names("workload")))}
    if "kind" not in x:
        raise PydanticCustomError("union_tag_not_found", "which", legal)
    try:
        return workload_class(x["kind"]).model_validate(x)
    except UnknownNameError:
        raise PydanticCustomError("union_tag_invalid", "which", {**legal, "tag": x["kind"]}) from None


def workload_class(name: str) -> Any:
    """Return the class of the sections ``workload`` of a kind; UnknownNameError if there is none of that name."""
    maker = get("workload", name)
    of_its_own = inspect.isclass(maker) and issubclass(maker, WorkloadSection)
    return maker if of_its_own else _RegisteredWorkload.of(name)


RegisteredWorkload = Annotated[Any, PlainValidator(read_workload)]


def _asked(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    if takes_anything(function):
        return dict(given)
    known = parameters_of(function)
    return {name: value for name, value in given.items() if name in known}


def _again(base: type[Section], name: str, values: dict[str, Any]) -> Section:
    return base.of(name).model_validate(values)
