"""The reverse proxy of docs/live/nginx.conf: nginx refuses what the service leaves to it."""

import contextlib
import getpass
import shutil
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from live_tools import PLAIN, sow
from marketsched.live.serving import serving
from slurm_cluster import free_ports

NGINX, OPENSSL = shutil.which("nginx", path="/usr/sbin:/usr/bin:/bin"), shutil.which("openssl")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (NGINX and OPENSSL), reason="not installed (Debian: nginx-light openssl)"),
]
NAME = "market.example.org"
STATED = Path(__file__).resolve().parents[2] / "docs/live/nginx.conf"
MAIN = """
daemon off;
user {user};
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  include {folder}/market.conf;
}}
"""
HEAD = f"POST /v1/quotes HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n"


class Proxied:
    """A market behind nginx; ``stated``: docs/live/nginx.conf, with this machine's ports and files."""

    def __init__(self, folder, service, token):
        (self.port,) = free_ports(1)
        self.token, self.tls = token, ssl.create_default_context(cafile=folder / "market.pem")
        stated = STATED.read_text()
        changes = {"127.0.0.1:8765": service, "listen 443": f"listen 127.0.0.1:{self.port}", "/etc/ssl": f"{folder}"}
        for before, now in changes.items():
            assert before in stated
            stated = stated.replace(before, now)
        (folder / "market.conf").write_text(stated)
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=getpass.getuser()))

    def ask(self, method, path, **options):
        with self.client() as client:
            return client.request(method, path, **options)

    def client(self):
        headers = {"Host": NAME, "Authorization": f"Bearer {self.token}"}
        self.tls.check_hostname = False  # it is asked for by number
        url = f"https://127.0.0.1:{self.port}"
        return httpx.Client(base_url=url, headers=headers, verify=self.tls, trust_env=False, timeout=20)

    def connection(self, sent=b""):
        """Return a connection that has sent this and no more."""
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        found = self.tls.wrap_socket(raw, server_hostname=NAME)
        found.sendall(sent)
        return found


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    certificate = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    names = ["-addext", f"subjectAltName=DNS:{NAME}", "-keyout", folder / "market.key", "-out", folder / "market.pem"]
    subprocess.run([OPENSSL, "req", *certificate, *names], check=True, capture_output=True)
    token = folder / "token"
    with serving(PLAIN, f"{folder}/m.db", operator_token_file=token, hosts=[NAME]) as url:
        found = Proxied(folder, url.removeprefix("http://"), token.read_text().strip())
        nginx = subprocess.Popen([NGINX, "-c", folder / "nginx.conf", "-e", folder / "error.log"])
        try:
            deadline = time.monotonic() + 30
            while True:
                with contextlib.suppress(OSError):
                    found.connection().close()
                    break
                assert nginx.poll() is None and time.monotonic() < deadline, (folder / "error.log").read_text()
                time.sleep(0.05)
            yield found
        finally:
            nginx.terminate()
            nginx.wait(20)


@pytest.fixture
def rested(market):
    """Let the rate of this address rise again."""
    yield market
    time.sleep(2.5)


def test_calls_pass_with_their_tokens_and_other_hosts_do_not(market):
    assert market.ask("POST", "/v1/owners", json={"owner": "ann", "deposit": 50}).status_code == 201
    answer = market.ask("POST", "/v1/jobs", json={"sow": sow(2, 1), "owner": "ann", "name": "x"})
    assert answer.status_code == 201 and answer.json()["job"] == "ann.x"
    assert market.ask("GET", "/v1/market", headers={"Authorization": "Bearer none"}).status_code == 401
    assert market.ask("GET", "/v1/market", headers={"Host": "evil.example"}).status_code == 421


def test_idle_heads_and_bodies_are_ended_and_keep_nobody_out(market):
    """Heads have five seconds, and so has each next part of a body; meanwhile others are served."""
    half = [market.connection(HEAD.encode()[:40]) for _ in range(150)]
    bodies = [market.connection(f"{HEAD}Content-Length: 500\r\n\r\n{{".encode()) for _ in range(50)]
    began = time.monotonic()
    assert market.ask("GET", "/v1/market").status_code == 200
    assert time.monotonic() - began < 4
    for each in [*half, *bodies]:
        answer = b""
        with contextlib.suppress(OSError):  # reset
            while more := each.recv(4096):
                answer += more
        assert not answer or answer.split()[1] in (b"408", b"400")
        each.close()
    assert time.monotonic() - began < 15 and market.ask("GET", "/v1/market").status_code == 200


def test_large_bodies_do_not_reach_the_service(market):
    answer = market.ask("POST", "/v1/quotes", content=b" " * 70_000, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413 and "nginx" in answer.text


def test_one_address_has_a_rate(rested):
    def asked(_):
        with rested.client() as client:
            return {client.get("/v1/public").status_code for _ in range(150)}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(asked, range(8))) == {200, 429}


def test_an_address_has_a_hundred_requests_at_a_time(rested):
    bodies = [rested.connection(f"{HEAD}Content-Length: 500\r\n\r\n{{".encode()) for _ in range(100)]
    time.sleep(0.5)
    assert rested.ask("GET", "/v1/public").status_code == 429
    for each in bodies:
        each.close()
    time.sleep(0.5)
    assert rested.ask("GET", "/v1/public").status_code == 200


def test_events_come_at_once_and_a_token_has_twenty_streams(market):
    def opened(_):
        asked = f"GET /v1/events HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer {market.token}\r\n\r\n"
        stream = market.connection(asked.encode())
        return stream, stream.recv(4096)

    with ThreadPoolExecutor(25) as pool:
        streams = list(pool.map(opened, range(25)))
    statuses = sorted(head.split()[1] for _, head in streams)
    assert statuses == [b"200"] * 20 + [b"429"] * 5
    follows = next(stream for stream, head in streams if head.split()[1] == b"200")
    assert market.ask("POST", "/v1/owners", json={"owner": "ben", "deposit": 50}).status_code == 201
    text = b""
    while b'"ben"' not in text:  # until the timeout of the connection
        text += follows.recv(4096)
    for stream, _ in streams:
        stream.close()
