"""Tables of words: what a column of dashes does, on a terminal and on a page."""

import io

import pandas as pd
from rich.console import Console
from rich.text import Text

from marketsched.results.views import (
    MOST_ROWS,
    View,
    flat,
    frame_table,
    pairs_table,
    parts_of_view,
    plain_table,
    summary_table,
)


def printed(part):
    console = Console(width=60, record=True, file=io.StringIO())
    console.print(part)
    return console.export_text()


def test_columns_of_dashes_are_left_out_and_no_others():
    table = plain_table("known", "never", "sometimes", room=5)
    table.add_row("first", "1", "-", "-")
    table.add_row("second", "2", "-", "7")
    assert "never" not in printed(table) and "sometimes" in printed(table)
    assert table.shown().columns == ("", "known", "sometimes")
    assert table.shown().rows == (("first", "1", "-"), ("second", "2", "7"))


def test_a_name_that_is_a_dash_stays():
    table = plain_table("known")
    table.add_row("-", "1")
    assert table.shown().rows == (("-", "1"),) and "-" in printed(table)


def test_details_are_for_pages():
    view = View(Text("answer"), Text("- first"), details=[Text("- second")])
    assert "second" not in printed(view)
    assert parts_of_view(view)[2] == ["first"] and parts_of_view(view, details=True)[2] == ["first", "second"]


def test_tables_of_a_page_set_numbers_apart_from_words():
    """Which columns hold numbers, which rows there are, and how many are left out."""
    frame = pd.DataFrame({"mechanism": ["a", "b"], "welfare": [3.0, 4.0], "jobs": [5, 6]})
    plain = frame_table("all", frame)
    assert plain.columns == ("mechanism", "welfare", "jobs") and plain.numeric == (False, True, True)
    assert [row[0] for row in plain.rows] == ["a", "b"] and plain.note == ""
    long = frame_table("all", pd.DataFrame({"n": range(MOST_ROWS + 1)}))
    assert len(long.rows) == MOST_ROWS and long.note == f"the first {MOST_ROWS:,} of {MOST_ROWS + 1:,} rows"
    wide = frame.assign(empty=float("nan"), **{f"x{i}": [i, 10 * i] for i in range(1, 9)})
    turned = summary_table("all", wide, ["mechanism"])
    assert turned.columns == ("", "a", "b") and turned.numeric == (False, True, True)
    assert [row[0] for row in turned.rows] == ["welfare", "jobs", *(f"x{i}" for i in range(1, 9))]
    assert turned.rows[-1] == ("x8", "8", "80")
    pairs = pairs_table("all", flat({"welfare": 4.0, "bounds": {"dual": 5.0}}))
    assert [name for name, _ in pairs.rows] == ["welfare", "bounds.dual"] and pairs.numeric == (False, True)
