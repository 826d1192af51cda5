"""Kueue's objects, in one YAML file, as the parameters of `marketsched.mechanisms.schedulers.quota`.

Read are ``ClusterQueue``, ``Cohort``, ``LocalQueue`` and ``ResourceFlavor`` (API v1beta1 and v1beta2). A flavor is the
kind of nodes of its name, or that one of its labels names. ``cpu`` counts cores, ``memory`` GiB, and a resource of a
vendor (``nvidia.com/gpu``) is the one behind the slash. On identical nodes the file has one flavor with one resource:
nodes. A queue may not use a flavor that it does not list. Its owners are its LocalQueues, by name or by namespace.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.resources.cluster import Cluster

_UNITS = {
    "": 1.0,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


def read_kueue(path: str, cluster: Cluster | None) -> dict[str, Any]:
    """Return ``queues`` and ``cohorts`` of `Quota`.

    Raises
    ------
    InvalidParameterError
        If the file is not there, is no YAML or has no ClusterQueue; or if a flavor is no kind of the cluster's nodes, a
        resource none of its, or an amount no quantity of Kubernetes.
    """
    try:
        documents = [x for x in yaml.safe_load_all(Path(path).read_text()) if isinstance(x, Mapping)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise InvalidParameterError(place="queues", value=path, legal=f"a file of Kueue's objects ({why})") from None
    of_kind: dict[str, dict[str, Any]] = {}
    for x in documents:
        of_kind.setdefault(str(x.get("kind")), {})[str((x.get("metadata") or {}).get("name"))] = x
    if "ClusterQueue" not in of_kind:
        raise InvalidParameterError(place="queues", value=path, legal="a file with a ClusterQueue")
    cells = _Cells(cluster, of_kind.get("ResourceFlavor", {}))
    locals_ = of_kind.get("LocalQueue", {}).values()
    named = [(name, x["spec"]["clusterQueue"]) for x in locals_ for name in
             {x["metadata"]["name"], x["metadata"].get("namespace", x["metadata"]["name"])}]  # fmt: skip
    once = Counter(name for name, _ in set(named))
    queues = {}
    for name, x in of_kind["ClusterQueue"].items():
        spec = x.get("spec") or {}
        preemption = spec.get("preemption") or {}
        queues[name] = cells.amounts(spec, closed=True) | {
            "cohort": spec.get("cohortName") or spec.get("cohort") or f"of {name} alone",
            "owners": sorted({owner for owner, home in named if home == name and once[owner] == 1}) or [name],
            "strict": spec.get("queueingStrategy") == "StrictFIFO",
            "reclaim": preemption.get("reclaimWithinCohort") == "Any",
        }
    cohorts = {}
    for name, x in of_kind.get("Cohort", {}).items():
        spec = x.get("spec") or {}
        above = spec.get("parentName") or spec.get("parent")
        cohorts[name] = cells.amounts(spec) | ({"parent": above} if above else {})
    return {"queues": queues, "cohorts": cohorts}


class _Cells:
    """The kinds and resources of a cluster by Kueue's names."""

    def __init__(self, cluster: Cluster | None, flavors: Mapping[str, Any]) -> None:
        self.cluster, self.flavors = cluster, flavors

    def amounts(self, spec: Mapping[str, Any], closed: bool = False) -> dict[str, Any]:
        """Return quotas, limits and weight; ``closed``: nothing is borrowed of what is not listed."""
        found: dict[str, Any] = {"nominal": {}, "borrow": {}, "lend": {}}
        listed = [(flavor, x) for group in spec.get("resourceGroups") or () for flavor in group.get("flavors") or ()
                  for x in flavor.get("resources") or ()]  # fmt: skip
        for flavor, x in listed:
            kind, name_of = self._kind(str(flavor.get("name"))), self._resource(str(x.get("name")))
            for key, name in ("nominal", "nominalQuota"), ("borrow", "borrowingLimit"), ("lend", "lendingLimit"):
                if x.get(name) is not None:
                    amounts = found[key].setdefault(kind, {})
                    amounts[name_of] = amounts.get(name_of, 0.0) + _quantity(x[name], str(x.get("name")))
        if closed and self.cluster is not None:
            for kind in self.cluster.kinds:
                for resource in self.cluster.resources:
                    if resource.name not in found["nominal"].get(kind, {}):
                        found["borrow"].setdefault(kind, {})[resource.name] = 0.0
        weight = (spec.get("fairSharing") or {}).get("weight")
        return found | ({} if weight is None else {"weight": _quantity(weight, "weight")})

    def _kind(self, flavor: str) -> str:
        if self.cluster is None:
            return "node"
        labels = ((self.flavors.get(flavor) or {}).get("spec") or {}).get("nodeLabels") or {}
        for kind in (flavor, *map(str, labels.values())):
            if kind in self.cluster.kinds:
                return kind
        raise InvalidParameterError(place="queues: flavor", value=flavor, legal=", ".join(self.cluster.kinds))

    def _resource(self, name: str) -> str:
        known = ["node"] if self.cluster is None else [resource.name for resource in self.cluster.resources]
        short = "node" if self.cluster is None else name.rpartition("/")[2]
        if short not in known:
            raise InvalidParameterError(place="queues: resource", value=name, legal=", ".join(known))
        return short


def _quantity(given: Any, name: str) -> float:
    """Return a quantity of Kubernetes; memory in GiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zA-Z]*)", str(given))
    if found is None or found[2] not in _UNITS:
        raise InvalidParameterError(place=f"queues: {name}", value=given, legal="a quantity such as 8, 500m or 64Gi")
    return float(found[1]) * _UNITS[found[2]] / (2**30 if name == "memory" else 1.0)
