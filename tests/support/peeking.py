"""Finds policies that know more than they declare to observe."""

import numpy as np

from marketsched.mechanisms.allocation.slot_loop import declared_observation, slot_by_slot
from marketsched.mechanisms.errors import InvalidParameterError


def find_peeking(first, second, common_slots):
    """Return the first slot in which a decision depends on later information, or None.

    The same policy is played in two worlds, (policy, environment) each, that agree in slots 1 to ``common_slots`` and
    differ in the slot after it. Its decisions may differ only after its observations did: from slot
    ``common_slots + 2`` on if it observes nothing before it decides, else from ``common_slots + 1`` on.
    """
    declared = [declared_observation(*world) for world in (first, second)]
    if declared[0] != declared[1]:
        raise InvalidParameterError(f"the policies declare {declared}: expected one policy in two worlds")
    blind = common_slots + 1 if declared[0] == "nothing" else common_slots
    worlds = [slot_by_slot(*world, blind) for world in (first, second) if blind]
    for t, ((decision, _), (other, _)) in enumerate(zip(*worlds, strict=True), start=1):
        if not np.array_equal(decision, other):
            return t
    return None
