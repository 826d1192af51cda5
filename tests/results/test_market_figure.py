"""The figure of a run shows what the tables say, fits its page, and is the same every time."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, to_rgb

from marketsched.agents.job import Job
from marketsched.agents.market_log import MarketLog, RowKind
from marketsched.agents.result import build_result
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.results.market_figure import (
    BLUES,
    CANCELLED,
    EVICTED,
    MOST_COLUMNS,
    TimeAxis,
    load_by_band,
    run_figure,
    worth_drawing,
)
from marketsched.results.panels import OKABE_ITO, save_figure

ROUNDS, CAPACITY, LOOKAHEAD = 96, 60, 30


def a_run(
    *, bands=("free", "middle", "production"), removals=True, prices=True, n_jobs=400, rounds=ROUNDS, capacity=CAPACITY
):
    """Log a run in which jobs start at arrival; some are evicted, some cancelled."""
    rng, log, jobs, story = np.random.default_rng(2), MarketLog(), [], []
    for i in range(n_jobs):
        a, d, c = int(rng.integers(1, rounds - 8)), int(rng.integers(1, 8)), int(rng.integers(1, 3))
        sow = StatementOfWork(a, c, DeadlineValue(5.0, a + 20), [(a, d, 1.0)])
        tags = {"band": bands[i % len(bands)]} if bands else {}
        jobs.append(Job(f"j{i}", "o", sow, a, d, d, tags))
        fate = int(rng.choice([0, 1, 2], p=[0.8, 0.15, 0.05])) if removals else 0
        story.append((a, RowKind.CANCEL if fate == 1 else RowKind.START, i, 0))
        if fate == 0:
            story.append((a + d - 1, RowKind.COMPLETE, i, a + d))
        elif fate == 2 and d > 1:
            story.append((a + 1, RowKind.EVICT, i, 0))
    story.sort(key=lambda e: (e[0], (RowKind.EVICT, RowKind.CANCEL, RowKind.START, RowKind.COMPLETE).index(e[1])))
    load = 0
    for now in range(1, rounds + 1):
        ended = 0
        for _, kind, i, completion in [e for e in story if e[0] == now]:
            nodes = jobs[i].truth.concurrency
            if kind is RowKind.START or kind is RowKind.CANCEL:
                log.submit(now, i, False, nodes, now, 1.0)
            load += nodes if kind is RowKind.START else -nodes if kind is RowKind.EVICT else 0
            ended += nodes if kind is RowKind.COMPLETE else 0
            log.event(now, kind, i, False, completion or None, 1.0 if completion else 0.0, 5.0 if completion else 0.0)
        surface = 0.002 * 2000.0 ** (np.linspace(1, 0, LOOKAHEAD) * now / rounds) if prices else None
        log.close_round(load, 0.9 * load if prices else np.nan, surface[0] if prices else np.nan, surface)
        load -= ended
    return build_result(log, jobs, name="run", capacity=capacity, horizon=rounds, statistics={})


@pytest.fixture(scope="module")
def run():
    return a_run()


def drawn(run, **about):
    return run_figure(run, worth_drawing(run.price_surface), **about)


def picture_bytes(figure, path):
    save_figure(figure, path)
    return path.read_bytes()


def words(figure):
    """Draw the figure; return every text that is seen with its box in pixels."""
    FigureCanvasAgg(figure).draw()
    seen = list(figure.texts)
    for axes in figure.axes:
        legend = axes.get_legend()
        seen += [*axes.texts, axes.xaxis.label, axes.yaxis.label, *(legend.get_texts() if legend else ())]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for place, tick in zip(axis.get_majorticklocs(), axis.get_major_ticks(), strict=True):
                seen += [t for t in (tick.label1, tick.label2) if low <= place <= high and t.get_visible()]
    return [(text, text.get_window_extent()) for text in seen if text.get_text().strip()]


def test_time_has_the_unit_and_the_ticks_that_suit_its_length():
    units = {(9, None): "rounds", (35, 300): "minutes", (36, 300): "hours", (2879, 300): "hours", (2880, 300): "days"}
    assert {key: TimeAxis(*key).unit for key in units} == units
    lasts = [TimeAxis(*key).edges[-1] for key in ((9, None), (30, 300), (48, 1800), (20, 86_400))]
    assert lasts == [9, 150, 24, 20]
    lengths = [(15, 15), (16, 15), (30, 15), (31, 15), (91, 15), (7, 7), (43, 7), (200, 7)]  # hours, most ticks
    steps = [np.diff(TimeAxis(n, 3600).ticks(most).tick_values(0, n)).max() for n, most in lengths]
    assert steps == [1, 2, 2, 3, 12, 1, 12, 48]
    assert TimeAxis(7, None).ticks().tick_values(0, 7).tolist() == list(range(8))  # rounds are whole
    spans = {1: "60 s", 2: "2 min", 89: "89 min", 90: "1.5 h"}
    assert {rounds: TimeAxis(9, 60).span(rounds) for rounds in spans} == spans
    assert [TimeAxis(9, None).span(rounds) for rounds in (1, 3)] == ["round", "3 rounds"]


def test_bands_add_up_to_the_load(run):
    found = load_by_band(run.jobs, ROUNDS)
    assert [name for name, _, _ in found] == ["production", "middle", "free"]
    assert run.outcome["evicted"] > 5  # evicted jobs hold nodes until they go
    np.testing.assert_array_equal(sum(load for _, _, load in found), run.rounds["load"])


def test_many_unknown_bands_are_gathered_and_still_add_up():
    run = a_run(bands=[f"team {i:02d}" for i in range(12)] + [None])
    found = load_by_band(run.jobs, ROUNDS)
    assert [name for name, _, _ in found] == [f"team {i:02d}" for i in range(len(OKABE_ITO) - 1)] + ["other"]
    np.testing.assert_array_equal(sum(load for _, _, load in found), run.rounds["load"])


def test_of_many_rounds_no_peak_is_lost():
    long = a_run(bands=(), removals=False, n_jobs=50, rounds=3 * MOST_COLUMNS + 5)
    load, prices, _ = drawn(long, title="long").axes
    demand = next(line for line in load.lines if line.get_linewidth() < 1)
    heights = demand.get_ydata()
    assert heights.max() == long.rounds["demand"].max() and MOST_COLUMNS // 2 < heights.size <= MOST_COLUMNS + 1
    assert demand.get_xdata()[[0, -1]].tolist() == [0, 3 * MOST_COLUMNS + 5]
    (image,) = prices.images
    assert image.get_array().shape[1] == MOST_COLUMNS
    ends, rows = np.asarray(image.get_array())[:, [0, -1]].T, long.price_surface[[1, -2]]  # the middle of each three
    np.testing.assert_allclose(ends, rows[:, : ends.shape[1]], rtol=1e-6)


def test_panels_show_the_tables(run):
    figure = drawn(run, round_seconds=300, title="run")
    assert figure.get_size_inches().tolist() == [12, 6.75]  # of a slide
    load, removals, prices, bar = figure.axes
    capacity = [line for line in load.lines if line.get_linewidth() > 2]
    assert [set(line.get_ydata()) for line in capacity] == [{CAPACITY}]
    demand = next(line for line in load.lines if line.get_linewidth() < 1)
    np.testing.assert_array_equal(demand.get_ydata()[:-1], run.rounds["demand"])
    heights = {tuple(p.get_facecolor()[:3]): 0 for p in removals.patches}
    for patch in removals.patches:
        heights[tuple(patch.get_facecolor()[:3])] += patch.get_height()
    assert heights[to_rgb(CANCELLED)] == run.outcome["cancelled"]
    assert heights[to_rgb(EVICTED)] == run.outcome["evicted"]
    (image,) = prices.images
    assert isinstance(image.norm, LogNorm)
    shown = np.asarray(image.get_array())
    np.testing.assert_allclose(shown, run.price_surface[:, : shown.shape[0]].T, rtol=1e-6)
    assert image.get_extent() == [0, 8.0, 0, shown.shape[0] / 12]  # hours: 96 rounds across
    assert image.origin == "lower"
    assert removals.get_xlim() == prices.get_xlim() == load.get_xlim() == (0, 8.0)
    low, high = removals.get_ylim()
    assert low > high  # bars hang down
    assert bar.get_ylabel()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("options", "panels"),
    [
        ({}, 4),
        ({"removals": False}, 3),
        ({"prices": False}, 2),
        ({"prices": False, "removals": False, "bands": ()}, 1),
        ({"n_jobs": 1, "rounds": 12}, 3),
    ],
)
def test_panels_without_anything_to_show_are_left_out(options, panels, tmp_path):
    figure = drawn(a_run(removals=options.pop("removals", False if "n_jobs" in options else True), **options))
    assert len(figure.axes) == panels
    assert picture_bytes(figure, tmp_path / "run.png")[:4] == b"\x89PNG"


@pytest.mark.slow
@pytest.mark.parametrize("bands", [("free", "middle", "production"), pytest.param((), marks=pytest.mark.slow)])
def test_every_word_is_on_the_page_and_none_covers_another(bands):
    run = a_run(bands=bands)
    big = {
        "jobs": 1_234_567,
        "cancelled": 123_456,
        "evicted": 12_345,
        "welfare": 123_456_789.0,
        "revenue": 98_765_432.0,
    }
    run = replace(run, outcome=run.outcome | big)
    figure = drawn(run, round_seconds=300, title="google-recurring, seed 12345")
    page, boxes = figure.bbox, words(figure)
    assert len(boxes) > 20
    outside = [t for t, b in boxes if b.x0 < page.x0 or b.x1 > page.x1 or b.y0 < page.y0 or b.y1 > page.y1]
    assert outside == []
    clashes = [(v, w) for i, (v, a) in enumerate(boxes) for w, b in boxes[i + 1 :] if a.overlaps(b)]
    assert clashes == []
    assert min(text.get_fontsize() for text, _ in boxes) >= 10  # the page is as wide as a slide, 12 inches


def test_an_interrupted_run_says_so(run):
    part = replace(run, outcome=run.outcome | {"complete": False, "rounds": 50, "horizon": 96})
    figure = drawn(part, title="run")
    assert "run (interrupted after round 50 of 96)" in [t.get_text() for t in figure.texts]


def test_a_run_without_a_finished_round_can_be_drawn(tmp_path):
    nothing = build_result(MarketLog(), [], name="x", capacity=3, horizon=5, statistics={})
    figure = drawn(nothing, title="nothing yet")
    assert picture_bytes(figure, tmp_path / "run.png")


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("pair", [*pairwise(BLUES), (CANCELLED, EVICTED), (BLUES[-1], "white")])
def test_neighbouring_colours_differ_in_lightness_alone(pair):
    """So that they can be told apart without colour vision, and on a grey print."""
    dark, light = sorted(luminance(colour) for colour in pair)
    assert (light + 0.05) / (dark + 0.05) > 1.5
