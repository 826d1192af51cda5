"""The table of rules, `mechanisms/rules.csv`: every cell comes out when the rule is played on drawn markets."""

import csv

import pytest

from marketsched.mechanisms.registry import builder_of, get, mechanism_names, truth_of
from marketsched.truthfulness.checks.tiny_verdict import tiny_verdict
from rule_properties import COLUMNS, TABLE, row

with TABLE.open(newline="", encoding="utf-8") as lines:
    ROWS = {cells["rule"]: cells for cells in csv.DictReader(lines)}


def test_every_rule_of_the_package_has_a_row_with_the_truth_that_the_registry_states():
    ours = {name for name in mechanism_names() if get("mechanism", name).__module__.startswith("marketsched.")}
    assert set(ROWS) == ours  # other tests of this process may have added some of theirs
    for name, cells in ROWS.items():
        assert [cells["truth, revealed"], cells["truth, hidden"]] == truth_of(name)
        assert list(cells) == ["rule", "truth, revealed", "truth, hidden", *COLUMNS]


@pytest.mark.compiled
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", sorted(ROWS, key=lambda name: (name != "first-come", name)))
def test_a_play_shows_every_cell(name):
    assert row(name) == ROWS[name]


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(name for name, cells in ROWS.items() if "unknown" in cells.values()))
def test_no_lie_pays_in_a_tiny_market_where_the_table_knows_of_none(name):
    assert tiny_verdict(builder_of(name))[0] == "searched"
