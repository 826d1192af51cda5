"""Demand of recurring jobs of the Google trace: nodes and priority, recorded or borrowed.

A modelling choice, not data: a recurring job that does not occur in the file of demands copies
those of a random recurring job of its latency class. Donors are the recurring jobs with at least
five rows in that file, as "recurring" is counted in the trace's statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError

if TYPE_CHECKING:
    import pandas as pd

NODE_CPU = 0.0625  # CPU of one node of the market, as a share of the trace's largest machine
LEAST_CPU = 0.00625  # a task that asks for less, or nothing, counts as this
DONOR_ROWS = 5

BANDS = ("free", "middle", "production")


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand of recurring jobs, one entry each."""

    concurrency: NDArray[np.int64]  # (n_groups,), nodes
    priority: NDArray[np.int64]  # (n_groups,), 0..11
    borrowed: NDArray[np.bool_]  # (n_groups,)

    @property
    def band(self) -> NDArray[np.int64]:
        """Index into :data:`BANDS`: priorities 0-1, 2-8, 9 and more."""
        return np.digitize(self.priority, [2, 9])


def nodes_of(n_tasks: NDArray[np.int64], cpu: NDArray[np.float64], max_concurrency: int) -> NDArray[np.int64]:
    """Return ``clip(ceil(n_tasks * max(cpu, .00625) / .0625), 1, max_concurrency)``."""
    # 1e-9 of slack: 2 * .0625 / .0625 must not become 3 nodes by rounding
    nodes = np.ceil(n_tasks * np.maximum(cpu, LEAST_CPU) / NODE_CPU - 1e-9)
    return np.clip(nodes, 1, max_concurrency).astype(np.int64)


def demand_of(groups: pd.DataFrame, recorded: pd.DataFrame, max_concurrency: int, rng: np.random.Generator) -> Demand:
    """Return the request of each recurring job, one row of ``groups`` (``user, group, sched_class``).

    Of the trace ``google-demand``, ``recorded``, the first row of a recurring job counts. ``rng`` chooses whose demand
    is borrowed; one draw per row of ``groups``, needed or not, so that each choice stays when other rows find their own
    demand. InvalidParameterError if a demand must be borrowed and the file has no donor.
    """
    import pandas as pd

    by_group = recorded.groupby(["user", "group"])
    known = by_group[["sched_class", "priority", "n_tasks", "cpu_req"]].first()
    nodes = nodes_of(known["n_tasks"].to_numpy(), known["cpu_req"].to_numpy(), max_concurrency)
    own = known.index.get_indexer(pd.MultiIndex.from_frame(groups[["user", "group"]]))
    borrowed = own < 0
    donors = np.flatnonzero(by_group.size().to_numpy() >= DONOR_ROWS)
    if borrowed.any() and donors.size == 0:
        raise InvalidParameterError(
            f"{borrowed.sum()} recurring jobs have no demand and the demand file has none to borrow: "
            f"expected at least one recurring job with {DONOR_ROWS} rows"
        )
    draws = rng.random(len(groups))
    row = own.copy()
    for k in np.unique(groups["sched_class"].to_numpy()[borrowed]):
        of_class = donors[known["sched_class"].to_numpy()[donors] == k]
        pool = of_class if of_class.size else donors
        mine = borrowed & (groups["sched_class"].to_numpy() == k)
        row[mine] = pool[(draws[mine] * pool.size).astype(np.int64)]
    return Demand(nodes[row], known["priority"].to_numpy()[row].astype(np.int64), borrowed)
