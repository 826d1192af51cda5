"""Small repeated markets whose best reports can be counted by hand."""

from marketsched.agents.job import Job
from marketsched.agents.learning import value_menu
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.study.learning.repeated_market import RepeatedMarket
from small_mechanisms import HighestBid


class HighestBidEachDay:
    """One node, one round: two bidders whose values are drawn from whole numbers, at a first or second price."""

    def __init__(self, rule):
        self.rule = rule

    def __call__(self, rng):
        return HighestBid(self.rule, horizon=1, rng=None)


def bidders(rng):
    values = rng.integers(1, 11, size=2)
    law = [(1, 1, 1.0)]
    return [
        Job(name, name, StatementOfWork(1, 1, DeadlineValue(float(v), 2), law), 1, 1, 1)
        for name, v in zip(("ann", "bob"), values, strict=True)
    ]


def bidding(rule, menu=None, **options):
    menu = value_menu((0.25, 0.5, 0.75)) if menu is None else menu
    factory = HighestBidEachDay(rule)
    return RepeatedMarket(
        rule, factory, bidders, ("ann", "bob"), capacity=1, horizon=1, max_delay=2, menu=menu, **options
    )


def recurring(**parts):
    """Return a scenario of one owner's twelve equal jobs, one a round, at pay-as-bid."""
    jobs = [
        {
            "name": f"j{t}",
            "owner": "ann",
            "birth": t,
            "concurrency": 1,
            "value": {"kind": "deadline", "value": 4, "deadline": t + 3},
            "requirements": [{"arrival": t, "duration": 1, "probability": 1}],
            "arrival": t,
            "duration": 1,
        }
        for t in range(1, 13)
    ]
    limits = {"capacity": 2, "horizon": 16, "max_concurrency": 1, "max_duration": 2, "max_value": 4, "max_delay": 6}
    return {
        "name": "learning",
        "workload": {"kind": "jobs", **limits, "jobs": jobs},
        "mechanism": {"name": "pay-as-bid"},
        **parts,
    }
