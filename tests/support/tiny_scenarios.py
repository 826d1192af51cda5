"""A scenario of three listed jobs, and what is built from it."""

import copy

import numpy as np

from marketsched import Scenario

TINY = {
    "name": "tiny",
    "workload": {
        "kind": "jobs",
        "capacity": 2,
        "horizon": 12,
        "max_concurrency": 2,
        "max_duration": 3,
        "max_value": 8,
        "max_delay": 9,
        "jobs": [
            {
                "name": "A",
                "owner": "ann",
                "birth": 1,
                "concurrency": 1,
                "value": {"kind": "deadline", "value": 6, "deadline": 8},
                "requirements": [
                    {"arrival": 2, "duration": 2, "probability": 0.5},
                    {"arrival": 3, "duration": 2, "probability": 0.5},
                ],
                "arrival": 3,
                "duration": 2,
            },
            {
                "name": "B",
                "owner": "ben",
                "birth": 1,
                "concurrency": 2,
                "value": {"kind": "table", "values": {4: 8, 5: 6.5}},
                "requirements": [{"arrival": 2, "duration": 2, "probability": 1}],
            },
            {
                "name": "C",
                "owner": "cid",
                "birth": 2,
                "concurrency": 1,
                "value": {"kind": "linear", "value": 4, "from": 5, "slope": 1, "deadline": 9},
                "requirements": [{"arrival": 3, "duration": 3, "probability": 0.9}],
                "arrival": None,
            },
        ],
    },
    "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}},
}


def tiny(**changes):
    """Return TINY with ``workload__jobs__0__birth=3`` and the like changed."""
    data = copy.deepcopy(TINY)
    for path, value in changes.items():
        here = data
        *above, last = [int(x) if x.isdigit() else x for x in path.split("__")]
        for step in above:
            here = here[step]
        here[last] = value
    return data


def setup(data, seed=0):
    return Scenario.from_dict(data).setup(np.random.default_rng(seed))
