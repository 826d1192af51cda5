"""Two names that decide alike are one mechanism too many."""

from collections import defaultdict

import pytest

from credit_markets import HORIZON, SIZES, drawn_jobs, played
from marketsched.mechanisms import get_mechanism, legal, mechanism_names, registry

ALIKE = {  # and why they may be
    ("exponential", "posted-price"),  # the first is the second with its default prices, by the name of the paper
    ("cluster-queue", "first-come"),  # jobs on identical nodes; the one is for shapes on kinds of nodes
}
NODES = 9  # one more than the widest job: exponential prices need room


def decisions(name, seeds=(0, 1)):
    """Return all events of crowded markets of owners with hidden durations."""
    of_owners = "owners" in legal.parameters_of(registry.get("mechanism", name))
    found = []
    for jobs in (drawn_jobs(seed, n=80) for seed in seeds):
        owners = {"owners": sorted({job.owner for job in jobs})} if of_owners else {}
        found.append(repr(played(get_mechanism(name, capacity=NODES, horizon=HORIZON, **SIZES, **owners), jobs)))
    return tuple(found)


def is_ours(name):
    """Tell whether the package defines a mechanism, and not one of the tests."""
    return getattr(registry.get("mechanism", name), "__module__", "").startswith("marketsched.")


@pytest.mark.slow
def test_no_two_names_decide_alike():
    groups = defaultdict(list)
    for name in set(mechanism_names()) - {"stochastic"}:  # its prices need the laws of all jobs
        if is_ours(name):
            groups[decisions(name)].append(name)
    assert {tuple(sorted(names)) for names in groups.values() if len(names) > 1} == ALIKE
