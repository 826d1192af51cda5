"""The slot loop: one harness for every allocation core, which shows a policy only what it may observe.

In every slot the loop asks the environment for what the policy has declared it observes, the policy for its decision,
the environment to play the decision (only now is drawn what was not declared), and the policy to learn.

========== ================================================================================
observes   what `Policy.allocate` is handed
========== ================================================================================
nothing    no arguments: slot t's arrivals are drawn after the decision for slot t
arrivals   the arrivals of slot t: counts per port, or which ports have a job
jobs       the jobs that arrive in slot t, with everything a job states about itself
state      these jobs, and the state of slot t's machines: an upper reference, not a rival
========== ================================================================================

The declaration is read once, before the first slot. What the policy is handed is copied and read-only (`sealed`). An
environment copies the decision into plain arrays and checks it *before* it draws, so that no code of the policy runs
between the draw and the feedback. Python cannot hide the memory of a process: a policy that digs through the
interpreter's frames, or was built around the recorded arrivals, is caught by its behaviour alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import DecisionError, InvalidParameterError, faults_named, placed
from marketsched.mechanisms.legal import LARGEST_WHOLE, Whole
from marketsched.mechanisms.memory import check_memory

OBSERVATIONS = ("nothing", "arrivals", "jobs", "state")
"""What a policy may declare to observe, from least to most."""

_REPORTS = 200  # of progress, over a whole run
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


@runtime_checkable
class Policy(Protocol):
    """The interface of a policy.

    ``allocate`` takes what `Environment.observation` hands out, ``update`` the feedback of
    `Environment.play`; both are called once per slot, in this order.
    """

    @property
    def name(self) -> str:
        """The name in results; that of an ablation states it."""

    @property
    def observes(self) -> str:
        """One of `OBSERVATIONS`."""

    def allocate(self, *args: Any, **kwargs: Any) -> Any:
        """Return the decision of the current slot."""

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Learn from the outcome of the current slot."""


@dataclass(frozen=True, slots=True)
class SlotOutcome:
    """The outcome of one slot."""

    measures: Mapping[str, float]  # recorded figures, the same names in every slot; finite
    feedback: tuple[Any, ...] = ()  # arguments of `Policy.update`, sealed by the loop


class Environment(Protocol):
    """The interface of an environment.

    ``observation`` draws no more than it hands out; ``play`` turns the decision into plain arrays of its own, checks it
    before anything else is drawn, and keeps no reference to it; ``begin`` goes back to the first slot, and the same
    randomness comes again.

    An environment whose decisions exist in a compact form may have ``decision_methods``: names of the policy's methods
    in order of preference, the last being ``"allocate"``. The loop calls the first that the policy has.
    """

    @property
    def slots(self) -> int | None:
        """How many slots it can play; None: as many as are asked for."""

    @property
    def offers(self) -> tuple[str, ...]:
        """The observations it can hand out, of `OBSERVATIONS`."""

    def begin(self) -> None:
        """Go back to the first slot."""

    def observation(self, observes: str) -> tuple[Any, ...]:
        """Return the observation of the current slot for a policy that declared ``observes``."""

    def play(self, decision: Any) -> SlotOutcome:
        """Play the decision of the current slot and go on to the next."""


@dataclass(frozen=True, slots=True)
class SlotRecord:
    """Results of a policy, slot by slot: its name, its observation, and one read-only array, shape (T,), per measure.

    Examples
    --------
    >>> record = SlotRecord("drf", "arrivals", {"reward": np.array([1.5, 0.0])})
    >>> record.policy, record["reward"]
    ('drf', array([1.5, 0. ]))
    """

    policy: str
    observes: str
    measures: Mapping[str, NDArray[np.float64]]

    def __getitem__(self, measure: str) -> NDArray[np.float64]:
        """Return the measure's values, shape (T,)."""
        return self.measures[measure]

    @property
    def slots(self) -> int:
        """T, the number of slots played."""
        return len(next(iter(self.measures.values())))

    def total(self, measure: str) -> float:
        """Return the sum of a measure over all slots."""
        return float(self.measures[measure].sum())


def play_slots(
    policy: Policy, environment: Environment, slots: int | None = None, progress: Callable[[int], object] | None = None
) -> SlotRecord:
    """Play a policy in an environment, from the environment's first slot, and record every slot.

    Parameters
    ----------
    policy : Policy
        A fresh one: the loop cannot take back what it learnt earlier.
    environment : Environment
        Begun anew.
    slots : int, optional
        T; all slots of the environment by default.
    progress : callable, optional
        Called with the number of slots done, at most some 200 times in a run and at its end.

    Raises
    ------
    InvalidParameterError
        If the declared observation is not offered, or the environment has not so many slots.
    DecisionError
        If a decision is not allowed, or a measure comes out not finite.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import BipartiteCluster, ClusterEnvironment, Fairness, RecordedArrivals
    >>> cluster = BipartiteCluster([[2.0]], [[3.0]], [[True]], "linear", 1.0, 0.25)
    >>> play_slots(Fairness(cluster), ClusterEnvironment(cluster, RecordedArrivals([[1], [0]])))["reward"]
    array([1.5, 0. ])
    """
    total = _slots_to_play(environment, slots)
    observes = declared_observation(policy, environment)
    every = max(1, total // _REPORTS)
    arrays: dict[str, NDArray[np.float64]] = {}
    for t, (_, outcome) in enumerate(_played(policy, environment, total, observes)):
        if t == 0:
            check_memory(
                f"{len(outcome.measures)} measures of {total} slots",
                16.0 * len(outcome.measures) * total,
                "fewer slots",
            )
            arrays = {name: np.empty(total) for name in outcome.measures}
        _record(policy, arrays, t, outcome.measures)
        if progress is not None and ((t + 1) % every == 0 or t + 1 == total):
            progress(t + 1)
    for values in arrays.values():
        values.setflags(write=False)
    return SlotRecord(policy.name, observes, MappingProxyType(arrays))


def slot_by_slot(policy: Policy, environment: Environment, slots: int) -> Iterator[tuple[Any, SlotOutcome]]:
    """Yield decision and outcome of every slot; the policy is updated when the next one is requested.

    For audits that need more than the record. The decision is the policy's own object: look at it
    before going on, because the policy may change it when it learns. Errors as of `play_slots`.
    """
    total = _slots_to_play(environment, slots)
    return _played(policy, environment, total, declared_observation(policy, environment))


def _played(policy: Policy, environment: Environment, total: int, observes: str) -> Iterator[tuple[Any, SlotOutcome]]:
    """Yield decision and outcome of ``total`` slots."""
    decide, slot = _deciding_method(policy, environment), 0
    environment.begin()
    own = getattr(policy, "wrapped", policy)
    with placed(source=f"policy {policy.name!r}"), faults_named(own, lambda: f"slot {slot}"):
        for slot in range(1, total + 1):  # noqa: B007 - said where an error is named
            decision = decide(*sealed(environment.observation(observes)))
            outcome = environment.play(decision)
            yield decision, outcome
            policy.update(*sealed(outcome.feedback))


def declared_observation(policy: Policy, environment: Environment) -> str:
    """Return the declared observation of the policy, if the environment offers it and no method is missing."""
    observes, name = getattr(policy, "observes", None), getattr(policy, "name", type(policy).__name__)
    if observes not in OBSERVATIONS:
        raise InvalidParameterError(f"policy {name!r} observes {observes!r}: expected one of {', '.join(OBSERVATIONS)}")
    if observes not in environment.offers:
        raise InvalidParameterError(
            f"policy {name!r} observes {observes!r}: this environment offers {', '.join(environment.offers)}"
        )
    decides = (*getattr(environment, "decision_methods", ()), "allocate")
    missing = [part for part in ("name", "update") if not hasattr(policy, part)]
    missing += [] if any(hasattr(policy, method) for method in decides) else ["allocate"]
    if missing:
        legal = "name, observes, allocate and update"
        raise InvalidParameterError(f"{type(policy).__name__} has no {', '.join(missing)}", legal=legal)
    return str(observes)


def sealed(handed: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what may be handed to a policy: read-only copies of arrays, plain values, frozen dataclasses."""
    return tuple(map(_seal, handed))


def _seal(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        copy = np.array(value, subok=False)
        copy.setflags(write=False)
        return copy
    if isinstance(value, tuple):
        return tuple(map(_seal, value))
    if isinstance(value, _PLAIN) or (dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen):  # type: ignore[union-attr]
        return value
    raise InvalidParameterError(
        f"an environment hands out a {type(value).__name__}: expected arrays, numbers, text, tuples, frozen dataclasses"
    )


def _slots_to_play(environment: Environment, slots: int | None) -> int:
    if slots is None and environment.slots is None:
        raise InvalidParameterError("slots = None: expected a number, this environment has no last slot")
    last = LARGEST_WHOLE if environment.slots is None else environment.slots
    return Whole(1, last).check("slots", last if slots is None else slots)


def _deciding_method(policy: Policy, environment: Environment) -> Callable[..., Any]:
    for name in getattr(environment, "decision_methods", ()):
        method: Callable[..., Any] | None = getattr(policy, name, None)
        if method is not None:
            return method
    return policy.allocate


def _record(policy: Policy, arrays: dict[str, NDArray[np.float64]], t: int, measures: Mapping[str, float]) -> None:
    """Write slot ``t`` (from 0) into the arrays."""
    if measures.keys() != arrays.keys():
        raise InvalidParameterError(f"slot {t + 1} measures {sorted(measures)}: expected {sorted(arrays)}")
    for name, value in measures.items():
        if not math.isfinite(value):
            raise DecisionError(f"slot {t + 1}: policy {policy.name!r} has {name} = {value}: expected a finite number")
        arrays[name][t] = value
