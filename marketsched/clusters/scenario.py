"""Cluster scenarios: an allocation core, its cluster, who arrives, and the policies that are compared.

A scenario file with a section ``cluster`` in place of ``workload`` and ``mechanism`` is a cluster
scenario. Like a market scenario it is plain typed data, checked whole before anything is built.

A further core is one more class beside `OgaSchedCluster` with a ``core`` of its own and a method
``world`` that returns a `marketsched.clusters.world.World`, named in `AnyCore`: whoever runs, compares,
prints and draws cluster scenarios asks the world alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from marketsched.clusters.core import ClusterCore
from marketsched.clusters.esdp import EsdpCluster
from marketsched.clusters.opm import OpmCluster
from marketsched.clusters.parts import AnyArrivals, AnyInstance, Bernoulli, Gangs, Published
from marketsched.clusters.words import OGASCHED, Words
from marketsched.config.policies import PolicyChoice, policy_list
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import ScenarioFile
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.ranges import Count

if TYPE_CHECKING:
    from marketsched.clusters.world import World


_DEFAULT_POLICIES = ("ogasched", "drf", "fairness", "binpacking", "spreading")


class OgaSchedCluster(ClusterCore):
    """Ports, instances and resources; policies decide who gets how much of what, slot by slot.

    The first of the ``policies`` is the one whose totals are divided by the others'. With ``gangs``, policies that know
    nothing of tasks allocate to ports, and what they decide is repaired.
    """

    words: ClassVar[Words] = OGASCHED

    core: Literal["ogasched"] = "ogasched"
    instance: AnyInstance = Published(kind="published")
    arrivals: AnyArrivals = Bernoulli(kind="bernoulli")
    gangs: Gangs | None = None
    slots: Count = 2000
    policies: Annotated[tuple[str, ...], policy_list("ogasched")] = _DEFAULT_POLICIES

    def world(self, seed: int, *, data: str | PathLike[str] | None = None) -> World:
        """Draw the cluster and the arrivals of one seed; see `ClusterCore.world`."""
        from marketsched.clusters.world import OgaSchedWorld

        return OgaSchedWorld(self, seed, data)


def _with_core(x: object) -> object:
    """Name the core where the section does not: pydantic must know it before it reads the rest."""
    return {"core": "ogasched", **x} if isinstance(x, Mapping) else x


AnyCore = Annotated[OgaSchedCluster | EsdpCluster | OpmCluster, Field(discriminator="core")]


class ClusterScenario(ScenarioFile):
    """Everything that determines a cluster run but its seed.

    Examples
    --------
    >>> scenario = ClusterScenario.load("cluster-default")
    >>> scenario.cluster.core, scenario.cluster.slots, scenario.cluster.policies[0]
    ('ogasched', 2000, 'ogasched')
    >>> ClusterScenario.from_dict({"name": "x", "cluster": {"slots": 0}})
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: scenario: cluster.slots = 0: expected a whole number >= 1
    """

    cluster: Annotated[AnyCore, BeforeValidator(_with_core)]

    @classmethod
    def _prepared(cls, data: Any, source: str) -> Any:
        if isinstance(data, Mapping) and "workload" in data:
            raise InvalidParameterError(
                f"{source}: a scenario of jobs: expected one with a cluster, such as cluster-default"
            )
        # An error line names the right place once the core is known.
        return {**data, "cluster": _with_core(data["cluster"])} if is_cluster(data) else data

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved scenario as plain data: all defaults written out."""
        data = super().to_dict()
        cluster = data["cluster"]
        for part in ("instance", "arrivals", "machines", "jobs"):  # a reader looks for the kind first
            if part in cluster:
                cluster[part] = {"kind": cluster[part]["kind"], **cluster[part]}
        for part in ("gangs", "sharing"):
            if part in cluster and cluster[part] is None:
                del cluster[part]
        return data

    def choices(self, tokens: Sequence[str] | None = None) -> list[PolicyChoice]:
        """Return the policies that ``tokens`` name; None: those of the scenario.

        Raises
        ------
        InvalidParameterError, UnknownNameError
            If one is malformed or unknown.
        """
        return self.cluster.choices(self.cluster.policies if tokens is None else tokens)


def is_cluster(data: Any) -> bool:
    """Return True if the content of a scenario file is that of a cluster scenario."""
    return isinstance(data, Mapping) and "cluster" in data


def any_scenario(data: Any, *, source: str = "scenario") -> Scenario | ClusterScenario:
    """Return the scenario that ``data`` describes, of whichever sort.

    Raises
    ------
    InvalidParameterError
        If it is neither.
    """
    return (ClusterScenario if is_cluster(data) else Scenario).from_dict(data, source=source)
