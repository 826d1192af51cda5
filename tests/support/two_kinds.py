"""A scenario of two kinds of nodes, and jobs that run on either."""

CLUSTER = {
    "resources": {"cpu": {"parts": 1000}, "gpu": {"device": True, "parts": 1000}},
    "groups": [
        {"name": "a", "kind": "a100", "nodes": 1, "each": {"cpu": 8, "gpu": 2}},
        {"name": "v", "kind": "v100", "nodes": 2, "each": {"cpu": 4, "gpu": 1}},
    ],
}
EITHER = [{"each": {"cpu": 2, "gpu": 1}, "on": {"a100": 2, "v100": 4}}]
SCENARIO = {
    "name": "two kinds",
    "workload": {
        "kind": "cluster-mix", "cluster": CLUSTER, "per_round": 1.5, "rounds": 10,
        "sorts": [{"name": "either", "value": 8.0, "patience": 6, "shapes": EITHER}],
    },
}  # fmt: skip
