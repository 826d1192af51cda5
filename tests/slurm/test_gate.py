"""Rounds on a Slurm that is made up: what is asked for, when jobs start and end, and what a slow machine moves."""

import os
from types import SimpleNamespace

import pytest

from marketsched.slurm import gate
from marketsched.slurm.commands import SlurmError
from marketsched.slurm.gate import ROUND_S, Asked, TooSlow, play_in_slurm
from marketsched.slurm.port import simple_job
from refusals import refused

MINUTE = 60


class Clock:
    """Shows what it is set to; ``slow`` maps a round to the seconds by which the machine comes too late to it."""

    def __init__(self, slow=None):
        self.time, self.slow, self.waits = 1_000_000.0, slow or {}, 0

    def now(self):
        return self.time

    def wait_until(self, moment):
        self.waits += 1
        self.time = max(self.time, moment) + self.slow.get(self.waits, 0)


class FirstCome:
    """A queue in strict order on some nodes: it starts jobs while the partition is up, and kills at limits."""

    def __init__(self, nodes, clock, folder, delay=0):
        self.nodes, self.clock, self.folder, self.delay = nodes, clock, folder, delay
        self.up, self.queue, self.options, self.pipes, self.limits = False, {}, {}, {}, []

    def submit(self, script, *options):
        number = len(self.queue) + 1
        given = dict(option.lstrip("-").split("=", 1) for option in options)
        self.options[given["job-name"]] = given
        self.queue[number] = SimpleNamespace(
            id=number, state="PENDING", started=0.0, limit=int(given["time"]), width=int(given["nodes"])
        )
        return number

    def update(self, **fields):
        if "PartitionName" in fields:
            self.up = fields["State"] == "UP"
            return
        job, minutes = self.queue[fields["JobId"]], fields["TimeLimit"]
        self.limits.append((fields["JobId"], minutes))
        job.limit = job.limit + int(minutes) if isinstance(minutes, str) else minutes

    def usable_nodes(self, partition):
        return self.nodes

    def jobs(self):
        for job in self.queue.values():
            if job.state == "RUNNING":
                if job.id not in self.pipes:
                    self.pipes[job.id] = os.open(self.folder / "ends" / str(job.id), os.O_RDONLY | os.O_NONBLOCK)
                if os.read(self.pipes[job.id], 9) == b"over\n":
                    job.state = "COMPLETED"
                elif self.clock.now() >= job.started + job.limit * MINUTE:
                    job.state = "TIMEOUT"
        for job in self.queue.values():
            free = self.nodes - sum(each.width for each in self.queue.values() if each.state == "RUNNING")
            if self.up and job.state == "PENDING":
                if job.width > free:
                    break
                job.state, job.started = "RUNNING", self.clock.now() + self.delay
        return [
            SimpleNamespace(
                id=job.id, state=job.state, started=job.started, limit=job.limit, active=job.state == "RUNNING",
                over=job.state in ("COMPLETED", "TIMEOUT"),
            )
            for job in self.queue.values()
        ]  # fmt: skip


class Lingering(FirstCome):
    """Jobs that are over are seen as running once more, and as completing after that, before they have left."""

    def __init__(self, *given):
        super().__init__(*given)
        self.seen, self.early = {}, []

    def jobs(self):
        found = super().jobs()
        for each in found:
            if each.over:
                seen = self.seen[each.id] = self.seen.get(each.id, 0) + 1
                if seen <= 2:
                    each.state, each.active, each.over = ("RUNNING", "COMPLETING")[seen - 1], True, False
        return found

    def update(self, **fields):
        self.early += [number for number, seen in self.seen.items() if seen <= 2 and fields.get("State") == "UP"]
        super().update(**fields)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Return what makes a cluster of some nodes in a folder of this test."""
    monkeypatch.setattr(gate, "LOOK_S", 0.0)

    def of(nodes, slow=None, delay=0, kind=FirstCome):
        clock = Clock(slow)
        return SimpleNamespace(folder=tmp_path, nodes=nodes, clock=clock, slurm=kind(nodes, clock, tmp_path, delay))

    return of


def rows_of(run):
    return list(run.frame[["job", "start", "state"]].itertuples(index=False, name=None))


JOBS = [
    simple_job("a", "ann", 1, 2, 2, 3),
    simple_job("b", "bob", 1, 1, 3, 2),  # asks for less than it takes: it is killed after two rounds
    simple_job("c", "ann", 2, 2, 1),  # asks for just what it takes: at its limit, too
    simple_job("d", "eve", 9, 1, 1, 4),  # nothing is there in rounds 6 to 8
]


def test_jobs_start_in_rounds_and_end_with_them_or_at_their_wall_time(cluster, tmp_path):
    for _ in range(2):  # the same folder serves a second play
        run = play_in_slurm([*JOBS[2:], *JOBS[:2]], made := cluster(2))
        ends = [("a", 1, "COMPLETED"), ("b", 3, "TIMEOUT"), ("c", 5, "TIMEOUT"), ("d", 9, "COMPLETED")]
        assert rows_of(run) == ends
        assert (run.moved_s, run.late, run.rounds) == (0, 0, 10)
        assert made.clock.waits == 8  # rounds 1 to 6, then 9 and 10
        for number in range(1, 5):
            (tmp_path / "ends" / str(number)).unlink()
    assert run.frame["wall_time"].tolist() == [3, 2, 1, 4] and run.frame["duration"].tolist() == [2, 3, 1, 1]
    assert run.frame["offset_s"].eq(0).all() and run.frame["arrival"].tolist() == [1, 1, 2, 9]
    options = made.slurm.options["d"]  # four rounds of ten minutes less one, and less six
    assert (options["nodes"], options["time"], options["time-min"]) == ("1", "39", "34")
    assert "account" not in options and "qos" not in options and "begin" not in options


def test_a_round_begins_once_those_that_end_have_left_their_nodes(cluster):
    made = cluster(2, kind=Lingering)
    run = play_in_slurm(JOBS[:3], made)
    assert [row[:2] for row in rows_of(run)] == [("a", 1), ("b", 3), ("c", 5)] and made.slurm.early == []


def test_a_play_ends_once_the_named_jobs_have_started(cluster):
    run = play_in_slurm(JOBS, cluster(2), until=["b"])
    assert rows_of(run)[-1] == ("b", 3, "RUNNING") and run.rounds == 3 and len(run.frame) == 2  # c has no start yet


def test_requests_besides_nodes_and_wall_time(cluster, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    jobs = [simple_job("a", "ann", 1, 1, 1), simple_job("b", "bob", 5, 2, 1, 6)]
    made = cluster(2)
    run = play_in_slurm(jobs, made, accounts=True, asked={"b": Asked(qos="high", least=2, ahead=3)})
    plain, asked = made.slurm.options["a"], made.slurm.options["b"]
    assert (plain["account"], asked["account"], asked["qos"], asked["time-min"]) == ("ann", "bob", "high", "14")
    first = (1_000_000 // ROUND_S + 2) * ROUND_S  # in which a is submitted; b's is the next, three before its arrival
    begin = gate.time.strftime("%Y-%m-%dT%H:%M:%S", gate.time.localtime(first + 4 * ROUND_S))
    assert asked["begin"] == begin
    assert run.frame["arrival"].tolist() == [1, 5] and rows_of(run)[1][1] == 2  # this queue begins at once
    made = cluster(2)
    for path in (made.folder / "ends").iterdir():
        path.unlink()
    play_in_slurm(jobs, made, counting="licenses")
    assert (made.slurm.options["b"]["licenses"], made.slurm.options["b"]["nodes"]) == ("node:2", "1")


def test_a_machine_that_falls_behind_moves_rounds_and_limits_by_whole_minutes(cluster):
    made = cluster(2, slow={2: 60, 3: 145})  # a minute behind is none yet; 60 of the second wait are made up
    run = play_in_slurm([simple_job("a", "ann", 1, 2, 4, 5)], made)
    assert run.moved_s == 120 and (1, "+2") in made.slurm.limits
    assert rows_of(run) == [("a", 1, "COMPLETED")]


@pytest.mark.parametrize(
    ("delay", "late", "limit"), [(0, 0, 19), (89, 0, 18), (240, 0, 15), (241, 1, 15), (400, 1, 14)]
)
def test_a_limit_ends_a_minute_before_its_round_and_late_starts_are_counted(cluster, delay, late, limit):
    """Two rounds: 19 minutes after a start in time; after a later one less, but never below what was allowed."""
    made = cluster(2, delay=delay)
    made.slurm.clock.slow = {}
    run = play_in_slurm([simple_job("a", "ann", 1, 2, 2)], made, until=["a"])
    assert (run.late, run.frame["offset_s"].tolist(), made.slurm.limits) == (late, [delay], [(1, limit)])


def test_what_cannot_be_played_is_one_error(cluster):
    refused(lambda: play_in_slurm([simple_job("a", "ann", 1, 3, 1)], cluster(2)), "job 'a': nodes", legal="at most 2")
    refused(lambda: play_in_slurm([], cluster(2)), "jobs", legal="at least one that arrives")
    made = cluster(2)
    made.slurm.usable_nodes = lambda partition: 1
    made.slurm.jobs = lambda: [SimpleNamespace(id=1, state="PENDING", started=0.0, active=False, over=False)]
    with pytest.raises(TooSlow, match="1 of 2 nodes can run jobs"):
        play_in_slurm(JOBS[:1], made)


def test_a_limit_that_cannot_be_set_is_tried_again_or_ends_the_play(cluster):
    for words, expected in (("try again later", None), ("already finished", TooSlow), ("invalid job", SlurmError)):
        made = cluster(2)
        for path in (made.folder / "ends").glob("*"):
            path.unlink()
        answers, update = [words], made.slurm.update

        def answer(answers=answers, update=update, **fields):
            if "JobId" in fields and answers:
                raise SlurmError(answers.pop())
            update(**fields)

        made.slurm.update = answer
        if expected is None:
            assert rows_of(play_in_slurm(JOBS[:1], made)) == [("a", 1, "COMPLETED")]
            continue
        with pytest.raises(SlurmError) as caught:
            play_in_slurm(JOBS[:1], made)
        assert type(caught.value) is expected
