"""The relaxed problem played out: jobs choose from a relaxed algorithm's menu, nothing ever fails."""

import numpy as np

from marketsched.mechanisms.limits import last_useful_completion
from marketsched.mechanisms.posted.launch_plan import Terms, choose_starts


def best_plan(relaxed, sow, horizon, max_delay):
    """Return the starts per case that maximise (10), and the values of every start."""
    law = sow.law
    first, longest = int(law.arrivals[0]), int(law.durations.max())
    last = last_useful_completion(sow, max_delay, horizon)
    n_starts = max(0, last - int(law.durations.min()) - first + 1)
    values = sow.value.table(first, n_starts + longest)
    values[max(0, last + 1 - first) :] = 0.0
    prices, on_sale = relaxed.price_table(sow.concurrency, first, n_starts, longest)
    choice = choose_starts(
        law,
        Terms(values, prices, on_sale, np.zeros((n_starts, longest))),
        now=first,
        first_start=first,
        horizon=horizon,
        threshold=0.0,
        tolerance=1e-12,
    )
    return choice.starts


def worthwhile_plan(relaxed, sow, horizon, max_delay, rng):
    """Return a switched plan: any start worth its price, or none, at random (durations revealed)."""
    law, starts = sow.law, []
    for arrival, d in zip(law.arrivals.tolist(), law.durations.tolist(), strict=True):
        last = last_useful_completion(sow, max_delay, horizon)
        prices, _ = relaxed.price_table(sow.concurrency, arrival, max(0, last - d - arrival + 1), d)
        legal = [arrival + i for i in range(len(prices)) if sow.value(arrival + i + d) >= prices[i, d - 1]]
        starts.append(int(rng.choice([-1, *legal])))
    return np.array(starts)


def take(relaxed, sow, starts):
    """Force a plan on the relaxed algorithm; return its expected value and payment."""
    law, value, payment = sow.law, 0.0, 0.0
    for s, d, w in zip(starts.tolist(), law.durations.tolist(), law.probabilities.tolist(), strict=True):
        if s >= 0:
            value += w * sow.value(s + d)
            payment += w * relaxed.price_table(sow.concurrency, s, 1, d)[0][0, d - 1]
    relaxed.commit(sow.concurrency, starts, law.durations, law.probabilities)
    return value, payment
