"""A mechanism in a few words, ``name:key=value:key=value``: the one notation of every command and of Python.

Values are YAML. Keys are those of the section ``mechanism`` of a scenario file, dotted inside a part; ``price=0.5`` is
short for that flat posted price, and any other key is a parameter of the mechanism's own. Commas separate mechanisms,
and keys, too: what follows a comma is a key if it has a ``=`` in its name's place. A mechanism of one's own is
``file.py:Class``, with keys behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.from_file import is_in_file, name_and_keys
from marketsched.mechanisms.registry import get, mechanism_names, name_of
from marketsched.mechanisms.signatures import parameters_of

_OPENING, _CLOSING = "[{(", "]})"


def mechanisms_in(texts: Iterable[str]) -> list[str]:
    """Return the mechanisms that some texts name, in their order, keys separated by colons.

    Parameters
    ----------
    texts : iterable of str
        Each one mechanism or several, separated by commas; commas inside brackets separate nothing.

    Examples
    --------
    >>> mechanisms_in(["bid-price:buckets=4, first-come", "posted-price:pricing.prices=[1,2],epsilon=.1"])
    ['bid-price:buckets=4', 'first-come', 'posted-price:pricing.prices=[1,2]:epsilon=.1']
    """
    found: list[str] = []
    for text in [texts] if isinstance(texts, str) else texts:
        for number, piece in enumerate(filter(None, _parts(text, ","))):
            if number and "=" in piece.partition(":")[0]:
                found[-1] += f":{piece}"
            else:
                found.append(piece)
    return found


def mechanism_in(text: str | Callable[..., Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the one mechanism that ``text`` (or a class) describes, and what changes with it.

    Returns
    -------
    tuple of (str, dict)
        Keys of the changes are those of ``mechanism`` in a scenario file, dotted inside a part.

    Raises
    ------
    InvalidParameterError
        If it is not of that form, or a value is not YAML.

    Examples
    --------
    >>> mechanism_in("bid-price:buckets=4")
    ('bid-price', {'parameters.buckets': 4})
    >>> mechanism_in("first-come:price=0.5")
    ('first-come', {'pricing': {'kind': 'posted', 'prices': [0.5]}})
    """
    name, keys = _read(name_of(text))
    return name, {key: parse_yaml(value, f"mechanism {text!r}") for key, value in keys}


def changes_for(text: str) -> list[str]:
    """Return the mechanism of ``text`` as changes of a scenario file, as `with_changes` takes them.

    Examples
    --------
    >>> changes_for("bid-price:buckets=4")
    ['mechanism.name=bid-price', 'mechanism.parameters.buckets=4']
    """
    name, keys = _read(text)
    return [f"mechanism.name={name}", *(f"mechanism.{key}={value}" for key, value in keys)]


def _read(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the name, and keys of ``mechanism`` with their values as text."""
    name, pairs = name_and_keys(_parts(text, ":"))
    keys, seen = [], set[str]()
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            legal = "name:key=value, as in posted-price:epsilon=0.1"
            raise InvalidParameterError(f"mechanism {text!r}: {pair!r}: expected {legal}")
        if key in seen:
            raise InvalidParameterError(f"mechanism {text!r}: {key} is set twice: expected each key once")
        seen.add(key)
        if key == "price" and not _takes_price(name):
            keys.append(("pricing", f"{{kind: posted, prices: [{value}]}}"))
        else:
            rule = key.partition(".")[0] in MechanismChoice.model_fields
            keys.append((key if rule else f"parameters.{key}", value))
    return name, keys


def _takes_price(name: str) -> bool:
    """Tell whether a mechanism has a parameter ``price`` of its own, and no prices that a scenario sets."""
    known = is_in_file(name) or name in mechanism_names()
    return known and {"price", "pricing"} & parameters_of(get("mechanism", name)).keys() == {"price"}


def _parts(text: str, separator: str) -> list[str]:
    """Return what a separator outside of brackets separates, without blanks around it; refuse what is no text."""
    if not isinstance(text, str):  # a class, a list, a table
        legal = "its name, as 'bid-price:buckets=4'; of a class 'mine.py:Mine', or the name it is registered by"
        raise InvalidParameterError(place="mechanism", value=text, legal=legal)
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
