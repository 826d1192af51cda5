"""A folder of results, as `marketsched report` finds it: what wrote it, and what is in it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.output import INCOMPLETE, META

if TYPE_CHECKING:
    import pandas as pd

# What a folder holds, and how to say so.
KINDS = {
    "sweep": "sweep",
    "market": "market run",
    "cluster": "cluster run",
    "over": "comparison of policies over a setting",
    "policies": "comparison of policies",
    "mechanisms": "comparison of mechanisms",
    "audit": "audit of truthfulness",
    "learning": "market of learning owners",
    "hard": "search for hard instances",
    "experiment": "experiment of a paper",
    "reproduced": "reproduction of papers",
    "results": "results",
}


PNG_HEAD, PNG_TAIL = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"


def data_uri(kind: str, content: bytes) -> str:
    """Return content as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@dataclass(frozen=True, slots=True)
class Results:
    """A folder of results.

    ``kind`` is a key of `KINDS`, ``meta`` what `meta.json` says, ``incomplete`` why something is
    missing, or None if nothing is.
    """

    path: Path
    kind: str
    meta: dict[str, Any]
    incomplete: str | None

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return (self.path / name).is_file()

    def names(self, *patterns: str) -> list[str]:
        """Return the names of visible files that match a pattern, in order."""
        found = {path.name for pattern in patterns for path in self.path.glob(pattern) if path.is_file()}
        return sorted(name for name in found if not name.startswith("."))

    def text(self, name: str) -> str:
        """Return a text file.

        Raises
        ------
        InvalidParameterError
            If it is missing or not UTF-8.
        """
        try:
            return self.data(name).decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidParameterError(f"{self.path / name} is damaged: expected UTF-8 text") from None

    def data(self, name: str) -> bytes:
        """Return a file's bytes.

        Raises
        ------
        InvalidParameterError
            If it is missing.
        """
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            raise InvalidParameterError(
                f"{self.path} has no {name}: expected all files of a {KINDS[self.kind]}"
            ) from None

    def picture(self, name: str) -> str:
        """Return a PNG or SVG picture as a data URI.

        Raises
        ------
        InvalidParameterError
            If it is missing or damaged.
        """
        content = self.data(name)
        if name.endswith(".svg"):
            sound, kind = b"<svg" in content and b"</svg>" in content, "image/svg+xml"
        else:
            sound, kind = content.startswith(PNG_HEAD) and content.endswith(PNG_TAIL), "image/png"
        if not sound:
            raise InvalidParameterError(f"{self.path / name} is damaged: expected a {name[-3:].upper()} picture")
        return data_uri(kind, content)

    def json(self, name: str) -> Any:
        """Return what a JSON file says.

        Raises
        ------
        InvalidParameterError
            If it is missing or damaged.
        """
        try:
            return json.loads(self.text(name))
        except (json.JSONDecodeError, RecursionError):
            raise InvalidParameterError(f"{self.path / name} is damaged: expected JSON") from None

    def table(self, name: str) -> pd.DataFrame:
        """Return a Parquet table.

        Raises
        ------
        InvalidParameterError
            If it is missing or damaged.
        """
        import io

        import pandas as pd

        content = io.BytesIO(self.data(name))
        try:
            return pd.read_parquet(content)
        except (OSError, ValueError, KeyError, TypeError, NotImplementedError):
            raise InvalidParameterError(f"{self.path / name} is damaged: expected a Parquet table") from None

    def rows(self, name: str) -> int:
        """Return how many rows a Parquet table has.

        Raises
        ------
        InvalidParameterError
            If it is damaged.
        """
        import pyarrow.parquet as pq

        try:
            return int(pq.read_metadata(self.path / name).num_rows)
        except (OSError, ValueError):
            raise InvalidParameterError(f"{self.path / name} is damaged: expected a Parquet table") from None


def read_results(path: Path) -> Results:
    """Return what a folder of results holds.

    Parameters
    ----------
    path : Path
        A folder that a run, comparison, audit or sweep has written.

    Raises
    ------
    InvalidParameterError
        If it is not such a folder, or its manifest is damaged.
    """
    if not path.is_dir():
        seen = "is not a folder" if path.exists() else "is not there"
        raise InvalidParameterError(f"{path} {seen}: expected a folder that marketsched wrote")
    if not (path / META).is_file():
        inside = sorted(each.parent.name for each in path.glob(f"*/{META}") if not each.parent.name.startswith("."))
        hint = f", such as {path / inside[0]}" if inside else ""
        raise InvalidParameterError(f"{path} holds no {META}: expected a folder that marketsched wrote{hint}")
    bare = Results(path, "results", {}, None)
    meta = bare.json(META)
    if not isinstance(meta, dict) or not isinstance(versions := meta.get("versions"), dict):
        raise InvalidParameterError(f"{path / META} names no versions: expected a folder that marketsched wrote")
    if "marketsched" not in versions:
        raise InvalidParameterError(f"{path / META} names no version of marketsched: expected a folder that it wrote")
    incomplete = None
    if bare.has(INCOMPLETE):
        incomplete = bare.text(INCOMPLETE).strip() or "something is missing"
    elif meta.get("complete") is False:
        incomplete = "interrupted: what is here is finished, the rest is missing"
    return Results(path, _kind(bare, meta), meta, incomplete)


def _kind(found: Results, meta: dict[str, Any]) -> str:
    """Return what wrote a folder: each leaves entries or files that no other does."""
    signs = {
        meta.get("kind", ""): meta.get("kind") in KINDS,
        "sweep": meta.get("kind") == "sweep",
        "reproduced": meta.get("kind") == "reproduced",
        "learning": meta.get("kind") == "learning",
        "results": "kind" in meta,  # of a kind this version does not know
        "experiment": {"experiment", "place"} <= set(meta) and found.has("table.parquet"),
        "market": found.has("events.parquet"),
        "cluster": found.has("slots.parquet"),
        "over": {"key", "values", "policies"} <= set(meta),
        "policies": {"runs", "policies"} <= set(meta),
        "mechanisms": {"runs", "mechanisms"} <= set(meta),
        "audit": {"tolerance", "budget_seconds"} <= set(meta),
        "hard": bool(found.names("hard-*.yaml")),
    }
    return next((kind for kind, present in signs.items() if present), "results")
