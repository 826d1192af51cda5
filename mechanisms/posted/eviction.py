"""LIFO eviction: which jobs an overload removes (Algorithm 1, step 5, and the variant of Section 15.3).

The rule of the paper takes the most recently submitted *active* job, started or not, arrived or not, until the load
fits; jobs that are not part of the load can be cancelled on the way. The ``running`` variant takes only jobs counted in
this round's load. Either way a job's fate depends on jobs submitted earlier alone (Lemma 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Job = TypeVar("Job")


def overload_removals(
    newest_first: Iterable[Job], counted: Mapping[Job, int], capacity: int, *, only_counted: bool
) -> list[Job]:
    """Return the jobs to remove so that the load fits ``capacity`` nodes, most recent submission first.

    ``newest_first`` are all active jobs, most recent submission first; ``counted`` has the nodes of those that execute
    in this round or are about to start. ``only_counted``: the ``running`` variant, in place of the paper's rule.

    Examples
    --------
    Job 2 has not started; the paper's rule cancels it on the way to job 1 (worked example W2):

    >>> overload_removals([2, 1, 0], {0: 2, 1: 2}, 3, only_counted=False)
    [2, 1]
    >>> overload_removals([2, 1, 0], {0: 2, 1: 2}, 3, only_counted=True)
    [1]
    """
    load = sum(counted.values())
    removed = []
    for job in newest_first:
        if load <= capacity:
            break
        if only_counted and job not in counted:
            continue
        load -= counted.get(job, 0)
        removed.append(job)
    return removed
