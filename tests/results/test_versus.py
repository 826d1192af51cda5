"""Who loses and who gains: the table has the owners that its first sentences count and name."""

from types import SimpleNamespace

import pandas as pd
import pytest

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
