"""Strict YAML, with one line for every fault.

Plain YAML 1.1 reads ``1e-3`` as a string, ``no`` as False, ``010`` as 8, ``12:30`` as 750, and lets
the second of two equal keys win silently. Here numbers are decimal numbers, only ``true`` and
``false`` are booleans, and a key that is written twice is an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError, shown

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # six times faster where libyaml is built in

MOST_LEVELS = 60  # of tables and lists inside each other
MOST_NODES = 5_000_000  # of a file, aliases written out: a few gigabytes of objects

_NUMBERS = {
    "tag:yaml.org,2002:bool": r"true|True|TRUE|false|False|FALSE",
    "tag:yaml.org,2002:null": r"~|null|Null|NULL|",
    "tag:yaml.org,2002:int": r"[-+]?[0-9]+",
    "tag:yaml.org,2002:float": (
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
    "tag:yaml.org,2002:merge": r"<<",
}


_SCALARS = ("bool", "float", "int", "null", "str")
_TAG = "tag:yaml.org,2002:"


class _StrictLoader(_Base):
    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {}
    yaml_constructors: ClassVar[dict[str | None, Any]] = {  # no times, sets or binaries: an explicit tag is an error
        tag: build
        for tag, build in _Base.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in (*_SCALARS, "seq", "map")
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise _no("a table of keys", node)
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == f"{_TAG}merge":
                continue  # keys written here win over merged ones, as everywhere in YAML
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {shown(key)} twice", key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _no(what: str, node: yaml.Node) -> yaml.YAMLError:
    seen = shown(node.value) if isinstance(node, yaml.ScalarNode) else "this"
    return yaml.constructor.ConstructorError(None, None, f"{seen} is not {what}", node.start_mark)


def _scalar(what: str, read: Callable[[str], Any]) -> Callable[[Any, yaml.Node], Any]:
    """Return the constructor of a tag; what ``read`` does not take is an error at its line."""

    def construct(loader: Any, node: yaml.Node) -> Any:
        try:
            return read(loader.construct_scalar(node))
        except (ValueError, KeyError):
            raise _no(what, node) from None

    return construct


for _tag, _pattern in _NUMBERS.items():
    _StrictLoader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), None)
for _name, _what, _read in (
    ("int", "a decimal number of at most 4,300 digits", int),
    ("float", "a decimal number", lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))),
    ("bool", "true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    ("null", "null", lambda text: {"": None, "~": None, "null": None}[text.lower()]),
):
    _StrictLoader.add_constructor(f"{_TAG}{_name}", _scalar(_what, _read))


def parse_yaml(text: str, source: str) -> Any:
    """Return what ``text`` says.

    Parameters
    ----------
    text : str
        One YAML document, at most `MOST_LEVELS` deep and, with all its aliases written out, of `MOST_NODES` parts.
    source : str
        What to call the text in an error line.

    Raises
    ------
    InvalidParameterError
        If the text is not YAML, is too large, or says a key twice; the message names line and column.
    """
    try:
        _check_size(text)
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
        begun = "could not find expected ':'" in what  # found out behind the line that lacks it
        mark = getattr(error, "context_mark" if begun else "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise InvalidParameterError(f"{where}{what}", legal=f"a YAML document{_advice(what)}", source=source) from None


def _check_size(text: str) -> None:
    """Count levels and, with aliases written out, parts, before anything is built."""
    sizes: dict[str, int] = {}  # of what has been given a name
    open_parts: list[tuple[str | None, int]] = []  # name, and parts before it
    parts = 0
    for event in yaml.parse(text, Loader=_Base):
        name = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            if name in [each for each, _ in open_parts]:
                raise _too_large("the alias stands inside what it repeats", event)
            parts += sizes.get(str(name), 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            name, before = open_parts.pop()
            sizes |= {} if name is None else {name: parts - before}
        elif isinstance(event, yaml.NodeEvent):
            parts += 1
            if isinstance(event, yaml.CollectionStartEvent):
                open_parts.append((name, parts - 1))
            elif name is not None:
                sizes[name] = 1
        if len(open_parts) > MOST_LEVELS:
            raise _too_large(f"more than {MOST_LEVELS} levels inside each other", event)
        if parts > MOST_NODES:
            raise _too_large(f"more than {MOST_NODES:,} parts, aliases written out", event)


def _too_large(what: str, event: yaml.Event) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(None, None, what, event.start_mark)  # type: ignore[arg-type]


def _advice(what: str) -> str:
    """Return what is usually wrong where the parser says ``what``."""
    if "cannot start any token" in what:
        return ", indented with blanks, never with tabs; text with signs in quotes"
    if "did not find expected key" in what or "not allowed in this context" in what:
        return ", keys of one table all indented alike; text with a colon in quotes"
    return ""


def read_yaml(path: str | PathLike[str]) -> Any:
    """Return the content of the file at ``path``.

    Raises
    ------
    OSError
        If the file cannot be read.
    InvalidParameterError
        If it is not UTF-8, not YAML, or says a key twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidParameterError(f"{path}: byte {error.start} is not UTF-8: expected a text file") from None
    return parse_yaml(text, str(path))


def _no_switch(name: str) -> str:
    if name.lower() in ("yes", "no", "on", "off"):
        raise ValueError("a name that other readers of YAML do not take for true or false")
    return name


# A name stands in headlines, in tables and in names of files.
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_no_switch)]
WHICH: Mapping[Any, str] = {"kind": "name", "name": "kind"}  # the key that chooses an entry, here and in other sections


class Strict(BaseModel):
    """Base of every typed part of a configuration: frozen, no unknown keys, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    elsewhere: ClassVar[Mapping[str, str]] = {}  # what has a key that is looked for here

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            names = _fields_of(cls)
            for key in data:
                if key not in names:
                    near = [WHICH[key]] if WHICH.get(key) in names else difflib.get_close_matches(str(key), names, n=1)
                    hint = f" (did you mean {near[0]!r}?)" if near else ""
                    hint = f" (it is one of {cls.elsewhere[key]})" if key in cls.elsewhere else hint
                    hint = hint if isinstance(key, str) else " (a decimal number has a point, as in 9.5)"
                    known = ", ".join(names) or "none"
                    raise PydanticCustomError(
                        "unknown_key",
                        "unknown key{hint}: known here are {known}",
                        {"key": key, "hint": hint, "known": known},
                    )
        return data


@cache
def _fields_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of a model's fields, which pydantic looks up anew each time: a tenth of a millisecond."""
    return tuple(model.model_fields)


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], data: object, source: str = "") -> Model:
    """Return ``data`` as a ``model``.

    Raises
    ------
    InvalidParameterError
        If it is illegal; one line names the path inside the file, the value and the legal values.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _first_fault(error, data).within(source) from None


def _first_fault(error: ValidationError, data: object) -> MarketschedError:
    """Return the first fault, and how many more there are."""
    faults = error.errors(include_url=False)
    # A list with a bad entry is said to be too short as well: that is no fault of its own.
    places = [fault["loc"] for fault in faults]
    faults = [
        fault
        for fault in faults
        if fault["type"] != "too_short" or not any(p[: len(fault["loc"])] == fault["loc"] != p for p in places)
    ]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return _fault(faults[0], data, more)


def _fault(fault: Any, data: object, more: str) -> MarketschedError:
    path = _path(fault["loc"], data)
    context = fault.get("ctx") or {}
    kind, place = fault["type"], _join(path)
    if kind == "unknown_key":
        what = f"unknown key{context['hint']}: known here are {context['known']}{more}"
        return InvalidParameterError(what).at(_join([*path, context["key"]]))
    if kind == "missing":
        if path[-1:] != [fault["loc"][-1]]:  # a key that is called like the kind, such as a deadline
            place = _join([*path, fault["loc"][-1]])
        return InvalidParameterError(f"is missing{more}", place=place or "the document")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        place = _join([*path, context["discriminator"].strip("'")])
        if "tag" not in context:
            return InvalidParameterError("is missing", place=place, legal=f"it to say which{more}")
        return InvalidParameterError(
            place=place, value=context["tag"], legal=f"one of {context['expected_tags']}{more}"
        )
    own = context.get("error")
    if isinstance(own, MarketschedError):  # names what was seen itself
        if own.source:  # it lies in something that has a name of its own, such as a policy
            own = InvalidParameterError(str(own))
        return own.turned(InvalidParameterError).at(place) if place else own.turned(InvalidParameterError)
    return InvalidParameterError(
        place=place or "the document", value=fault["input"], legal=_legal(fault, context, path) + more
    )


def _legal(fault: Any, context: Mapping[str, Any], path: Sequence[int | str]) -> str:
    """Return what is legal where a fault is, in words."""
    kind = fault["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind in ("string_too_short", "too_short"):
        return f"at least {context['min_length']} {'character' if kind == 'string_too_short' else 'entry'}"
    if kind == "string_too_long":
        return f"at most {context['max_length']} characters"
    if kind == "literal_error":
        return str(context["expected"])
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        legal = "a table of keys"
        if path and isinstance(fault["input"], str):  # the commonest slip: only the name
            key = "name" if path[-1] == "mechanism" else "kind"
            legal += f", such as {path[-1]}: {{{key}: {shown(fault['input'])[1:-1]}}}"
        return legal
    return str(fault["msg"]).removeprefix("Input should be ").removeprefix("a valid ")


def _path(location: Sequence[int | str], data: object) -> list[int | str]:
    """Return ``location`` without the tags that pydantic adds for the chosen member of a union."""
    path: list[int | str] = []
    here, tag_taken = data, False
    for step in location:
        if isinstance(here, Mapping):
            if not tag_taken and step not in here and step in (here.get("kind"), here.get("core")):
                tag_taken = True
                continue
            path.append(step)
            here, tag_taken = here.get(step), False
        elif isinstance(here, Sequence) and not isinstance(here, str) and isinstance(step, int):
            path.append(step)
            here, tag_taken = here[step], False
        # Anything else names a function or a type, not a place in the file.
    return path


def _join(path: Sequence[object]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


class _Dumper(yaml.SafeDumper):
    """Quotes a string wherever either reading of YAML would take it for something else."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {  # type: ignore[misc]
        first: list(rules) for first, rules in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


for _tag, _pattern in _NUMBERS.items():
    _Dumper.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), None)
_Dumper.add_representer(MappingProxyType, lambda dumper, mapping: dumper.represent_dict(dict(mapping)))


def dump_yaml(data: object) -> str:
    """Return ``data`` as YAML that :func:`parse_yaml` reads back unchanged; keys keep their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
