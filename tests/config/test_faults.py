"""Faulty scenarios and configurations, each a line of faults.txt, are refused by place, value and what is legal."""

import copy
import re
from pathlib import Path

import pytest

from marketsched import Scenario
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms.errors import UNSEEN, InvalidParameterError
from marketsched.play.replaying import replay
from refusals import refused
from tiny_scenarios import TINY

SIZES = "capacity: 2, horizon: 9, max_concurrency: 2, max_delay: 12, max_duration: 3, max_value: 8"
DOCUMENTS = {  # what is changed, as YAML; TINY has jobs of deadlines, tables and lines
    "document": "null",
    "table": """
      {name: x, workload: {kind: jobs, capacity: 3, horizon: 12, max_concurrency: 2, max_delay: 9, max_duration: 3,
        max_value: 8, jobs: [{name: A, birth: 2, concurrency: 1, value: {kind: table, values: {5: 8, 6: 6.5}},
          requirements: [{arrival: 3, duration: 2, probability: 0.5}, {arrival: 4, duration: 2, probability: 0.5}]}]}}
    """,
    "mixture": """
      {name: mix, workload: {kind: mixtures, capacity: 24, horizon: 40, max_concurrency: 2, max_delay: 12,
        max_duration: 4, max_value: 8, jobs: [{name: nightly, birth: 2, statements: [
          {concurrency: 1, probability: 0.7, value: {kind: deadline, value: 4, deadline: 8},
            requirements: [{arrival: 2, duration: 1, probability: 0.5}, {arrival: 3, duration: 2, probability: 0.3}]},
          {concurrency: 2, probability: 0.2, value: {kind: linear, value: 8, from: 4, slope: 1, deadline: 9},
            requirements: [{arrival: 2, duration: 3, probability: 1, signal: long}]},
          {nothing: true, probability: 0.1}]}]}}
    """,
    "cluster": "{name: x, cluster: {}}",
    "esdp": "{name: x, cluster: {core: esdp}}",
    "opm": "{name: x, cluster: {core: opm}}",
    "replay": f"{{{SIZES}, oracle: {{kind: exact}}, pricing: {{kind: posted, prices: [0.5]}}, threshold: 1.0}}",
    "replay bid-price": f"{{{SIZES}, mechanism: bid-price}}",
}
FAULTS = [line for line in Path(__file__).with_name("faults.txt").read_text().splitlines() if line[0] != "#"]


def document(name, changes):
    """Return a document with its changes, and the new values by place."""
    if name == "document":
        return parse_yaml(changes, name), {}
    data = copy.deepcopy(TINY) if name == "market" else parse_yaml(DOCUMENTS[name], name)
    given = {}
    for change in changes.split(" ; "):
        path, _, text = change.removeprefix("-").partition("=")
        *above, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        here = data
        for step in above:
            here = here[step]
        if change.startswith("-"):
            del here[last]
        else:
            here[last] = parse_yaml(f"x: {text}", name)["x"]
            if not isinstance(here[last], dict | list):  # of these the error may show a part
                given[re.sub(r"\.(\d+)", r"[\1]", path)] = here[last]
    return data, given


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_by_place_value_and_what_is_legal(fault):
    name, changes, place, said = (part.strip() for part in fault.split(" | "))
    data, given = document(name, changes)
    read = Scenario.from_dict if isinstance(data, list) or not name.startswith("replay") else None
    error = refused(
        lambda: read(data) if read else replay(data, iter(pytest.fail, None)),
        said,
        seen=given.get(place, UNSEEN) if said.startswith("expected") else UNSEEN,
        error=InvalidParameterError,
    )
    assert error.place == place
