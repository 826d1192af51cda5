"""Run an example as its README says, away from the repository, and collect what it prints and draws.

    python tests/support/example_runs.py [NAME]...    # runs them, renews figure.png, output in README.md and notebook

Each folder of examples/ has a README.md with one command (the first indented block), the output it
prints (the block marked ``text``), and the figure.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
WIDGETS = "application/vnd.jupyter.widget-view+json"
PRINTED = re.compile(r"^```text\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Ran:
    """What came out: the exit status, what was printed, errors of cells, and the last picture (PNG, or None)."""

    status: int
    text: str
    errors: str
    figure: bytes | None

    def number(self, pattern: str) -> float:
        """Return the number that the first group of ``pattern`` finds in the output."""
        found = re.search(pattern, self.text)
        assert found, f"{pattern!r} is not in the output:\n{self.text}"
        return float(found[1].replace(",", ""))


def command_of(name: str) -> str:
    """Return the command in the README of an example."""
    found = re.search(r"^    (.+)$", (EXAMPLES / name / "README.md").read_text(), re.M)
    assert found, f"examples/{name}/README.md: no indented command"
    return found[1].strip()


def printed_in_readme(name: str) -> str:
    """Return the output that the README of an example shows."""
    (block,) = PRINTED.findall((EXAMPLES / name / "README.md").read_text())
    return str(block)


def run_example(name: str, work: Path, extra: str = "", seconds: float = 280) -> Ran:
    """Run the command of an example's README on a copy of its folder below ``work``, for at most these seconds."""
    shutil.copytree(
        EXAMPLES / name, work / "examples" / name, ignore=shutil.ignore_patterns("executed.ipynb", "figure.png")
    )
    command = command_of(name).replace(".venv/bin/", f"{Path(sys.executable).parent}/") + extra
    environment = {**os.environ, "MPLBACKEND": "Agg", "MARKETSCHED_PROGRESS": "off"}
    environment.pop("NUMBA_DISABLE_JIT", None)  # as readers run it
    if ".ipynb" in command:
        del environment["MPLBACKEND"]  # pictures belong into the notebook
    done = subprocess.run(
        command.split(), cwd=work, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    executed = work / "examples" / name / "executed.ipynb"
    if executed.exists():
        return _of_notebook(executed, done)
    figures = sorted(work.rglob("*.png"))
    return Ran(done.returncode, done.stdout, done.stderr, figures[-1].read_bytes() if figures else None)


def _of_notebook(executed: Path, done: subprocess.CompletedProcess[str]) -> Ran:
    text, errors, figure = "", "", None
    for cell in json.loads(executed.read_text())["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                joined = "".join(output["text"])
                text, errors = (text + joined, errors) if output["name"] == "stdout" else (text, errors + joined)
            elif "image/png" in output.get("data", {}):
                figure = base64.b64decode(output["data"]["image/png"])
            elif output["output_type"] == "error":
                errors += "\n".join(output["traceback"])
    return Ran(done.returncode, text, errors + done.stderr if done.returncode else errors, figure)


def outputs_of(notebook: Path) -> list[list[dict[str, Any]]]:
    """Return what the code cells of a notebook put out, as it is stored: text, and pictures of few colours.

    A page of widgets has no picture of its own: that cell puts out nothing here.
    """
    cells = json.loads(notebook.read_text())["cells"]
    return [
        [_stored(each) for each in cell["outputs"] if WIDGETS not in each.get("data", {})]
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def _stored(output: dict[str, Any]) -> dict[str, Any]:
    if output["output_type"] == "stream":
        return {
            "name": output["name"],
            "output_type": "stream",
            "text": "".join(output["text"]).splitlines(keepends=True),
        }
    data = {kind: each for kind, each in output["data"].items() if kind in ("image/png", "text/plain")}
    if "image/png" in data:
        data["image/png"] = base64.b64encode(small_picture(base64.b64decode(data["image/png"]))).decode() + "\n"
        data["text/plain"] = ["<Figure>"]
    return {"data": data, "metadata": {}, "output_type": "display_data"}


def small_picture(png: bytes) -> bytes:
    """Return a picture with at most 128 colours: a third of the bytes, and no difference to the eye."""
    shown, written = Image.open(io.BytesIO(png)).convert("RGB"), io.BytesIO()
    shown.quantize(128, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return min(png, written.getvalue(), key=len)


def store(notebook: Path, cells: list[list[dict[str, Any]]]) -> None:
    """Store the outputs of the code cells of a notebook; one without output keeps the picture of its page."""
    book = json.loads(notebook.read_text())
    for cell, outputs in zip((each for each in book["cells"] if each["cell_type"] == "code"), cells, strict=True):
        cell["outputs"], cell["execution_count"] = outputs or cell["outputs"], None
    notebook.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n")


def renew(name: str) -> None:
    """Run an example, and renew its figure, the output in its README, and the outputs that its notebook stores."""
    with tempfile.TemporaryDirectory() as work:
        ran = run_example(name, Path(work), seconds=900)
        executed = Path(work) / "examples" / name / "executed.ipynb"
        cells = outputs_of(executed) if executed.exists() else []
    if ran.status != 0 or ran.errors:
        raise SystemExit(f"{name}: exit status {ran.status}\n{ran.errors}")
    page = EXAMPLES / name / "README.md"
    page.write_text(PRINTED.sub(lambda _: f"```text\n{ran.text}```", page.read_text()))
    if ran.figure is not None:
        (page.parent / "figure.png").write_bytes(ran.figure)
    if cells:
        store(page.parent / "notebook.ipynb", cells)


if __name__ == "__main__":
    for each in sys.argv[1:] or sorted(path.parent.name for path in EXAMPLES.glob("*/README.md")):
        renew(each)
        print(f"renewed examples/{each}")
