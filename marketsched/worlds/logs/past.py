"""What the owner of a run announces of its duration: what it requested, or what earlier runs of its kind took.

The kinds of a run are, from the narrowest on: its user's executable; its user's runs of this width; runs of this width;
all runs. The law is made of the last ``history`` runs of the narrowest kind that has any which had ended when the run
was submitted. That waits were 0 is all that is certain of a log: a run ended its length after its submission.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

from marketsched.worlds.prediction import MIDDLE, SIDE, IntegerLaw, distinct_rows

LOOKED_AT = 5  # times `history` runs of a kind are looked at, for some that have ended


class Announced(NamedTuple):
    """Laws of durations, and which of them each run has."""

    laws: list[IntegerLaw]
    of: NDArray[np.int64]  # (n,)


def certain_durations(durations: NDArray[np.int64]) -> Announced:
    """Return laws under which each run takes these rounds for certain, shape (n,)."""
    rounds, of = np.unique(durations, return_inverse=True)
    return Announced([IntegerLaw(np.array([d]), np.array([1.0])) for d in rounds.tolist()], of)


def announced_by_past(past: NDArray[np.int64], max_duration: int) -> Announced:
    """Return the laws that follow from `past_durations`, one for each history."""
    histories, of = distinct_rows(past)
    return Announced(laws_of_histories(histories, max_duration), of)


def laws_of_histories(histories: NDArray[np.int64], max_duration: int) -> list[IntegerLaw]:
    """Return `marketsched.worlds.prediction.duration_law` of many histories, without a filling.

    Parameters
    ----------
    histories : ndarray of int, shape (n, most)
        Past durations, rounds; after the last one zeros. One of zeros alone means ``max_duration`` for certain.
    max_duration : int
        D_max, rounds.

    Examples
    --------
    >>> laws_of_histories(np.array([[4, 0], [0, 0]]), 48)
    [IntegerLaw(values=array([3, 4, 5]), probabilities=array([0.1, 0.8, 0.1])),
     IntegerLaw(values=array([48]), probabilities=array([1.]))]
    """
    ends, size = np.empty(len(histories), np.int64), 3 * histories.size
    values, probabilities = np.empty(size, np.int64), np.empty(size)
    _laws_kernel(histories, max_duration, SIDE, MIDDLE, ends, values, probabilities)
    return [IntegerLaw(values[a:b], probabilities[a:b]) for a, b in pairwise([0, *ends.tolist()])]


def past_durations(
    known: pd.DataFrame, first: int, begin: int, rounds: NDArray[np.int64], history: int
) -> NDArray[np.int64]:
    """Return what earlier runs of each run's kind took, shape (n - begin, history): the last one first, then zeros.

    Parameters
    ----------
    known : DataFrame of n rows
        The table of a `JobLog`.
    first, begin : int
        Of which run on they may teach, and of which run on they are asked for.
    rounds : ndarray of int, shape (n,)
        Their durations.
    history : int
        The most that are returned of each.
    """
    submits = known["submit_s"].to_numpy(np.float64)
    ends = submits + known["run_s"].to_numpy(np.float64)
    before = np.stack([_before(kind, first) for kind in _kinds(known)])
    found = np.zeros((len(known) - begin, history), np.int64)
    _past_kernel(before, submits, ends, rounds, begin, LOOKED_AT * history, found)
    return found


def _kinds(known: pd.DataFrame) -> list[NDArray[np.int64]]:
    """Return the number of each run's kind, the narrowest first, each shape (n,); -1: it has none."""
    user, program = (pd.factorize(known[name])[0] for name in ("user", "executable"))
    width = pd.factorize(known["processors"])[0]
    named = (known["user"] != "").to_numpy()
    of_program = named & (known["executable"] != "").to_numpy()
    most_programs, most_widths = int(program.max(initial=0)) + 1, int(width.max(initial=0)) + 1
    return [
        np.where(of_program, user * most_programs + program, -1),
        np.where(named, user * most_widths + width, -1),
        width,
        np.zeros(len(known), np.int64),
    ]


def _before(kind: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return for each run the one before it of the same kind, from ``first`` on; -1: there is none."""
    own = first + np.flatnonzero(kind[first:] >= 0)
    order = own[np.argsort(kind[own], kind="stable")]
    found = np.full(kind.size, -1, np.int64)
    same = kind[order[1:]] == kind[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found


@njit(cache=True)
def _past_kernel(before, submits, ends, rounds, begin, looked_at, found):  # type: ignore[no-untyped-def]
    """Fill what the last runs of each kind took that had ended; ``before[k, i]`` is the run before i of kind k."""
    history = found.shape[1]
    for i in range(begin, submits.size):
        n = 0
        for kind in range(before.shape[0]):
            j = before[kind, i]
            for _ in range(looked_at):
                if j < 0 or n == history:
                    break
                if ends[j] <= submits[i]:
                    found[i - begin, n] = rounds[j]
                    n += 1
                j = before[kind, j]
            if n:
                break


@njit(cache=True)
def _blur_kernel(durations, longest, side, middle, values, weights):  # type: ignore[no-untyped-def]
    """Fill the values that past durations count at, as they come, and their weights; return how many there are."""
    n = 0
    for i in range(durations.size):
        d, times = durations[i], 0
        for j in range(durations.size):
            times += durations[j] == d
        for j in range(i):
            if durations[j] == d:
                times = 0  # counted before
        if not times:
            continue
        for at, share in ((max(4 * d // 5, 1), side), (d, middle), (min(d - (-d // 4), longest), side)):
            k = 0
            while k < n and values[k] != at:
                k += 1
            if k == n:
                values[n], weights[n] = at, 0.0
                n += 1
            weights[k] += share * times
    return n


@njit(cache=True)
def _laws_kernel(histories, longest, side, middle, ends, values, probabilities):  # type: ignore[no-untyped-def]
    """Fill the laws that follow from histories one behind the other, and where each ends."""
    size = 3 * histories.shape[1]
    found, weights, used = np.empty(size, np.int64), np.empty(size), 0
    for i in range(histories.shape[0]):
        n_past = np.count_nonzero(histories[i])
        n = _blur_kernel(histories[i, :n_past], longest, side, middle, found, weights)
        if n == 0:
            found[0], weights[0], n = longest, 1.0, 1
        total = 0.0
        for k in range(n):
            total += weights[k]
        begin = used
        for k in range(n):
            at = used  # a few values: each is put where it belongs
            while at > begin and values[at - 1] > found[k]:
                values[at], probabilities[at] = values[at - 1], probabilities[at - 1]
                at -= 1
            values[at], probabilities[at] = found[k], weights[k] / total
            used += 1
        ends[i] = used
