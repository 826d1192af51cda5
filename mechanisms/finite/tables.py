"""Types, utilities, outcomes and payments of a finite mechanism, from arrays or from functions, checked once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError, TooLargeError
from marketsched.mechanisms.finite.exact import number_array
from marketsched.mechanisms.legal import listed
from marketsched.mechanisms.memory import check_memory

Types: TypeAlias = tuple[tuple[Any, ...], ...]
UtilitiesLike: TypeAlias = Sequence[ArrayLike] | Callable[[int, Any, Any], Any]

MOST_CELLS = 10**9
ROUNDING = 1e-9  # how far a sum of float probabilities may be from 1


def read_types(types: Sequence[Sequence[Any]]) -> Types:
    """Return the types of each owner as tuples; every owner has at least one."""
    owners = listed("types", "a list with the types of each owner", types)
    if not owners:
        raise InvalidParameterError(place="types", value=owners, legal="the types of at least one owner")
    plain = [each.tolist() if isinstance(each, np.ndarray) else each for each in owners]
    read = tuple(tuple(listed(f"types[{i}]", "a list of types", each)) for i, each in enumerate(plain))
    for i, each in enumerate(read):
        if not each:
            raise InvalidParameterError(place=f"types[{i}]", value=each, legal="at least one type")
    return read


def read_outcomes(outcomes: int | Sequence[Any] | None, utilities: UtilitiesLike) -> tuple[Any, ...]:
    """Return the names of the outcomes: as listed, or 0 to K - 1; None: as many as utilities have columns."""
    if outcomes is None:
        if callable(utilities):
            raise InvalidParameterError(
                "is missing", place="outcomes", legal="outcomes, where utilities are a function"
            )
        rows = listed("utilities", "one array for each owner", utilities)
        outcomes = number_array("utilities[0]", rows[0]).shape[-1] if rows and np.ndim(rows[0]) == 2 else 1
    if isinstance(outcomes, (int, np.integer)) and not isinstance(outcomes, bool):
        outcomes = range(int(outcomes))
    names = tuple(listed("outcomes", "a number of outcomes, or their names", outcomes))
    if not names:
        raise InvalidParameterError(place="outcomes", value=outcomes, legal="at least one outcome")
    return names


def read_utilities(given: UtilitiesLike, types: Types, outcomes: tuple[Any, ...]) -> tuple[NDArray[Any], ...]:
    """Return the utilities of each owner, shape (its types, outcomes)."""
    if callable(given):
        rows = [
            [[_asked(given, "utilities", (i, t, k)) for k in outcomes] for t in each] for i, each in enumerate(types)
        ]
    else:
        rows = listed("utilities", "one array for each owner", given)
    if len(rows) != len(types):
        raise InvalidParameterError(
            f"has {len(rows)} entries", place="utilities", legal=f"one for each of {len(types)} owners"
        )
    read = []
    for i, (row, each) in enumerate(zip(rows, types, strict=True)):
        array = number_array(f"utilities[{i}]", row)
        if array.shape != (len(each), len(outcomes)):
            legal = f"({len(each)}, {len(outcomes)}), types x outcomes"
            raise InvalidParameterError(f"has shape {array.shape}", place=f"utilities[{i}]", legal=legal)
        read.append(array)
    return tuple(read)


def _asked(function: Callable[..., Any], name: str, arguments: tuple[Any, ...]) -> Any:
    """Call a user's function; an error of its own says for which arguments."""
    try:
        return function(*arguments)
    except Exception as problem:
        asked = ", ".join(map(str, arguments))
        fault = f"raised {type(problem).__name__}: {problem}"
        raise InvalidParameterError(fault, place=f"{name}({asked})", legal="an answer for every argument") from problem


def check_size(types: Types, extra: int = 0) -> int:
    """Return the number of profiles; refuse tables with more than `MOST_CELLS` cells, ``extra`` columns counted."""
    sizes = [len(each) for each in types]
    profiles, widest = math.prod(sizes), max(len(types), *sizes, extra)
    cells = profiles * widest
    what = f"a table of {profiles} profiles x {widest} = {cells} cells"
    if cells > MOST_CELLS:
        raise TooLargeError(what, legal=f"at most {MOST_CELLS} cells: fewer owners, types or outcomes")
    check_memory(what, 8.0 * profiles * (len(types) + max(sizes) + extra + 4), "fewer owners, types or outcomes")
    return profiles


def profiles_of(types: Types) -> Iterator[tuple[Any, ...]]:
    """Return all profiles, the last owner's type changing fastest."""
    return product(*types)


def read_outcome(
    given: ArrayLike | Callable[[tuple[Any, ...]], Any], types: Types, n_outcomes: int
) -> tuple[NDArray[np.int64] | None, NDArray[Any] | None]:
    """Return the outcome of each profile as an index, or the probabilities of outcomes: (choice, lottery)."""
    n, shape = check_size(types), tuple(len(each) for each in types)
    if callable(given):
        return _read_answers(given, types, n_outcomes)
    array = number_array("outcome", given)
    sure = n_outcomes == 1 and array.shape == (n, 1) and bool((array == 1).all())  # probabilities of the only outcome
    if array.shape in (shape, (n,)) and not sure:
        return _choice(array, types, n_outcomes), None
    if array.shape in ((*shape, n_outcomes), (n, n_outcomes)):
        check_size(types, n_outcomes)
        return None, _lottery(array.reshape(n, n_outcomes), types)
    legal = f"{shape} for one outcome a profile, or {(*shape, n_outcomes)} for probabilities"
    raise InvalidParameterError(f"has shape {array.shape}", place="outcome", legal=legal)


def _read_answers(
    given: Callable[[tuple[Any, ...]], Any], types: Types, n_outcomes: int
) -> tuple[NDArray[np.int64] | None, NDArray[Any] | None]:
    answers: list[Any] = []
    for profile in profiles_of(types):
        answer = _asked(given, "outcome", (profile,))
        if not answers:
            width = np.shape(answer)
            if width:
                check_size(types, n_outcomes)
        if np.shape(answer) != width or width not in ((), (n_outcomes,)):
            legal = f"an index below {n_outcomes}, or {n_outcomes} probabilities: the same for every profile"
            raise InvalidParameterError(place=f"outcome({profile})", value=answer, legal=legal)
        answers.append(answer)
    if width == ():
        return _choice(_numbers("outcome", answers, types), types, n_outcomes), None
    return None, _lottery(_numbers("outcome", [list(answer) for answer in answers], types), types)


def _numbers(name: str, answers: list[Any], types: Types) -> NDArray[Any]:
    """Return a function's answers at all profiles as an array; an error names the profile."""
    try:
        return number_array(name, answers)
    except InvalidParameterError:
        for profile, answer in zip(profiles_of(types), answers, strict=True):
            number_array(f"{name}({profile})", answer)
        raise


def _place(name: str, types: Types, index: int) -> str:
    shape = tuple(len(each) for each in types)
    profile = tuple(each[k] for each, k in zip(types, np.unravel_index(index, shape), strict=True))
    return f"{name}({profile})"


def _choice(array: NDArray[Any], types: Types, n_outcomes: int) -> NDArray[np.int64]:
    flat = array.reshape(-1)
    legal = (flat >= 0) & (flat < n_outcomes) & (flat == flat // 1)
    if not legal.all():
        first = int(np.flatnonzero(~legal.astype(bool))[0])
        raise InvalidParameterError(
            place=_place("outcome", types, first), value=flat[first], legal=f"a whole number in [0, {n_outcomes - 1}]"
        )
    return flat.astype(np.int64)


def _lottery(array: NDArray[Any], types: Types) -> NDArray[Any]:
    slack = ROUNDING if array.dtype.kind == "f" else 0
    wrong = ((array < -slack) | (abs(array.sum(axis=1, keepdims=True) - 1) > slack)).any(axis=1)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        place = _place("outcome", types, first)
        raise InvalidParameterError(
            place=place, value=array[first].tolist(), legal="probabilities >= 0 that add up to 1"
        )
    return array


def read_payments(given: ArrayLike | Callable[[tuple[Any, ...]], Any] | None, types: Types) -> NDArray[Any]:
    """Return the payment of each owner at each profile, shape (profiles, owners); None: nothing."""
    shape, n = tuple(len(each) for each in types), len(types)
    profiles = math.prod(shape)
    if given is None:
        return np.zeros((profiles, n), dtype=np.int64)
    if callable(given):
        rows = []
        for profile in profiles_of(types):
            row = _asked(given, "payments", (profile,))
            if np.shape(row) != (n,):
                raise InvalidParameterError(place=f"payments({profile})", value=row, legal=f"{n} numbers, one an owner")
            rows.append(list(row))
        array = _numbers("payments", rows, types)
    else:
        array = number_array("payments", given)
    if array.shape not in ((*shape, n), (profiles, n)):
        legal = f"{(*shape, n)}, or {(profiles, n)}"
        raise InvalidParameterError(f"has shape {array.shape}", place="payments", legal=legal)
    return array.reshape(profiles, n)
