"""What a round of credits does, step by step and by hand: who leaves, who pays, whose nodes are taken, who starts."""

import numpy as np
import pytest

from marketsched.mechanisms.credits.departures import Usual
from marketsched.mechanisms.credits.present import DONE, JOB
from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.credits.service import prepay, serve_free, serve_regular
from marketsched.mechanisms.offers.departures import UNKNOWN_ROUNDS
from marketsched.mechanisms.offers.present import Rows
from marketsched.mechanisms.schedulers.turns import Accounts


def rows_of(*jobs):
    """Return jobs in order of arrival; a field that one does not name is 0."""
    present = Rows(JOB)
    for job in jobs:
        present.enter(tuple(job.get(name, 0) for name in JOB.names))
    return present


def purses_of(*credits):
    """Return the purses of owners 0, 1, ..., which hold so many credits."""
    purses = Purses(Accounts(owners=range(len(credits))), 8, 0.5, 100.0, 0.0)
    purses.held[:] = np.array(credits) * CREDIT
    return purses


def test_who_leaves_teaches_what_jobs_announce_and_how_much_of_it_is_true():
    present, usual = (
        rows_of(
            {"start": 2, "stop": 10, "mean": 6.0, "width": 5},  # its run is stopped now
            {"start": 2, "stop": 11, "mean": 50.0},
            {"last_start": 10, "mean": 50.0},  # it may still start
            {"last_start": 9, "mean": 2.0},
            {"start": 3, "stop": 90, "mean": 4.0, "width": 2, "band": 1, "state": DONE, "used": 3},
        ),
        Usual(),
    )
    first = present.turn[:5].tolist()
    assert usual.rounds.tolist() == [UNKNOWN_ROUNDS] * 5 and usual.kappa == 1.0
    assert usual.departed(present, 10).tolist() == [first[0], first[3], first[4]]
    assert present.turn[: present.n].tolist() == first[1:3]
    announced, jobs = 0.97 * 6 + 2, 0.97 + 1
    assert usual.rounds == pytest.approx(
        [announced / jobs, 4.0, *[(announced + 4) / (jobs + 1)] * 3]
    )  # unknown bands: of all
    assert usual.kappa == pytest.approx((0.98 + 2 * 3) / (0.98 + 2 * 4))  # of completed jobs alone
    before = usual.rounds.copy()
    assert usual.departed(present, 10).size == 0 and (usual.rounds == before).all()
    assert usual.departed(present, 11).tolist() == first[1:3] and present.n == 0


def test_a_regular_run_pays_its_nodes_or_goes_on_as_a_free_one():
    regular = {"start": 3, "since": 2, "width": 2}
    present = rows_of(regular, {**regular, "owner": 1}, regular, {"start": 3, "width": 2}, {"since": 2})
    purses = purses_of(3, 2)
    assert prepay(present, purses) == 1
    jobs = present.jobs[present.turn[:5]]
    assert jobs["since"].tolist() == [2, 2, 0, 0, 2] and jobs["paid"].tolist() == [2 * CREDIT, 2 * CREDIT, 0, 0, 0]
    assert purses.held.tolist() == [CREDIT, 0] and purses.spent.tolist() == [2 * CREDIT, 2 * CREDIT]


FREE = [{"start": 18, "width": 2}, {"start": 19, "width": 3}, {"start": 12, "width": 2}]


def taken_by(width=4, since=19, began=19, load=1.0, patience=5, behind=(), credits=9):
    """Return whose nodes are taken and who starts, by place, where a node is idle in round 20, and what was paid."""
    free = [FREE[0], {**FREE[1], "start": began}, FREE[2]]
    present = rows_of(*free, {"since": since, "width": width}, *behind)
    purses = purses_of(credits)
    place = {row: i for i, row in enumerate(present.turn[: present.n].tolist())}
    taken, started = serve_regular(present, 20, 1, purses, np.ones(5), load, patience)
    jobs = present.jobs[present.turn[: present.n]]
    assert all(jobs["start"][place[row]] == 0 and jobs["ran"][place[row]] == 1 for row in taken.tolist())
    assert all(jobs["start"][place[row]] == 20 for row in started.tolist())
    assert purses.spent[0] == jobs["paid"].sum() == credits * CREDIT - purses.held[0]
    found = [[place[row] for row in rows.tolist()] for rows in (taken, started)]
    return *found, int(jobs["paid"].sum()) // CREDIT, jobs["unpaid"].tolist()[3]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of the two that came last only the wider one has to go: 3 node-rounds are lost, of 1.5 x 4 that may be.
        ({}, ([1], [3], 4, 0)),
        ({"began": 18}, ([1], [3], 4, 0)),  # 6 of 6
        ({"began": 17}, ([], [], 0, 0)),  # 9
        ({"began": 17, "since": 15}, ([1], [3], 4, 0)),  # it has waited for as long as it has to
        ({"began": 17, "load": 1.1}, ([], [], 0, 0)),  # 1.5 x 1.331 x 4 are not 9
        ({"began": 17, "load": 1.2}, ([1], [3], 4, 0)),
        ({"began": 17, "load": 0.1}, ([], [], 0, 0)),
        # One of one node behind it adds 2 x 1.5, which makes 9; it starts later.
        ({"began": 17, "behind": [{"since": 19, "width": 1}], "credits": 4}, ([1], [3], 4, 0)),
        ({"began": 17, "behind": [{"since": 19, "width": 1, "start": 9}]}, ([], [], 0, 0)),
        ({"width": 1}, ([], [3], 1, 0)),  # it fits
        ({"width": 8, "since": 1}, ([2, 1, 0], [3], 8, 0)),  # all of them, the last first
        ({"width": 9, "since": 1}, ([], [], 0, 0)),  # not even with all
        ({"credits": 3, "since": 15}, ([], [], 0, 1)),  # it could take nodes, and cannot pay
        ({"credits": 3, "since": 16}, ([], [], 0, 0)),
    ],
)
def test_a_regular_job_takes_the_nodes_that_it_needs_if_little_is_lost(given, expected):
    assert taken_by(**given) == expected


def test_free_jobs_start_in_their_order_where_they_fit():
    present = rows_of(*({"width": width} for width in (1, 2, 2, 1, 1)))
    queue = present.turn[[1, 2, 3, 4, 0]]
    assert serve_free(present, 7, 3, queue).tolist() == queue[[0, 2]].tolist()
    assert present.jobs["start"][queue].tolist() == [7, 0, 7, 0, 0]
    assert serve_free(present, 7, 0, queue[:0]).size == 0
