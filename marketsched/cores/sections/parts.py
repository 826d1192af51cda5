"""Parts of cluster scenarios that several cores have: ranges, and who arrives when."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from marketsched.config.strict_yaml import Strict
from marketsched.cores import worlds
from marketsched.cores.sections.core import Data
from marketsched.mechanisms.allocation.arrivals import (
    ArrivalProcess,
    BernoulliArrivals,
    BinomialArrivals,
    RecordedArrivals,
)
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import LARGEST_WHOLE, Count, Finite, Positive


def _range(interval: str) -> Any:
    """Return a validator of pairs ``[low, high]`` of numbers in ``interval``; one number stands for both."""
    check = Finite(interval)

    def read(x: object) -> tuple[float, float]:
        legal = f"[low, high], two finite numbers in {interval}, the lower first"
        pair = x if isinstance(x, (list, tuple)) else [x, x]
        if len(pair) != 2:
            raise ValueError(legal)
        try:
            low, high = check(pair[0]), check(pair[1])
        except ValueError:
            raise ValueError(legal) from None
        if low > high:
            raise ValueError(legal)
        return low, high

    return BeforeValidator(read)


PositiveRange = Annotated[tuple[float, float], _range("(0, inf)")]
ShareRange = Annotated[tuple[float, float], _range("[0, 1]")]


def _pair(x: object) -> tuple[int, int]:
    pair = tuple(x) if isinstance(x, (list, tuple)) else ()
    whole = len(pair) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    if not whole or not 0 <= pair[0] <= pair[1] <= LARGEST_WHOLE:
        raise ValueError(f"[low, high], two whole numbers in [0, {LARGEST_WHOLE}], the lower first")
    return pair[0], pair[1]


CountRange = Annotated[tuple[int, int], BeforeValidator(_pair)]


def _probabilities(x: object) -> float | tuple[float, ...]:
    check = Finite("[0, 1]")
    try:
        return tuple(map(check, x)) if isinstance(x, (list, tuple)) else check(x)
    except ValueError:
        raise ValueError("a finite number in [0, 1], or a list with one for each port") from None


class Bernoulli(Strict):
    """In every slot a job at each port with this probability; a list has one for each port.

    Up to ``at_most`` jobs come to a port in one slot, each with this probability and independently.
    """

    kind: Literal["bernoulli"]
    probability: Annotated[float | tuple[float, ...], BeforeValidator(_probabilities)] = 0.7
    at_most: Count = 1

    def build(self, n_ports: int, slots: int, rng: np.random.Generator, data: Data) -> ArrivalProcess:
        """Return the process; ``data`` is not used."""
        given = self.probability
        if isinstance(given, tuple) and len(given) != n_ports:
            raise InvalidParameterError(
                f"has {len(given)} entries",
                place="cluster.arrivals.probability",
                legal=f"one number, or {n_ports}, one a port",
            )
        if self.at_most > 1:
            return BinomialArrivals(np.full(n_ports, self.at_most), given, rng)
        return BernoulliArrivals(given, rng, n_ports)


class _OpenbHours(Strict):
    """Recorded arrivals: a job at a port if pods of its type were created in that slot.

    The last ``days`` days of the trace in slots of ``slot_seconds``. At most ``at_most`` pods of a type count in one
    slot. With more than one, every job of a port gets its own port, as in Section 3.4 of the OgaSched paper.
    """

    kind: Literal["openb"]
    days: Positive = 30.0
    slot_seconds: Positive = 3600.0
    at_most: Count = 1

    def build(self, n_ports: int, slots: int, rng: np.random.Generator, data: Data) -> ArrivalProcess:
        counts = worlds.pods.recorded_counts(data, n_ports, days=self.days, slot_seconds=self.slot_seconds)
        if slots > len(counts):
            raise InvalidParameterError(
                place="cluster.slots",
                value=slots,
                legal=f"at most {len(counts)}, the slots in {self.days:g} recorded days",
            )
        return RecordedArrivals(np.minimum(counts[:slots], self.at_most))


class _OpenbRates(Strict):
    """Bernoulli arrivals, for any number of slots, with the recorded shares of slots in which such a pod came."""

    kind: Literal["openb-rates"]
    days: Positive = 30.0
    slot_seconds: Positive = 3600.0

    def build(self, n_ports: int, slots: int, rng: np.random.Generator, data: Data) -> ArrivalProcess:
        counts = worlds.pods.recorded_counts(data, n_ports, days=self.days, slot_seconds=self.slot_seconds)
        return BernoulliArrivals((counts > 0).mean(axis=0), rng)


AnyArrivals = Annotated[Bernoulli | _OpenbHours | _OpenbRates, Field(discriminator="kind")]
