"""The command `marketsched dashboard`: what it needs, and what it says in one line where it cannot serve."""

import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import marketsched.dashboard_server as server
from marketsched.cli import app


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


def test_scenarios_it_cannot_show(tmp_path):
    assert "no such file" in refused("nowhere")
    assert "a cluster scenario" in refused("cluster-default")
    assert "capacity = 0" in refused("synthetic-pipelines", "--set", "mechanism.capacity=0")


def test_help_and_import_load_no_page():
    code = (
        "import runpy, sys\nimport marketsched, marketsched.cli, marketsched.dashboard_command\n"
        "sys.argv = ['marketsched', 'dashboard', '--help']\n"
        "try: runpy.run_module('marketsched', run_name='__main__')\nexcept SystemExit: pass\n"
        "sys.stderr.write(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "Ctrl-C ends it" in done.stdout
    heavy = {"solara", "reacton", "ipyvuetify", "uvicorn", "mesa", "numba", "matplotlib", "pandas"}
    assert heavy.isdisjoint(done.stderr.split())
