"""Markets made of a recorded trace: a tiny trace by hand, and the real one against its known figures."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from marketsched.agents.resubmission import covered
from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError, TraceError
from marketsched.mechanisms.values import DeadlineValue, LinearValue
from marketsched.worlds import GoogleParameters, google_recurring, saturated
from marketsched.worlds.demand import demand_of, nodes_of
from marketsched.worlds.google import SATURATED
from tiny_trace import DEMAND_HEADER, JOBS_HEADER, tiny_trace

ONE_DAY = GoogleParameters(first_day=0, days=1)


def test_a_tiny_trace(tmp_path):
    market = google_recurring(tiny_trace(tmp_path), rng=np.random.default_rng(1), parameters=ONE_DAY)
    assert (market.birth_rounds, market.horizon, market.max_delay) == (288, 432, 24 + 48 + 1 + 48 + 1)
    assert (market.max_concurrency, market.max_duration, market.max_value) == (4, 48, 7680.0)
    by_group = {name: [job for job in market.jobs if job.tags["group"] == name] for name in ("u7-g3", "u8-g4")}
    assert len(market.jobs) == sum(map(len, by_group.values()))
    # Announced with the run before, at 600 + 3600 k < 86,400 for k = 5 .. 23 (five gaps are needed).
    assert [job.name for job in by_group["u7-g3"]] == [f"u7-g3-r{k}" for k in range(6, 25)]
    assert [job.name for job in by_group["u8-g4"]] == [f"u8-g4-r{k}" for k in range(6, 25)]
    births = [job.truth.birth for job in market.jobs]
    assert births == sorted(births) and births[0] == 18_600 // 300 + 1


def test_the_first_statement_by_hand(tmp_path):
    market = google_recurring(tiny_trace(tmp_path), rng=np.random.default_rng(1), parameters=ONE_DAY)
    job = market.jobs[0]
    assert (job.name, job.owner, job.arrival, job.duration, job.signal) == ("u7-g3-r6", "u7", 75, 1, 1)
    truth = job.truth
    assert (truth.birth, truth.concurrency) == (63, 2)
    # Arrival 74, 75, 76: .1 .8 .1; duration 1, 2: .9 .1; each 95 % plus 5 % spread evenly.
    a, d = np.array([0.095, 0.76, 0.095]) + 0.05 / 3, np.array([0.855, 0.095]) + 0.025
    assert truth.law.arrivals.tolist() == [74, 74, 75, 75, 76, 76]
    assert truth.law.durations.tolist() == [1, 2] * 3
    assert truth.law.probabilities == pytest.approx(np.outer(a, d).ravel())
    assert truth.revealed and truth.mass == pytest.approx(1)
    # Round 75 + 95 % duration 2 + 1 + slack 48; two nodes for 1.12 rounds
    assert job.tags["deadline"] == 126 and not job.tags["deadline_cut"]
    assert truth.value == DeadlineValue(job.tags["value_density"] * 2 * 1.12, 126)
    assert job.tags["band"] == "production" and 1 <= job.tags["value_density"] <= 40
    assert job.tags["covered"] and not job.tags["early"] and not job.tags["borrowed_demand"]


def test_borrowed_demand_and_falling_value(tmp_path):
    market = google_recurring(tiny_trace(tmp_path), rng=np.random.default_rng(1), parameters=ONE_DAY)
    job = next(job for job in market.jobs if job.name == "u8-g4-r6")
    assert job.tags["borrowed_demand"] and job.tags["class"] == 2
    assert job.truth.concurrency == 2 and job.tags["band"] == "production"  # there is only one to copy
    # 1,400 s: 5 rounds, predicted 4, 5, 7; due in 24,000 s: round 81; 95 % duration 7, slack 6
    assert job.duration == 5 and job.tags["deadline"] == 81 + 7 + 1 + 6
    curve = job.truth.value
    assert isinstance(curve, LinearValue)
    assert curve(89) == curve.highest and curve(95) == pytest.approx(curve.highest / 2) and curve(96) == 0
    assert curve(92) == pytest.approx(0.75 * curve.highest)


def test_a_late_run_is_not_foreseen(tmp_path):
    """Its 20th run comes 40 min late, outside the law; so is the next, which is expected an hour after it."""
    market = google_recurring(tiny_trace(tmp_path, late=2400.0), rng=np.random.default_rng(1), parameters=ONE_DAY)
    jobs = {job.name: job for job in market.jobs}
    assert [name for name, job in jobs.items() if not job.tags["covered"]] == ["u7-g3-r20", "u7-g3-r21"]
    late, follower = jobs["u7-g3-r20"], jobs["u7-g3-r21"]
    assert late.arrival == (600 + 3600 * 20 + 2400) // 300 + 1
    assert follower.truth.birth == late.arrival and follower.arrival == late.arrival + 4
    assert not follower.tags["early"]  # not before it was announced, but before anything the law allows
    assert follower.truth.law.arrivals.min() == late.arrival + 11


def test_hidden_durations(tmp_path):
    parameters = replace(SATURATED, first_day=0, days=1)
    market = saturated(tiny_trace(tmp_path, late=2400.0), rng=np.random.default_rng(1), parameters=parameters)
    assert market.max_delay == 0 + 48 + 1 + 48 + 1 and market.capacity == 66
    job = market.jobs[0]
    assert job.signal is None and not job.truth.revealed
    assert set(job.truth.law.group_signals) == {None}
    # not announced: born when due, or when it comes if that is earlier; (21) comes 40 min before it is due
    jobs = {job.name: job for job in market.jobs}
    assert jobs["u7-g3-r21"].tags["early"] and jobs["u7-g3-r21"].truth.birth == jobs["u7-g3-r21"].arrival
    assert jobs["u7-g3-r21"].truth.law.group_arrivals.tolist() == [jobs["u7-g3-r21"].arrival]
    assert not jobs["u7-g3-r20"].tags["covered"]


def test_a_job_may_last_longer_than_foreseen_when_durations_are_hidden(tmp_path):
    """The pair is outside the law, the arrival is not: nothing to submit again."""
    tiny_trace(tmp_path)
    table = pd.read_csv(tmp_path / "google2011_jobs_29d.csv")
    run = (table["user"] == 7) & (table["submit_s"] == 600 + 3600 * 10)
    table.loc[run, "run_s"] = 5000.0  # 17 rounds; the law allows for 1 and 2
    table.to_csv(tmp_path / "google2011_jobs_29d.csv", index=False)
    for build, expected in ((google_recurring, False), (saturated, True)):
        parameters = replace(ONE_DAY, durations="revealed" if build is google_recurring else "hidden")
        jobs = build(tmp_path, rng=np.random.default_rng(1), parameters=parameters).jobs
        (job,) = [job for job in jobs if job.name == "u7-g3-r10"]
        assert job.duration == 17 and job.tags["covered"] is expected is covered(job)


def test_deadlines_never_exceed_the_announced_delay(tmp_path):
    """A run that comes 12 h before it is due: its deadline is cut, and says so."""
    rows = [f"1,1,0,{600 + 86_400 * k},0.0,250.0,4" for k in range(24)]
    rows[-1] = f"1,1,0,{600 + 86_400 * 22 + 43_200},0.0,250.0,4"
    (tmp_path / "google2011_jobs_29d.csv").write_text("\n".join([JOBS_HEADER, *rows]) + "\n")
    demand = [f"{i},1,1,0,2,{600 + i},0.0,250.0,4,1,0.0,0.01,0.0,0" for i in range(5)]
    (tmp_path / "google2011_jobs_demand_19h.csv").write_text("\n".join([DEMAND_HEADER, *demand]) + "\n")
    parameters = GoogleParameters(first_day=22, days=1)
    (job,) = google_recurring(tmp_path, rng=np.random.default_rng(0), parameters=parameters).jobs
    assert job.tags["early"] and job.arrival == job.truth.birth
    assert job.tags["deadline_cut"] and job.tags["deadline"] == job.truth.birth + 121
    assert job.truth.value(job.truth.birth + 121) > 0 == job.truth.value(job.truth.birth + 122)


def test_same_seed_same_market(tmp_path):
    tiny_trace(tmp_path)
    one, same, other = (google_recurring(tmp_path, rng=np.random.default_rng(s), parameters=ONE_DAY) for s in (3, 3, 4))
    assert one == same
    assert one != other
    for left, right in zip(one.jobs, other.jobs, strict=True):  # only values are drawn here
        assert left.truth.law.probabilities.tolist() == right.truth.law.probabilities.tolist()
        assert (left.arrival, left.duration) == (right.arrival, right.duration)
        assert left.tags["value_density"] != right.tags["value_density"] or left.tags["value_density"] in (1, 40)


def test_load_and_peak_by_hand(tmp_path):
    market = google_recurring(tiny_trace(tmp_path), rng=np.random.default_rng(3), parameters=ONE_DAY)
    assert market.load == pytest.approx(19 * (2 * 1 + 2 * 5) / (125 * 288))
    assert market.peak == pytest.approx(2 / 125)  # from minute 10 for 5, from minute 40 for 25: never both
    nobody = replace(market, jobs=tuple(replace(job, arrival=None) for job in market.jobs))
    assert nobody.load == nobody.peak == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"capacity": 3}, "capacity = 3: expected at least max_concurrency = 4"),
    ],
)
def test_bad_parameters(wrong, said):
    with pytest.raises(InvalidParameterError, match=said):
        GoogleParameters(**wrong)


def test_days_without_jobs(tmp_path):
    parameters = GoogleParameters(first_day=20)
    with pytest.raises(InvalidParameterError, match=r"first_day = 20, days = 2: no recurring job .* ends on day 1.24"):
        google_recurring(tiny_trace(tmp_path), rng=np.random.default_rng(0), parameters=parameters)


def test_missing_and_malformed_files(tmp_path):
    with pytest.raises(MissingDataError, match=r"google2011_jobs_29d\.csv\.gz"):
        google_recurring(tmp_path, rng=np.random.default_rng(0))
    tiny_trace(tmp_path)
    demand = tmp_path / "google2011_jobs_demand_19h.csv"
    demand.write_text(demand.read_text() + "5,7,3,0,9,600.0\n")
    with pytest.raises(TraceError, match=r"demand_19h.csv:7: 6 fields"):
        google_recurring(tmp_path, rng=np.random.default_rng(0), parameters=ONE_DAY)


# --- demand -----------------------------------------------------------------------------------------


def test_nodes_of_a_request():
    tasks = np.array([1, 1, 2, 10, 11, 1, 3])
    cpu = np.array([0.0, 0.0625, 0.0625, 0.00625, 0.00625, 0.0626, 0.5])
    assert nodes_of(tasks, cpu, 4).tolist() == [1, 1, 2, 1, 2, 2, 4]


def demand_table(rows):
    """Return a table of demands from (user, group, class, priority, tasks, cpu, number of rows)."""
    columns = ["user", "group", "sched_class", "priority", "n_tasks", "cpu_req"]
    return pd.DataFrame([row[:6] for row in rows for _ in range(row[6])], columns=columns)


def test_demand_is_borrowed_inside_the_class():
    recorded = demand_table(
        [(1, 1, 0, 0, 1, 0.0625, 5), (1, 2, 0, 9, 2, 0.0625, 6), (1, 3, 1, 2, 3, 0.0625, 5), (1, 4, 0, 1, 4, 0.0625, 4)]
    )
    unknown = pd.DataFrame({"user": 2, "group": np.arange(400), "sched_class": [0, 1] * 200})
    found = demand_of(unknown, recorded, 4, np.random.default_rng(0))
    assert found.borrowed.all()
    assert set(found.concurrency[1::2]) == {3} and set(found.priority[1::2]) == {2}  # class 1 has one donor
    assert set(zip(found.concurrency[::2].tolist(), found.priority[::2].tolist(), strict=True)) == {(1, 0), (2, 9)}
    assert 60 < (found.concurrency[::2] == 1).sum() < 140  # both of 200 alike; four rows do not make a donor
    assert sorted(set(found.band.tolist())) == [0, 1, 2]


def test_a_class_without_donors_borrows_from_all():
    recorded = demand_table([(1, 1, 0, 0, 3, 0.0625, 5)])
    found = demand_of(
        pd.DataFrame({"user": [2], "group": [1], "sched_class": [3]}), recorded, 4, np.random.default_rng(0)
    )
    assert found.concurrency.tolist() == [3]


def test_borrowing_needs_a_donor():
    recorded = demand_table([(1, 1, 0, 0, 3, 0.0625, 4)])
    known = pd.DataFrame({"user": [1], "group": [1], "sched_class": [0]})
    assert demand_of(known, recorded, 4, np.random.default_rng(0)).concurrency.tolist() == [3]
    with pytest.raises(InvalidParameterError, match="1 recurring jobs have no demand"):
        demand_of(known.assign(user=5), recorded, 4, np.random.default_rng(0))


def test_a_choice_stays_when_another_job_finds_its_demand():
    donors = [(1, g, 0, 0, g, 0.0625, 5) for g in (1, 2, 3, 4)]
    groups = pd.DataFrame({"user": 2, "group": np.arange(30), "sched_class": 0})
    before = demand_of(groups, demand_table(donors), 4, np.random.default_rng(0))
    after = demand_of(groups, demand_table([*donors, (2, 7, 0, 9, 1, 0.0, 1)]), 4, np.random.default_rng(0))
    others = np.arange(30) != 7
    assert not after.borrowed[7] and before.borrowed[7]
    assert np.array_equal(before.concurrency[others], after.concurrency[others])


# --- the recorded trace -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recurring(data_folder):
    try:
        return google_recurring(data_folder, rng=np.random.default_rng(0))
    except MissingDataError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def unannounced(data_folder):
    try:
        return saturated(data_folder, rng=np.random.default_rng(0))
    except MissingDataError as missing:
        pytest.skip(str(missing))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recurring", "unannounced"])
def test_every_job_keeps_the_announced_limits(name, request):
    market = request.getfixturevalue(name)
    names, births = market.table.names, market.table.births.tolist()
    assert len(set(names)) == len(names) and not any("+" in x for x in names)
    assert births == sorted(births) and births[0] >= 1 and births[-1] <= market.birth_rounds == 576
    assert market.horizon == 720
    hidden = name == "unannounced"
    for job in market.jobs[::7]:
        truth, law = job.truth, job.truth.law
        assert truth.birth <= job.arrival <= market.horizon
        assert 1 <= job.duration <= market.max_duration and 1 <= truth.concurrency <= market.max_concurrency
        assert law.durations.max() <= market.max_duration and law.arrivals.size <= 600
        assert abs(law.probabilities.sum() - 1) < 1e-9
        assert 1 <= truth.value.highest <= market.max_value
        assert truth.value.last == job.tags["deadline"] <= truth.birth + market.max_delay - 1 < market.horizon
        assert job.signal == (None if hidden else job.duration)
        in_law = (law.arrivals == job.arrival) & ((law.durations == job.duration) | hidden)
        assert job.tags["covered"] == in_law.any()
        if job.tags["early"]:
            assert set(law.arrivals) == {job.arrival} == {truth.birth}


@pytest.mark.slow
def test_values_follow_the_priority(recurring):
    """The median density of a band is its weight; the spread is that of exp(z / 2)."""
    densities = {}
    for job in recurring.jobs:
        densities.setdefault(job.tags["band"], {})[job.tags["group"]] = job.tags["value_density"]
    for band, weight in (("free", 2.0), ("middle", 6.0)):
        logs = np.log(list(densities[band].values()))
        # standard error of a median: 1.25 * .5 / sqrt(n)
        assert np.median(logs) == pytest.approx(np.log(weight), abs=4 * 1.25 * 0.5 / np.sqrt(logs.size))
    assert all(1 <= x <= 40 for by_group in densities.values() for x in by_group.values())
