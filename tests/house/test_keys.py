"""A key earns its place: it stands on a page, in an example or a scenario, or a benchmark sets it."""

import re
from pathlib import Path

import pytest

from marketsched.mechanisms.registry import get, names
from marketsched.mechanisms.signatures import parameters_of

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("README.md", "docs/*.md", "docs/*.csv", "examples/**/*.*", "benchmarks/*.py", "marketsched/**/*.yaml")
FILES = [
    path
    for pattern in PLACES
    for path in ROOT.glob(pattern)
    if path.suffix in {".md", ".csv", ".yaml", ".py", ".ipynb"}
]


@pytest.fixture(scope="module")
def words():
    assert len(FILES) > 100  # or most of them are not where they are looked for
    return set(re.findall(r"\w+", "\n".join(path.read_text() for path in FILES)))


@pytest.mark.parametrize("kind", ["mechanism", "policy", "workload"])
def test_every_key_of_what_is_registered_stands_where_a_user_reads(kind, words):
    own = [name for name in names(kind) if not name.startswith("test:")]
    unread = {(name, key) for name in own for key in parameters_of(get(kind, name)) if key not in words}
    assert unread == set(), "write what it is for on a page, or take it out with its branch"
