r"""Quotas of queues in a tree of cohorts: what a queue may use, what it borrows, and how large its share is.

A *cell* is a resource on a kind of nodes. A node of the tree (a queue, or a cohort of queues and cohorts) has a nominal
quota q of each cell, and may limit what it borrows and what it lends. Its subtree has S, the sum of q and of what its
children lend; it uses what it does not lend itself first, and use beyond that counts in its parent, so that quotas hold
at every level. The share of a node, 0 while it stays within its quota, is

.. math:: \max_r \frac{\sum_k w_k \max(0, u_{kr} - S_{kr})}{\sum_k w_k P_{kr}} \Big/ weight,

with u its use of resource r on kind k, P the most that its parent could use, and w the weights of kinds of nodes.

Source: Kueue, *Cohort*, *ClusterQueue* and *Fair Sharing* (kueue.sigs.k8s.io, API v1beta2); there all kinds weigh 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite
from marketsched.mechanisms.resources.cluster import Cluster

Demand = Sequence[tuple[int, float]]  # cells and amounts above 0, in parts
ROOT = ""  # the cohort of queues that name none
_AMOUNT = Finite("[0, inf)")
_LIMITS = ("nominal", "borrow", "lend", "weight")
_KEYS = {"queues": (*_LIMITS, "cohort", "owners", "strict", "reclaim"), "cohorts": (*_LIMITS, "parent")}


class QuotaNode:
    """A queue or a cohort; lists are by cell, in parts of the resource.

    ``subtree`` is S, ``local`` the part of it that is not lent, ``borrow`` the most that may be borrowed, ``used`` u.
    """

    def __init__(self, place: str, parent: QuotaNode | None, given: Mapping[str, Any], cells: Cells) -> None:
        self.parent, self.cells = parent, cells
        self.subtree: list[float]
        self.local: list[float]
        self.nominal = cells.amounts(f"{place}: nominal", given.get("nominal", {}), 0.0)
        self.borrow = cells.amounts(f"{place}: borrow", given.get("borrow", {}), math.inf)
        self.lend = cells.amounts(f"{place}: lend", given.get("lend", {}), math.inf)
        self.weight = _AMOUNT.check(f"{place}: weight", given.get("weight", 1.0))
        self.strict, self.reclaims = bool(given.get("strict", False)), bool(given.get("reclaim", True))
        self.used = [0.0] * len(self.nominal)
        self.children: list[QuotaNode] = []
        if parent is not None:
            parent.children.append(self)
        self.settle()

    def settle(self) -> None:
        """Compute the quotas of the tree below, and its own."""
        for child in self.children:
            child.settle()
        lent = [[child.subtree[c] - child.local[c] for child in self.children] for c in range(len(self.nominal))]
        self.subtree = [own + sum(more) for own, more in zip(self.nominal, lent, strict=True)]
        self.local = [max(0.0, own - lend) for own, lend in zip(self.subtree, self.lend, strict=True)]

    def path(self) -> Iterator[QuotaNode]:
        """Yield itself and all cohorts above."""
        at: QuotaNode | None = self
        while at is not None:
            yield at
            at = at.parent

    def available(self, cell: int, *, used: bool = True) -> float:
        """Return what may still be used of a cell; without ``used``, what could be if nothing was."""
        now, local = self.used[cell] if used else 0.0, self.local[cell]
        if self.parent is None:
            return self.subtree[cell] - now
        most = self.subtree[cell] - local - max(0.0, now - local) + self.borrow[cell]
        return max(0.0, local - now) + min(most, self.parent.available(cell, used=used))

    def fits(self, demand: Demand) -> bool:
        """Tell whether so much more may be used."""
        return all(amount <= self.available(cell) for cell, amount in demand)

    def may_use(self, demand: Demand) -> bool:
        """Tell whether so much more could be used if nobody else used anything."""
        return all(self.used[cell] + amount <= self.available(cell, used=False) for cell, amount in demand)

    def borrows(self, demand: Demand, more: float = 1.0) -> bool:
        """Tell whether its use with so much more (0: without) is beyond its quota in a cell of the demand."""
        return any(self.used[cell] + more * amount > self.subtree[cell] for cell, amount in demand)

    def beyond(self, demand: Demand) -> Demand:
        """Return the part of a further demand that counts in the parent."""
        rest = ((cell, amount - max(0.0, self.local[cell] - self.used[cell])) for cell, amount in demand)
        return [(cell, amount) for cell, amount in rest if amount > 0]

    def use(self, demand: Demand) -> None:
        """Use more here and above."""
        if self.parent is not None:
            self.parent.use(self.beyond(demand))
        for cell, amount in demand:
            self.used[cell] += amount

    def release(self, demand: Demand) -> None:
        """Give back an earlier use."""
        for cell, amount in demand:
            self.used[cell] -= amount
        if self.parent is not None:
            self.parent.release(self.beyond(demand))

    def share(self, demand: Demand = ()) -> float:
        """Return its share with so much more; infinite where it borrows at weight 0, 0 without a parent."""
        more, over, most = dict(demand), defaultdict[int, float](float), defaultdict[int, float](float)
        for cell, (used, own) in enumerate(zip(self.used, self.subtree, strict=True)):
            if self.parent is not None and (beyond := used + more.get(cell, 0.0) - own) > 0:
                over[self.cells.resource[cell]] += self.cells.weight[cell] * beyond
        if not over or self.parent is None:
            return 0.0
        for cell, resource in enumerate(self.cells.resource):
            most[resource] += self.cells.weight[cell] * self.parent.available(cell, used=False)
        largest = max(amount / most[resource] if most[resource] > 0 else math.inf for resource, amount in over.items())
        return largest / self.weight if self.weight > 0 else math.inf


class Cells:
    """The cells of the resources that some quota names; other resources are unlimited."""

    def __init__(self, cluster: Cluster, kind_weights: Mapping[str, Any], named: set[str]) -> None:
        for kind in kind_weights:
            if kind not in cluster.kinds:
                raise InvalidParameterError(place="kind_weights", value=kind, legal=", ".join(cluster.kinds))
        self.cluster, self.names = cluster, {resource.name: i for i, resource in enumerate(cluster.resources)}
        weights = {kind: _AMOUNT.check(f"kind_weights: {kind}", x) for kind, x in kind_weights.items()}
        cells = [(kind, i) for kind in cluster.kinds for name, i in self.names.items() if not named or name in named]
        self.number = {cell: i for i, cell in enumerate(cells)}
        self.resource, self.weight = [i for _, i in cells], [weights.get(kind, 1.0) for kind, _ in cells]

    def demand(self, pool: int, parts: Sequence[int]) -> Demand:
        """Return the demand of a job that takes these parts of each resource in a pool."""
        kind = self.cluster.pool_kinds[pool]
        cells = ((self.number.get((kind, i)), float(amount)) for i, amount in enumerate(parts) if amount > 0)
        return [(cell, amount) for cell, amount in cells if cell is not None]

    def amounts(self, place: str, given: Any, default: float) -> list[float]:
        """Return amounts by cell, given as a number of nodes, or as numbers by kind and resource."""
        if not isinstance(given, Mapping) and list(self.names) == ["node"]:
            given = {"node": {"node": given}}
        found = [default] * len(self.number)
        for kind, amounts in given.items() if isinstance(given, Mapping) else [("", given)]:
            known = kind in self.cluster.kinds and isinstance(amounts, Mapping) and set(amounts) <= set(self.names)
            if not known:
                legal = f"numbers by resource ({', '.join(self.names)}) for a kind of {', '.join(self.cluster.kinds)}"
                raise InvalidParameterError(place=place, value={kind: amounts} if kind else amounts, legal=legal)
            for name, amount in amounts.items():
                if (cell := self.number.get((kind, self.names[name]))) is not None:
                    parts = self.cluster.resources[self.names[name]].parts
                    found[cell] = _AMOUNT.check(f"{place}: {kind}: {name}", amount) * parts
        return found


def quota_tree(
    queues: Mapping[str, Any], cohorts: Mapping[str, Any] | None, cluster: Cluster, kind_weights: Mapping[str, Any]
) -> tuple[dict[str, QuotaNode], list[QuotaNode]]:
    """Return the queues by name, and the cohorts without a parent, `ROOT` first.

    Without ``cohorts``, `ROOT` has the rest of the cluster that no queue's quota names, so that all nodes can be used.
    InvalidParameterError: an unknown key, kind or resource, an amount that is no number >= 0, a circle of cohorts.
    """
    for what, table in ("queues", queues), ("cohorts", cohorts or {}):
        for name, given in table.items():
            if not isinstance(given, Mapping) or not set(given) <= set(_KEYS[what]):
                legal = f"some of {', '.join(_KEYS[what])}"
                raise InvalidParameterError(place=f"{what}: {name}", value=given, legal=legal)
    nominal = [given.get("nominal") for given in (*queues.values(), *(cohorts or {}).values())]
    by_kind = [amounts for own in nominal if isinstance(own, Mapping) for amounts in own.values()]
    cells = Cells(
        cluster, kind_weights, {name for amounts in by_kind if isinstance(amounts, Mapping) for name in amounts}
    )
    nodes: dict[str, QuotaNode] = {}

    def cohort(name: str, below: tuple[str, ...] = ()) -> QuotaNode:
        if name in below:
            raise InvalidParameterError(
                place=f"cohorts: {name}: parent", value=below[-1], legal="none that is below it"
            )
        given = (cohorts or {}).get(name, {})
        if name not in nodes:
            parent = cohort(str(given["parent"]), (*below, name)) if "parent" in given else None
            nodes[name] = QuotaNode(f"cohorts: {name}", parent, given, cells)
        return nodes[name]

    root = cohort(ROOT)
    leaves = {name: QuotaNode(f"queues: {name}", cohort(str(given.get("cohort", ROOT))), given, cells)
              for name, given in queues.items()}  # fmt: skip
    for name in cohorts or {}:
        cohort(name)
    if cohorts is None:
        for (kind, resource), cell in cells.number.items():
            pools = [i for i, other in enumerate(cluster.pool_kinds) if other == kind]
            there = float(cluster.layout.pool_size[pools, resource].sum())
            root.nominal[cell] = max(0.0, there - sum(leaf.nominal[cell] for leaf in leaves.values()))
    tops = [node for node in nodes.values() if node.parent is None]
    for top in tops:
        top.settle()
    return leaves, tops
