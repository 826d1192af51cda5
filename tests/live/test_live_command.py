"""The commands `marketsched live`, from a market that is made to its export replayed."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from live_tools import PLAIN, sow
from marketsched.config.strict_yaml import dump_yaml
from marketsched.live.client import LiveClient, LiveError
from marketsched.live.serving import serving
from marketsched.show.cli import app


def run(*arguments, status=0):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


def test_an_owner_can_lose_its_deposit_and_no_more(tmp_path):
    """Two jobs of 6 credits with a deposit of 10, and the calls of docs/live.md by curl."""
    docs, trial = (Path(__file__).parents[2] / "docs" / name for name in ("live.md", "live/trial.yaml"))
    token = tmp_path / "operator.token"
    with serving(trial, f"{tmp_path}/market.db", operator_token_file=token) as url:
        at = {"MARKETSCHED_URL": url, "MARKETSCHED_TOKEN_FILE": str(token)}
        made = CliRunner().invoke(
            app, ["live", "owner", "ann", "--deposit", "10", "--out", f"{tmp_path}/ann.token"], env=at
        )
        assert made.stderr == "ann: can lose at most 10 credits\n"
        assert "can lose at most 10 credits" in CliRunner().invoke(app, ["live", "owner"], env=at).stdout
        ann = LiveClient(url, (tmp_path / "ann.token").read_text().strip())
        ann.submit(sow(1, 2, nodes=2, value=40, deadline=9))  # 2 nodes for 2 rounds at 1.5
        with pytest.raises(LiveError, match="expected a plan of at most 4 credits, by the limit of ann"):
            ann.submit(sow(1, 2, nodes=2, value=40, deadline=9))
        (block,) = (part for part in docs.read_text().split("```") if "ann() { curl" in part)
        calls = block.removeprefix("sh\n").replace("http://127.0.0.1:8765", url)
        done = subprocess.run(["sh", "-ec", calls], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        answers = [json.loads(each) for each in done.stdout.replace("}{", "}\n{").splitlines()]
        assert answers[0]["plan"] == [{"arrival": 1, "signal": 1, "start": 1}]
        assert answers[-1]["wait"] == 0 and answers[2]["decisions"][0]["job"] == "ann.job"


@pytest.mark.slow
def test_a_day_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    statement = sow(1, 1)
    statement["requirements"][0]["arrival"] = "now"
    (tmp_path / "sow.yaml").write_text(dump_yaml(statement))
    with serving(PLAIN, "market.db", operator_token_file="operator.token") as url:
        monkeypatch.setenv("MARKETSCHED_URL", url)
        monkeypatch.setenv("MARKETSCHED_TOKEN_FILE", "operator.token")
        assert run("live", "owner", "ann", "--deposit", "5", "--out", "ann.token") == ""
        assert oct((tmp_path / "ann.token").stat().st_mode)[-3:] == "600"
        assert "ann.token" in run("live", "owner", "ben", "--out", "ann.token", status=2)  # a new file, or none
        assert "ben" not in run("live", "owner")
        ann = ("--token-file", "ann.token")
        offered = json.loads(run("live", "quote", "sow.yaml", *ann))
        job = json.loads(run("live", "submit", "sow.yaml", "--name", "x", *ann))
        assert job["plan"] == offered["plan"] and job["runs"] == offered["runs"] and job["job"] == "ann.x"
        assert json.loads(run("live", "arrive", "ann.x", "--signal", "1", *ann))["state"] == "arrived"
        assert json.loads(run("live", "rounds"))["round"] == 2
        assert json.loads(run("live", "complete", "ann.x", "--exit-code", "0"))["outcome"] == "done"
        run("live", "submit", "sow.yaml", "--name", "y", *ann)
        assert json.loads(run("live", "cancel", "ann.y", *ann))["state"] == "withdrawn"
        run("live", "owner", "ann", "--deposit", "1")  # what the fee took
        assert "ann.x" in run("live", "status") and '"completed"' in run("live", "status", "ann.x", *ann)
        assert "4.500000" in run("live", "owner") and "sum market: 1.500000" in run("live", "ledger")
        assert "withdrawn by its owner" in run("live", "status", *ann)
        for bad, words in NOT_SENT.items():
            assert words in run("live", *bad, *(() if bad[0] in ("owner", "export") else ann), status=2), bad
        (tmp_path / "nan.yaml").write_text(dump_yaml(sow(1, 1, value=float("nan"))))
        run("live", "submit", "nan.yaml", *ann, status=2)
        (tmp_path / "binary").write_bytes(bytes(range(256)))
        assert "one token" in run("live", "status", "--token-file", "binary", status=2)
        assert "concurrency = 9" in run("live", "submit", _bad(tmp_path), *ann, status=2)
        assert run("live", "owner", "ann", "--renew", "--out", "second.token", *ann) == ""  # her own, by her own
        run("live", "status", "--token-file", "second.token")
        run("live", "owner", "ann", "--revoke")
        assert "expected Bearer and a token that is good" in run("live", "status", *ann, status=2)
    (tmp_path / "log.jsonl").write_text(run("live", "export"))
    (tmp_path / "config.yaml").write_text(run("live", "export", "--config"))
    assert run("replay", "config.yaml", "log.jsonl") == run("live", "export", "--decisions")
    assert "is not there" in run("live", "export", "--db", "other.db", status=2)
    assert "holds no market" in run("live", "serve", "--db", "other.db", "--port", "0", status=2)
    assert not (tmp_path / "other.db").exists()
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE notes (text)")
        other.commit()
        before = (tmp_path / "other.db").read_bytes()
        (tmp_path / "market.yaml").write_text(dump_yaml(PLAIN))
        said = run("live", "serve", "market.yaml", "--db", "other.db", "--port", "0", status=2)
        assert "tables of something else (notes)" in said
        assert (tmp_path / "other.db").read_bytes() == before
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        said = run("live", "serve", "market.yaml", "--db", "new.db", "--port", port, status=2)
        assert f"127.0.0.1:{port}: Address already in use: expected --port" in said
        assert not (tmp_path / "new.db").exists()
    (tmp_path / "wide.yaml").write_text(dump_yaml(PLAIN | {"max_concurrency": PLAIN["capacity"] + 1}))
    said = run("live", "serve", "wide.yaml", "--db", "new.db", "--port", "0", status=2)
    assert "wide.yaml: max_concurrency = " in said and not (tmp_path / "new.db").exists()
    monkeypatch.delenv("MARKETSCHED_TOKEN_FILE")
    assert "no token is given: expected MARKETSCHED_TOKEN_FILE" in run("live", "status", status=2)
    assert "expected an address of the loopback" in run("live", "serve", "--host", "0.0.0.0", "--port", "0", status=2)


NOT_SENT = {  # commands whose arguments cannot be sent: one line each
    ("arrive", "ann.x", "--signal", "NaN"): "finite",
    ("arrive", "ann.x", "--signal", "1e999"): "finite",
    ("arrive", "ann.x", "--signal", "[" * 100_000): "",
    ("submit", "sow.yaml", "--key", "é"): "ASCII",
    ("submit", "sow.yaml", "--key", "a\nb"): "ASCII",
    ("status", "ann\n.x"): "",
    ("owner", "cid", "--deposit", "inf"): "finite",
    ("owner", "cid", "--limit", "nan"): "finite",
    ("owner", "ann", "--deposit", "7", "--renew"): "--deposit beside --renew",  # what would be left undone
    ("owner", "ann", "--deposit", "7", "--revoke"): "--deposit beside --revoke",
    ("owner", "ann", "--renew", "--revoke"): "--renew beside --revoke",
    ("owner", "ann", "--deposit", "7", "--limit", "3", "--group", "g"): "--limit and --group beside --deposit to ann",
    ("owner", "ann", "--share", "1", "--deposit", "7"): "--share beside --deposit to ann",
    ("owner", "--deposit", "5"): "--deposit beside a list",
    ("export", "--db", ""): "a file on a disk",
    ("export", "--db", "sqlite://"): "a file on a disk",
}


def _bad(folder):
    (folder / "bad.yaml").write_text(dump_yaml(sow(1, 1, nodes=9)))
    return folder / "bad.yaml"


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["terminate", "interrupt", "hang up"])
def test_the_command_serves_until_it_is_asked_to_end(signal, tmp_path):
    import signal as signals

    (tmp_path / "market.yaml").write_text(dump_yaml(PLAIN))
    command = [sys.executable, "-m", "marketsched", "live", "serve", "market.yaml", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ})
    try:
        line = process.stderr.readline()
        assert "market, round 1, http://127.0.0.1:" in line
        client = LiveClient(line.split()[-1], (tmp_path / "operator.token").read_text().strip())
        stream = client.events()
        assert next(stream)["event"] == "owner"  # a stream does not hold it up
        number = {"terminate": signals.SIGTERM, "interrupt": signals.SIGINT, "hang up": signals.SIGHUP}[signal]
        process.send_signal(number)
        assert process.wait(30) == 0
        stream.close()
    finally:
        process.kill()
        process.stderr.close()


def test_a_client_loads_nothing_that_is_slow():
    loaded = "import sys, marketsched.live.client; print({'numpy', 'numba', 'pandas', 'fastapi'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_other_commands_do_not_load_what_live_needs():
    loaded = "import sys, marketsched.show.cli, marketsched.live.slurm_command\n"
    loaded += "print({'fastapi', 'sqlalchemy', 'httpx', 'uvicorn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"
