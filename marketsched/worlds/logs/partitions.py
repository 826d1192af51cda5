"""The size of a recorded machine and of its partitions, by the nodes that ran at once."""

from __future__ import annotations

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError

KNOWN_STARTS, MOST_OF_THE_TIME = 0.99, 0.999  # share of runs whose starts are recorded, and of the time of a log
SHARED = 1.05  # queues whose peaks add up to more than this share of the machine's share nodes
MOST_NAMED = 6  # partitions, in a sentence


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
    times = np.concatenate([start, start + known["run_s"].to_numpy()])
    order = np.argsort(times, kind="stable")
    busy, lasting = np.cumsum(np.concatenate([nodes, -nodes])[order])[:-1], np.diff(times[order])
    by_use = np.argsort(busy, kind="stable")
    share = np.cumsum(lasting[by_use]) / max(float(lasting.sum()), 1e-9)
    return int(busy[by_use[np.searchsorted(share, MOST_OF_THE_TIME)]])


def partition_nodes(runs: pd.DataFrame) -> dict[str, int]:
    """Return the nodes of each partition of a log, by name; empty where its queues share nodes, or there is one.

    Queues are partitions if the nodes that each used at once add up to those that all used at once: queues that share
    nodes hardly peak together.
    """
    total = observed_nodes(runs)
    if total is None or runs["queue"].nunique() < 2 or runs["queue"].eq("").any():
        return {}
    found = {str(name): observed_nodes(own) or 0 for name, own in runs.groupby("queue")}
    return found if sum(found.values()) <= SHARED * total else {}


def of_partition(runs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the runs of one partition.

    Raises
    ------
    InvalidParameterError
        If there is none of this name.
    """
    if not runs["queue"].eq(name).any():
        names = ", ".join(sorted(map(str, runs["queue"].unique()))[:MOST_NAMED])
        raise InvalidParameterError(
            place="partition", value=name, legal=f"one of the log's queues: {names or 'it has none'}"
        )
    return runs[runs["queue"] == name].reset_index(drop=True)


def partition_words(nodes: dict[str, int]) -> str:
    """Say that partitions are merged."""
    named = ", ".join(f"{name} ({count:,} nodes)" for name, count in list(nodes.items())[:MOST_NAMED])
    more = f" and {len(nodes) - MOST_NAMED} others" if len(nodes) > MOST_NAMED else ""
    first = next(iter(nodes))
    return (
        f"partitions {named}{more} have nodes of their own, and are played as one pool: --partition {first} plays one"
    )
