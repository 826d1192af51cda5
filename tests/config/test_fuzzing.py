"""Whatever text a scenario, a `--set` or a line of a log holds: it is read, or refused in one short line of ours."""

import json

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from draws import many
from marketsched import Scenario
from marketsched.config.scenario_file import built_in_text, scenario_names, with_changes
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms.errors import MarketschedError
from marketsched.play.replaying import replay
from tiny_scenarios import TINY

KINDS = [TINY, *(yaml.safe_load(built_in_text(name)) for name in scenario_names())]
SIZES = {"capacity": 3, "max_concurrency": 2, "max_duration": 3, "max_value": 8.0, "max_delay": 9, "horizon": 12}
REPLAY = {"mechanism": "posted-price", **SIZES, "pricing": {"kind": "posted", "prices": [0.5]}}
REPORT = {
    "concurrency": 1,
    "value": {"kind": "linear", "value": 4.0, "from": 4, "slope": 0.5, "deadline": 7},
    "requirements": [{"arrival": 2, "duration": 2, "probability": 0.5, "signal": 2}],
}
GOOD = {"round": 1, "event": "submit", "job": "good", "sow": REPORT}
SIGNS = st.sampled_from(
    ["\n", " ", "  ", "\t", ":", ": ", "- ", "-", "[", "]", "{", "}", ",", "&a ", "*a", "<<: *a", "!!", "!!int ", "!x ",
     "|", ">", "|2-\n", "?", "? ", "%YAML 1.1\n", "---\n", "...\n", "#", "'", '"', "\\", "@", "`", "~", "=", "\x00",
     "\x85", "\u2028", "\ufeff", "é", "null", ".nan", ".inf", "1e999", "0x1F", "1_000", "9" * 25, "9" * 5000, "-0",
     "0.1.2", "²", "&a [*a]", "!!timestamp x", "!!binary é", "!!python/object:os.system {}", "1:30", "name", "kind"]
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


def changed(data, place, value):
    """Return a copy with another value at a place; ``...`` takes it away."""
    first, *rest = place
    copy = dict(data) if isinstance(data, dict) else list(data)
    if not rest and value is ...:
        copy.pop(first)
    else:
        copy[first] = changed(data[first], rest, value) if rest else value
    return copy


@st.composite
def other_data(draw, data):
    """Return data of which up to three places hold something else, or are gone."""
    for _ in range(draw(st.integers(1, 3))):
        if spots := list(places(data)):
            data = changed(data, draw(st.sampled_from(spots)), draw(DATA | st.just(...)))
    return data


@st.composite
def other_text(draw, text):
    """Return text with up to four pieces put in, taken out, written twice or exchanged."""
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 12)))
        piece = draw(SIGNS | st.text(max_size=6))
        text = text[:begin] + draw(st.sampled_from([piece, piece, "", text[begin:end] * 3])) + text[end:]
    return text


def read_or_refused(call):
    try:
        call()
    except MarketschedError as error:
        assert "\n" not in str(error) and 0 < len(str(error)) < 2500


drawn = settings(max_examples=many(400), suppress_health_check=list(HealthCheck))


@drawn
@given(st.data())
def test_any_text_of_a_scenario_is_read_or_refused_in_one_line(data):
    text = yaml.safe_dump(data.draw(other_data(data.draw(st.sampled_from(KINDS)))), sort_keys=False)
    text = data.draw(other_text(text)) if data.draw(st.booleans()) else text
    read_or_refused(lambda: Scenario.from_dict(parse_yaml(text, "bad.yaml")))


@drawn
@given(st.data())
def test_any_change_of_a_scenario_is_made_or_refused_in_one_line(data):
    scenario = data.draw(st.sampled_from(KINDS))
    place = ".".join(map(str, data.draw(st.sampled_from(list(places(scenario))))))
    place = data.draw(st.just(place) | other_text(place))
    value = data.draw(other_text("1") | DATA.map(lambda x: yaml.dump(x, default_flow_style=True).strip()))
    read_or_refused(lambda: Scenario.from_dict(with_changes(scenario, [f"{place}={value}"])))


@drawn
@given(st.data())
def test_behind_any_line_of_a_log_the_next_one_is_answered(data):
    text = json.dumps(data.draw(other_data({**GOOD, "job": "bad"}) | DATA))
    text = data.draw(other_text(text)) if data.draw(st.booleans()) else text
    assume("good" not in text)
    *_, last = replay(REPLAY, [text.replace("\n", " ").replace("\r", " "), json.dumps(GOOD)])
    assert last["job"] == "good" or "round" in text  # the line may have ended round 1
