"""What the papers' tables and figures add to the tables of `marketsched.mechanisms.registry`."""

ENTRIES = {
    "command": {"reproduce": "marketsched.papers.command:reproduce"},
    "experiments": {"mechanism": "marketsched.papers.mechanism", "hidden": "marketsched.papers.hidden"},
    "result": {
        "experiment": "marketsched.papers.experiment_kind:ExperimentKind",
        "reproduced": "marketsched.papers.experiment_kind:ReproducedKind",
    },
}
