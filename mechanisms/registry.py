"""The table of mechanisms by name: what scenarios, replays and sweeps look names up in.

A new mechanism is one file and one entry. Entries of the package import their mechanism on first
use, so that looking at the table costs nothing; users add their own with `register`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from marketsched.mechanisms.auctions.first_come import FirstCome
    from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism

Factory = Callable[..., Mechanism]
F = TypeVar("F", bound=Factory)

_SAYS_NOTHING = ({"kind": "exponential"}, {"kind": "exponential", "kappa": 1.0})  # pricing, where none was chosen

_PRICINGS = {
    "exponential": "marketsched.mechanisms.posted.exponential:ExponentialPricing",
    "posted": "marketsched.mechanisms.posted.exponential:PostedPricing",
    "stochastic": "marketsched.relaxed_lp.stochastic:StochasticChoice",  # a name only: the room above loads on demand
}
_ORACLES = {
    "exact": "marketsched.mechanisms.posted.oracle:ExactOracle",
    "monte-carlo": "marketsched.mechanisms.posted.oracle:MonteCarloOracle",
}


def get_mechanism(name: str, **parameters: Any) -> Mechanism:
    """Build the mechanism called ``name``.

    Parameters
    ----------
    name : str
        One of `mechanism_names`.
    **parameters
        What its factory takes; see `reduction` and `first_come` for those of the package.

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
    factory = _TABLE.get(name) if isinstance(name, str) else None
    if factory is None:
        raise UnknownNameError(f"mechanism {name!r} is unknown: expected one of {', '.join(mechanism_names())}")
    mechanism: Mechanism = _call(f"mechanism {name!r}", factory, parameters)
    return mechanism


def mechanism_names() -> tuple[str, ...]:
    """Return the names in the table, sorted."""
    return tuple(sorted(_TABLE))


def register(name: str) -> Callable[[F], F]:
    """Add a mechanism class, or a function that builds one, to the table; to be used as a decorator.

    A name stays with its owner, but the same class or function may be registered again (a notebook
    cell that is run twice). Other processes know the name only if they import the module, too.

    Raises
    ------
    InvalidParameterError
        If ``name`` is not a non-empty string, is taken, or what is registered cannot be called.

    Examples
    --------
    >>> from marketsched.mechanisms.auctions.first_come import FirstCome
    >>> @register("free-for-all")
    ... def free_for_all(**limits):
    ...     return FirstCome(price=0.0, **limits)
    >>> "free-for-all" in mechanism_names()
    True
    """
    if not isinstance(name, str) or not name:
        raise InvalidParameterError(f"name = {name!r}: expected a non-empty string")

    def add(factory: F) -> F:
        if not callable(factory):
            raise InvalidParameterError(
                f"mechanism {name!r}: {factory!r} cannot be called: expected a class or function"
            )
        present = _TABLE.get(name)
        if present is not None and _identity(present) != _identity(factory):
            raise InvalidParameterError(f"mechanism {name!r} is already in the table: expected another name")
        _TABLE[name] = factory
        return factory

    return add


def reduction(
    *,
    capacity: int,
    horizon: int,
    max_concurrency: int,
    max_duration: int,
    max_value: float,
    max_delay: int,
    epsilon: float = 0.0,
    threshold: Any = 0.0,
    pricing: Any = None,
    oracle: Any = None,
    eviction: Any = "all",
    laws: Any = None,
    seed: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> PostedPriceMechanism:
    """Build Algorithm 2 from plain data: the parameters are the keys of the replay contract.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, epsilon, threshold, eviction
        As for `PostedPriceMechanism`.
    pricing : mapping or pricing object, optional
        ``{"kind": "exponential", "kappa": ..., "floor": ..., "ceiling": ...}`` (the default, with
        ``kappa`` 1), ``{"kind": "posted", "prices": [...]}``, or ``{"kind": "stochastic",
        "price_end": ..., "starts_per_task": ..., "widen": ...}``, which needs ``laws``.
    oracle : mapping or oracle object, optional
        ``{"kind": "exact"}`` (the default) or ``{"kind": "monte-carlo", "samples": ..., "refresh": ...}``.
    laws : iterable of StatementLaw or of their cases, optional
        For stochastic prices: what is known about each job in advance.
    seed : int, optional
        Seed of the oracle's draws; or give ``rng``, not both.
    rng : Generator or int, optional
        Their generator.

    Raises
    ------
    InvalidParameterError
        If a parameter, or a key of a mapping, is unknown or out of range.
    """
    from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism

    if seed is not None and rng is not None:
        raise InvalidParameterError("seed and rng are both given: expected one of them")
    return PostedPriceMechanism(
        capacity,
        horizon,
        _build("pricing", _with_laws({"kind": "exponential"} if pricing is None else pricing, laws), _PRICINGS),
        _build("oracle", {"kind": "exact"} if oracle is None else oracle, _ORACLES),
        max_concurrency=max_concurrency,
        max_duration=max_duration,
        max_value=max_value,
        max_delay=max_delay,
        epsilon=epsilon,
        threshold=threshold,
        eviction=eviction,
        rng=_generator(seed) if rng is None else rng,
    )


@wraps(reduction, assigned=())
def exponential(*, pricing: Any = None, **parameters: Any) -> PostedPriceMechanism:
    """Build Algorithm 2 over Algorithm 3: `reduction` with exponential prices, and no others.

    Raises
    ------
    InvalidParameterError
        As `reduction`, and if ``pricing`` is of another kind.
    """
    return reduction(pricing=_of_kind("exponential", pricing), **parameters)


@wraps(reduction, assigned=())
def stochastic(*, pricing: Any = None, **parameters: Any) -> PostedPriceMechanism:
    """Build Algorithm 2 over the bundle menu of known laws: `reduction` with stochastic prices, and no others.

    An exponential curve in its default form counts as not given, as configurations hold it where
    nothing is said.

    Raises
    ------
    InvalidParameterError
        As `reduction`, if ``laws`` is missing, and if ``pricing`` is of another kind.
    """
    return reduction(pricing=_of_kind("stochastic", None if pricing in _SAYS_NOTHING else pricing), **parameters)


def first_come(
    *,
    capacity: int,
    horizon: int,
    max_concurrency: int,
    max_duration: int,
    max_value: float,
    max_delay: int,
    price: float | None = None,
    pricing: Any = None,
    epsilon: Any = None,
    threshold: Any = None,
    oracle: Any = None,
    eviction: Any = None,
    seed: Any = None,
    rng: Any = None,
) -> FirstCome:
    """Build first-come-first-served at a flat price.

    One configuration serves all mechanisms: ``epsilon``, ``threshold``, ``oracle``, ``eviction``,
    ``seed`` and ``rng`` are accepted and mean nothing here.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        As for `FirstCome`.
    price : float, optional
        Credits per node and round; 0 if neither this nor ``pricing`` says otherwise.
    pricing : mapping, optional
        ``{"kind": "posted", "prices": [p]}`` is the same as ``price=p``. The exponential curve in its
        default form counts as not given, as configurations hold it where nothing is said.

    Raises
    ------
    InvalidParameterError
        If a parameter is unknown or out of range, or the prices are not one flat price.
    """
    from marketsched.mechanisms.auctions.first_come import FirstCome

    return FirstCome(
        capacity,
        horizon,
        _flat_price(price, pricing),
        max_concurrency=max_concurrency,
        max_duration=max_duration,
        max_value=max_value,
        max_delay=max_delay,
    )


def _round_auction(path: str) -> Factory:
    """Return the factory of an auction held in every round; rules of other mechanisms mean nothing to it."""

    def build(
        *,
        capacity: int,
        horizon: int,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
        pricing: Any = None,
        epsilon: Any = None,
        threshold: Any = None,
        oracle: Any = None,
        eviction: Any = None,
        seed: Any = None,
        rng: Any = None,
    ) -> Mechanism:
        auction: Mechanism = _load(path)(
            capacity,
            horizon,
            max_concurrency=max_concurrency,
            max_duration=max_duration,
            max_value=max_value,
            max_delay=max_delay,
        )
        return auction

    return build


def _flat_price(price: float | None, pricing: Any) -> float:
    """Return the one price that ``price`` or ``pricing`` stands for."""
    if pricing is None or pricing in _SAYS_NOTHING:
        return 0.0 if price is None else price
    if price is not None:
        raise InvalidParameterError("price and pricing are both given: expected one of them")
    described = isinstance(pricing, Mapping) and pricing.get("kind") == "posted" and set(pricing) <= {"kind", "prices"}
    posted = pricing.get("prices", ()) if described else ()
    if not isinstance(posted, (list, tuple)) or not posted or any(p != posted[0] for p in posted):
        raise InvalidParameterError(
            f"pricing = {pricing!r}: first-come takes one flat price, {{'kind': 'posted', 'prices': [p]}}"
        )
    found: float = posted[0]
    return found


def _of_kind(kind: str, pricing: Any) -> Any:
    """Return ``pricing``, which may be left out, or say that it is of another kind."""
    if pricing is None:
        return {"kind": kind}
    if isinstance(pricing, Mapping) and pricing.get("kind") != kind:
        raise InvalidParameterError(f"pricing kind = {pricing.get('kind')!r}: mechanism {kind!r} expected {kind!r}")
    return pricing


def _with_laws(pricing: Any, laws: Any) -> Any:
    """Return ``pricing`` with the laws it needs, or say that they are missing or not wanted."""
    needed = isinstance(pricing, Mapping) and pricing.get("kind") == "stochastic"
    if needed and laws is None:
        raise InvalidParameterError("laws are missing: expected one law per job, for stochastic prices")
    if laws is not None and not needed:
        raise InvalidParameterError("laws are given: expected them with pricing kind 'stochastic' only")
    return {**pricing, "laws": laws} if needed else pricing


def _build(name: str, given: Any, kinds: Mapping[str, str]) -> Any:
    """Return ``given`` itself, or the object that the mapping describes."""
    if not isinstance(given, Mapping):
        return given
    settings = dict(given)
    kind = settings.pop("kind", None)
    path = kinds.get(kind) if isinstance(kind, str) else None
    if path is None:
        raise InvalidParameterError(f"{name} kind = {kind!r}: expected one of {', '.join(kinds)}")
    return _call(f"{name} {kind!r}", _load(path), settings)


def _load(path: str) -> Any:
    """Return what ``module:attribute`` names."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _call(what: str, factory: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Call ``factory``; parameters that it does not take, or misses, give one clear error."""
    known = inspect.signature(factory).parameters
    legal = ", ".join(known) or "no parameters"
    takes_all = any(p.kind is p.VAR_KEYWORD for p in known.values())
    unknown = [] if takes_all else [name for name in parameters if name not in known]
    if unknown:
        raise InvalidParameterError(f"{what} does not take {', '.join(unknown)}: expected {legal}")
    missing = [
        name
        for name, p in known.items()
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and name not in parameters
    ]
    if missing:
        raise InvalidParameterError(f"{what} lacks {', '.join(missing)}: expected {legal}")
    return factory(**parameters)


def _generator(seed: int | None) -> np.random.Generator:
    """Return the generator of a seed, or say what is wrong with it."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidParameterError(f"seed = {seed!r}: expected a whole number >= 0") from None


def _identity(factory: Factory) -> tuple[str, str]:
    """Return where a class or function is defined."""
    kind = factory if hasattr(factory, "__qualname__") else type(factory)
    return kind.__module__, kind.__qualname__


_TABLE: dict[str, Factory] = {
    "exponential": exponential,
    "first-come": first_come,
    "pay-as-bid": _round_auction("marketsched.mechanisms.auctions.pay_as_bid:PayAsBid"),
    "reduction": reduction,
    "spot": _round_auction("marketsched.mechanisms.auctions.spot:Spot"),
    "stochastic": stochastic,
    "vcg": _round_auction("marketsched.mechanisms.auctions.vcg:Vcg"),
}
