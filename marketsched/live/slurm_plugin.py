"""The plugin that Slurm's controller runs at each submission (`job_submit.lua`), and the table that it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from marketsched.live.slurm_sides import MarketJob

TEMPLATE = Path(__file__).with_name("job_submit.lua")


def plugin_text(
    announced: Path,
    *,
    partition: str = "market",
    default: bool = False,
    check_users: bool = True,
    operator: int | None = None,
    free_qos: str | None = None,
) -> str:
    """Return the plugin for a partition, which reads the bridge's table ``announced`` in the controller.

    With ``default`` jobs that name no partition go to this one. With ``check_users`` the owner of a job has to be the
    user who submits it. ``operator`` is the number of the user that the bridge runs as, beside root; None: who asks.
    Where nodes are regular or free, ``free_qos`` is the quality of service in which jobs begin, and users may name no
    other.
    """
    values = {
        "ANNOUNCED": _quoted(str(announced)),
        "PARTITION": _quoted(partition),
        "IS_DEFAULT": str(default).lower(),
        "CHECK_USERS": str(check_users).lower(),
        "OPERATOR": str(os.getuid() if operator is None else operator),
        "FREE_QOS": "nil" if free_qos is None else _quoted(free_qos),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"local {name} = nil", f"local {name} = {value}", 1)
    return text


def write_announced(path: Path, jobs: Iterable[MarketJob]) -> None:
    """Write the table of jobs that may come: name, owner and nodes of each; as a whole or not at all.

    On a cluster of several kinds a line for each shape, ``NAME/0``, ``NAME/1``.
    """
    rows = [row for job in jobs for row in _rows(job)]
    text = "".join(f"{name} {owner} {nodes}\n" for name, owner, nodes in rows)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _rows(job: MarketJob) -> list[tuple[str, str, int]]:
    if not job.shapes:
        return [(job.job, job.owner, job.nodes)]
    return [(f"{job.job}/{i}", job.owner, shape.nodes) for i, shape in enumerate(job.shapes)]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
