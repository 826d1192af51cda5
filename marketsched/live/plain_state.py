"""The state of a market as plain data: a table of objects in JSON, arrays in base64. Reading it calls nothing.

A state is a list of nodes. Each node is a kind and its content; a value is a number, a text, true, false or null, or
``[n]`` for node ``n``, so that what two objects share is shared again. An object is its class and its attributes. The
classes are those that `Classes` holds: of the modules that hold a market's state, and of the mechanism's own package.
An object is made without its class's code (``object.__new__``), and its attributes are stored without it, too. No node
stands for a function.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import pkgutil
import types
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

ROOMS = (
    "marketsched.mechanisms",
    "marketsched.agents.loop",
    "marketsched.config.sow_codec",
    "marketsched.play.replayer",
    "marketsched.live.accounts",
    "marketsched.live.announcements",
    "marketsched.live.job",
    "marketsched.live.machine",
    "marketsched.live.purse_ledger",
    "marketsched.live.surprise",
)
ATOMS = (type(None), bool, int, float, str)
FACTORIES: dict[str, Callable[[], Any]] = {"list": list, "dict": dict, "set": set, "int": int, "float": float}
SEQUENCES: dict[str, type] = {"list": list, "set": set}  # made empty, then filled
FIXED: dict[str, type] = {"tuple": tuple, "frozenset": frozenset}  # made with their content
TABLES: dict[str, type] = {"dict": dict, "counter": Counter}
HEAP_TYPE = 1 << 9  # the flag of a class that is written in Python
NUMBERS = "biufcUSmM"  # kinds of arrays that are bytes

Node = list[Any]


class Classes:
    """The classes whose objects a state may hold, those of the mechanism's ``package`` among them."""

    def __init__(self, package: str = "marketsched") -> None:
        own = () if package == "marketsched" else (package,)
        self._modules = {name for root in (*ROOMS, *own) for name in _modules_in(root)}

    def get(self, module: object, name: object) -> type:
        """Return a class by module and name; raise ValueError if it is none of them."""
        if isinstance(module, str) and isinstance(name, str) and module in self._modules:
            found = vars(importlib.import_module(module)).get(name)
            if isinstance(found, type) and (found.__module__, found.__qualname__) == (module, name):
                return found
        raise ValueError(f"{module}.{name} is no part of a market")

    def check(self, found: type) -> list[str]:
        """Return module and name of a class; raise ValueError unless it is one of them."""
        name = [found.__module__, found.__qualname__]
        if self.get(*name) is not found:
            raise ValueError(f"{name[0]}.{name[1]} is not the class of that name")
        return name


def _modules_in(root: str) -> Iterator[str]:
    """Yield a module and those below it, none of which is imported."""
    yield root
    spec = importlib.util.find_spec(root)
    for path in (spec.submodule_search_locations or ()) if spec else ():
        for each in pkgutil.iter_modules([path]):
            yield from _modules_in(f"{root}.{each.name}") if each.ispkg else [f"{root}.{each.name}"]


def plain(root: object, classes: Classes, known: object) -> str:
    """Return an object and all that it holds as JSON; ``known`` is left out, because the reader has it.

    Raises TypeError, ValueError, RecursionError if it holds something that is no plain data, such as a function or an
    open file.
    """
    writer = _Writer(classes, known)
    first = writer.value(root)
    return json.dumps({"nodes": writer.nodes, "root": first}, separators=(",", ":"))


def rebuilt(text: str, classes: Classes, known: object) -> Any:
    """Return the object that `plain` wrote.

    Raises ValueError, TypeError, KeyError, IndexError, AttributeError if the text is not what `plain` writes.
    """
    said = json.loads(text)
    return _Reader(said["nodes"], classes, known).value(said["root"])


class _Writer:
    """Turns objects into nodes; what a tuple holds stands before it."""

    def __init__(self, classes: Classes, known: object) -> None:
        self.nodes: list[Node] = []
        self._classes, self._known = classes, known
        self._numbers: dict[int, int] = {}  # of nodes, by the identity of what they stand for
        self._kept: list[object] = []  # keeps identities from being used again
        self._names: dict[type, list[str]] = {}

    def value(self, found: Any) -> Any:
        """Return how a value is written."""
        if type(found) in ATOMS:
            return found
        number = self._numbers.get(id(found))
        if number is None:
            self._kept.append(found)
            number = self._number(found)
        return [number]

    def _number(self, found: Any) -> int:
        kind = type(found)
        if found is self._known:
            return self._enter(found, ["known"])
        if kind in FIXED.values():
            return self._enter(found, [kind.__name__, [self.value(each) for each in found]])
        if isinstance(found, tuple):  # a named one
            return self._enter(found, ["named", self._name(kind), [self.value(each) for each in found]])
        simple = _simple(found)
        if simple is not None:
            return self._enter(found, simple)
        node: Node = []  # of what can hold itself: its number comes first
        number = self._enter(found, node)
        node += self._holding(found, kind)
        return number

    def _holding(self, found: Any, kind: type) -> Node:
        """Return the node of an object that others can be put into."""
        if kind in SEQUENCES.values():
            return [kind.__name__, [self.value(each) for each in found]]
        if kind is deque:
            return ["deque", found.maxlen, [self.value(each) for each in found]]
        for name, made in TABLES.items():
            if kind is made:
                return [name, self._pairs(found)]
        if kind is defaultdict:
            name = next((name for name, each in FACTORIES.items() if each is found.default_factory), "")
            if not name:
                raise TypeError(f"a defaultdict of {found.default_factory!r} is no plain data")
            return ["default", name, self._pairs(found)]
        return ["object", self._name(kind), {name: self.value(each) for name, each in _attributes(found)}]

    def _pairs(self, found: Mapping[Any, Any]) -> list[Any]:
        return [[self.value(key), self.value(each)] for key, each in found.items()]

    def _enter(self, found: object, node: Node) -> int:
        self.nodes.append(node)
        self._numbers[id(found)] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _name(self, kind: type) -> list[str]:
        if kind not in self._names:
            self._names[kind] = self._classes.check(kind)
        return self._names[kind]


def _attributes(found: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object, those in slots too, as it wants to be copied."""
    kind = type(found)
    if not _is_plain_class(kind):
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} is no plain data")
    own = next((base for base in kind.__mro__[:-1] if "__getstate__" in vars(base)), None)
    if own is not None and "__slots__" not in vars(own):  # one of a dataclass with slots says what its slots say
        yield from found.__getstate__().items()  # type: ignore[attr-defined]
        return
    yield from getattr(found, "__dict__", {}).items()
    for name, slot in _slots(kind):
        try:
            yield name, slot.__get__(found, kind)
        except AttributeError:  # not set
            continue


def _is_plain_class(kind: type) -> bool:
    """Tell whether objects of a class hold nothing but attributes: no base of it is built in."""
    return all(each is object or each.__flags__ & HEAP_TYPE for each in kind.__mro__)


def _slots(kind: type) -> Iterator[tuple[str, types.MemberDescriptorType]]:
    """Yield the slots of a class and its bases, by the names under which they are stored."""
    for base in reversed(kind.__mro__):
        for name, each in vars(base).items():
            if isinstance(each, types.MemberDescriptorType):
                yield name, each


def _simple(found: Any) -> Node | None:
    """Return the node of an object that holds no other; None: it may hold others."""
    kind = type(found)
    if isinstance(found, np.generic):
        return ["number", _dtype_as_data(found.dtype), _text(found.tobytes())]
    if kind is np.ndarray:
        order = "F" if found.flags.f_contiguous and not found.flags.c_contiguous else "C"
        content = _text(found.tobytes(order))
        return ["array", _dtype_as_data(found.dtype), list(found.shape), order, bool(found.flags.writeable), content]
    if kind is np.random.Generator:
        return ["generator", *_generator_state(found)]
    return ["bytes", _text(found)] if kind is bytes else None


def _generator_state(found: np.random.Generator) -> Node:
    bits = found.bit_generator
    seed = bits.seed_seq
    if type(bits) is not np.random.PCG64 or type(seed) is not np.random.SeedSequence:
        raise TypeError(f"a generator of {type(bits).__name__} is no plain data")
    entropy: Any = seed.entropy
    if entropy is not None and not isinstance(entropy, int):
        entropy = [int(each) for each in entropy]
    return [bits.state, entropy, [int(each) for each in seed.spawn_key], seed.pool_size, seed.n_children_spawned]


class _Reader:
    """Makes objects of nodes: first all of them, then what they hold; the tables last, as they hash their keys."""

    def __init__(self, nodes: list[Node], classes: Classes, known: object) -> None:
        self._classes, self._known = classes, known
        self._made: list[Any] = [None] * len(nodes)
        later = [n for n, node in enumerate(nodes) if not self._begin(n, node)]
        for n in later:
            self._made[n] = self._fixed(*nodes[n])
        for kinds in (("object",), ("list", "deque"), ("set", "default", *TABLES)):
            for n, node in enumerate(nodes):
                if node[0] in kinds:
                    self._fill(self._made[n], *node)

    def value(self, said: Any) -> Any:
        """Return the value that is written so."""
        return self._made[said[0]] if isinstance(said, list) else said

    def _begin(self, n: int, node: Node) -> bool:
        """Make an object that is filled later, or holds no other; return False if it is of neither kind."""
        kind, *rest = node
        if kind in FIXED or kind == "named":
            return False
        if kind == "known":
            self._made[n] = self._known
        elif kind in SEQUENCES or kind in TABLES:
            self._made[n] = (SEQUENCES | TABLES)[kind]()
        elif kind == "deque":
            self._made[n] = deque(maxlen=rest[0])
        elif kind == "default":
            self._made[n] = defaultdict(FACTORIES[rest[0]])
        elif kind == "object":
            made = self._classes.get(*rest[0])
            if not _is_plain_class(made):
                raise ValueError(f"{made.__qualname__} holds more than attributes")
            self._made[n] = object.__new__(made)
        else:
            self._made[n] = _read_simple(kind, *rest)
        return True

    def _fixed(self, kind: str, *rest: Any) -> Any:
        """Return an object that is made with what it holds, which stands before it."""
        if kind in FIXED:
            return FIXED[kind](self.value(each) for each in rest[0])
        made = self._classes.get(*rest[0])
        if not issubclass(made, tuple):
            raise ValueError(f"{made.__qualname__} is no tuple")
        return tuple.__new__(made, [self.value(each) for each in rest[1]])

    def _fill(self, made: Any, kind: str, *rest: Any) -> None:
        held = rest[-1]
        if kind == "object":
            slots = dict(_slots(type(made)))
            for name, each in held.items():
                if name in slots:
                    slots[name].__set__(made, self.value(each))
                else:
                    made.__dict__[name] = self.value(each)
        elif kind == "set":
            made.update(self.value(each) for each in held)
        elif kind in ("list", "deque"):
            made.extend(self.value(each) for each in held)
        else:
            for key, each in held:
                dict.__setitem__(made, self.value(key), self.value(each))


def _read_simple(kind: str, *rest: Any) -> Any:
    """Return an object that holds no other."""
    if kind == "number":
        return np.frombuffer(_bytes(rest[1]), _dtype(rest[0]), 1)[0]
    if kind == "array":
        dtype, shape, order, writeable, content = rest
        flat = np.frombuffer(bytearray(_bytes(content)), _dtype(dtype)) if content else np.empty(0, _dtype(dtype))
        found = flat.reshape(tuple(shape), order=order)
        found.flags.writeable = writeable is True
        return found
    if kind == "generator":
        state, entropy, spawn_key, pool, spawned = rest
        seed = np.random.SeedSequence(entropy, spawn_key=spawn_key, pool_size=pool, n_children_spawned=spawned)
        bits = np.random.PCG64(seed)
        bits.state = state
        return np.random.Generator(bits)
    if kind == "bytes":
        return _bytes(rest[0])
    raise ValueError(f"a state holds no {kind!r}")


def _dtype_as_data(found: np.dtype[Any]) -> Any:
    """Return the type of an array as a text, or as a name and a text for each of its fields."""
    said = found.str if found.names is None else [list(each) for each in found.descr]
    if _dtype(said) != found:
        raise TypeError(f"an array of type {found} is no plain data")
    return said


def _dtype(said: Any) -> np.dtype[Any]:
    """Return the type of an array; raise ValueError unless it is one of plain bytes."""
    if isinstance(said, list) and said:
        return np.dtype([(str(name), _dtype(each)) for name, each in said])
    found = np.dtype(said) if isinstance(said, str) else np.dtype(object)
    if found.kind not in NUMBERS:
        raise ValueError(f"an array of type {said} is no plain data")
    return found


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _bytes(said: str) -> bytes:
    return base64.b64decode(said, validate=True)
