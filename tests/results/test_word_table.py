"""Tables of words: what a column of dashes does, on a terminal and on a page."""

import io

from rich.console import Console
from rich.text import Text

from marketsched.results.views import View, parts_of_view, plain_table


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
