"""Serves the dashboard on loopback: its own scripts come with the page, and no other host is contacted."""

from __future__ import annotations

import logging
import os
import re
import socket
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from marketsched.config.scenario import Scenario
from marketsched.dashboard.session import Session
from marketsched.dashboard.settings import first_form, read_form
from marketsched.mechanisms.errors import InvalidParameterError

HOST = "127.0.0.1"
OWN_NAMES = {HOST, "localhost", "[::1]"}
LAST_SECONDS = 2.0  # that a thread gets to end
NEEDED = ("solara", "ipyvuetify", "uvicorn", "solara_assets")
INSTALL = "pip install 'marketsched[viz]'"

# Read by the page's framework when it is first imported.
_ENVIRONMENT = {
    "SOLARA_TELEMETRY_MIXPANEL_ENABLE": "False",  # on by default: it would report every visit
    "SOLARA_THEME_SHOW_BANNER": "False",
    "SOLARA_THEME_TITLE": "marketsched",
    "SOLARA_ASSETS_CDN": "http://127.0.0.1:9",  # nothing listens there: the scripts that were installed, or none
    "SOLARA_KERNEL_CULL_TIMEOUT": "60s",  # a line that drops finds its market again; who has left is forgotten
    "SOLARA_MODE": "production",
}


def missing_packages() -> list[str]:
    """Return the missing packages of the page."""
    return [name for name in NEEDED if find_spec(name) is None]


class _OwnVisitorsOnly:
    """Refuses what no page of ours asks for: requests under another host's name, and of other sites' pages.

    A page of another site may open a websocket to this machine, and a name may be made to point to it. The
    browser says in both cases who is asking: in ``Host`` and ``Origin``. Ports may differ, as behind a tunnel.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or refuse with status 403."""
        if scope["type"] == "lifespan" or self._own(scope["headers"]):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":  # refused before it is opened, which is a 403
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"expected a visitor of this machine's own page\n"})

    def _own(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Say whether the host is this machine, and the asking page, if there is one, of the same place."""
        found = {name: [value for other, value in headers if other == name] for name in (b"host", b"origin")}
        hosts, origins = ([value.decode("latin-1").lower() for value in found[name]] for name in found)
        if len(hosts) != 1 or len(origins) > 1:
            return False
        name = hosts[0].rpartition(":")[0] if re.search(r":\d+$", hosts[0]) else hosts[0]
        return name in OWN_NAMES and all(origin in (f"http://{hosts[0]}", f"https://{hosts[0]}") for origin in origins)


class DashboardServer:
    """A server of one scenario's dashboard on loopback, in a thread of its own; port 0: any that is free.

    ``playing``: a visitor's market plays as soon as it is there. Raises InvalidParameterError if the packages of the
    extra are missing, or the port is taken, and MarketschedError if the scenario's market cannot be built.
    """

    def __init__(
        self, scenario: Scenario, *, seed: int = 0, port: int = 0, data: Path | None = None, playing: bool = False
    ) -> None:
        missing = missing_packages()
        if missing:
            raise InvalidParameterError(f"the dashboard needs {', '.join(missing)}, not installed: {INSTALL}")
        port = _free_port(port)
        _check_playable(scenario, seed, data)  # raised at once, not when a page is opened
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        from marketsched.dashboard import page as dashboard_page  # the extra `viz`; reads settings when imported

        dashboard_page.SERVED.scenario, dashboard_page.SERVED.seed = scenario, seed
        dashboard_page.SERVED.data, dashboard_page.SERVED.playing = data, playing
        from solara.server import app as apps
        from solara.server import settings
        from solara.server.starlette import ServerStarlette
        from solara.server.starlette import app as framework

        settings.assets.extra_locations = [str(Path(__file__).parent / "assets")]
        # Its session cookie is for this site alone, which is what we want, and no reason for a warning.
        warnings.filterwarnings("ignore", "Cookies with samesite=none require https", UserWarning)

        # A visitor's page may be closed twice, by its own clock and at the end: no news where the server stops.
        logging.getLogger("solara.server.app").addFilter(lambda record: "already closed" not in record.getMessage())

        self._players = dashboard_page.PLAYERS
        self._app: Any = apps.AppScript("marketsched.dashboard.page")
        apps.apps["__default__"] = self._app
        self._app.init()
        self._server: Any = ServerStarlette(
            host=HOST, port=port, starlette_app=_OwnVisitorsOnly(framework), log_level="critical"
        )
        self.url = f"http://{HOST}:{port}"

    def start(self) -> None:
        """Serve from now on; return once visitors can come."""
        self._server.serve_threaded()
        self._server.wait_until_serving()

    def wait(self) -> None:
        """Serve until interrupted."""
        while not self._server.stopped.wait(1.0):
            pass

    def stop(self) -> bool:
        """Serve no longer, and let go of all visitors' markets; False: one is still being built, and will not stop."""
        self._server.stop_serving()
        players = list(self._players)
        self._app.close()
        for player in players:
            player.close()
        return all([player.join(LAST_SECONDS) for player in players])


def _check_playable(scenario: Scenario, seed: int, data: Path | None) -> None:
    """Build the scenario's market once."""
    settings, faults = read_form(first_form(scenario, seed))
    if settings is None:
        control, fault = next(iter(faults.items()))
        raise InvalidParameterError(f"{control}: {fault}")
    Session(scenario, settings, data=data)


def _free_port(port: int) -> int:
    """Return ``port``, or a free one for 0; refuse one that is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as fault:
            raise InvalidParameterError(
                f"port {port} on {HOST}: {fault.strerror}: expected a free one, or 0 for any"
            ) from None
        return int(probe.getsockname()[1])
