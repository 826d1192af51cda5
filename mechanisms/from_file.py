"""A mechanism or a policy in a file of one's own, by a name such as ``mine.py:Mine``: no registration, no package.

The file is run as a module of its stem, once in each process, and its folder is put on Python's path, so that it can
import its neighbours and what it defines can be pickled. Once it has been edited, the next question runs it anew.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError

_DIGESTS: dict[Path, str] = {}  # of the text that each file was run from
_NAMED: dict[str, Path] = {}  # files by the names that they were asked for by
_OWN_FILES = [
    re.compile(before + r"\.py)(?=:[^\W\d])") for before in (r'"([^"\\]+', r"([^\s\"'\\:{}\[\],]+")
]  # mine.py:Mine
_FORM = re.compile(r"(?P<file>.+\.py):(?P<attribute>[^\W\d]\w*)")


def is_in_file(name: object) -> bool:
    """Tell whether a name is that of a class or function in a file.

    Examples
    --------
    >>> is_in_file("mine.py:ReserveSecond"), is_in_file("bid-price"), is_in_file("mine.py")
    (True, False, False)
    """
    return isinstance(name, str) and _FORM.fullmatch(name) is not None


def name_and_keys(pieces: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name that a text between colons begins with, and the rest: a name in a file has a colon of its own.

    Examples
    --------
    >>> name_and_keys(["mine.py", "ReserveSecond", "reserve=1"]), name_and_keys(["bid-price", "buckets=4"])
    (('mine.py:ReserveSecond', ['reserve=1']), ('bid-price', ['buckets=4']))

    Raises
    ------
    InvalidParameterError
        If the ``.py`` of a file that is here is left out.
    """
    if len(pieces) > 1 and pieces[1].isidentifier() and Path(f"{pieces[0]}.py").is_file():
        legal = f"{pieces[0]}.py:{pieces[1]}, with .py"
        raise InvalidParameterError(place="mechanism", value=":".join(pieces[:2]), legal=legal)
    own = 2 if pieces[0].endswith(".py") else 1
    return ":".join(pieces[:own]), list(pieces[own:])


def loaded_from_file(name: str, kind: str = "mechanism") -> Callable[..., Any]:
    """Return the class or function of such a name; its file is run if that has not been done.

    InvalidParameterError, which says ``kind``: no such file, an error in it, or nothing of that name to be called.
    """
    found = _FORM.fullmatch(name)
    if found is None:
        raise InvalidParameterError(place=kind, value=name, legal="a file and a name in it, as in mine.py:Mine")
    path, attribute = Path(found["file"]).resolve(), found["attribute"]
    if not path.is_file():
        raise InvalidParameterError(f"{kind} {name!r}: no file {path.name} in {path.parent}", legal="a Python file")
    module = _module(path, name, kind)
    _NAMED[found["file"]] = path
    maker = getattr(module, attribute, None)
    if not callable(maker):
        own = sorted(k for k, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == path.stem)
        legal = f"one of {', '.join(own)}" if own else "a class or function in this file"
        raise InvalidParameterError(f"{kind} {name!r}: {path.name} has no class or function {attribute}", legal=legal)
    made: Callable[..., Any] = maker
    return made


def _module(path: Path, name: str, kind: str) -> ModuleType:
    """Return the module of a file."""
    known = sys.modules.get(path.stem)
    if known is not None:
        if Path(getattr(known, "__file__", None) or "").resolve() == path:
            return known
        raise InvalidParameterError(
            f"{kind} {name!r}: a module called {path.stem} is loaded already", legal="a file of another name"
        )
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    module, text = module_from_spec(spec), path.read_bytes()
    sys.modules[path.stem] = module
    try:
        # Not by the loader, whose bytecode may be of an older text.
        exec(compile(text, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:  # somebody else's code: whatever it raises is one line here
        del sys.modules[path.stem]
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InvalidParameterError(f"{kind} {name!r}: {path.name} cannot be run: {reason}") from error
    _DIGESTS[path] = _digest(text)
    return module


def files_in_use() -> dict[str, str]:
    """Return a digest of the text that each file was run from, by the name that it was asked for by."""
    return {name: _DIGESTS[path] for name, path in _NAMED.items() if path in _DIGESTS}


def own_files(question: str) -> dict[str, str]:
    """Return a digest of each file of mechanisms that a question, or a scenario, as JSON or YAML names it.

    What this process has run from an older text of such a file is forgotten (`as_it_is_now`).
    """
    named = sorted({path for form in _OWN_FILES for path in form.findall(question) if Path(path).is_file()})
    return {path: as_it_is_now(Path(path)) for path in named}


def as_it_is_now(path: Path) -> str:
    """Return a digest of a file; what was run from another text of it is forgotten, and run anew when it is wanted."""
    digest, place = _digest(path.read_bytes()), path.resolve()
    if _DIGESTS.get(place, digest) != digest:
        del _DIGESTS[place]
        sys.modules.pop(place.stem, None)
    return digest


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
