"""Gang scheduling over channels: all or nothing, per server, exact against brute force."""

import itertools

import numpy as np
import pytest

from marketsched.mechanisms import InvalidParameterError, TooLargeError
from marketsched.mechanisms.allocation import (
    ChannelEnvironment,
    GangChannels,
    GangEsdp,
    RecordedArrivals,
    RecordedUtilities,
    TrueMeanOracle,
    play_slots,
)
from marketsched.mechanisms.allocation.esdp.gang import GangProblem


def draw_gang(rng, most=9):
    """Return a small random gang cluster in random order of placements."""
    n_ports, n_servers, n_types = rng.integers(1, 4), rng.integers(1, 3), rng.integers(1, 3)
    tasks = rng.integers(1, 4, n_ports)
    places = [p for p in itertools.product(range(n_ports), range(3), range(n_servers)) if p[1] < tasks[p[0]]]
    places = rng.permutation(places)[:most]
    ports, which, servers = places.T
    capacities = rng.integers(1, 4, (n_servers, n_types))
    requests = np.minimum(rng.integers(0, 3, (len(places), n_types)), capacities[servers])
    there = [len(set(which[ports == port])) for port in range(n_ports)]
    return GangChannels(requests, capacities, ports, which, servers, [rng.integers(0, n + 1) for n in there])


def allowed(gang, selected, arrivals=None):
    """Return whether a selection keeps the rules, written out without the package."""
    for server, capacity in enumerate(gang.server_capacities):
        here = selected & (gang.servers == server)
        if (gang.requests[here].sum(axis=0) > capacity).any():
            return False
    for port, minimum in enumerate(gang.minimum):
        tasks = gang.tasks[selected & (gang.ports == port)].tolist()
        if len(tasks) != len(set(tasks)) or 0 < len(tasks) < minimum:
            return False
        if tasks and arrivals is not None and not arrivals[port]:
            return False
    return True


def all_allowed(gang):
    every = (np.array(x) for x in itertools.product((False, True), repeat=gang.n_channels))
    return np.array([x for x in every if allowed(gang, x)])


def check_tables(rng, n_instances, most):
    for i in range(n_instances):
        gang = draw_gang(rng, most)
        n = gang.n_channels
        values, gains = rng.integers(0, 5, n), rng.integers(0, 15, n).astype(float)
        unseen = rng.random(n) < 0.3 * (i % 2)
        table = GangProblem(gang).solve(values, gains, 15, unseen=unseen)
        every = all_allowed(gang)
        pairs = list(zip(every @ unseen.astype(int), every @ np.where(unseen, 0, gains), strict=True))
        for s in range(16):
            best = max((p for p, v in zip(pairs, every @ values, strict=True) if v >= s), default=(-1, -np.inf))
            assert (table.unseen[s], table.finite[s]) == best
            x = table.selection(s)
            if best[0] < 0:
                assert not x.any()
            else:
                assert allowed(gang, x)
                assert values[x].sum() >= s
                assert (unseen[x].sum(), gains[x & ~unseen].sum()) == best


@pytest.mark.compiled
def test_every_budget_equals_brute_force():
    check_tables(np.random.default_rng(2), 80, 9)


def test_rules_agree_with_those_written_out():
    rng = np.random.default_rng(4)
    for _ in range(60):
        gang = draw_gang(rng)
        for _ in range(10):
            selected, arrivals = rng.random(gang.n_channels) < 0.4, rng.random(gang.n_ports) < 0.7
            assert (gang.violation(selected, arrivals) is None) == allowed(gang, selected, arrivals)
            assert gang.fits(selected) == allowed(gang, selected)


@pytest.mark.parametrize("arrivals", ["zero", "plan"])
def test_a_run_keeps_all_rules_and_never_beats_the_oracle(arrivals):
    rng = np.random.default_rng(5)
    gang = draw_gang(rng)
    source = RecordedUtilities(rng.random((gang.n_channels, 50)), rng)
    came = RecordedArrivals((rng.random((60, gang.n_ports)) < 0.8).astype(int))
    world = ChannelEnvironment(gang, came, source, TrueMeanOracle(gang, source.means))
    record = play_slots(GangEsdp(gang, exploration="log", arrivals=arrivals), world)
    assert (record["regret"] >= -1e-12).all()


def test_the_oracle_is_exact():
    rng = np.random.default_rng(6)
    for _ in range(15):
        gang = draw_gang(rng, 6)
        means, arrivals = rng.random(gang.n_channels), rng.random(gang.n_ports) < 0.7
        best = max(means[x].sum() for x in all_allowed(gang) if allowed(gang, x, arrivals))
        assert TrueMeanOracle(gang, means).value(arrivals) == pytest.approx(best, rel=1e-12)


GOOD = {
    "requests": [[1], [1]],
    "capacities": [[1], [1]],
    "ports": [0, 0],
    "tasks": [0, 1],
    "servers": [0, 1],
    "minimum": [2],
}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"requests": [[1], [2]]}, "above the 1 of server 1"),
        ({"servers": [0, 2]}, "servers has 2"),
        ({"minimum": [3]}, r"minimum\[0\] = 3: expected at most the port's 2 tasks"),
        ({"tasks": [0, 0], "servers": [1, 1], "minimum": [1]}, "agree"),
        ({"minimum": []}, "n_ports"),
        ({"capacities": [1, 1]}, "capacities has shape"),
    ],
)
def test_bad_clusters_are_named(wrong, said):
    with pytest.raises(InvalidParameterError, match=said):
        GangChannels(**{**GOOD, **wrong})


def test_a_table_of_many_servers_says_how_large():
    n = 40
    with pytest.raises(TooLargeError, match="capacity vectors"):
        GangEsdp(GangChannels([[1, 1]] * n, [[3, 3]] * n, [0] * n, range(n), range(n), [2]))
