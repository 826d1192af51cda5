"""The dashboard's server and those it should not trust: other sites, hand-made messages, visitors that vanish."""

import http.client
import os
import signal
import socket
import struct
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from marketsched.dashboard.server import missing_packages

pytestmark = pytest.mark.skipif(bool(missing_packages()), reason="the extra viz is not installed")
websockets = pytest.importorskip("websockets")
from page_visitor import Visitor  # noqa: E402

BAD = ({"a": 1}, [1], 5, None, True, 1e308, "x" * 100_000, "\0", "-1", "9" * 5000)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start the command; at the end SIGTERM stops it, without a word, and nothing is left in the temporary folder."""
    folder = tmp_path_factory.mktemp("temporary")
    command = [sys.executable, "-m", "marketsched", "dashboard", "synthetic-pipelines", "--paused", "--port", "0"]
    environment = {**os.environ, "TMPDIR": str(folder), "SOLARA_KERNEL_CULL_TIMEOUT": "1s"}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen([*command, "--set", "workload.recurring_jobs=20"], **options) as process:
        try:
            yield process.stdout.readline().split()[1]
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=60) == ("\n", "")
            assert process.returncode == 0 and list(folder.iterdir()) == []
        finally:
            process.kill()


def shows(words):
    return lambda widgets: any(words in str(widget.get("children")) for widget in widgets)


def visit(url):
    visitor = Visitor(url)
    visitor.open_page()
    assert visitor.listen(shows("paused after round 0"))
    return visitor


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example", "Origin": "http://127.0.0.1.evil.example"},
    ],
)
def test_websockets_of_other_sites_are_refused(server, headers):
    with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
        Visitor(server, **headers)
    line = http.client.HTTPConnection(urlsplit(server).netloc, timeout=10)
    line.request("GET", "/", headers=headers)
    assert line.getresponse().status == 403
    line.close()


def test_an_own_visitor_may_have_other_names_for_this_machine(server):
    port = urlsplit(server).port
    for host in (f"localhost:{port}", f"127.0.0.1:{port + 1}"):  # the second is the end of a tunnel
        Visitor(server, Host=host, Origin=f"http://{host}").leave()


def test_hand_made_values_end_nobodys_page(server):
    other, visitor = visit(server), visit(server)
    fields = [widget for widget in visitor.widgets.values() if widget.get("label")]
    assert len(fields) == 8
    for field in fields:
        for value in BAD:
            visitor.put(field["comm"], v_model=value)
    (rounds,) = (field["comm"] for field in fields if field["label"] == "Rounds per step")
    visitor.put(rounds, v_model="4")
    for each in (visitor, other):
        each.press("Step")
        assert each.listen(shows("paused after round 4"))
        assert not any("Traceback" in str(widget) for widget in each.widgets.values())
        each.leave()


def test_visitors_that_vanish_while_it_plays(server):
    """Nothing is said of them: see the end of the server."""
    for linger in (struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)):  # the first resets the line
        visitor = visit(server)
        visitor.press("Play")
        assert visitor.listen(shows("playing, round"))
        visitor.line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        visitor.line.socket.close()
    for text in ("no JSON", "{}", "[1]"):
        visitor = Visitor(server)
        visitor.line.send(text)
        visitor.leave()
    visit(server).leave()
