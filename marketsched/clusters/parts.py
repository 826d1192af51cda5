"""The parts of a cluster scenario: where its instance comes from, and who arrives when."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from marketsched.config.strict_yaml import Strict
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.ranges import Count, Finite, Positive, PositiveShare, Share

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
    from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
    from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster

Data = str | PathLike[str] | None
MEMORY_UNIT_GIB = 4.0  # on most recorded machines about as much as there is for each core


def _degree(x: object) -> float:
    """Return a mean number of ports, as a whole number where it is one."""
    mean = Finite("[1, inf)")(x)
    return int(mean) if mean.is_integer() else mean


Degree = Annotated[int | float, BeforeValidator(_degree)]  # a whole number stays one
Gain = Literal["mixed", "linear", "log", "reciprocal", "poly"]


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


class _Drawn(Strict):
    """What the larger families have in common: their size, and the coefficients of gain and overhead.

    ``contention`` multiplies what jobs ask for. ``gain`` is the utility of every resource on every
    instance, OgaSched (27), ``mixed``: drawn for each of them. ``alpha`` and ``overhead`` (beta) are
    the ranges that these coefficients are drawn from.
    """

    ports: Count = 10
    instances: Count = 128
    contention: Positive = 1.0
    gain: Gain = "mixed"
    alpha: PositiveRange = (1.0, 1.5)
    overhead: ShareRange = (0.3, 0.5)

    def _common(self) -> dict[str, Any]:
        return {
            "n_ports": self.ports,
            "n_instances": self.instances,
            "contention": self.contention,
            "gain": self.gain,
            "alpha": self.alpha,
            "overhead": self.overhead,
        }


class Published(_Drawn):
    """The family of the authors' published code, defaults as in the paper; six types of devices.

    ``ports_per_instance``: the mean number; None, all.
    """

    kind: Literal["published"]
    contention: Positive = 10.0
    ports_per_instance: Degree | None = None

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        """Return an instance; ``data`` is not used. Raises ``InvalidParameterError`` if parts do not fit."""
        from marketsched.mechanisms.allocation.oga.instances import published_instance

        return published_instance(rng, ports_per_instance=self.ports_per_instance, **self._common())


class PaiMix(_Drawn):
    """Machines drawn in the mix of the Alibaba PAI cluster; jobs ask for shares of such machines.

    Needs no data file. ``share`` is the range of the shares. Memory is counted in units of
    ``memory_unit_gib``.
    """

    kind: Literal["pai-mix"]
    ports_per_instance: Degree | None = None
    share: PositiveRange = (0.05, 1.0)
    memory_unit_gib: Positive = MEMORY_UNIT_GIB

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        """Return an instance; ``data`` is not used. Raises ``InvalidParameterError`` if parts do not fit."""
        from marketsched.clusters.traces import pai_mix
        from marketsched.mechanisms.allocation.oga.instances import pai_like_instance

        common = self._common()
        machines = pai_mix() / (1.0, self.memory_unit_gib, 1.0)
        return pai_like_instance(rng, machines, ports_per_instance=self.ports_per_instance, share=self.share, **common)


class SmallInteger(Strict):
    """Small whole numbers, where ties are common: for tests and examples."""

    kind: Literal["small-integer"]
    ports: Count = 4
    instances: Count = 5
    types: Count = 2
    density: Share = 0.7
    gain: Gain = "mixed"

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        """Return an instance; ``data`` is not used."""
        from marketsched.mechanisms.allocation.oga.instances import small_integer_instance

        sizes = {"n_ports": self.ports, "n_instances": self.instances, "n_types": self.types}
        return small_integer_instance(rng, **sizes, density=self.density, gain=self.gain)


class Recorded(_Drawn):
    """Recorded machines as instances, the most common types of recorded pods as ports.

    ``instances`` machines are drawn without replacement. A port may use a machine that could run one
    of its pods alone, and of these a random ``reach``. Memory is counted in units of
    ``memory_unit_gib``.
    """

    kind: Literal["recorded"]
    machines: Literal["openb", "pai"] = "openb"
    ports: Count = 20
    instances: Count = 64
    reach: PositiveShare = 1.0
    memory_unit_gib: Positive = MEMORY_UNIT_GIB

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        """Return an instance.

        Raises
        ------
        MissingDataError, TraceError
            If a trace is not there or damaged.
        InvalidParameterError
            If there are fewer machines or types of pods, or a type fits on none of the machines drawn.
        """
        from marketsched.clusters.traces import recorded_instance

        return recorded_instance(
            rng, data, machines=self.machines, reach=self.reach, memory_unit_gib=self.memory_unit_gib, **self._common()
        )


def _pair(x: object) -> tuple[int, int]:
    pair = tuple(x) if isinstance(x, (list, tuple)) else ()
    whole = len(pair) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in pair)
    if not whole or not 0 <= pair[0] <= pair[1]:
        raise ValueError("[low, high], two whole numbers >= 0, the lower first")
    return pair[0], pair[1]


CountRange = Annotated[tuple[int, int], BeforeValidator(_pair)]


class Gangs(Strict):
    """Jobs of several tasks that run together or not at all, Section 3.5 of the OgaSched paper.

    A port's job has a number of equal tasks drawn from ``tasks``; a share ``needed`` of them must run. A task runs if
    it gets the share ``task_share`` of what it asks for.
    """

    tasks: CountRange = (2, 4)
    needed: PositiveShare = 1.0
    task_share: Share = 0.25

    def build(self, cluster: BipartiteCluster, rng: np.random.Generator) -> GangCluster:
        """Return the cluster with the requirements of each port divided among its tasks."""
        from marketsched.mechanisms.allocation import GangCluster

        numbers = np.maximum(1, rng.integers(*self.tasks, cluster.n_ports, endpoint=True))
        tasks = [np.tile(asked / n, (n, 1)) for asked, n in zip(cluster.requirements, numbers.tolist(), strict=True)]
        minimum = np.ceil(self.needed * numbers - 1e-9).astype(np.int64)
        parts = (cluster.capacities, cluster.channels, minimum, cluster.gain, cluster.alpha, cluster.overhead)
        return GangCluster(tasks, *parts, task_share=self.task_share)


AnyInstance = Annotated[Published | PaiMix | SmallInteger | Recorded, Field(discriminator="kind")]


def _probabilities(x: object) -> float | tuple[float, ...]:
    check = Finite("[0, 1]")
    try:
        return tuple(map(check, x)) if isinstance(x, (list, tuple)) else check(x)
    except ValueError:
        raise ValueError("a finite number in [0, 1], or a list with one for each port") from None


class Bernoulli(Strict):
    """In every slot a job at each port with this probability; a list has one for each port."""

    kind: Literal["bernoulli"]
    probability: Annotated[float | tuple[float, ...], BeforeValidator(_probabilities)] = 0.7

    def build(self, n_ports: int, slots: int, rng: np.random.Generator, data: Data) -> ArrivalProcess:
        """Return the process; ``data`` is not used.

        Raises
        ------
        InvalidParameterError
            If there is a list of probabilities, and not one for each port.
        """
        from marketsched.mechanisms.allocation.arrivals import BernoulliArrivals

        given = self.probability
        if isinstance(given, tuple) and len(given) != n_ports:
            raise InvalidParameterError(
                f"cluster.arrivals.probability has {len(given)} entries: expected one number, or {n_ports}, one a port"
            )
        return BernoulliArrivals(given, rng, n_ports)


class OpenbHours(Strict):
    """Who was there in the recorded trace: jobs at a port if pods of its type were created in that slot.

    The last ``days`` days of the trace in slots of ``slot_seconds``. Of more than ``at_most`` pods of a
    type in one slot the others are left out; with more than one, every job of a port gets a port of
    its own, as in Section 3.4 of the OgaSched paper.
    """

    kind: Literal["openb"]
    days: Positive = 30.0
    slot_seconds: Positive = 3600.0
    at_most: Count = 1

    def build(self, n_ports: int, slots: int, rng: np.random.Generator, data: Data) -> ArrivalProcess:
        """Return the process; nothing is drawn.

        Raises
        ------
        MissingDataError, TraceError
            If the trace is not there or damaged.
        InvalidParameterError
            If it has fewer slots or fewer types of pods.
        """
        from marketsched.clusters.traces import recorded_counts
        from marketsched.mechanisms.allocation.arrivals import RecordedArrivals

        counts = recorded_counts(data, n_ports, days=self.days, slot_seconds=self.slot_seconds)
        if slots > len(counts):
            raise InvalidParameterError(
                f"cluster.slots = {slots}: expected at most {len(counts)}, the slots in {self.days:g} recorded days"
            )
        return RecordedArrivals(np.minimum(counts[:slots], self.at_most))


class OpenbRates(Strict):
    """Bernoulli arrivals with the recorded shares of slots in which a pod of the type was created.

    For as many slots as are wanted, where the record itself is too short.
    """

    kind: Literal["openb-rates"]
    days: Positive = 30.0
    slot_seconds: Positive = 3600.0

    def build(self, n_ports: int, slots: int, rng: np.random.Generator, data: Data) -> ArrivalProcess:
        """Return the process.

        Raises
        ------
        MissingDataError, TraceError
            If the trace is not there or damaged.
        InvalidParameterError
            If it has fewer types of pods.
        """
        from marketsched.clusters.traces import recorded_counts
        from marketsched.mechanisms.allocation.arrivals import BernoulliArrivals

        counts = recorded_counts(data, n_ports, days=self.days, slot_seconds=self.slot_seconds)
        return BernoulliArrivals((counts > 0).mean(axis=0), rng)


AnyArrivals = Annotated[Bernoulli | OpenbHours | OpenbRates, Field(discriminator="kind")]
