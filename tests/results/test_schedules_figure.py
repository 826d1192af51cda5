"""Pictures of schedules show, point by point, what four jobs on three nodes did."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from marketsched.results.schedules import COLUMNS, busiest_window
from marketsched.results.schedules_figure import CLASSES, gantt_figure, schedules_figure

# job, class, nodes, arrival, start, end, bounded slowdown
JOBS = {
    "one": [
        ("p", 0, 2, 1, 1, 4, 1.0), ("q", 2, 1, 2, 2, 7, 3.5), ("r", 1, 2, 2, 4, 6, 1.5), ("s", -1, 3, 3, 0, 0, np.nan),
    ],
    "two": [
        ("p", 0, 2, 1, 3, 6, 2.0), ("q", 2, 1, 2, 3, 8, 4.0), ("r", 1, 2, 2, 0, 0, np.nan), ("s", -1, 3, 3, 8, 9, 9.0),
    ],
}  # fmt: skip
BUSY = {"one": [2, 3, 3, 3, 3, 1, 0, 0], "two": [0, 0, 3, 3, 3, 1, 1, 3]}
ABOUT = {"capacity": 3, "rounds": 8, "last_birth": 5, "round_seconds": 1800.0, "seed": 4}


@pytest.fixture(scope="module")
def schedules():
    rows = [
        (name, job, "o", kind, nodes, arrival, start, end, slow == slow, slow, False)
        for name, jobs in JOBS.items()
        for job, kind, nodes, arrival, start, end, slow in jobs
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def fits(figure):
    """Draw it; check that headlines are on the page, above the panels, and beside each other."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    words = [text.get_window_extent() for text in figure.texts]
    boxes = [axes.get_tightbbox() for axes in figure.axes if axes.get_visible()]
    assert all(figure.bbox.x0 <= b.x0 and b.x1 <= figure.bbox.x1 for b in [*words, *boxes])
    assert all(figure.bbox.y0 <= b.y0 and b.y1 <= figure.bbox.y1 for b in [*words, *boxes])
    assert not any(a.overlaps(b) for i, a in enumerate(words) for b in [*words[i + 1 :], *boxes])
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


def test_busy_nodes_and_slowdowns_are_those_of_the_schedules(schedules):
    figure = schedules_figure(schedules, ABOUT, "four jobs")
    fits(figure)
    slow, *panels = figure.axes
    for panel, (name, busy) in zip(panels, BUSY.items(), strict=True):
        line, last = panel.lines
        assert panel.get_title(loc="left") == name and panel.get_xlabel() == "hours"
        assert line.get_xdata().tolist() == [t / 2 - 0.25 for t in range(1, 9)]  # the middles of rounds
        assert line.get_ydata() == pytest.approx([100 * n / 3 for n in busy])
        assert last.get_xdata() == [2.5, 2.5] and panel.get_ylim()[0] <= 0 and panel.get_ylim()[1] > 100
    steps = dict(zip(BUSY, slow.lines, strict=True))
    assert steps["one"].get_xdata().tolist() == [1.0, 1.5, 3.5] and steps["two"].get_xdata().tolist() == [2.0, 4.0, 9.0]
    assert all(line.get_ydata().tolist() == [25, 50, 75] for line in steps.values())  # one of four is never done
    (low, high), (floor, top) = slow.get_xlim(), slow.get_ylim()
    assert 0 < low < 1 < 9 < high and floor <= 0 and top > 100  # every slowdown there may be is to be seen
    assert [text.get_text() for text in slow.get_legend().get_texts()] == list(BUSY)


def test_of_many_rounds_a_line_shows_means_until_some_time_after_the_last_job_comes(schedules):
    """Of 300 rounds, 90 have a job in them that has come: 162 are drawn, in 81 pairs."""
    long = {**ABOUT, "rounds": 300, "last_birth": 90, "round_seconds": None}
    panel = schedules_figure(schedules, long, "four jobs").axes[1]
    line, last = panel.lines
    assert line.get_xdata().tolist() == list(range(1, 163, 2)) and last.get_xdata() == [90, 90]
    assert line.get_ydata()[:5] == pytest.approx([250 / 3, 100, 200 / 3, 0, 0]) and panel.get_xlabel() == "rounds"
    odd = schedules_figure(schedules, {**long, "rounds": 91}, "four jobs").axes[2].lines[0].get_ydata()
    assert odd.size == 46 and odd[:4] == pytest.approx([0, 100, 200 / 3, 200 / 3])  # the last is of one round


def test_a_chart_has_every_job_on_its_nodes_in_the_colour_of_its_class(schedules):
    more = pd.concat(
        [schedules, schedules[schedules["mechanism"] == "one"].assign(mechanism="three")], ignore_index=True
    )
    figure = gantt_figure(more, ABOUT, "four jobs")
    fits(figure)
    charts = {"one": ["ppprr...", "ppprr...", ".qqqqq.."], "two": ["..ppp..s", "..ppp..s", "..qqqqqs"]}
    classes = {job: kind for job, kind, *_ in JOBS["one"]}
    assert [axes.get_visible() for axes in figure.axes] == [True] * 3 + [False]
    for axes, (name, nodes) in zip(figure.axes, {**charts, "three": charts["one"]}.items(), strict=False):
        assert axes.get_title(loc="left") == name and axes.get_xlabel() == ("" if name == "one" else "hours")
        (image,) = axes.images
        assert list(image.get_extent()) == [0, 4, 0, 3] and image.origin == "lower"
        for row, pixels in zip(nodes, np.asarray(image.get_array()), strict=True):
            for job, pixel in zip(row, pixels, strict=True):
                ink = np.array(to_rgb("white" if job == "." else CLASSES[classes[job]][1]))
                strength = (1 - pixel).sum() / max((1 - ink).sum(), 1e-9)  # neighbours differ in brightness
                assert 1 - pixel == pytest.approx((1 - ink) * strength) and (job == "." or 0.7 < strength <= 1)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["no class", "patient", "middle", "urgent"]


def test_a_job_that_never_starts_waits_in_the_round_in_which_it_comes_alone():
    """Nine nodes in round 40 are more than one from 5 to 8; who never arrives waits for nothing."""
    rows = [("a", 1, 5, 9), ("b", 9, 40, 0), ("c", 99, 0, 0)]
    jobs = pd.DataFrame(rows, columns=["job", "nodes", "arrival", "start"]).assign(mechanism="mine", end=12)
    assert busiest_window(jobs, 10, 60) == 31 and busiest_window(jobs, 36, 60) == 5  # 31 .. 40, and 5 .. 40
