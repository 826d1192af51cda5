"""The size of a recorded machine and of its partitions, by the nodes that ran at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

KNOWN_STARTS, MOST_OF_THE_TIME = 0.99, 0.999  # share of runs whose starts are recorded, and of the time of a log
SHARED = 1.05  # queues whose peaks add up to more than this share of the machine's share nodes
MOST_NAMED = 6  # partitions, in a sentence


def nodes_in_use(
    start: NDArray[np.float64], end: NDArray[np.float64], nodes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the times at which a run starts or ends, in order, and the nodes in use from each on; shapes (2 n,)."""
    times, change = np.concatenate([start, end]), np.concatenate([nodes, -nodes])
    order = np.lexsort((change, times))
    return times[order], np.cumsum(change[order])


def observed_nodes(runs: pd.DataFrame) -> int | None:
    """Return the nodes that ran at once in a log, the .999 quantile over time; None where it records too few starts.

    Parameters
    ----------
    runs : DataFrame
        The table of a `JobLog`.
    """
    known = runs[runs["start_s"].notna()]
    if len(known) < KNOWN_STARTS * len(runs):
        return None
    start, nodes = known["start_s"].to_numpy(), known["processors"].to_numpy()
    times, busy = nodes_in_use(start, start + known["run_s"].to_numpy(), nodes)
    by_use, lasting = np.argsort(busy[:-1], kind="stable"), np.diff(times)
    share = np.cumsum(lasting[by_use]) / max(float(lasting.sum()), 1e-9)
    return int(busy[by_use[np.searchsorted(share, MOST_OF_THE_TIME)]])


def partition_nodes(runs: pd.DataFrame, total: int | None) -> dict[str, int]:
    """Return the nodes of each partition of a log, by name; empty where its queues share nodes, or there is one.

    ``total`` are the nodes that all used at once. Queues are partitions if the nodes that each used at once add up to
    these: queues that share nodes hardly peak together.
    """
    if total is None or runs["queue"].nunique() < 2 or runs["queue"].eq("").any():
        return {}
    found = {str(name): observed_nodes(own) or 0 for name, own in runs.groupby("queue")}
    return found if sum(found.values()) <= SHARED * total else {}


def partition_words(nodes: dict[str, int]) -> str:
    """Say that partitions are merged."""
    named = ", ".join(f"{name} ({count:,} nodes)" for name, count in list(nodes.items())[:MOST_NAMED])
    more = f" and {len(nodes) - MOST_NAMED} others" if len(nodes) > MOST_NAMED else ""
    first = next(iter(nodes))
    return (
        f"partitions {named}{more} have nodes of their own, and are played as one pool: --partition {first} plays one"
    )
