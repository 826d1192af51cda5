"""The mechanisms of the package by name, built from the plain data of a scenario or a replay.

A mechanism takes the rules that are in its signature, and no others. The parameters of `posted_price` are the
keys of the replay contract; `exponential` and `stochastic` are the same mechanism with one kind of prices.
Auctions of every round need no function here: their classes take the limits of the market alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, BelowOne, Count, Positive, Range, Seed, legal
from marketsched.mechanisms.randomness import generator_of
from marketsched.mechanisms.registry import call_with
from marketsched.mechanisms.signals import Signals

if TYPE_CHECKING:
    from marketsched.mechanisms.auctions.first_come import FirstCome
    from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism

_PRICINGS = {
    "exponential": "marketsched.mechanisms.posted.exponential:ExponentialPricing",
    "posted": "marketsched.mechanisms.posted.exponential:PostedPricing",
    "stochastic": "marketsched.relaxed_lp.stochastic:StochasticChoice",  # a name only: the room above loads on demand
}
_ORACLES = {
    "exact": "marketsched.mechanisms.posted.exact_oracle:ExactOracle",
    "monte-carlo": "marketsched.mechanisms.posted.oracle:MonteCarloOracle",
}


@dataclass(frozen=True, init=False)
class PriceKinds(Range[Any]):
    """The kinds of prices that a mechanism takes, as a mapping with ``kind``; a pricing object is left alone."""

    kinds: tuple[str, ...]

    def __init__(self, *kinds: str) -> None:
        object.__setattr__(self, "kinds", kinds)

    def __call__(self, x: object) -> Any:
        """Return ``x``, or raise ``ValueError`` if it is a mapping of another kind."""
        if isinstance(x, Mapping) and x.get("kind") not in self.kinds:
            raise ValueError(f"prices of kind {' or '.join(map(repr, self.kinds))}")
        return x


@legal
def posted_price(
    *,
    capacity: Count,
    horizon: Count,
    max_concurrency: Count,
    max_duration: Count,
    max_value: Positive,
    max_delay: Count,
    epsilon: BelowOne = 0.0,
    threshold: Any = 0.0,
    pricing: Annotated[Any, PriceKinds("exponential", "posted", "stochastic")] = None,
    oracle: Any = None,
    eviction: Literal["all", "running"] = "all",
    laws: Any = None,
    seed: Seed | None = None,
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
    from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism  # scenarios are checked without numba

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
        rng=generator_of(None if seed is None else seed) if rng is None else rng,
    )


def _only(kind: str) -> Callable[..., PostedPriceMechanism]:
    """Return `posted_price` with prices of one kind, and no others."""

    @wraps(posted_price, assigned=())
    def build(**parameters: Any) -> PostedPriceMechanism:
        return posted_price(**{**parameters, "pricing": parameters.get("pricing") or {"kind": kind}})

    build.__annotations__ = {**posted_price.__annotations__, "pricing": Annotated[Any, PriceKinds(kind)]}
    return legal(build)


exponential = _only("exponential")
exponential.__doc__ = "Build Algorithm 2 over Algorithm 3: `posted_price` with exponential prices, and no others."
stochastic = _only("stochastic")
stochastic.__doc__ = "Build Algorithm 2 over the bundle menu of known ``laws``: `posted_price` with stochastic prices."


@legal
def first_come(
    *,
    capacity: Count,
    horizon: Count,
    max_concurrency: Count,
    max_duration: Count,
    max_value: Positive,
    max_delay: Count,
    price: Amount | None = None,
    pricing: Annotated[Any, PriceKinds("posted")] = None,
    stop_at_deadline: bool = True,
    stop_at_loss: bool = False,
    signals: Signals = "durations",
) -> FirstCome:
    """Build first-come-first-served at a flat price.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        As for `FirstCome`.
    price : float, optional
        Credits per node and round; 0 if neither this nor ``pricing`` says otherwise.
    pricing : mapping, optional
        ``{"kind": "posted", "prices": [p]}`` is the same as ``price=p``.
    stop_at_deadline, stop_at_loss : bool
        As for `FirstCome`.
    signals : {"durations", "labels"}
        As for `FirstCome`; a scenario sees it from its jobs.

    Raises
    ------
    InvalidParameterError
        If a parameter is unknown or out of range, or the prices are not one flat price.
    """
    from marketsched.mechanisms.auctions.first_come import FirstCome  # scenarios are checked without numba

    return FirstCome(
        capacity,
        horizon,
        _flat_price(price, pricing),
        max_concurrency=max_concurrency,
        max_duration=max_duration,
        max_value=max_value,
        max_delay=max_delay,
        stop_at_deadline=stop_at_deadline,
        stop_at_loss=stop_at_loss,
        signals=signals,
    )


# Whose promises the functions print, by name: the classes are imported on demand.
for _maker, _class in (
    (posted_price, "posted.scheduler:PostedPriceMechanism"),
    (exponential, "posted.scheduler:PostedPriceMechanism"),
    (stochastic, "posted.scheduler:PostedPriceMechanism"),
    (first_come, "auctions.first_come:FirstCome"),
):
    vars(_maker).update(makes=f"marketsched.mechanisms.{_class}")


def _flat_price(price: float | None, pricing: Any) -> float:
    """Return the one price that ``price`` or ``pricing`` stands for."""
    if pricing is None:
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
    module, _, attribute = path.partition(":")
    return call_with(f"{name} {kind!r}", getattr(import_module(module), attribute), settings)
