"""The jobs of a market of credits that are present, as columns.

Of a job that is present the rules use, for others, its nodes, its class (regular or free), its turn, whose it is, and
whether and since when it runs. What else it reported decides about its own owner's jobs: ``important`` and ``mean``
(which of them are regular, and their order), and ``rest``, ``last`` and ``last_start`` (when it is late, what it will
cost, and when it leaves).
"""

from __future__ import annotations

import numpy as np

HERE, DONE = 0, 1

JOB = np.dtype(
    [
        ("owner", "i8"),  # number, as of `Accounts`
        ("width", "i8"),  # nodes
        ("band", "i8"),  # of its width, as of `offers.present.band_of`
        ("arrival", "i8"),
        ("last", "i8"),  # D, the last completion worth half of its value or more
        ("last_start", "i8"),  # it leaves if it waits afterwards
        ("mean", "f8"),  # m, announced, rounds
        ("rest", "f8"),  # the same of what is left: less than m once some of its work is saved
        ("important", "f8"),  # beside the owner's other jobs
        ("start", "i8"),  # first round of its run; 0: it waits
        ("stop", "i8"),  # the round in which its run is stopped
        ("ran", "i8"),  # how many runs of it were taken back
        ("since", "i8"),  # the round since which it is regular; 0: it is free
        ("unpaid", "i8"),  # rounds in which it could take nodes of any free run, but its owner could not pay
        ("paid", "i8"),  # by its owner for its regular rounds, millionths of a credit
        ("state", "i8"),  # HERE; DONE: it is completed, and teaches when the next round is cleared
        ("used", "i8"),  # DONE: rounds of its run, and those saved before
    ]
)
