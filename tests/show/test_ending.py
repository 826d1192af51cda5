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
sys.modules["marketsched.show.cli"] = types.SimpleNamespace(app=app)
{before}
command.main()
"""


def ended(number, before=""):
    """Send a signal to a command at work; return its exit status."""
    with subprocess.Popen([sys.executable, "-c", CODE.format(before=before)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        try:
            return process.wait(1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            return None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_request_to_end_does_what_ctrl_c_does(number):
    assert ended(number) == 130
    assert ended(number, "signal.signal(signal.SIGINT, signal.SIG_IGN)") == (None if number == signal.SIGINT else 130)


def test_a_closed_terminal_that_is_ignored_stays_so():
    assert ended(signal.SIGHUP, "signal.signal(signal.SIGHUP, signal.SIG_IGN)") is None
