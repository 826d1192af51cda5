"""Rounds in which no job of a market of credits moves: up to which one, and what they change.

While nobody comes or ends, no run starts on nodes that are too few, regular runs go on while their owners can pay, and
a waiting job stays free until it is late, or its owner can pay for it.
"""

from __future__ import annotations

import math

import numpy as np

from marketsched.mechanisms.credits.purses import CREDIT, Purses, income_kernel
from marketsched.mechanisms.credits.service import prepay_kernel
from marketsched.mechanisms.credits.upgrades import needed_kernel
from marketsched.mechanisms.kernel_cache import kernel_over
from marketsched.mechanisms.offers.present import Rows
from marketsched.mechanisms.schedulers.turns import Turns

LAST = 2**62  # a round
_compiled = kernel_over(income_kernel, prepay_kernel, needed_kernel)


def unchanged_until(
    present: Rows, now: int, idle: int, purses: Purses, kappa: float, margin: float, late: float
) -> int:
    """Return a round before which nothing moves if no job comes or ends, as of `ArrivalMarket.unchanged_until`.

    ``purses`` are those before the income of round ``now``; ``kappa`` and ``margin`` those of `upgraded`, ``late`` that
    of `Spans`.
    """
    return int(_unchanged_kernel(present.in_turn, now, idle, purses.all_balances, CREDIT, kappa, margin, late))


def pass_rounds(present: Rows, count: int, purses: Purses, turns: Turns) -> None:
    """Let so many rounds go by: incomes, fading use, payments of regular runs and the use of free ones."""
    _pass_kernel(present.in_turn, count, purses.all_balances, CREDIT, turns.used, turns.kept)


@_compiled
def _unchanged_kernel(present, now, idle, balances, credit, kappa, margin, slack):  # type: ignore[no-untyped-def]
    (jobs, turn), (held, _, _, _, incomes, caps) = present, balances
    owner, width, start, since = jobs["owner"], jobs["width"], jobs["start"], jobs["since"]
    until, paying, needed = LAST, np.zeros(held.size, np.int64), np.zeros(held.size)
    for i in range(turn.size):
        j = turn[i]
        waits = start[j] == 0
        if jobs["state"][j] != 0 or (waits and (since[j] > 0 or width[j] <= idle)):
            return now
        until = min(until, jobs["last_start"][j] + 1 if waits else jobs["stop"][j])
        if not waits and since[j] > 0:
            paying[owner[j]] += width[j] * credit
    for o in range(held.size):
        if paying[o] > 0:
            if caps[o] < paying[o]:
                return now
            if paying[o] > incomes[o]:  # the first income may be cut at the cap
                until = min(until, now + min(held[o], caps[o] - incomes[o]) // (paying[o] - incomes[o]))
    summed = False
    for i in range(turn.size):
        j, o = turn[i], owner[turn[i]]
        if start[j] > 0:
            continue
        late = math.ceil(jobs["last"][j] - jobs["rest"][j] * (1.0 + margin) - slack - 1e-9)
        if late > now:
            until = min(until, late)
            continue
        if not summed:
            summed = True
            needed_kernel(present, now, kappa, needed)
        missing = width[j] * jobs["rest"][j] * kappa + needed[o] - held[o] / credit
        income = incomes[o] / credit
        if missing <= income + 1e-6:  # it may be able to pay; whether it is important enough is seen then
            return now
        if income > 0:
            until = min(until, now + int(min((missing - 1e-6) / income, 1e9)) - 1)
    return max(now, until)


@_compiled
def _pass_kernel(present, count, balances, credit, used, kept):  # type: ignore[no-untyped-def]
    jobs, turn = present
    for _ in range(count):
        income_kernel(balances)
        used *= kept
        prepay_kernel(present, balances[:2], credit)
        for i in range(turn.size):
            j = turn[i]
            if jobs["start"][j] > 0 and jobs["since"][j] == 0:
                used[jobs["owner"][j]] += jobs["width"][j]
