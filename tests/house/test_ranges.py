"""Bad input, as one table: every range in a signature is asked at each call, by the name of the parameter."""

import importlib
import inspect
import math
import pkgutil
from dataclasses import MISSING, fields, is_dataclass
from functools import partial

import numpy as np
import pytest

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite, ListOf, Maybe, Named, Whole, check_fields, legal
from marketsched.mechanisms.ranges import Anything, Switch, Text
from marketsched.mechanisms.signatures import parameters_of
from refusals import refused

NO_NUMBER = [True, np.True_, "1", [1], 1j, math.nan, math.inf, -math.inf, 10**5_000]
CHECKED = legal(lambda: None).__code__


def outside(range_):
    """Return values that a range does not hold, those at its ends among them."""
    match range_:
        case Maybe(range=inner):
            return [x for x in outside(inner) if x is not None]
        case Whole(lowest=low, highest=high):
            return [*NO_NUMBER, None, low - 1, high + 1, low + 0.5]
        case Finite(interval=text, ends=(low, high)):
            ends = [low if text[0] == "(" else math.nextafter(low, -math.inf)]
            ends += [high if text[-1] == ")" else math.nextafter(high, math.inf)]
            return [*NO_NUMBER, None, *ends]
        case Named(otherwise=None):
            return ["no such name", "", None, 1, ["a"]]
        case Named(otherwise=inner):
            return ["no such name", *(x for x in outside(inner) if not isinstance(x, str))]
        case ListOf(range=inner):
            return [[], "text", None, 1, *([x] for x in outside(inner))]
        case Switch():
            return [None, 2, "yes", 0.5]
        case Text():
            return [None, 1, ["text"]]
    return []


def checked():
    """Return every call of the package that is decorated with `legal`, and every dataclass that asks `check_fields`."""
    calls, records = {}, {}
    roots = [importlib.import_module(f"marketsched{name}") for name in ("", ".mechanisms", ".relaxed_lp", ".agents")]
    for module in [each for root in roots for each in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")]:
        text = module.module_finder.find_spec(module.name).loader.get_source(module.name) or ""
        if "@legal\n" not in text and "check_fields(self" not in text:
            continue
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # of an extra that is not installed
            continue
        for own in [x for x in names.values() if getattr(x, "__module__", None) == module.name]:
            for each in [own, *(vars(own).values() if inspect.isclass(own) else ())]:
                inner = getattr(each, "__func__", each)
                if getattr(inner, "__code__", None) is CHECKED:
                    calls[f"{module.name}.{inner.__qualname__}"] = inner
            after = getattr(own, "__post_init__", None) if is_dataclass(own) else None
            if after is not None and "check_fields" in after.__code__.co_names:
                records[f"{module.name}.{own.__qualname__}"] = own
    return calls, records


def record_with(kind, name, value):
    """Let a dataclass check itself with one field wrong, and the others at their defaults or simple legal values."""
    made = object.__new__(kind)
    for field in fields(kind):
        sample = field.default
        if field.default_factory is not MISSING:
            sample = field.default_factory()
        elif sample is MISSING:
            sample = inside(parameters_of(kind)[field.name].range)
        object.__setattr__(made, field.name, value if field.name == name else sample)
    check_fields(made)  # as its constructor does


def can_be_made(kind):
    """Return False for a dataclass whose default is no legal value: its constructor puts another in its place."""
    try:
        record_with(kind, None, None)
    except InvalidParameterError:
        return False
    return True


def inside(range_):
    """Return a value that a range holds, or None where it is not one of plain data."""
    for x in (1, 2, 0.5, "text", True, [1], *getattr(range_, "names", ())):
        try:
            return range_(x)
        except (ValueError, TypeError):
            continue
    return None


@pytest.fixture(scope="module")
def found():
    """Return the calls and dataclasses that ask ranges, those of the slices that are there among them."""
    return checked()


def refuse(table, make, least):
    """Hand each parameter of a table of calls what its range does not hold; expect refusals by name."""
    tried = 0
    for name, call in table.items():
        for parameter in parameters_of(call).values():
            if parameter.range is None or isinstance(parameter.range, Anything):
                continue
            for wrong in outside(parameter.range):
                try:
                    refused(partial(make, call, parameter.name, wrong), place=parameter.name, seen=wrong)
                except (AssertionError, TypeError) as error:
                    raise AssertionError(f"{name}({parameter.name}={wrong!r})") from error
                tried += 1
    assert tried > least


def test_every_call_refuses_by_name_what_its_signature_rules_out(found):
    refuse(found[0], lambda call, name, wrong: call(**{name: wrong}), 3_000)


def test_every_record_refuses_by_name_what_its_fields_rule_out(found):
    usual = {name: kind for name, kind in found[1].items() if can_be_made(kind)}
    assert len(usual) > 25
    refuse(usual, record_with, 300)


def test_a_call_that_is_not_checked_is_seen():
    def open_to_all(n: "int" = 1):
        return n

    with pytest.raises(AssertionError, match="nothing was refused"):
        refused(lambda: open_to_all(n="1"), place="n")
    refused(lambda: legal(open_to_all)(n="1"), place="n", seen="1")
