"""The factors of Slurm's multifactor priority besides fair share, and how usage decays and is billed.

Source: Slurm's page *Multifactor Priority Plugin*, and `priority_multifactor.c` at the tags slurm-22-05-8-1 and
slurm-26-05-3-1, which agree in all that is here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.legal import Amount, Positive, legal

HALF = 0.693  # Slurm's, in place of ln 2
ON_A_NODE = ("cpu", "mem", "node")  # resources of a node, with every kind of gres


@legal
def kept(half_life_s: Positive, seconds: Amount) -> float:
    """Return the share of usage that remains after ``seconds``: ``(1 - 0.693 / half_life) ** seconds``, at least 0."""
    return float(max(0.0, 1.0 - HALF / half_life_s) ** seconds)


def age_factor(waited_s: ArrayLike, max_age_s: float) -> NDArray[np.float64]:
    """Return the share of ``PriorityMaxAge`` (above 0) that jobs have waited, at most 1."""
    return np.minimum(1.0, np.divide(waited_s, max_age_s))


def job_size_factor(
    nodes: ArrayLike, all_nodes: int, *, favor_small: bool = False, limit_minutes: float | None = None
) -> NDArray[np.float64]:
    """Return the job size factors, in [0, 1], of jobs that take whole nodes of one processor each.

    ``favor_small`` is ``PriorityFavorSmall``; with ``limit_minutes``, as under ``SMALL_RELATIVE_TO_TIME``, the size
    counts per minute of the time limit. Node counts are not checked: all waiting jobs are rated in every round.

    Examples
    --------
    >>> job_size_factor([1, 4], 4).tolist(), job_size_factor([1, 4], 4, favor_small=True).tolist()
    ([0.25, 1.0], [0.75, 0.0])
    >>> float(job_size_factor(1, 4, limit_minutes=5.0))
    0.05
    """
    size = np.divide(nodes, all_nodes) / (1.0 if limit_minutes is None else limit_minutes)
    return np.minimum(1.0, np.maximum(0.0, 1.0 - size if favor_small else size))


def billed(amounts: Mapping[str, float], weights: Mapping[str, float], *, largest_on_a_node: bool = False) -> float:
    """Return the billable amount of a job (``TRESBillingWeights``); a resource without a weight is free.

    With ``largest_on_a_node`` (``PriorityFlags=MAX_TRES``) only the most expensive of a node's resources counts.

    Examples
    --------
    >>> billed({"cpu": 1, "mem": 60}, {"cpu": 1.0, "mem": 0.25})
    16.0
    >>> billed({"cpu": 1, "mem": 60}, {"cpu": 1.0, "mem": 0.25}, largest_on_a_node=True)
    15.0
    """
    on_node, other = [0.0], 0.0
    for name, amount in amounts.items():
        owed = amount * weights.get(name, 0.0)
        if largest_on_a_node and (name in ON_A_NODE or name.startswith("gres")):
            on_node.append(owed)
        else:
            other += owed
    return max(on_node) + other
