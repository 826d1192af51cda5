"""One mechanism against another, owner by owner: pairs and changes by hand, and what is said after few seeds."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats

from marketsched.results.versus import COLUMNS, directions, paired_owners, versus_table
from marketsched.results.versus_view import OPEN, _draw, versus_figure, versus_sentences, versus_view
from stored_results import stored


def test_after_few_seeds_nothing_is_claimed_of_single_owners(tmp_path):
    """The table says who waited longer, in so few runs, and the figure has no colour; the golden page has three."""
    whole = stored("mechanisms-log", tmp_path)
    two = whole.tables["against"][lambda pairs: pairs["seed"] < 2]
    result = replace(whole, tables={**whole.tables, "against": two}, meta={**whole.meta, "runs": 2})
    assert versus_sentences(result) == ["With fewer than 3 runs nothing is claimed of single users."]
    few = ", in so few runs"
    rows = [f"waited longer{few}", "  ann", f"waited less{few}", "  dot", "  bob", "  cy", f"got less{few}", "  eve"]
    assert [row[0] for row in versus_view(result)[1].rows] == rows
    one = replace(result, tables={**whole.tables, "against": two[two["seed"] < 1]})
    for axes in versus_figure(one).axes:
        assert [bars.lines[0].get_color() for bars in axes.containers if len(bars.lines[0].get_xdata())] == [OPEN]
    nobody = replace(whole, tables={**whole.tables, "against": two.assign(jobs=1)})
    assert versus_view(nobody) == versus_sentences(nobody) == [] and versus_figure(nobody) is None


def test_one_user_who_makes_the_difference_is_named(tmp_path):
    whole = stored("mechanisms-log", tmp_path)
    asked = whole.tables["against"]["mechanism"].iloc[0]
    pairs = pd.DataFrame({"owner": [f"u{k}" for k in range(9)], "gain": [5.0, *[1.0] * 8], "mechanism": asked})
    one = replace(whole, tables={**whole.tables, "against": pairs.assign(jobs=1)})
    assert versus_sentences(one) == ["User u0 alone makes 38% of this difference."]
    even = replace(one, tables={**one.tables, "against": pairs.assign(jobs=1, gain=1.0)})
    assert versus_sentences(even) == []


def test_pairs_by_hand():
    """Waits are of jobs that both start, values of all that arrived."""
    jobs = {"owner": ["ann", "bob", "ann", "ann", "bob"], "arrival": pd.array([1, 1, 2, 3, None], dtype="Int64")}
    first = pd.DataFrame(
        {**jobs, "start": pd.array([2, None, 5, None, None], dtype="Int64"), "value": [4.0, 0, 2, 0, 9]}
    )
    second = pd.DataFrame({**jobs, "start": pd.array([1, 4, 3, 8, None], dtype="Int64"), "value": [4.0, 1, 0, 5, 9]})
    table = paired_owners(first, second, np.array([4.0, 0.0, 2.0, 10.0, 9.0])).set_index("owner")
    assert list(table.columns) == [*COLUMNS[1:], "gain"] and table.index.tolist() == ["ann", "bob"]
    assert table.loc["ann"].tolist() == [3, 2, (1 + 3) / 2, (0 + 1) / 2, 6 / 16, 9 / 16, -3]
    assert table.loc["bob", ["jobs", "both_start"]].tolist() == [1, 0] and table.loc["bob"][2:-1].isna().all()


def test_changes_are_paired_seed_by_seed():
    """Seeds without a wait are in no mean of it, and one seed has no interval."""
    own, wait = [0.5, 0.7, 0.8], [4.0, 1.0, np.nan]
    pairs = pd.DataFrame({"owner": "ann", "jobs": [3, 4, 8], "both_start": 2, "first_own": own, "second_own": 0.4})
    pairs = pairs.assign(first_wait_rounds=wait, second_wait_rounds=[1.0, 2.0, 3.0])
    (row,) = versus_table(pairs, 0.9).to_dict("records")
    low, high = stats.t.interval(0.9, 2, np.mean(own) - 0.4, stats.sem(own))
    assert [row["own_low"], row["own"], row["own_high"]] == pytest.approx([low, (low + high) / 2, high])
    low, high = stats.t.interval(0.9, 1, 1.0, stats.sem([3.0, -1.0]))
    assert [row["wait_rounds_low"], row["wait_rounds_high"]] == pytest.approx([low, high]) and row["jobs"] == 5
    (alone,) = versus_table(pairs[:1], 0.9).to_dict("records")
    assert alone["own"] == pytest.approx(0.1) and np.isnan(alone["own_low"])
    table = pd.DataFrame({"own_low": [0.1, -0.3, -0.1, np.nan, 0.0], "own_high": [0.2, -0.1, 0.1, np.nan, 0.0]})
    assert directions(table, "own").tolist() == [1, -1, 0, 0, 0]


@pytest.mark.parametrize(("name", "loss"), [("wait_rounds", 1), ("own", -1)])
def test_names_of_losers_do_not_lie_on_top_of_one_another(name, loss):
    y = loss * np.array([5.0, 4.99, 4.98, *[0.0] * 40])
    clear = {f"{name}_low": y - 0.01 * (y != 0), f"{name}_high": y + 0.01 * (y != 0)}
    figure = Figure(figsize=(6, 4.6))
    axes = figure.subplots()
    _draw(axes, pd.DataFrame({"owner": [f"ml{i:02}" for i in range(43)], name: y, **clear}), name, 1.0, "", loss)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 3 and not any(a.overlaps(b) for a, b in pairwise(boxes))
