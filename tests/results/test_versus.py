"""Who loses and who gains: the table has the owners that its first sentences count and name."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from marketsched.results.versus import COLUMNS, directions, paired_owners, versus_table
from marketsched.results.versus_view import GAIN, LOSS, OPEN, versus_figure, versus_sentences, versus_view


def comparison(changes: dict[str, tuple[float, float]]) -> SimpleNamespace:
    """Return three seeds of `mine` against `theirs`: by owner, how its wait (rounds) and its own value change."""
    noise = (-0.01, 0.0, 0.01)
    rows = [
        {
            "mechanism": "mine", "seed": seed, "owner": owner, "jobs": 9, "both_start": 9,
            "first_wait_rounds": 10 + wait + noise[seed], "second_wait_rounds": 10.0,
            "first_own": 0.5 + own + noise[seed], "second_own": 0.5,
        }
        for owner, (wait, own) in changes.items() for seed in range(3)
    ]  # fmt: skip
    meta = {"runs": 3, "confidence": 0.95, "against": "theirs", "mechanisms": ["mine", "theirs"], "scenario": "log"}
    return SimpleNamespace(
        tables={"against": pd.DataFrame(rows)}, meta=meta,
        records=lambda: [{"mechanism": name, "welfare_share": 0.5} for name in meta["mechanisms"]],
    )  # fmt: skip


def test_who_loses_value_stands_in_the_table_beside_who_waits():
    result = comparison({"waits": (5, 0), "loses": (0, -0.3), "gains": (0, 0.2), "both": (-4, 0.4), "same": (0, 0)})
    waits, own = versus_sentences(result)
    assert "1 of 5 owners waits less" in waits and "1 longer (most owner waits" in waits
    assert "2 get more" in own and "1 less (most owner loses" in own
    _, table = versus_view(result)
    heads, found = ("wait longer", "wait less", "get more of their own value", "get less of it"), {}
    for name, *_ in table.rows:
        if name in heads:
            found[name] = []
        else:
            found[list(found)[-1]].append(name.strip())
    assert found == dict(zip(heads, (["waits"], ["both"], ["gains"], ["loses"]), strict=True))  # each owner once


def test_the_figure_shows_every_owner_from_the_largest_loss_on():
    changes = {"waits": (5, 0), "loses": (0, -0.3), "gains": (0, 0.2), "both": (-4, 0.4), "same": (0, 0)}
    figure = versus_figure(comparison(changes))
    for axes, place, loss in zip(figure.axes, (0, 1), (1, -1), strict=True):
        scale = 100 if place else 1  # points of its own value; rounds
        ordered = sorted((change[place] for change in changes.values()), key=lambda x: -loss * x)
        points = {}
        for bars, colour in zip(axes.containers, (LOSS, GAIN, OPEN), strict=True):
            assert bars.lines[0].get_color() == colour
            (x, y), spans = bars.lines[0].get_data(), bars.lines[2][0].get_segments()
            points |= dict(zip(x.tolist(), zip(y.tolist(), [colour] * len(x), spans, strict=True), strict=True))
        for x, change in enumerate(ordered, 1):
            y, colour, span = points.pop(x)
            assert y == pytest.approx(scale * change)
            assert colour == (OPEN if change == 0 else LOSS if loss * change > 0 else GAIN)
            half = 4.302652729911275 * 0.01 / 3**0.5  # t(2), of a deviation of 0.01 over three seeds
            assert span[:, 1] == pytest.approx([scale * (change - half), scale * (change + half)])
        worst = "loses" if place else "waits"
        assert not points and [text.get_text().strip() for text in axes.texts] == [worst]


def test_two_runs_are_no_claim_in_the_figure_either():
    few = comparison({"waits": (5, 0.1), "loses": (0, -0.3)})
    few.meta["runs"], few.tables["against"] = 2, few.tables["against"][lambda rows: rows["seed"] < 2]
    figure = versus_figure(few)
    assert "fewer than 3 runs: no claim" in " ".join(text.get_text() for text in figure.texts)
    for axes in figure.axes:
        drawn = [len(bars.lines[0].get_xdata()) for bars in axes.containers]
        assert drawn == [0, 0, 2] and not axes.texts
        assert (
            np.ptp([segment for bars in axes.containers for segment in bars.lines[2][0].get_segments()], axis=1).max()
            == 0
        )


def test_owners_who_fare_alike_make_no_table():
    assert versus_view(comparison({"one": (0, 0), "two": (0, 0)})) == []


def test_pairs_by_hand():
    """Waits are of jobs that both start, values of all that arrived."""
    jobs = {"owner": ["ann", "bob", "ann", "ann", "bob"], "arrival": pd.array([1, 1, 2, 3, None], dtype="Int64")}
    first = pd.DataFrame(
        {**jobs, "start": pd.array([2, None, 5, None, None], dtype="Int64"), "value": [4.0, 0, 2, 0, 9]}
    )
    second = pd.DataFrame({**jobs, "start": pd.array([1, 4, 3, 8, None], dtype="Int64"), "value": [4.0, 1, 0, 5, 9]})
    table = paired_owners(first, second, np.array([4.0, 0.0, 2.0, 10.0, 9.0])).set_index("owner")
    assert list(table.columns) == list(COLUMNS[1:]) and table.index.tolist() == ["ann", "bob"]
    assert table.loc["ann"].tolist() == [3, 2, (1 + 3) / 2, (0 + 1) / 2, 6 / 16, 9 / 16]
    assert table.loc["bob", ["jobs", "both_start"]].tolist() == [1, 0] and table.loc["bob"][2:].isna().all()


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
