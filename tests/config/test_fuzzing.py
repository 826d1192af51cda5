"""Whatever text a scenario, a `--set` or a log holds: the command works or ends in one line, soon and within memory."""

import json
import re

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bad_inputs import EVENTS, KINDS, NASTY, Case, Ending, as_it_stands, attempt, crash

SIGNS = st.sampled_from(
    ["\n", " ", "  ", "\t", ":", ": ", "- ", "-", "[", "]", "{", "}", ",", "&a ", "*a", "<<: *a", "!!", "!!int ", "!x ",
     "|", ">", "|2-\n", "?", "? ", "%YAML 1.1\n", "---\n", "...\n", "#", "'", '"', "\\", "@", "`", "~", "=", "\x00",
     "\x85", "\u2028", "\ufeff", "\ud7ff", "é", "null", ".nan", ".inf", "1e999", "0x1F", "1_000", "9" * 25, "-0",
     "0.1.2", "name", "kind"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 60),
    st.integers(),
    st.floats(),
    st.floats(0, 2),
    st.text(max_size=12),
    st.sampled_from(["exact", "auto", "posted", "mixtures", "esdp", "1e3", "../x", "posted-price", "theory"]),
)
DATA = st.recursive(
    SCALARS, lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=5), x, max_size=3), max_leaves=8
)


def places(data, above=()):
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, below in items:
        yield (*above, key)
        yield from places(below, (*above, key))


PLACES = {kind: list(places(data)) for kind, data in KINDS.items()}


def changed(data, place, do):
    """Return a copy with something done to the table or list that a place lies in."""
    first, *rest = place
    copy = dict(data) if isinstance(data, dict) else list(data)
    if rest:
        copy[first] = changed(data[first], rest, do)
    else:
        do(copy, first)
    return copy


@st.composite
def other_data(draw, data, spots):
    """Return data of which up to three places hold something else, are gone, or have a neighbour."""
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(spots))
        what, value = draw(st.sampled_from(["put", "put", "drop", "add"])), draw(DATA)

        def do(table, key, what=what, value=value):
            if what == "drop":
                table.pop(key)
            elif what == "add" and isinstance(table, list):
                table.append(value)
            elif what == "add":
                table[draw(st.text(max_size=6)) or key] = value
            else:
                table[key] = value

        try:
            data = changed(data, place, do)
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    return data


@st.composite
def other_text(draw, text):
    """Return text with up to four pieces put in, taken out, written twice or exchanged."""
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 12)))
        piece = draw(SIGNS | st.text(max_size=6) | st.sampled_from(sorted(NASTY.values(), key=len)[:-4]))
        text = text[:begin] + draw(st.sampled_from([piece, piece, "", text[begin:end] * 3])) + text[end:]
    return text


@st.composite
def scenarios(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    dumped = yaml.safe_dump(KINDS[kind], sort_keys=False)
    if draw(st.booleans()):
        data = draw(other_data(KINDS[kind], PLACES[kind]))
        dumped = yaml.dump(data, sort_keys=False, allow_unicode=draw(st.booleans()))
    if draw(st.booleans()):
        dumped = draw(other_text(dumped))
    if draw(st.integers(0, 30)) == 0:
        dumped = draw(st.lists(SIGNS | st.text(max_size=9), max_size=40).map("".join))
    return Case(kind, dumped)


@st.composite
def changes(draw):
    kind = draw(st.sampled_from(sorted(set(KINDS) - {"replay"})))
    options = []
    for _ in range(draw(st.integers(1, 2))):
        place = ".".join(map(str, draw(st.sampled_from(PLACES[kind]))))
        place = draw(st.just(place) | st.just(place) | other_text(place))
        value = draw(other_text("1") | DATA.map(lambda x: yaml.dump(x, default_flow_style=True).strip()))
        options += ["--set", f"{place}={value}"]
    return Case(kind, yaml.safe_dump(KINDS[kind], sort_keys=False), tuple(options))


@st.composite
def lines(draw):
    event = draw(st.sampled_from(EVENTS))
    text = json.dumps(draw(st.one_of(other_data(event, list(places(event))), DATA)))
    if draw(st.booleans()):
        text = draw(other_text(text))
    return Case("events", text.replace("\n", " ").replace("\r", " "))


def fuzz(cases):
    @settings(max_examples=40, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def each(case):
        text = "".join([case.text, *case.options])
        assume(not re.search("[\ud800-\udfff]", text))  # half a character: in no file and on no command line
        assume(not any("\x00" in option for option in case.options))  # on no command line
        assume(case.kind != "events" or "good" not in case.text)  # the name of the line behind it
        wrong = crash(case, attempt(case))
        assert not wrong, (wrong, case)

    each()


@pytest.fixture(scope="module")
def compiled():
    """Every kind as it stands has played once, with time to compile."""
    assert {kind: as_it_stands(kind).status for kind in (*KINDS, "events")} == dict.fromkeys((*KINDS, "events"), 0)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("cases", [scenarios, changes, lines])
def test_any_text_works_or_ends_in_one_line(cases, compiled):
    fuzz(cases())


def test_a_crash_would_be_found():
    case = Case("jobs", "")
    line = "marketsched: bad.yaml: workload.capacity = -1: expected a whole number >= 1\n"
    for ending in (
        Ending("killed by SIGSEGV", "", "", 0.1),
        Ending(99, "", "Traceback: OverflowError: too large", 0.1),
        Ending(1, "", line, 0.1),
        Ending(2, "", line * 2, 0.1),
        Ending(2, "", line.replace("-1", "1" * 5000), 0.1),
    ):
        assert crash(case, ending)
    assert not crash(case, Ending(2, "", line, 0.1)) and not crash(case, Ending(0, "played", "", 0.1))
