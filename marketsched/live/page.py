"""The page of a market at ``/``: static files, which ask the calls of the service for everything they show.

The page holds a token in its memory alone: it is neither stored nor sent anywhere but to this service. Nothing is
loaded from elsewhere, no script stands in the page itself, and what the service answers is set as text, never as
markup.
"""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response

PAGES = {  # path: file, and what it is
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_TEXTS = {file: (Path(__file__).parent / "assets" / file).read_text(encoding="utf-8") for file, _ in PAGES.values()}


async def page_answer(path: str) -> Response:
    """Return one of the files of `PAGES`."""
    file, kind = PAGES[path]
    return Response(_TEXTS[file], headers={**HEADERS, "Content-Type": kind})
