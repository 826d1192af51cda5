"""The order in which a recorded scheduler chose among the jobs that it could have started.

At each start of a job that had waited, the alternatives are the waiting jobs of other users that fitted as well and
started within the next hour (without that, jobs that are held for reasons of their own pose as passed over).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from marketsched.recorded.levels import RecordedJobs

ORDERS = {
    "older": "first come",
    "shorter": "shortest request first",
    "narrower": "fewest nodes first",
    "lighter": "lightest user first, as fair share",
    "queue": "by queue",
}
CLEAR, BLURRED = 0.8, 0.65  # share of the pairs
SOON_S, LEAST_AGE_S, HALF_LIFE_S, FEWEST = 3600.0, 120.0, 604_800.0, 30


class RecordedOrder(NamedTuple):
    """Among pairs of a job that was started and one that was not: the share in which the started one had more of it.

    Attributes
    ----------
    choices : int
        Starts with an alternative.
    shares : dict of str to float
        By the keys of `ORDERS`; .5 says nothing. ``queue``: the queue that more often wins between two.
    """

    choices: int
    shares: dict[str, float]

    def sentence(self) -> str:
        """Say which order it was."""
        if self.choices < FEWEST:
            return f"Order: only {self.choices} starts had an alternative, too few to tell."
        best = max(self.shares, key=lambda name: self.shares[name])
        said = ", ".join(f"{name} {share:.2f}" for name, share in self.shares.items())
        share = self.shares[best]
        if share < BLURRED:
            return f"Order: no simple one fits (of {self.choices:,} choices, {said})."
        return f"Order: {'' if share >= CLEAR else 'mostly '}{ORDERS[best]} (of {self.choices:,} choices, {said})."


def order_of(jobs: RecordedJobs, capacity: int) -> RecordedOrder:
    """Return in which order the jobs of a log were started.

    Parameters
    ----------
    jobs : RecordedJobs
        n jobs.
    capacity : int
        Nodes.
    """
    n = jobs.submit.size
    times = np.concatenate([jobs.end, jobs.submit, jobs.start])
    kinds, whose = np.repeat([0, 1, 2], n), np.tile(np.arange(n), 3)
    order = np.lexsort((kinds, times))
    choices, sums, wins = _order_kernel(
        times[order], kinds[order], whose[order], jobs.submit, jobs.start, jobs.request, jobs.nodes,
        jobs.user, jobs.queue, jobs.user.max() + 1, jobs.queue.max() + 1, capacity,
    )  # fmt: skip
    names = list(ORDERS)
    shares = dict(zip(names, (sums / max(choices, 1)).tolist(), strict=False))
    between = np.triu(np.maximum(wins, wins.T), 1).sum(), np.triu(wins + wins.T, 1).sum()
    if between[1] > choices / 2:
        shares["queue"] = float(between[0] / between[1])
    return RecordedOrder(int(choices), shares)


def orders_together(orders: Sequence[RecordedOrder]) -> RecordedOrder:
    """Return the order of several machines, by their choices."""
    choices = sum(each.choices for each in orders)
    names = set.intersection(*(set(each.shares) for each in orders))
    of_all = {
        name: sum(each.choices * each.shares[name] for each in orders) / max(choices, 1)
        for name in ORDERS
        if name in names
    }
    return RecordedOrder(choices, of_all)


@njit(cache=True)
def _order_kernel(times, kinds, whose, submit, start, request, nodes, user, queue, n_users, n_queues, capacity):  # type: ignore[no-untyped-def]
    """Return the choices, the sums of shares by feature, and the pairs that each queue won of each."""
    waiting, place, n_waiting = np.empty(submit.size, np.int64), np.empty(submit.size, np.int64), 0
    usage, since, running = np.zeros(n_users), np.zeros(n_users), np.zeros(n_users, np.int64)  # of users, node-seconds
    sums, wins, choices, used, last = np.zeros(4), np.zeros((n_queues, n_queues)), 0, 0, -1.0
    own = np.empty(4)
    for e in range(times.size):
        now, j = times[e], whose[e]
        if kinds[e] == 1:
            waiting[n_waiting], place[j] = j, n_waiting
            n_waiting += 1
            continue
        if kinds[e] == 2:
            if now - submit[j] >= LEAST_AGE_S and now > last:
                share, n_pairs = np.zeros(4), 0
                for q in range(n_waiting):
                    k = waiting[q]
                    if user[k] == user[j] or start[k] - now > SOON_S or now - submit[k] < LEAST_AGE_S:
                        continue
                    if used + nodes[k] > capacity:
                        continue
                    n_pairs += 1
                    heavy = np.empty(2)
                    for s, who in enumerate((user[j], user[k])):
                        passed = now - since[who]
                        heavy[s] = usage[who] * 2.0 ** (-passed / HALF_LIFE_S) + running[who] * passed
                    own[0] = submit[k] - submit[j]
                    own[1] = request[k] - request[j]
                    own[2] = nodes[k] - nodes[j]
                    own[3] = heavy[1] - heavy[0]
                    for f in range(4):
                        share[f] += 1.0 if own[f] > 0 else 0.5 if own[f] == 0 else 0.0
                    wins[queue[j], queue[k]] += 1
                if n_pairs:
                    choices, last = choices + 1, now
                    sums += share / n_pairs
            moved = waiting[n_waiting - 1]
            waiting[place[j]], place[moved] = moved, place[j]
            n_waiting -= 1
        who, sign = user[j], 1 if kinds[e] == 2 else -1
        passed = now - since[who]
        usage[who] = usage[who] * 2.0 ** (-passed / HALF_LIFE_S) + running[who] * passed
        since[who], running[who], used = now, running[who] + sign * nodes[j], used + sign * nodes[j]
    return choices, sums, wins
