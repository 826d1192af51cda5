"""Requests to end a command: all of them do what Ctrl-C does."""

import signal
import subprocess
import sys

import pytest

CODE = """
import signal, sys, time, types
import marketsched.__main__ as command
def app(prog_name):
    print("ready", flush=True)
    time.sleep(20)
{body}
sys.modules["marketsched.show.cli"] = types.SimpleNamespace(app=app)
{before}
command.main()
"""


DROPS = """
class Drops:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(5)
def app(prog_name):
    Drops()
    time.sleep(20)
"""
HALF_IMPORTED = """
def app(prog_name):
    print("ready", flush=True)
    try:
        time.sleep(20)
    except KeyboardInterrupt:
        raise KeyError("duplicate registration")
"""


def ended(number, before="", body=""):
    """Send a signal to a command at work; return its exit status."""
    code = CODE.format(before=before, body=body)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        try:
            return process.wait(1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            return None


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_request_to_end_does_what_ctrl_c_does(number):
    assert ended(number) == 130
    assert ended(number, "signal.signal(signal.SIGINT, signal.SIG_IGN)") == (None if number == signal.SIGINT else 130)


@pytest.mark.slow
def test_a_closed_terminal_that_is_ignored_stays_so():
    assert ended(signal.SIGHUP, "signal.signal(signal.SIGHUP, signal.SIG_IGN)") is None


@pytest.mark.parametrize("body", [DROPS, HALF_IMPORTED])
def test_an_interruption_that_a_library_drops_or_trips_over_ends_the_command(body):
    assert ended(signal.SIGINT, body=body) == 130
