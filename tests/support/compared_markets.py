"""Markets so small that what mechanisms earn in them can be said beforehand, and a log of three users."""

JOB = {
    "birth": 1,
    "concurrency": 1,
    "value": {"kind": "deadline", "value": 4, "deadline": 2},
    "requirements": [{"arrival": 1, "duration": 1, "probability": 1}],
}
SIX_FOR_FIVE = {  # worked example W4 (a): four of six are served at exponential prices, five could be
    "name": "six for five",
    "workload": {
        "kind": "jobs",
        "capacity": 5,
        "horizon": 6,
        "max_concurrency": 1,
        "max_duration": 2,
        "max_value": 4,
        "max_delay": 6,
        "jobs": [{"name": f"job {i}", **JOB} for i in range(6)],
    },
}


def one(name, value, birth=1, duration=1, nodes=1, deadline=None, **point):
    return {
        "name": name,
        "birth": birth,
        "concurrency": nodes,
        "value": {"kind": "deadline", "value": value, "deadline": deadline or birth + duration},
        "requirements": [{"arrival": birth, "duration": duration, "probability": 1, **point}],
    }


def market(jobs, capacity=1, **more):
    sizes = {"horizon": 12, "max_concurrency": 1, "max_duration": 4, "max_value": 50, "max_delay": 12}
    return {"name": "small", "workload": {"kind": "jobs", "capacity": capacity, **sizes, **more, "jobs": jobs}}


# Each of six jobs, of different worth, comes with probability one half; only round 1 is left to it.
MAYBE = {
    **market([one(f"job {i}", 4 - i / 2, probability=0.5) for i in range(6)], 2, horizon=6, max_delay=6),
    "name": "perhaps six for two",
    "mechanism": {"pricing": {"kind": "posted", "prices": [1.0]}},
}
# Four rounds of work come in rounds 1 and 2. On one node a long job keeps a valuable short one out, unless the
# price is 2 or more.
LONG_AND_SHORT = market([one("long", 8, duration=4), one("short", 30, birth=2)])
PERHAPS = {
    **market([one(f"job {i}", 4 - i / 6, 1 + i // 9, probability=0.6, deadline=3 + i // 9) for i in range(18)], 2),
    "name": "perhaps eighteen",
}


def three_users():
    """Return a log of three users: two of many jobs, one of a single job, on two nodes."""
    rows = ["submit_s,run_s,processors,user"]
    rows += [f"{600 * i},{600 * (1 + i % 3)},{1 + i % 2},{'ab'[i % 2]}" for i in range(40)]
    return "\n".join([*rows, "3000,600,1,c"]) + "\n"
