"""When a call of a mechanism is interrupted, by a clock and an alarm that the test turns."""

from types import SimpleNamespace

import pytest

from marketsched.agents import call_limit
from marketsched.agents.call_limit import CallDidNotEnd, calls_end_within, timed


class Machine:
    """Time that passes and time that a call works, and the one alarm of the operating system."""

    def __init__(self, left=0.0, again=0.0):
        self.now, self.worked, self.handler = 100.0, 7.0, "another's"
        self.alarm, self.set = (left, again), []

    def signal(self, number, handler):
        before, self.handler = self.handler, handler
        return before

    def setitimer(self, which, seconds, again=0.0):
        assert which == "real"
        before, self.alarm = self.alarm, (seconds, again)
        self.set.append((seconds, again))
        return before

    def rings_after(self, waited, worked):
        """Let time pass, of which the call works a part, and the alarm ring at the end."""
        self.now, self.worked = self.now + waited, self.worked + worked
        self.handler(14, None)


@pytest.fixture
def machine(monkeypatch):
    def of(**alarm):
        made = Machine(**alarm)
        system = {"signal": made.signal, "setitimer": made.setitimer, "ITIMER_REAL": "real", "SIGALRM": 14}
        monkeypatch.setattr(call_limit, "signal", SimpleNamespace(**system))
        monkeypatch.setattr(
            call_limit, "time", SimpleNamespace(monotonic=lambda: made.now, thread_time=lambda: made.worked)
        )
        return made

    return of


def ends(machine, *rings):
    """Return after how many rings a call that may take eight seconds is interrupted; None: it is not."""
    heard = 0
    with calls_end_within(8.0):
        try:
            with timed("advance", 3):
                for ring in rings:
                    heard += 1
                    machine.rings_after(*ring)
        except CallDidNotEnd as error:
            assert str(error) == "advance in round 3: did not end within 8 s"
            return heard
    return None


@pytest.mark.parametrize(
    ("rings", "after"),
    [
        ([(1, 1)] * 9, 8),
        ([(8, 0)], 1),  # it did nothing
        ([(4, 0), (4, 7)], 2),  # work counts from the first ring on, an eighth of the time late
        ([(4, 0), (3.9, 7.9)], None),
        ([(4, 0), (4, 6.9)], None),  # a busy machine
        ([(4, 0), (96, 6.9), (70, 0), (6, 0)], 4),  # in any case once it worked for less than 4 % of the time
        ([(4, 0), (96, 4.0)], 2),  # 4 % of the time: it waits for something else
        ([(4, 0), (96, 4.01)], None),
    ],
)
def test_a_call_ends_that_has_worked_for_its_time_or_sleeps(rings, after, machine):
    assert ends(machine(), *rings) == after


def test_each_call_begins_anew_and_between_two_the_alarm_rings_in_vain(machine):
    made = machine()
    with calls_end_within(8.0):
        assert made.alarm == (1.0, 1.0)
        for _ in range(3):
            with timed("submit", 1):
                made.rings_after(1, 1)
                made.rings_after(6.5, 6.5)
            made.rings_after(50, 50)
            made.handler(14, SimpleNamespace(f_code=None))


def test_who_waited_once_waits_for_a_tenth_afterwards(machine):
    made = machine()
    with calls_end_within(8.0):
        for seconds in (8, 0.8, 0.8):
            with pytest.raises(CallDidNotEnd, match=f"arrive in round 2: did not end within {seconds:g} s"):
                with timed("arrive", 2):
                    made.rings_after(0.1, 0)
                    made.rings_after(seconds, seconds)
            assert made.alarm == (0.1, 0.1)
        with timed("arrive", 2):
            made.rings_after(0.1, 0)
            made.rings_after(0.6, 0.6)


def test_another_s_alarm_is_there_again_less_the_time_that_passed(machine):
    for left, passes, again in ((50.0, 20.0, 30.0), (5.0, 20.0, 0.001), (0.0, 20.0, 0.0)):
        made = machine(left=left, again=3.0)
        with calls_end_within(8.0):
            with calls_end_within(1.0):  # inside another block that one holds
                assert made.set == [(0.0, 0.0), (1.0, 1.0)]
            made.now += passes
        assert made.alarm == (again, 3.0 if left else 0.0) and made.handler == "another's"
        assert made.set[2] == (0.0, 0.0)
    with calls_end_within(None):
        made.set.clear()
        with timed("close", 1):
            pass
    assert not made.set
