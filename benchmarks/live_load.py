"""Load for a live market from a process of its own: connections that are kept, and requests made before they are due.

``python live_load.py`` reads a plan from standard input (JSON: ``port``, ``seconds``, ``lines``), and prints how long
each answer took. A line is a connection: ``token``, ``path``, ``bodies`` (which it sends again and again) and ``rate``
(requests a second; 0: the next as soon as the last is answered).
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Load:
    """A process that sends requests.

    Parameters
    ----------
    port : int
        Of the service, on the loopback.
    seconds : float
        For which it sends.
    lines : sequence of dict
        Its connections.
    """

    def __init__(self, port: int, seconds: float, lines: Sequence[dict[str, Any]]) -> None:
        command = [sys.executable, str(Path(__file__).resolve())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        json.dump({"port": port, "seconds": seconds, "lines": lines}, self._process.stdin)
        self._process.stdin.close()

    def waits(self) -> dict[str, list[float]]:
        """Return the seconds of each answer by its status, once all is sent."""
        assert self._process.stdout is not None
        found: dict[str, list[float]] = json.load(self._process.stdout)
        self._process.wait()
        return found


def _request(port: int, line: dict[str, Any], body: Any) -> bytes:
    said = json.dumps(body).encode()
    head = (
        f"POST {line['path']} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {line['token']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
    )
    return head.encode() + said


def _answered(connection: socket.socket) -> str:
    """Read one answer; return its status."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += _more(connection)
    head, _, rest = said.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    left = length - len(rest)
    while left > 0:
        left -= len(_more(connection))
    return head[9:12].decode()


def _more(connection: socket.socket) -> bytes:
    found = connection.recv(1 << 16)
    if not found:
        raise RuntimeError("the service closed a connection")
    return found


def _send(port: int, seconds: float, line: dict[str, Any], found: dict[str, list[float]]) -> None:
    requests = [_request(port, line, body) for body in line["bodies"]]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = due = time.monotonic()
        n = 0
        while time.monotonic() < begin + seconds:
            if line["rate"]:
                due += 1 / line["rate"]
                time.sleep(max(0.0, due - time.monotonic()))
            sent = time.perf_counter()
            connection.sendall(requests[n % len(requests)])
            status = _answered(connection)
            found.setdefault(status, []).append(time.perf_counter() - sent)
            n += 1


def main() -> None:
    """Send what the plan says."""
    plan, found = json.load(sys.stdin), dict[str, list[float]]()
    sending = [
        threading.Thread(target=_send, args=(plan["port"], plan["seconds"], line, found)) for line in plan["lines"]
    ]
    for each in sending:
        each.start()
        time.sleep(0.003)  # connections that take turns, not all at once
    for each in sending:
        each.join()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
