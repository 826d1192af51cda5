"""YAML without surprises, and one line for whatever is wrong with it.

Plain YAML 1.1 reads ``1e-3`` as a string, ``no`` as False, ``010`` as 8, ``12:30`` as 750, and lets
the second of two equal keys win silently. Here numbers are decimal numbers, only ``true`` and
``false`` are booleans, and a key that is written twice is an error.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from marketsched.config.json_lines import shown
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # six times faster where libyaml is built in

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


class _StrictLoader(_Base):
    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue  # keys written here win over merged ones, as everywhere in YAML
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a plain word", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} twice", key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _decimal(loader: Any, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _float(loader: Any, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node).lower().replace(".inf", "inf").replace(".nan", "nan"))


for _tag, _pattern in _NUMBERS.items():
    _StrictLoader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), None)
_StrictLoader.add_constructor("tag:yaml.org,2002:int", _decimal)
_StrictLoader.add_constructor("tag:yaml.org,2002:float", _float)


def parse_yaml(text: str, source: str) -> Any:
    """Return what ``text`` says.

    Parameters
    ----------
    text : str
        One YAML document.
    source : str
        What to call the text in an error line.

    Raises
    ------
    InvalidParameterError
        If the text is not YAML or says a key twice; the message names line and column.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
        raise InvalidParameterError(f"{source}: {where}{what}: expected a YAML document{_advice(what)}") from None


def _advice(what: str) -> str:
    """Return what is usually wrong where the parser says ``what``."""
    if "cannot start any token" in what:
        return ", indented with blanks, never with tabs; text with signs in quotes"
    if "did not find expected key" in what or "not allowed in this context" in what:
        return ", keys of one table all indented alike; text with a colon in quotes"
    return ""


def read_yaml(path: str | PathLike[str]) -> Any:
    """Return what the file at ``path`` says.

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


def whole(lowest: int, highest: int | None = None) -> Callable[[object], int]:
    """Return a validator of whole numbers in ``[lowest, highest]``; ``5.0`` counts, ``True`` does not."""
    legal = f"a whole number >= {lowest}" if highest is None else f"a whole number in [{lowest}, {highest}]"

    def check(x: object) -> int:
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not math.isfinite(x) or int(x) != x:
            raise ValueError(legal)
        if x < lowest or (highest is not None and x > highest):
            raise ValueError(legal)
        return int(x)

    return check


def number(interval: str) -> Callable[[object], float]:
    """Return a validator of finite numbers in ``interval``, written as in ``"[0, 1)"`` or ``"(0, inf)"``."""
    low, high = (float(end) for end in interval.strip("[]()").split(","))
    legal = f"a finite number in {interval}"

    def check(x: object) -> float:
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not math.isfinite(x):
            raise ValueError(legal)
        above = x >= low if interval[0] == "[" else x > low
        below = x <= high if interval[-1] == "]" else x < high
        if not (above and below):
            raise ValueError(legal)
        return float(x)

    return check


class Strict(BaseModel):
    """Base of every typed part of a configuration: frozen, no unknown keys, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    near = difflib.get_close_matches(str(key), cls.model_fields, n=1)
                    hint = f" (did you mean {near[0]!r}?)" if near else ""
                    known = ", ".join(cls.model_fields)
                    raise PydanticCustomError(
                        "unknown_key",
                        "unknown key{hint}: known here are {known}",
                        {"key": key, "hint": hint, "known": known},
                    )
        return data


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], data: object, source: str) -> Model:
    """Return ``data`` as a ``model``.

    Raises
    ------
    InvalidParameterError
        If it does not fit; one line names the path inside the file, what was seen, what is legal.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidParameterError(one_line(error, data, source)) from None


def one_line(error: ValidationError, data: object, source: str) -> str:
    """Return the first fault in one line, and how many more there are."""
    faults = error.errors(include_url=False)
    # A list with a bad entry is said to be too short as well: that is no fault of its own.
    places = [fault["loc"] for fault in faults]
    faults = [
        fault
        for fault in faults
        if fault["type"] != "too_short" or not any(p[: len(fault["loc"])] == fault["loc"] != p for p in places)
    ]
    first, more = faults[0], len(faults) - 1
    line = f"{source}: {_describe(first, data)}"
    return line + (f" (and {more} more)" if more else "")


def _describe(fault: Any, data: object) -> str:
    path = _path(fault["loc"], data)
    context = fault.get("ctx") or {}
    kind = fault["type"]
    if kind == "unknown_key":
        return f"{_join([*path, context['key']])}: {fault['msg']}"
    name = _join(path) or "the document"
    if kind == "missing":
        return f"{name} is missing"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        seen = f" = {shown(context['tag'])}" if "tag" in context else " is missing"
        legal = f"one of {context['expected_tags']}" if "expected_tags" in context else "it to say which"
        return f"{_join([*path, context['discriminator'].strip(chr(39))])}{seen}: expected {legal}"
    if kind == "value_error" and isinstance(context["error"], MarketschedError):
        return placed(name, str(context["error"])) if path else str(context["error"])  # names what was seen itself
    if kind == "value_error":
        legal = str(context["error"])
    elif kind == "string_too_short":
        legal = f"at least {context['min_length']} character"
    elif kind == "too_short":
        legal = f"at least {context['min_length']} entry"
    elif kind == "literal_error":
        legal = str(context["expected"])
    elif kind in ("model_type", "dict_type", "model_attributes_type"):
        legal = "a table of keys"
        if path and isinstance(fault["input"], str):  # the commonest slip: only the name
            legal += f", such as {path[-1]}: {{{'name' if path[-1] == 'mechanism' else 'kind'}: {fault['input']}}}"
    else:
        legal = fault["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{name} = {shown(fault['input'])}: expected {legal}"


def placed(place: str, message: str) -> str:
    """Return ``message`` with ``place`` before it, joined to the place inside that it may begin with."""
    inside = re.match(r"[a-z_]+(\[\d+\])*( =|:|\.| is missing)", message)
    return f"{place}{'.' if inside else ': '}{message}"


def _path(location: Sequence[int | str], data: object) -> list[int | str]:
    """Return ``location`` without the tags that pydantic adds for the chosen member of a union."""
    path: list[int | str] = []
    here, tag_taken = data, False
    for step in location:
        if isinstance(here, Mapping):
            if not tag_taken and step in (here.get("kind"), here.get("core")):
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


def dump_yaml(data: object) -> str:
    """Return ``data`` as YAML that :func:`parse_yaml` reads back unchanged; keys keep their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
