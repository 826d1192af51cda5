"""Reports to the allocation cores: lies are legal and leave the truth alone; what is illegal is named."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from marketsched.cores.agents.games import play_out
from marketsched.cores.agents.reports import (
    ChannelReport,
    CoreLie,
    CorePublic,
    Honest,
    lies_for,
)
from marketsched.cores.audit.core_audit import core_lies_table
from marketsched.cores.audit.searching import search_core_lies
from marketsched.cores.audit.worlds import PublishedGames
from marketsched.mechanisms.allocation import OgaSched
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from refusals import refused
from small_core_games import one_job, two_channels, two_ports

PortWorld, ChannelWorld, JobWorld = (partial(PublishedGames, core) for core in ("ogasched", "esdp", "opm"))


def test_hidden_channels_are_the_crowded_ones_and_never_all():
    public = CorePublic(np.ones((4, 1)), 1, np.array([1, 4, 2, 3]))
    port = two_ports().truth(0)
    four = replace(port, channels=np.ones(4, dtype=bool))
    assert CoreLie("hidden edges", 0.5).report(four, public).channels.tolist() == [True, False, True, False]
    assert CoreLie("hidden edges", 0.99).report(four, public).channels.sum() == 1
    single = replace(port, channels=np.array([False, True, False, False]))
    assert CoreLie("hidden edges", 0.9).report(single, public).channels.tolist() == single.channels.tolist()
    own = ChannelReport(np.array([[1], [3], [2]]), np.ones(3, dtype=bool))
    assert CoreLie("hidden edges", 0.3).report(own, public).offered.tolist() == [True, False, True]


def test_requests_stay_between_what_does_something_and_what_there_is():
    public = CorePublic(np.array([3.0, 3.0]), 1, np.zeros(0, dtype=np.int64))
    own = ChannelReport(np.array([[1, 0], [3, 2]]), np.ones(2, dtype=bool))
    assert CoreLie("requests", -2).report(own, public).requests.tolist() == [[1, 0], [1, 1]]
    assert CoreLie("requests", 1).report(own, public).requests.tolist() == [[2, 1], [3, 3]]


def test_lies_never_change_the_truth():
    for game in (PortWorld()(1), ChannelWorld()(1), JobWorld()(1)):
        before = repr(game.truth(0))
        for lie in lies_for(game.core.name):
            lie.report(game.truth(0), game.public)
        assert repr(game.truth(0)) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda: CoreLie("budget", 2.0).report(two_ports().truth(0), two_ports().public),
        lambda: CoreLie("requirements", 2.0).report(one_job().truth(0), one_job().public),
        lambda: CoreLie("requests", 1).report(two_ports().truth(0), two_ports().public),
        lambda: play_out(two_ports(), {0: one_job().truth(0)}),
        lambda: play_out(two_ports(), {0: replace(two_ports().truth(0), requirements=np.array([-1.0]))}),
        lambda: play_out(two_ports(), {0: replace(two_ports().truth(0), channels=np.array([False]))}),
        lambda: play_out(two_ports(), {0: replace(two_ports().truth(0), worth=1e-9)}),
        lambda: play_out(two_channels(), {0: replace(two_channels().truth(0), requests=np.array([[4]]))}),
        lambda: play_out(two_channels(), {0: replace(two_channels().truth(0), requests=np.array([[1, 1]]))}),
        lambda: play_out(
            two_channels(), {i: replace(two_channels().truth(i), offered=np.array([False])) for i in (0, 1)}
        ),
        lambda: play_out(one_job(), {0: two_ports().truth(0)}),
        lambda: play_out(one_job(), {0: ()}),
        lambda: play_out(one_job(), {0: (replace(one_job().truth(0)[0], deadline=0),)}),
        lambda: play_out(one_job(), {0: (replace(one_job().truth(0)[0], arrival=1),)}),
    ],
)
def test_illegal_reports_are_refused(call):
    refused(call, "expected", error=InvalidReportError)


@pytest.mark.parametrize(
    "call",
    [
        lambda: play_out(two_ports(), {2: two_ports().truth(0)}),
        lambda: play_out(two_ports(payment="capacity prices"), {}),
        lambda: play_out(two_ports(lambda c, t: OgaSched(c, t, peek=True), payment="capacity prices"), {}),
        lambda: two_ports(slots=0),
        lambda: PortWorld("best")(0),
        lambda: PortWorld()(-1),
        lambda: CoreLie("requests", 0.5),
        lambda: search_core_lies(PortWorld(), []),
        lambda: search_core_lies(PortWorld(), [Honest()]),
        lambda: search_core_lies(PortWorld(), owner=6),
        lambda: core_lies_table([]),
    ],
)
def test_bad_parameters_are_named(call):
    refused(call, "expected", error=InvalidParameterError)
