"""The families of lies about shapes: kinds left out, invented or exchanged, demands, tasks, durations and worth."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from marketsched.agents.lies import (
    AddDummyShape,
    AddKind,
    ClaimWorth,
    LeaveOutKind,
    LeaveOutShape,
    Misreport,
    PublicInformation,
    PutShapeFirst,
    ScaleDemand,
    ScaleTasks,
    StretchOnKind,
    SwapKinds,
    TasksPerNode,
)
from marketsched.mechanisms.sow import StatementOfWork


def lies_about_shapes(truth: StatementOfWork, public: PublicInformation) -> Mapping[str, list[Misreport]]:
    """Return lies about the shapes of a job by family, most telling first; none for a job without shapes."""
    if not truth.shapes or public.cluster is None:
        return {}
    kinds = list(dict.fromkeys(kind for shape in truth.shapes for kind in shape.kinds))
    others = [kind for kind in public.cluster.kinds if kind not in kinds]
    devices_first = sorted(public.cluster.resources, key=lambda resource: not resource.device)
    used = [r.name for r in devices_first if any(shape.each.get(r.name) for shape in truth.shapes)]
    shares = {r.name: shape.each.get(r.name, 0.0) for r in devices_first if r.device for shape in truth.shapes}
    places, several = range(len(truth.shapes)), len(truth.shapes) > 1
    pairs = list(pairwise(kinds))
    return {
        "drop": [
            *(LeaveOutKind(kind) for kind in kinds if len(kinds) > 1),
            *(LeaveOutShape(i) for i in places if several),
        ],
        "invent": [AddKind(kind, factor) for factor in (1.0, 0.5, 2.0) for kind in others],
        "swap": [*(SwapKinds(*pair) for pair in pairs), *(PutShapeFirst(i) for i in places[1:])],
        "widen": [
            *(ScaleDemand(name, 1 / share) for name, share in shares.items() if 0 < share < 1),  # a whole device
            *(ScaleDemand(name, factor) for factor in (2.0, 0.5, 1.5) for name in used),
            *map(ScaleTasks, (2.0, 0.5)),
            TasksPerNode(1),
        ],
        "stretch": [StretchOnKind(kind, factor) for factor in (2.0, 0.5, 1.25) for kind in kinds],
        "dummy": [AddDummyShape(first=True), AddDummyShape()],
        "worth": [ClaimWorth(i, w) for w in (1.0, 0.5) for i in places if truth.shapes[i].worth != w],
    }
