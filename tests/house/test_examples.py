"""The examples: each runs from its README's command, prints what the README shows, and says only what it prints."""

import json
import re

import pytest

import draws
from example_runs import EXAMPLES, PRINTED, ROOT, command_of, printed_in_readme, run_example
from marketsched.live.slurm_plugin import plugin_text
from slurm_cluster import OneHostCluster
from slurm_trials import WITH_SLURM

FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/README.md"))
NAMES = [folder.name for folder in FOLDERS if not (folder / "pyproject.toml").exists()]  # a package has its own test
NOTEBOOKS = sorted(EXAMPLES.glob("*/*.ipynb"))
MOST_BYTES = 150_000  # of a figure
MOST_STORED = 80_000  # letters of a picture in a notebook: 60 kB
MINUTES = ("forecasts-that-lie", "learning-to-lie")
PAGES = ("README.md", "solutions.md")
LONGEST = 10  # lines of a function in a notebook, beside its signature and docstring
MEASURED = re.compile(r"(?<![\w.^(])-?(?:\d+\.\d+|\d+(?= \+- )|(?<=\+- )\d+)(?![\w.]*\w)")


def measured(prose):
    """Return the figures of a text that must come from a run: with a decimal point, or with an interval."""
    return {float(number) for number in MEASURED.findall(prose)}


def prose_of(page):
    """Return the text of a README or of the cells of a notebook, without code, output and sources."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        text = PRINTED.sub("", page.read_text())
    text = re.sub(r"\*\*Source\.\*\*.*", "", text, flags=re.S)
    return re.sub(r"^    .*$|`[^`]*`", "", text, flags=re.M)


def stored_text(notebook):
    """Return what a notebook's stored outputs say."""
    outputs = [each for cell in json.loads(notebook.read_text())["cells"] for each in cell.get("outputs", [])]
    return "".join("".join(each["text"]) for each in outputs if each.get("name") == "stdout")


# --- what is stored -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_example_has_a_question_a_command_and_a_small_figure(name):
    page = (EXAMPLES / name / "README.md").read_text()
    title = page.splitlines()[0].removeprefix("# ")
    assert title.endswith("?") or title.startswith("Bring your own")
    shown = f"| [![]({name}/figure.png)]({name}/README.md) | [{title}]({name}/README.md) |"
    assert shown in (EXAMPLES / "README.md").read_text()
    (script,) = re.findall(r"examples/\S+\.(?:py|ipynb)", command_of(name))
    assert (ROOT / script).is_file() and printed_in_readme(name)
    figure = EXAMPLES / name / "figure.png"
    assert "(figure.png)" in page and figure.read_bytes().startswith(b"\x89PNG")
    assert figure.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.parent.name)
def test_notebooks_are_stored_with_small_outputs_and_read_well(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] is None for cell in code)
    assert stored_text(notebook) == printed_in_readme(notebook.parent.name)
    pictures = [each["data"]["image/png"] for cell in code for each in cell["outputs"] if "data" in each]
    assert pictures and max(map(len, pictures)) < MOST_STORED
    assert len({cell["id"] for cell in cells}) == len(cells)
    text = "\n".join("".join(cell["source"]) for cell in cells)
    places = [
        text.find(word) for word in ("# ", "**Question.**", "**Method.**", "## Result", "## Exercises", "**Source.**")
    ]
    assert places == sorted(places) and places[0] == 0
    for function in re.findall(r"^def .*(?:\n(?: .*)?$)*", "\n\n".join("".join(c["source"]) for c in code), re.M):
        lines = [line for line in function.splitlines()[1:] if line.strip() and '"""' not in line]
        assert len(lines) <= LONGEST, function


def test_every_picture_and_script_is_used():
    for folder in (EXAMPLES / name for name in NAMES):
        kept = {path.name for path in folder.iterdir()} - {*PAGES, "figure.png", "executed.ipynb", "__pycache__"}
        given = {name for name in kept if name.endswith((".yaml", ".txt"))}  # what a script reads, named in the text
        assert all(f"`{name}`" in (folder / "README.md").read_text() for name in given)
        assert kept - given == {re.search(r"/([^/\s]+\.(?:py|ipynb))", command_of(folder.name))[1]}


def test_the_check_of_figures_in_texts_finds_what_was_not_printed():
    assert measured("gains 5.06 credits, 12 +- 3 % of 40 worlds, between -0.6 and 6.8") == {5.06, 12, 3, -0.6, 6.8}
    assert measured("after 2000 slots, within 5 %, power 2^(t-n-1), in 2011") == set()


# --- what comes out -----------------------------------------------------------------------------------


NEEDED = {"ppo": ("stable_baselines3",)}
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
# The last bit of an exponential is another one on another kind of processor, and a tie decided otherwise moves these.
BY_PROCESSOR = {"gpu-cluster", "which-mechanism"}  # prices descend with such sums
TENTHS = 0.5


def nearly(text, stated):
    """Tell whether two outputs say the same with numbers that are some tenths apart at most."""
    one, other = ([float(x.replace(",", "")) for x in NUMBER.findall(each)] for each in (text, stated))
    pairs = zip(one, other, strict=False)
    return NUMBER.split(text) == NUMBER.split(stated) and all(abs(a - b) <= TENTHS for a, b in pairs)


def test_outputs_that_are_nearly_the_same():
    assert nearly("a  77.0, +0.2 of 1,000\n", "a  77.1, +0.3 of 1,000\n")
    assert not nearly("a  77.0\n", "a  78.0\n") and not nearly("b  77.0\n", "a  77.0\n")


def check_example(name, work, extra=""):
    """Run an example from its README's command; compare what it prints and says."""
    ran = run_example(name, work, extra)
    assert (ran.status, ran.errors) == (0, "")
    stated = printed_in_readme(name)
    assert ran.text == stated or (name in BY_PROCESSOR and nearly(ran.text, stated)), ran.text
    printed = {float(x.replace(",", "")) for x in NUMBER.findall(stated)}
    for page in (EXAMPLES / name).glob("*.*"):
        if page.suffix in (".md", ".ipynb") and page.name not in ("executed.ipynb", "solutions.md"):
            assert measured(prose_of(page)) <= printed, page
    return ran


WITH_OWN_TEST = {"live-slurm"}
LONG = {"learning-speeds", "owners-in-mesa", "which-lie-pays", "which-mechanism", "gpu-cluster", "why-truthful"}
LONG |= {"bid-prices", "reservations", "ogasched-or-fairness"}


@pytest.mark.slow
@pytest.mark.long
@WITH_SLURM
def test_a_day_in_front_of_slurm_is_the_one_of_its_readme(tmp_path, monkeypatch):
    plugin, announced = tmp_path / "job_submit.lua", tmp_path / "announced"
    plugin.write_text(plugin_text(announced, default=True, check_users=False))
    with OneHostCluster(tmp_path / "c", 4, lua=plugin) as cluster:
        monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        ran = check_example("live-slurm", tmp_path, f" {announced}")
    assert ran.text.count(" pays ") == 10 and ran.text.count(" overrun ") == 1
    balances = [ran.number(rf"\n{name} +([\d.]+) credits") for name in ("ann", "bob", "cat", "market")]
    assert sum(balances) == pytest.approx(300)
    assert sum(float(x) for x in re.findall(r"pays +([\d.]+)", ran.text)) == pytest.approx(balances[-1])


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.long] if x in LONG else []) for x in NAMES if x not in WITH_OWN_TEST]
)
def test_the_example_runs_and_its_texts_state_what_it_prints(name, tmp_path):
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package, reason=f"what the README of {name} installs")
    if name in MINUTES and draws.PART > 1:
        pytest.skip("takes more than a minute: `make thorough` runs it")
    ran = check_example(name, tmp_path)
    assert ran.figure is not None and ran.figure.startswith(b"\x89PNG")
