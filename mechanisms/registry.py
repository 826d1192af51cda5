"""The registry of names: mechanisms, workloads, traces, and the entries of slices and plug-ins.

One table per kind is what scenarios, replays, sweeps, comparisons and the command line look names up in. Entries
are imported on first use, so that looking at a table costs nothing. There are four ways into a table:

* the market's own entries stand below;
* a slice (a folder of the package that the market's rooms do not import, such as ``cores``) has a ``slice.py`` with
  a table ``ENTRIES`` of the same form: without the folder its names are gone;
* a user calls `register`, or names a mechanism by its file, ``mine.py:ReserveSecond`` (`from_file`);
* an installed package adds its own with an entry point of the group ``marketsched.plugins``, called ``kind.name``::

    [project.entry-points."marketsched.plugins"]
    "policy.lottery" = "my_package.policies:Lottery"

  It is loaded when its name is looked up, in every process: worker processes of a sweep know it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, overload

from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.from_file import is_in_file, loaded_from_file
from marketsched.mechanisms.signatures import parameters_of, takes_anything

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from marketsched.mechanisms.mechanism import Mechanism, Standing

F = TypeVar("F")

GROUP = "marketsched.plugins"
KINDS = {  # kind: what its names stand for
    "mechanism": "a class or function that returns a `marketsched.mechanisms.mechanism.Mechanism`",
    "policy": "a class or function that returns a policy of an allocation core (docs/scenarios.md)",
    "workload": "a function that returns a `marketsched.worlds.Workload`, or a dataclass with a method ``build``",
    "trace": "a function that reads a file",
    "section": "the key of a scenario that is no market; a function that reads what stands there",
    "run": "such a key; what `marketsched.run` calls (`marketsched.play.running`)",
    "contest": "such a key; a `marketsched.comparisons.contest.Contest`, which `marketsched.compare` plays",
    "over": "such a key; what ``marketsched compare --over`` calls",
    "audit": "such a key; what ``marketsched audit`` calls",
    "result": "the kind of a result; a `marketsched.results.kinds.Kind`",
    "explanation": "the kind of a result; what `Result.explain` makes of it",
    "experiments": "a paper; the module that registers its experiments (`marketsched.papers.experiments`)",
    "command": "a command: a function for Typer, or an app of it with commands of its own",
    "scenarios": "a package with YAML files beside it, the built-in scenarios",
}
REPLACED = {  # mechanisms of earlier releases: what does it now
    "kai": "quota, whose queues lend, borrow and reclaim",
    "kueue": "quota, which reads Kueue's objects, as in `marketsched compare LOG -m quota:queues=kueue.yaml`",
    "slurm": "fair-share:rule=fair-tree, as in `marketsched audit conduct LOG -m fair-share:rule=fair-tree`",
}
_MODULES = ("experiments", "scenarios")  # kinds whose names stand for modules

# Names only: rooms above this one load on demand.
_MARKET: dict[str, dict[str, Any]] = {
    "mechanism": {
        "armada": "marketsched.mechanisms.auctions.armada:Armada",
        "bid-price": "marketsched.mechanisms.bid_price.bid_price:BidPrice",
        "cluster-bid-price": "marketsched.mechanisms.resources.bid_price:ClusterBidPrice",
        "cluster-credits": "marketsched.mechanisms.credits.cluster_credits:ClusterCredits",
        "cluster-dominant-share": "marketsched.mechanisms.schedulers.cluster_dominant_share:ClusterDominantShare",
        "cluster-exponential": "marketsched.mechanisms.resources.posted:ClusterExponential",
        "cluster-first-come": "marketsched.mechanisms.resources.posted:ClusterFirstCome",
        "cluster-offers": "marketsched.mechanisms.offers.cluster_offers:ClusterOffers",
        "cluster-queue": "marketsched.mechanisms.schedulers.cluster_queue:ClusterQueue",
        "conservative-backfill": "marketsched.mechanisms.schedulers.easy_backfill:ConservativeBackfill",
        "credits": "marketsched.mechanisms.credits.credits:Credits",
        "easy-backfill": "marketsched.mechanisms.schedulers.easy_backfill:EasyBackfill",
        "cluster-easy-backfill": "marketsched.mechanisms.schedulers.easy_backfill:EasyBackfill",
        "exponential": "marketsched.mechanisms.named:exponential",
        "fair-share": "marketsched.mechanisms.schedulers.fair_share:FairShare",
        "fair-turns": "marketsched.mechanisms.schedulers.fair_turns:FairTurns",
        "cluster-fair-turns": "marketsched.mechanisms.schedulers.fair_turns:FairTurns",
        "first-come": "marketsched.mechanisms.named:first_come",
        "largest-value-first": "marketsched.mechanisms.schedulers.largest_value_first:LargestValueFirst",
        "pay-as-bid": "marketsched.mechanisms.auctions.pay_as_bid:PayAsBid",
        "posted-price": "marketsched.mechanisms.named:posted_price",
        "quota": "marketsched.mechanisms.schedulers.quota:Quota",
        "spot": "marketsched.mechanisms.auctions.spot:Spot",
        "stochastic": "marketsched.mechanisms.named:stochastic",
        "two-offers": "marketsched.mechanisms.offers.two_offers:TwoOffers",
        "vcg": "marketsched.mechanisms.auctions.vcg:Vcg",
    },
    "workload": {
        "google-recurring": "marketsched.worlds.learned:GoogleRecurring",
        "synthetic-pipelines": "marketsched.worlds.synthetic:SyntheticParameters",
        "jobs": "marketsched.config.job_list:JobList",
        "cluster-jobs": "marketsched.config.cluster_jobs:ClusterJobs",
        "cluster-mix": "marketsched.config.cluster_mix:ClusterMix",
        "mixtures": "marketsched.config.mixtures:Mixtures",
        "sacct-shapes": "marketsched.config.cluster_requests:RequestedShapes",
        "openb": "marketsched.worlds.openb:OpenbCluster",
    },
    "result": {
        "results": "marketsched.results.kinds:ResultKind",  # of a kind that nothing is known of
        "market": "marketsched.results.market_kind:MarketKind",
        "audit": "marketsched.results.audit_kind:AuditKind",
        "conduct": "marketsched.results.conduct_kind:ConductKind",
        "learning": "marketsched.results.learning_kind:LearningKind",
        "sweep": "marketsched.results.sweep_kind:SweepKind",
        "mechanisms": "marketsched.results.mechanisms_kind:MechanismsKind",
        "loads": "marketsched.results.loads_kind:LoadsKind",
        "waits": "marketsched.results.recorded_waits_kind:RecordedWaitsKind",
    },
    "explanation": {"market": "marketsched.explanations.explaining:Explainer"},
    "command": {
        "run": "marketsched.show.commands.run:run",
        "compare": "marketsched.show.commands.compare:compare",
        "mechanisms": "marketsched.show.commands.mechanisms:mechanisms",
        "audit": "marketsched.show.commands.audit:audit_app",
        "learn": "marketsched.show.commands.learn:learn",
        "sweep": "marketsched.show.commands.sweep:sweep",
        "report": "marketsched.show.commands.report:report",
        "waits": "marketsched.show.commands.waits:waits",
        "scheduler": "marketsched.show.commands.scheduler:scheduler",
        "explain": "marketsched.show.commands.explain:explain",
        "replay": "marketsched.show.commands.replay:replay",
        "scenarios": "marketsched.show.commands.scenarios:scenarios",
        "traces": "marketsched.show.commands.traces:traces_app",
    },
    "scenarios": {"market": "marketsched.config.scenarios"},
}
_DECLARING = ("marketsched.worlds.logs",)  # rooms that say themselves what stands in the tables, names only
_HOMES = {"trace": "marketsched.worlds.traces.catalogue"}  # registers the package's own of a kind when imported


def _with_slices(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a table for every kind, with what `_DECLARING` and the package's folders with a ``slice.py`` add."""
    found = {kind: dict(tables.get(kind, {})) for kind in KINDS}
    (package,) = import_module("marketsched").__path__
    slices = [f"marketsched.{path.parent.name}.slice" for path in sorted(Path(package).glob("*/slice.py"))]
    for module in (*_DECLARING, *slices):
        added: dict[str, dict[str, Any]] = import_module(module).ENTRIES
        for kind, entries in added.items():
            found[kind] |= entries
    return found


_TABLES = _with_slices(_MARKET)


@overload
def register(kind: str) -> Callable[[F], F]: ...
@overload
def register(kind: str, name: str) -> Callable[[F], F]: ...
def register(kind: str, name: str | None = None) -> Callable[[F], F]:
    """Give a class or function a name; to be used as a decorator.

    ``@register("name")`` alone names a mechanism. A name stays with its owner, but the same class or function
    may be registered again (a notebook cell that is run twice). Other processes know the name only if they
    import the module, too, or if it is an entry point (see the module).

    Parameters
    ----------
    kind : str
        One of `KINDS`. Keyword parameters of mechanisms, policies and workloads can be set in a scenario file, and are
        checked against the signature; a policy's signature takes the core's own things by name (docs/scenarios.md).
    name : str
        What scenarios call it.

    Raises
    ------
    InvalidParameterError
        If there is no such kind, ``name`` is not a non-empty string or is taken, or what is registered cannot
        be called.

    Examples
    --------
    >>> from marketsched.mechanisms.auctions.first_come import FirstCome
    >>> @register("free-for-all")
    ... def free_for_all(**limits):
    ...     return FirstCome(price=0.0, **limits)
    >>> "free-for-all" in mechanism_names()
    True
    """
    kind, called = ("mechanism", kind) if name is None else (kind, name)
    table = _table(kind)
    if not isinstance(called, str) or not called:
        raise InvalidParameterError(f"name = {called!r}: expected a non-empty string")

    def add(made: F) -> F:
        if not callable(made):
            raise InvalidParameterError(f"{kind} {called!r}: {made!r} cannot be called: expected a class or function")
        present = table.get(called)
        if present is not None and _identity(present) != _identity(made):
            raise InvalidParameterError(f"{kind} {called!r} is already in the table: expected another name")
        table[called] = made
        return made

    return add


def get(kind: str, name: str) -> Any:
    """Return the class or function of that name, imported if need be; UnknownNameError lists the names.

    InvalidParameterError if there is no such kind, or the plug-in of that name cannot be loaded.
    """
    table = _table(kind)
    if kind in ("mechanism", "policy") and is_in_file(name):
        return _checked_class(kind, name, loaded_from_file(name, kind))
    entry = table.get(name) if isinstance(name, str) else None
    if entry is None and isinstance(name, str) and name in _plugins(kind):
        entry = _loaded_plugin(kind, name)
        table.setdefault(name, entry)
    if entry is None:
        raise UnknownNameError(f"{kind} {name!r} is unknown: expected one of {', '.join(names(kind))}")
    return _load(entry) if isinstance(entry, str) else entry


def names(kind: str) -> tuple[str, ...]:
    """Return the names of a kind, the package's first; nothing is loaded."""
    return tuple(dict.fromkeys([*_table(kind), *_plugins(kind)]))


def plugin_names() -> tuple[tuple[str, str], ...]:
    """Return kind and name of all that installed packages add, in the order of `KINDS`; nothing is loaded."""
    return tuple((kind, name) for kind in KINDS for name in _plugins(kind))


def get_mechanism(name: str, **parameters: Any) -> Mechanism:
    """Build the mechanism called ``name``.

    Parameters
    ----------
    name : str
        One of `mechanism_names`.
    **parameters
        What it takes, and nothing else; see `marketsched.mechanisms.named` for those of the package. ``rng`` is
        offered to all: a mechanism that draws nothing goes without.

    Returns
    -------
    Mechanism
        A new one, in round 1.

    Raises
    ------
    UnknownNameError
        If there is no such name; the message lists them.
    InvalidParameterError
        If a parameter is missing, unknown or out of range.

    Examples
    --------
    >>> limits = {"max_concurrency": 1, "max_duration": 4, "max_value": 9.0, "max_delay": 8}
    >>> get_mechanism("first-come", capacity=2, horizon=10, price=0.5, **limits).round
    1
    """
    return _built(f"mechanism {name!r}", get("mechanism", name), **parameters)


def name_of(mechanism: str | Callable[..., Any]) -> str:
    """Return the name of a mechanism; a class or function of somebody's own is registered by the name it has in Python.

    Other processes know it if they are forked from this one.

    Raises
    ------
    InvalidParameterError
        If it is neither a name nor a class or function with one, or is no mechanism.

    Examples
    --------
    >>> from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid
    >>> class Mine(PayAsBid): ...
    >>> name_of("bid-price"), name_of(PayAsBid), name_of(Mine)
    ('bid-price', 'pay-as-bid', 'Mine')
    """
    if isinstance(mechanism, str):
        return mechanism
    table, called = _table("mechanism"), getattr(mechanism, "__name__", "")
    if not callable(mechanism) or not called.isidentifier():
        legal = "a name, as 'bid-price:buckets=4' or 'mine.py:Mine', or a class, as Mine"
        raise InvalidParameterError(place="mechanism", value=mechanism, legal=legal)
    for name, made in table.items():
        if made is mechanism or (isinstance(made, str) and _identity(made) == _identity(mechanism)):
            return name
    present = table.get(called)
    if present is not None and _identity(present) != _identity(mechanism):  # a class that is written anew is the same
        raise InvalidParameterError(f"mechanism {called!r} is already in the table: expected another name")
    table[called] = _checked_class("mechanism", called, mechanism)
    return called


def builder_of(mechanism: str | Callable[..., Any]) -> Callable[..., Mechanism]:
    """Return a function that builds a mechanism from its sizes and ``rng``, given by name.

    A class or function whose signature lacks ``rng`` is called without. InvalidParameterError if ``mechanism`` is
    neither that nor a name; and from the function, if a parameter is missing or unknown.

    Examples
    --------
    >>> from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid
    >>> limits = {"max_concurrency": 1, "max_duration": 4, "max_value": 9.0, "max_delay": 8}
    >>> [builder_of(each)(capacity=2, horizon=10, rng=1, **limits).round for each in ("pay-as-bid", PayAsBid)]
    [1, 1]
    """
    if isinstance(mechanism, str):
        return partial(_built, f"mechanism {mechanism!r}", get("mechanism", mechanism))
    if not callable(mechanism):
        legal = "a name, a class, or a function that builds a mechanism"
        raise InvalidParameterError(place="mechanism", value=mechanism, legal=legal)
    return partial(_built, f"mechanism {getattr(mechanism, '__name__', 'of a function')!r}", mechanism)


def mechanism_names() -> tuple[str, ...]:
    """Return the names of the mechanisms, sorted.

    Examples
    --------
    >>> "bid-price" in mechanism_names()
    True
    """
    return tuple(sorted(names("mechanism")))


def standing_of(name: str) -> Standing:
    """Return the printed properties of the mechanism ``name``; its class is loaded. Errors as of `get`."""
    from marketsched.mechanisms.mechanism import Standing  # needs numpy, which the names alone do not

    found = getattr(_class_of(name), "standing", None)
    return found if isinstance(found, Standing) else Standing()


def promises_of(name: str) -> str:
    """Return what the mechanism ``name`` promises at its default parameters, in one line; empty: nothing."""
    from marketsched.mechanisms.promises import printed_promises

    return printed_promises(_class_of(name)) if standing_of(name).status != "not stated" else ""


def truth_of(name: str) -> list[str]:
    """Return what is known of truth-telling under the mechanism ``name``, in short: durations revealed, and hidden.

    Examples
    --------
    >>> truth_of("bid-price"), truth_of("cluster-first-come")
    (['proved', 'no: a nearer deadline or a larger value'], ['proved', 'proved, on average'])
    """
    from marketsched.mechanisms.promises import truth_in_short

    return [truth_in_short(_class_of(name), market) for market in ("revealed", "hidden")]


def call_with(what: str, function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Call a class or function; an error, which begins with ``what``, names unknown and missing parameters."""
    known = parameters_of(function)
    legal = ", ".join(known) or "no parameters"
    unknown = [] if takes_anything(function) else [name for name in parameters if name not in known]
    if unknown:
        raise InvalidParameterError(f"{what} does not take {', '.join(unknown)}: expected {legal}")
    missing = [name for name, each in known.items() if each.required and name not in parameters]
    if missing:
        raise InvalidParameterError(f"{what} lacks {', '.join(missing)}: expected {legal}")
    undefined = sorted(getattr(function, "__abstractmethods__", ()))
    if undefined:
        raise InvalidParameterError(f"{what} does not define {', '.join(undefined)}", legal="a class that defines all")
    return function(**parameters)


def _built(what: str, maker: Callable[..., Any], **parameters: Any) -> Mechanism:
    """Return a new mechanism; without ``rng`` if its maker, or the one it passes all parameters on to, takes none."""
    from marketsched.mechanisms.forwarding import as_mechanism  # needs numpy, which the names alone do not

    if "rng" in parameters and "rng" not in parameters_of(maker):
        without = {name: value for name, value in parameters.items() if name != "rng"}
        if not takes_anything(maker):
            return as_mechanism(call_with(what, maker, without))
        try:
            return as_mechanism(call_with(what, maker, parameters))
        except TypeError as error:
            if "unexpected keyword argument 'rng'" not in str(error):
                raise
        return as_mechanism(call_with(what, maker, without))
    return as_mechanism(call_with(what, maker, parameters))


def _class_of(name: str) -> Any:
    """Return what a mechanism states its promises on: its class, also where a function builds it."""
    maker = get("mechanism", name)
    home = getattr(maker, "makes", None)
    return _load(home) if isinstance(home, str) else maker


def _table(kind: str) -> dict[str, Any]:
    """Return the table of a kind, with the package's own entries in it."""
    if kind not in KINDS:
        raise InvalidParameterError(f"kind = {kind!r}: expected one of {', '.join(KINDS)}")
    home = _HOMES.pop(kind, None)
    if home is not None:
        import_module(home)
    return _TABLES[kind]


@lru_cache(maxsize=1)
def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def _plugins(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by the name that they give."""
    prefix = f"{kind}."
    return {name.removeprefix(prefix): point for name, point in _entry_points().items() if name.startswith(prefix)}


def _loaded_plugin(kind: str, name: str) -> Any:
    """Return what an entry point names, or say in one line why it cannot be had."""
    point = _plugins(kind)[name]
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # a plug-in's code: whatever it raises is one line here
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        package = point.dist.name if point.dist is not None else point.value
        raise InvalidParameterError(
            f"{kind} {name!r}: the plug-in {point.value} of the package {package} cannot be loaded ({reason}): "
            "expected an installation that works"
        ) from None
    if not callable(found) and kind not in _MODULES:
        raise InvalidParameterError(f"{kind} {name!r}: the plug-in {point.value} is no class or function")
    return _checked_class(kind, name, found)


def _checked_class(kind: str, name: str, made: Any) -> Any:
    """Return a class of somebody's own, if it can be one of this kind; a function is asked when it is called.

    InvalidParameterError if it is a class and no mechanism, or states of truth what is no statement.
    """
    if kind != "mechanism" or not isinstance(made, type):
        return made
    from marketsched.mechanisms.mechanism import Mechanism, Truthful  # numpy, which a list of names needs not

    if not issubclass(made, Mechanism):
        legal = "a subclass of marketsched.mechanisms.Mechanism, such as RoundAuction"
        raise InvalidParameterError(f"mechanism {name!r}: the class {made.__name__} is no mechanism", legal=legal)
    for stated in ("truthful", "truthful_hidden"):
        value = getattr(made, stated)
        if isinstance(value, str) and value not in get_args(Truthful):
            legal = ", ".join(map(repr, get_args(Truthful)))
            raise InvalidParameterError(place=f"{name}.{stated}", value=value, legal=f"one of {legal}")
    return made


def _load(path: str) -> Any:
    """Return what ``module:attribute``, or ``module`` alone, names."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


def _identity(made: Any) -> tuple[str, str]:
    """Return where a class or function is defined."""
    if isinstance(made, str):
        module, _, attribute = made.partition(":")
        return module, attribute
    kind = made if hasattr(made, "__qualname__") else type(made)
    return kind.__module__, getattr(made, "name", kind.__qualname__)
