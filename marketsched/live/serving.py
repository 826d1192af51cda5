"""A live market as a process: the service, its HTTP server, and how both end."""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from marketsched.live.api import make_app
from marketsched.live.configuration import LiveConfig
from marketsched.live.service import LiveService
from marketsched.mechanisms.errors import InvalidParameterError

PORT = 8765
SWITCH_SECONDS = 0.0005  # after which the market's thread lets the one of the connections go on
GRACE = 3  # seconds that answers under way may take at the end
MOST_CONNECTIONS = 900  # a process has 1,024 files by default
KEEP_ALIVE_SECONDS = 75  # longer than the proxy of docs/live.md keeps an idle connection
MOST_HEAD_BYTES = 16 * 1024


class LiveServer:
    """The HTTP server of a service that is not started yet; port 0: any that is free.

    ``behind_proxy``: a reverse proxy stands before it, which reaches it under the names ``hosts``; ``host`` may then be
    an address that is not of the loopback. Raises InvalidParameterError if it is such an address and there is no proxy,
    and OSError if the address is taken.
    """

    def __init__(
        self,
        service: LiveService,
        host: str = "127.0.0.1",
        port: int = PORT,
        *,
        behind_proxy: bool = False,
        hosts: Sequence[str] = (),
    ) -> None:
        self._service = service
        self._socket = listening(host, port, behind_proxy=behind_proxy)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        app = make_app(service, [host, *hosts])
        self._streams = app.streams
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            http="h11",
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            ws="none",
            lifespan="off",
        )
        self._server = _Server(config, self._streams.stop)

    def run(self) -> None:
        """Serve until the process is asked to end, or `stop` is called."""
        self._service.start()
        sys.setswitchinterval(SWITCH_SECONDS)
        with self._server.ends_by_signals():
            try:
                self._server.run(sockets=[self._socket])
            finally:
                self._service.stop()
                self._socket.close()

    def stop(self) -> None:
        """Make `run` end; from any thread."""
        self._server.should_exit = True

    @property
    def started(self) -> bool:
        """True once it answers."""
        return self._server.started


class _Server(uvicorn.Server):
    """Ends streams before it waits for answers under way."""

    def __init__(self, config: uvicorn.Config, at_end: Any) -> None:
        super().__init__(config)
        self._at_end = at_end

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `ends_by_signals`, which goes on until the journal is closed."""
        yield

    @contextmanager
    def ends_by_signals(self) -> Iterator[None]:
        """Let SIGTERM, SIGHUP, Ctrl-C end the server and no more: what follows it (the journal) is to end as well."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in ending_signals()}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._at_end()
        await super().shutdown(sockets)


@contextmanager
def serving(
    config: LiveConfig | Mapping[str, Any] | str | Path | None,
    url: str,
    *,
    operator_token_file: str | Path | None = None,
    hosts: Sequence[str] = (),
    **options: Any,
) -> Iterator[str]:
    """Serve a market on a free port of the loopback, in a thread; give the address.

    Parameters and errors are those of `LiveService` and, for ``hosts``, of `LiveServer`.
    """
    service = LiveService(url, config, operator_token_file=operator_token_file, **options)
    server = LiveServer(service, port=0, hosts=hosts)
    thread = threading.Thread(target=server.run, name="http", daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield server.url
    finally:
        server.stop()
        thread.join()


def ending_signals() -> list[signal.Signals]:
    """Return the signals that ask a service to end: a closed terminal's too, unless it is ignored (``nohup``)."""
    alike = [signal.SIGINT, signal.SIGTERM]
    return alike if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*alike, signal.SIGHUP]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listening(host: str, port: int, *, behind_proxy: bool) -> socket.socket:
    """Return a socket that listens; parameters and errors as of `LiveServer`.

    It says that it is TCP: asyncio lets answers out at once only then, and else they wait 40 ms for an acknowledgement.
    """
    if not behind_proxy and not _is_loopback(host):
        legal = "an address of the loopback, or --behind-proxy where a reverse proxy alone reaches it (docs/live.md)"
        raise InvalidParameterError(place="host", value=host, legal=legal)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(2048)
    except OSError as error:
        found.close()
        raise OSError(
            error.errno, f"{error.strerror}: expected --port with another one, 0: any", f"{host}:{port}"
        ) from None
    except BaseException:
        found.close()
        raise
    return found
