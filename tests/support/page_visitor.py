"""A visitor of the dashboard without a browser: the messages that a page and its server exchange, by hand."""

import json
import socket
import time
import uuid
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import connect


class Visitor:
    """One visit, from the first message on.

    Parameters
    ----------
    url : str
        Of the server, as in ``http://127.0.0.1:8765``.
    **headers : str
        In place of those that a browser would send.
    """

    def __init__(self, url: str, **headers: str) -> None:
        there = urlsplit(url)
        sent = {"Origin": url, "Cookie": f"solara-session-id={uuid.uuid4()}", **headers}
        named = sent.pop("Host", there.netloc)
        where = f"ws://{named}/jupyter/api/kernels/{uuid.uuid4()}/channels?session_id={uuid.uuid4()}"
        line = socket.create_connection((there.hostname, there.port), timeout=10)
        try:
            self.line = connect(
                where, sock=line, additional_headers=sent, max_size=None, ping_interval=None, legacy=True
            )
        except BaseException:
            line.close()
            raise
        self.widgets: dict[str, dict[str, Any]] = {}
        self._session = str(uuid.uuid4())

    def send(self, kind: str, **content: Any) -> None:
        """Send a message of the page to its kernel."""
        head = {"msg_id": str(uuid.uuid4()), "msg_type": kind, "session": self._session, "username": "", "version": "5"}
        message = {"header": {**head, "date": "2026-01-01T00:00:00Z"}, "parent_header": {}, "metadata": {}}
        self.line.send(json.dumps({**message, "content": content, "channel": "shell", "buffers": []}))

    def open_page(self) -> None:
        """Ask for the page, as its script does."""
        self.send("comm_open", comm_id="control", target_name="solara.control", data={})
        arguments = {"path": "/", "appName": "__default__", "themes": {"light": {}, "dark": {}}, "dark": False}
        self.send("comm_msg", comm_id="control", data={"method": "run", "args": arguments})

    def listen(self, until, seconds: float = 60.0) -> bool:
        """Read what comes until ``until(state of all widgets)``; return whether that was so in time."""
        end = time.monotonic() + seconds
        while not until(self.widgets.values()):
            left = end - time.monotonic()
            if left <= 0:
                return False
            try:
                text = self.line.recv(timeout=left)
            except TimeoutError:
                return False
            message = json.loads(text) if isinstance(text, str) else {}
            content = message.get("content", {})
            state = content.get("data", {}).get("state") if isinstance(content.get("data"), dict) else None
            if isinstance(state, dict):
                self.widgets.setdefault(content["comm_id"], {"comm": content["comm_id"]}).update(state)
        return True

    def put(self, widget: str, **state: Any) -> None:
        """Change what a widget holds, as a browser would."""
        self.send("comm_msg", comm_id=widget, data={"method": "update", "state": state, "buffer_paths": []})

    def press(self, words: str) -> None:
        """Press the button that says ``words``."""
        buttons = (w for w in self.widgets.values() if w.get("_model_name") == "BtnModel")
        button = next(w["comm"] for w in buttons if words in str(w.get("children")))
        self.send("comm_msg", comm_id=button, data={"method": "custom", "content": {"event": "click", "data": {}}})

    def leave(self) -> None:
        """Close the line."""
        self.line.close()
