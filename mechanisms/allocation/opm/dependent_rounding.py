"""Dependent rounding of shares to whole tasks: OPM (102)-(103) always hold, and expectations are the shares.

The OPM paper rounds any fractional point of OPM (102)-(103). That is impossible for some points: two tasks of demand
0.6 and shares 0.8 each respect a capacity of 1, yet never fit together. What can be rounded exactly is made precise
here.

On each machine the shares are laid end to end, tasks of large demand first, and cut into *places* of
length 1. A draw fills a place with at most one of its tasks. Any such draw fits if all shares sum to at most
``floor(C_i / r_max)``, or their demands to at most ``C_i - r_max`` (r_max: largest demand there).

Tasks, split tasks, places and jobs then form a network with whole capacities. As long as a flow on it is not whole
there is a cycle of fractional edges; it is shifted to one side or the other, as far as it goes, with probabilities that
leave the mean unchanged (as in Gandhi et al., Dependent rounding, JACM 2006). Every node's flow ends at its floor or
ceiling.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TOLERANCE = 1e-9  # sums of shares this close to a whole number are taken as whole


@njit(cache=True)
def _network(shares, order):  # type: ignore[no-untyped-def]
    """Return tails, heads and flows of the network's edges, the (job, machine) of each, and the number of nodes.

    Node 0 is the ground, 1 to n the jobs; places and split tasks follow. The edge that stands for a
    task carries its code ``job * M + machine``, other edges -1.
    """
    n_jobs, n_machines = shares.shape
    most = 2 * n_jobs + 1
    for j in range(n_jobs):
        for i in range(n_machines):
            most += 5 if shares[j, i] > TOLERANCE else 0
    tails, heads = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    codes, flows = np.full(most, -1, dtype=np.int64), np.empty(most)
    edges, nodes = 0, n_jobs + 1
    for j in range(n_jobs):
        tails[edges], heads[edges], flows[edges] = 0, j + 1, 0.0
        edges += 1
    for i in range(n_machines):
        filled, place = 1.0, -1  # of the present place; edges of the place to the ground
        for k in range(order.size):
            j = order[k]
            share = shares[j, i]
            if share <= TOLERANCE:
                continue
            flows[j] += share
            if filled > 1.0 - TOLERANCE:
                tails[edges], heads[edges], flows[edges] = nodes, 0, 0.0
                place, filled = edges, 0.0
                nodes, edges = nodes + 1, edges + 1
            here = min(share, 1.0 - filled)
            if share - here <= TOLERANCE:
                here = share
            node = j + 1
            code = j * n_machines + i
            if here < share:  # split: a node of its own, so that at most one of its parts is drawn
                tails[edges], heads[edges], flows[edges], codes[edges] = node, nodes, share, code
                node, code = nodes, -1
                nodes, edges = nodes + 1, edges + 1
            tails[edges], heads[edges], flows[edges], codes[edges] = node, tails[place], here, code
            flows[place] += here
            filled += here
            edges += 1
            if here < share:
                tails[edges], heads[edges], flows[edges] = nodes, 0, share - here
                place, filled = edges, share - here
                nodes, edges = nodes + 1, edges + 1
                tails[edges], heads[edges], flows[edges] = node, tails[place], share - here
                edges += 1
    return tails[:edges], heads[:edges], flows[:edges], codes[:edges], nodes


@njit(cache=True)
def _drop(edge, node, side, links, begins, degrees, places):  # type: ignore[no-untyped-def]
    """Take an edge out of a node's list, by putting the list's last edge in its place."""
    degrees[node] -= 1
    at, last = places[side, edge], begins[node] + degrees[node]
    moved = links[last]
    links[at] = moved
    other = moved // 2
    places[moved % 2, other] = at


@njit(cache=True)
def round_kernel(shares, order, rng):  # type: ignore[no-untyped-def]
    """Round the network's flow, cycle by cycle; return which tasks are drawn."""
    n_jobs, n_machines = shares.shape
    tails, heads, flows, codes, n_nodes = _network(shares, order)
    n_edges = tails.size
    degrees = np.zeros(n_nodes + 1, dtype=np.int64)
    for e in range(n_edges):
        degrees[tails[e]] += 1
        degrees[heads[e]] += 1
    begins = np.zeros(n_nodes + 1, dtype=np.int64)
    for v in range(n_nodes):
        begins[v + 1] = begins[v] + degrees[v]
    links, places = np.empty(2 * n_edges, dtype=np.int64), np.empty((2, n_edges), dtype=np.int64)
    degrees[:] = 0
    for e in range(n_edges):
        for side in range(2):
            v = tails[e] if side == 0 else heads[e]
            at = begins[v] + degrees[v]
            links[at], places[side, e] = 2 * e + side, at
            degrees[v] += 1
    step = np.full(n_nodes, -1, dtype=np.int64)  # where on the path a node is
    path = np.zeros(n_nodes + 1, dtype=np.int64)
    taken = np.empty(n_nodes + 1, dtype=np.int64)
    for e in range(n_edges):
        if abs(flows[e] - np.round(flows[e])) <= TOLERANCE:
            flows[e] = np.round(flows[e])
            _drop(e, tails[e], 0, links, begins, degrees, places)
            _drop(e, heads[e], 1, links, begins, degrees, places)
    for first in range(n_nodes):
        while degrees[first] > 0:
            node, length = first, 0
            step[node], path[0] = 0, node
            arrived = -1
            while True:
                if degrees[node] == 1:  # rounding of sums left this edge alone: it is whole but for that
                    e = links[begins[node]] // 2
                    flows[e] = np.round(flows[e])
                    _drop(e, tails[e], 0, links, begins, degrees, places)
                    _drop(e, heads[e], 1, links, begins, degrees, places)
                    break
                e = links[begins[node]] // 2
                if e == arrived:
                    e = links[begins[node] + 1] // 2
                taken[length] = e
                length += 1
                node = heads[e] if tails[e] == node else tails[e]
                arrived = e
                if step[node] >= 0:
                    _shift(step[node], length, path, taken, tails, flows, rng)
                    for k in range(step[node], length):
                        e = taken[k]
                        if flows[e] == np.round(flows[e]):
                            _drop(e, tails[e], 0, links, begins, degrees, places)
                            _drop(e, heads[e], 1, links, begins, degrees, places)
                    break
                step[node], path[length] = length, node
            for k in range(length + 1):  # path[length] is old where a cycle was closed; nothing is marked but the path
                step[path[k]] = -1
    drawn = np.zeros((n_jobs, n_machines), dtype=np.bool_)
    for e in range(n_edges):
        if codes[e] >= 0 and flows[e] > 0.5:
            drawn[codes[e] // n_machines, codes[e] % n_machines] = True
    return drawn


@njit(cache=True)
def _shift(begin, end, path, taken, tails, flows, rng):  # type: ignore[no-untyped-def]
    """Shift the cycle ``taken[begin:end]`` up or down, as far as it goes, so that the mean stays."""
    up, down = 2.0, 2.0
    for k in range(begin, end):
        e = taken[k]
        below = flows[e] - np.floor(flows[e])
        above = 1.0 - below
        if tails[e] != path[k]:
            below, above = above, below
        up, down = min(up, above), min(down, below)
    move = up if rng.random() * (up + down) < down else -down
    for k in range(begin, end):
        e = taken[k]
        flow = flows[e] + (move if tails[e] == path[k] else -move)
        whole = np.round(flow)
        flows[e] = whole if abs(flow - whole) <= TOLERANCE else flow
