"""The player: start, pause, step, other settings meanwhile, and whatever goes wrong."""

import threading
import time

import pytest

import marketsched.dashboard.player as module
from marketsched.config.scenario import Scenario
from marketsched.dashboard.descriptions import state
from marketsched.dashboard.player import Player
from marketsched.dashboard.settings import first_form, read_form

BASE = Scenario.from_dict(
    {
        "name": "small",
        "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 12, "birth_rounds": 40, "capacity": 8},
        "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 20}},
    }
)


def settings(**controls):
    """Return settings of BASE with some controls set."""
    read, faults = read_form({**first_form(BASE, seed=0), **controls})
    assert read is not None, faults
    return read


class Audience:
    """Keeps the frames of a player."""

    def __init__(self, **controls):
        self.frames = []
        self.player = Player(BASE, settings(**controls), self.frames.append)

    def until(self, seen, seconds=60):
        """Wait for a frame of that kind."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.frames and seen(self.frames[-1]):
                return self.frames[-1]
            time.sleep(0.01)
        pytest.fail(f"not seen within {seconds} s: {self.frames[-1] if self.frames else None}")


@pytest.fixture
def audience():
    watching = Audience()
    yield watching
    watching.player.close()
    assert watching.player.join(20)


@pytest.mark.slow
def test_step_play_pause_and_restart(audience):
    first = audience.until(lambda f: f.view is not None and f.view.bound is not None)
    assert first.view.round == 0 and state(first).startswith("paused after round 0")
    audience.player.step(7)
    audience.until(lambda f: f.view.round == 7 and not f.playing)
    audience.player.play(1)
    going = audience.until(lambda f: f.view.round >= 9)
    assert going.playing and state(going).startswith("playing")
    audience.player.pause()
    resting = audience.until(lambda f: not f.playing)
    time.sleep(0.5)
    assert audience.frames[-1].view.round <= resting.view.round + 1
    audience.player.restart(settings(mechanism="first-come", capacity="9"))
    fresh = audience.until(lambda f: f.view.mechanism == "first-come")
    assert fresh.view.round == 0 and fresh.view.capacity == 9 and not fresh.playing
    audience.player.play(500)
    over = audience.until(lambda f: f.view.complete and not f.playing)
    assert state(over).startswith("over")
    audience.player.step(5)  # nothing is left to play: nothing happens, and nobody complains
    audience.player.choose("")
    time.sleep(0.3)
    assert audience.frames[-1].error == "" and audience.frames[-1].view.round == over.view.round


def test_settings_that_cannot_be_built_leave_the_market(audience):
    audience.until(lambda f: f.view is not None)
    audience.player.step(5)
    audience.until(lambda f: f.view.round == 5)
    audience.player.restart(settings(capacity="1"))
    refused = audience.until(lambda f: f.error and not f.building)
    assert "max_concurrency" in refused.error and refused.view.round == 5
    audience.player.step(2)
    assert audience.until(lambda f: f.view.round == 7).error == ""


def test_a_fault_in_the_market_is_shown(audience, monkeypatch):
    audience.until(lambda f: f.view is not None)

    def fail(self, rounds):
        raise ZeroDivisionError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(module.Session, "step", fail)
        audience.player.play(3)
        seen = audience.until(lambda f: f.error)
        assert seen.error == "ZeroDivisionError: planted" and not seen.playing
    audience.player.step(1)
    assert audience.until(lambda f: f.view.round == 1).error == ""


def test_a_job_is_explained(audience):
    audience.until(lambda f: f.view is not None)
    audience.player.step(20)
    frame = audience.until(lambda f: f.view.round == 20)
    assert frame.story is not None
    name = frame.view.recent[-1][0]
    audience.player.choose(f" {name} ")
    assert audience.until(lambda f: f.story is not None and f.story.reason.name == name).missing == ""
    audience.player.choose("<b>nobody</b>")
    assert audience.until(lambda f: f.missing).story is None


def test_orders_that_come_while_a_market_is_built_hold_for_it(audience, monkeypatch):
    """The newest settings count, rounds for a market that comes to nothing are not played, and ends are told apart."""
    audience.until(lambda f: f.view is not None and f.view.bound is not None)
    gate, real, built = threading.Event(), module.Session, []

    def slow(base, wanted, **rest):
        assert gate.wait(30)
        built.append(wanted.capacity)
        return real(base, wanted, **rest)

    monkeypatch.setattr(module, "Session", slow)
    audience.player.restart(settings(capacity="9", rounds="2"))
    audience.until(lambda f: f.building)
    audience.player.restart(settings(capacity="7"))
    audience.player.restart(settings(capacity="11"))
    audience.player.step(6)
    gate.set()
    assert audience.until(lambda f: f.view.round == 6).view.capacity == 11 and built == [9, 11]
    gate.clear()
    audience.player.restart(settings(capacity="1"))
    audience.player.play(4)
    gate.set()
    refused = audience.until(lambda f: f.error)
    audience.player.choose("")
    time.sleep(0.3)
    assert audience.frames[-1].view.round == refused.view.round == 6 and not audience.frames[-1].playing
    gate.clear()
    audience.player.restart(settings())
    audience.until(lambda f: f.building)
    audience.player.close()
    assert not audience.player.join(0.1), "whoever ends the process is told that something still runs"
    gate.set()


def test_a_step_is_one_picture_and_a_slow_one_shows_that_it_goes_on(audience, monkeypatch):
    audience.until(lambda f: f.view is not None and f.view.bound is not None)
    time.sleep(0.2)
    monkeypatch.setattr(module, "PLAYED_SECONDS", 60.0)
    audience.player.step(30)
    audience.until(lambda f: f.view.round == 30)
    assert [f.view.round for f in audience.frames if f.view is not None and f.view.round > 0] == [30]
    monkeypatch.setattr(module, "PLAYED_SECONDS", 0.0)
    monkeypatch.setattr(module, "PLAYED_SHARE", 0.0)
    audience.player.step(5)
    audience.until(lambda f: f.view.round == 35)
    assert [f.view.round for f in audience.frames[-5:]] == [31, 32, 33, 34, 35]
    assert [state(f).split()[0] for f in audience.frames[-5:]] == ["playing,"] * 4 + ["paused"]
