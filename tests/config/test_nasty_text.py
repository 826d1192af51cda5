"""Texts that ask for more than there is, or for what no scenario holds: one line each, soon, and nothing built."""

import time

import pytest

from marketsched import Scenario
from marketsched.config.json_lines import parse_line
from marketsched.config.scenario_file import with_changes
from marketsched.config.strict_yaml import MOST_LEVELS, parse_yaml
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.errors import EventError
from tiny_scenarios import tiny

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)


def refusal(call, error=InvalidParameterError):
    """Return the line with which ``call`` is refused, within a second or two."""
    began = time.perf_counter()
    with pytest.raises(error) as caught:
        call()
    assert time.perf_counter() - began < 5
    line = str(caught.value)
    assert "\n" not in line and len(line) < 600
    return line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "more than 5,000,000 parts, aliases written out"),
        ("a: &a [*a]", "the alias stands inside what it repeats"),
        ("[" * 200_000, f"more than {MOST_LEVELS} levels"),
        ("{a: " * 1_000, f"more than {MOST_LEVELS} levels"),
        ("- " * 5_000, f"more than {MOST_LEVELS} levels"),
        ("a: !!int abc", "line 1, column 4: 'abc' is not a decimal number"),
        ("a: !!float abc", "'abc' is not a decimal number"),
        ("a: !!bool maybe", "'maybe' is not true or false"),
        ("a: !!int [1]", "expected a scalar node"),
        ("a: !!map [1]", "is not a table of keys"),
        ("a: !!timestamp 2020-01-01", "timestamp"),
        ("a: !!omap [b: 1]", "omap"),
        ("a: !!set {b}", "set"),
        ("a: !!binary aGk=", "binary"),
        ("a: !!python/object:os.system x", "python"),
        ("a: " + "1" * 5_000, "is not a decimal number of at most 4,300 digits"),
        ("? [1]\n: 2", "a key must be a plain word"),
    ],
    ids=lambda x: x[:24],
)
def test_a_nasty_document_is_refused_in_one_line(text, words):
    line = refusal(lambda: parse_yaml(text, "file"))
    assert line.startswith("file: ") and words in line and "expected a YAML document" in line


def test_aliases_within_bounds_and_plain_tags_are_read():
    assert parse_yaml("a: &a {x: 1}\nb: [*a, *a]\nc: !!str 5\nd: {<<: *a, y: 2}", "file") == {
        "a": {"x": 1}, "b": [{"x": 1}, {"x": 1}], "c": "5", "d": {"x": 1, "y": 2},
    }  # fmt: skip
    levels = MOST_LEVELS - 1
    assert parse_yaml("[" * levels + "]" * levels, "file") is not None


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 1_000, "[" * 100 + "]" * 100])
def test_deep_json_is_refused_before_it_is_read(text):
    assert "levels" in refusal(lambda: parse_line(text), EventError)


def test_brackets_in_a_text_are_no_levels():
    assert parse_line('{"job": "' + "[" * 500 + '\\"{"}') == {"job": "[" * 500 + '"{'}


@pytest.mark.parametrize("step", ["²", "٣", "9" * 5_000, "-1", "x", ""])
def test_a_place_in_a_list_is_a_plain_number(step):
    refusal(lambda: with_changes(tiny(), [f"workload.jobs.{step}.birth=1"]))


HUGE = [int("9" * 401), 10**5_000, 2**63, 2**64, 1e308, float("inf"), float("nan"), 1e-320, -1, "1e3", [], True]


@pytest.mark.parametrize(
    "value", HUGE, ids=lambda x: f"{type(x).__name__} {str(x)[:9]}" if x != 10**5_000 else "10^5000"
)
@pytest.mark.parametrize(
    "place",
    [
        "workload.capacity", "workload.horizon", "workload.max_concurrency", "workload.max_duration",
        "workload.max_delay", "workload.max_value", "workload.round_seconds", "workload.jobs.0.birth",
        "workload.jobs.0.concurrency", "mechanism.capacity", "mechanism.horizon", "mechanism.oracle.samples",
        "mechanism.pricing.floor", "mechanism.pricing.kappa", "owners.misreporting",
    ],
)  # fmt: skip
def test_a_number_outside_its_range_is_refused_by_place(place, value):
    data = tiny(mechanism={"pricing": {"kind": "exponential"}, "oracle": {"kind": "monte-carlo"}})
    *above, last = [int(step) if step.isdigit() else step for step in place.split(".")]
    here = data
    for step in above:
        here = here.setdefault(step, {}) if isinstance(here, dict) else here[step]
    here[last] = value
    lawful = {
        1e-320: "owners.misreporting",
        2**63: "max_value round_seconds floor",
        2**64: "max_value round_seconds floor",
    }
    if isinstance(value, (int, float)) and value in lawful and last in lawful[value]:
        Scenario.from_dict(data)  # hardly anybody lies; an amount of credits or seconds, not a size
        return
    line = refusal(lambda: Scenario.from_dict(data))
    assert last in line and "expected" in line


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"core": "esdp", "instance": {"kind": "published", "edge_probability": 1e-320}}, "edge_probability = 1e-320"),
        ({"core": "esdp", "instance": {"kind": "published", "edge_probability": 1e-9}}, "edge_probability = 1e-09"),
        ({"core": "opm", "slots": 20, "machines": {"kind": "gamma", "up": [1e-8, 1e-8], "down": [1e-8, 1e-8]}},
         "cluster.machines.up = (1e-08, 1e-08): expected shape and mean"),
    ],
)  # fmt: skip
def test_draws_that_would_never_end_are_refused(cluster, words):
    def world():
        return Scenario.from_dict({"name": "x", "cluster": cluster}).cluster.world(0)

    assert words in refusal(world)
