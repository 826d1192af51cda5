"""The command `marketsched dashboard`: what it needs, and what it says in one line where it cannot serve."""

import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import marketsched.dashboard.server as server
from marketsched.show.cli import app


def refused(*arguments: str) -> str:
    """Run the command, which must refuse, and return its one line."""
    done = CliRunner().invoke(app, ["dashboard", *arguments])
    assert done.exit_code == 2 and done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("marketsched: ")
    return line


@pytest.mark.parametrize(
    "gone", [("solara",), ("solara_assets",), ("solara", "ipyvuetify", "uvicorn", "solara_assets")]
)
def test_without_the_extra_it_says_what_to_install(monkeypatch, gone):
    monkeypatch.setattr(server, "find_spec", lambda name: None if name in gone else object())
    line = refused()
    assert line == f"marketsched: the dashboard needs {', '.join(gone)}, not installed: pip install 'marketsched[viz]'"


def test_a_port_that_is_taken(monkeypatch):
    monkeypatch.setattr(server, "find_spec", lambda name: object())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} on 127.0.0.1: Address already in use" in refused("--port", str(port))


class Served:
    """Stands for the server: keeps what the command asks for."""

    url = "http://127.0.0.1:1"
    asked = None

    def __init__(self, scenario, **options):
        Served.asked = scenario.name, scenario.mechanism.name, options["playing"]

    def start(self):
        pass

    wait = start

    def stop(self):
        return True


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ("synthetic-pipelines", "bid-price", True)),
        (("--paused",), ("synthetic-pipelines", "bid-price", False)),
        (("-m", "vcg"), ("synthetic-pipelines", "vcg", True)),
        (("google-recurring",), ("google-recurring", "posted-price", True)),
        (("google-recurring", "-m", "bid-price:buckets=4"), ("google-recurring", "bid-price", True)),
        (("--set", "mechanism.epsilon=0.1"), ("synthetic-pipelines", "posted-price", True)),
    ],
)
def test_it_opens_playing_with_the_mechanism_that_is_asked_for(options, expected, monkeypatch):
    monkeypatch.setattr(server, "DashboardServer", Served)
    done = CliRunner().invoke(app, ["dashboard", *options])
    assert done.exit_code == 0, done.stderr
    assert Served.asked == expected


def test_it_takes_one_mechanism_at_a_time():
    assert "expected one, in a run of a market" in refused("-m", "vcg,spot")


def test_scenarios_it_cannot_show(tmp_path):
    assert "no such file" in refused("nowhere")
    assert "a cluster scenario" in refused("cluster-default")
    assert "capacity = 0" in refused("synthetic-pipelines", "--set", "mechanism.capacity=0")


@pytest.mark.compiled
def test_a_market_that_cannot_be_built_is_not_served(monkeypatch, tmp_path):
    monkeypatch.setattr(server, "find_spec", lambda name: object())
    monkeypatch.delenv("MARKETSCHED_DATA", raising=False)
    assert "no data folder" in refused("google-recurring", "--port", "0")
    assert "max_concurrency" in refused("synthetic-pipelines", "--set", "mechanism.capacity=1", "--port", "0")
    broken = tmp_path / "broken.yaml"
    broken.write_text("workload: {kind: synthetic-pipelines, capacity: [}\n")
    assert "broken.yaml" in refused(str(broken))
    assert "seed" in refused("--seed", str(2**63), "--port", "0")


def test_help_and_import_load_no_page():
    code = (
        "import runpy, sys\nimport marketsched, marketsched.show.cli, marketsched.dashboard.command\n"
        "sys.argv = ['marketsched', 'dashboard', '--help']\n"
        "try: runpy.run_module('marketsched', run_name='__main__')\nexcept SystemExit: pass\n"
        "sys.stderr.write(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "Ctrl-C ends it" in done.stdout
    heavy = {"solara", "reacton", "ipyvuetify", "uvicorn", "mesa", "numba", "matplotlib", "pandas"}
    assert heavy.isdisjoint(done.stderr.split())
