"""Trying other versions: what differs is seen, and what is tried exists."""

import pandas as pd

from versions import COMMANDS, ROOMS, ROOT, unequal


def test_tables_that_differ_in_a_bit_are_named():
    one = {"jobs": pd.DataFrame({"value": [0.1 + 0.2]}), "rounds": pd.DataFrame({"load": [3]})}
    assert unequal(one, {name: table.copy() for name, table in one.items()}) == []
    assert unequal(one, {**one, "jobs": pd.DataFrame({"value": [0.3]})}) == ["jobs"]
    assert unequal(one, {"jobs": one["jobs"]}) == unequal({"jobs": one["jobs"]}, one) == ["rounds"]


def test_every_command_is_tried():
    from typer.main import get_command

    from marketsched.show.cli import app

    known = set(get_command(app).list_commands(None)) - {
        "dashboard",
        "replay",
    }  # one serves for ever, one reads a log of events
    assert {words.split()[0] for words in COMMANDS} == known
    assert all((ROOT / room).is_dir() for room in ROOMS)
