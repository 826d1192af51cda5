"""The dashboard in a real browser, served by the real command: start, step, change a control, read the numbers.

Needs Chromium and the extras ``viz`` and ``browser``; skipped by name where one is missing. Whatever
the console calls an error or a warning, and every request to another host, fails the test that caused it.
Nothing here waits for a time: a slow machine takes longer, and sees the same.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from marketsched.config.scenario import Scenario
from marketsched.dashboard.descriptions import numbers
from marketsched.dashboard.server import missing_packages
from marketsched.dashboard.session import Session
from marketsched.dashboard.settings import first_form, read_form
from page_tools import at, brightness, choose, colour, contrast, press, write

CHROMIUM = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: install the extra browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.compiled,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH"),
    pytest.mark.skipif(bool(missing_packages()), reason="the extra viz is not installed"),
]
expect = playwright.expect

SCENARIO = """
name: browser test
workload: {kind: synthetic-pipelines, recurring_jobs: 60, birth_rounds: 60, max_duration: 12, capacity: 12}
mechanism: {epsilon: -0.4, threshold: 0.05, oracle: {kind: monte-carlo, samples: 100}}
"""
QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
LAPTOP = {"width": 1366, "height": 768}
PATIENCE = 120_000  # milliseconds; kernels may be compiled meanwhile, on a machine that is busy
OF_THE_FRAMEWORK = "Failed to evaluate Vue script and find module.exports"  # a warning about a script of its own


@pytest.fixture(scope="module")
def scenario_file(tmp_path_factory) -> str:
    """Write the scenario that is served."""
    path = tmp_path_factory.mktemp("served") / "browser.yaml"
    path.write_text(SCENARIO)
    return str(path)


@pytest.fixture(scope="module")
def url(scenario_file) -> Iterator[str]:
    """Start the command; at the end Ctrl-C stops it, without a word about it."""
    command = [
        sys.executable,
        "-m",
        "marketsched",
        "dashboard",
        scenario_file,
        "--port",
        "0",
        "--seed",
        "4",
        "--paused",
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = server.stdout.readline() if select.select([server.stdout], [], [], PATIENCE / 1000)[0] else "nothing"
    found = re.fullmatch(r"browser test: (http://127\.0\.0\.1:\d+) \(Ctrl-C ends it\)\n", line)
    if found is None:
        server.kill()
        pytest.fail(f"{line!r}, {server.communicate()[1]}")
    yield found[1]
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=PATIENCE / 1000)
    assert (server.returncode, out.strip(), err) == (0, "", "")


Visit = Callable[..., "playwright.Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    """Start Chromium, once."""
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=root + QUIET, timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture
def visit(url, browser) -> Iterator[Visit]:
    """Return a function that opens the page for a visitor of its own; what goes wrong there fails the test."""
    wrong: list[str] = []
    opened: list = []

    def heard(message) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(OF_THE_FRAMEWORK):
            wrong.append(f"console: {message.text}")

    def open_page(scheme: str = "light"):
        visitor = browser.new_context(color_scheme=scheme, viewport=LAPTOP)
        opened.append(visitor)
        page = visitor.new_page()
        own = (url, "data:", f"blob:{url}")
        page.on("console", heard)
        page.on("pageerror", lambda fault: wrong.append(f"page: {fault}"))
        page.on("request", lambda r: None if r.url.startswith(own) else wrong.append(f"asked for {r.url}"))
        page.on("response", lambda r: wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        page.set_default_timeout(PATIENCE)
        page.goto(url)
        ready(page)
        return page

    yield open_page
    for visitor in opened:
        visitor.close()
    assert not wrong, "\n".join(wrong)


def ready(page) -> None:
    """Wait for a market of which nothing was played, and its bound."""
    expect(at(page, "state")).to_have_text(re.compile(r"^paused after round 0 of \d+$"))
    expect(at(page, "applied")).to_have_text("as applied")


def apply_and_wait(page, capacity):
    """Apply what the controls say, another capacity among it, and wait for the new market and its bound."""
    press(page, "Apply and restart")
    expect(at(page, "load-beside")).to_have_text(f"of {capacity}")
    ready(page)


def played_here(rounds, **controls):
    """Return the same market, played here."""
    base = Scenario.load(os.environ["DASHBOARD_TEST_SCENARIO"])
    settings, faults = read_form({**first_form(base, seed=4), **controls})
    assert settings is not None, faults
    session = Session(base, settings)
    session.compute_bound()
    if rounds:
        session.step(rounds)
    return session


def expected(rounds, **controls):
    """Return the figures of the same market."""
    return {each.key: (each.value, each.beside) for each in numbers(played_here(rounds, **controls).view())}


@pytest.fixture(autouse=True)
def _scenario_for_expected(scenario_file, monkeypatch):
    monkeypatch.setenv("DASHBOARD_TEST_SCENARIO", scenario_file)


def shown(page):
    """Read the strip of figures off the page."""
    keys = ("round", "load", "asked", "jobs", "completed", "removed", "welfare", "revenue", "price")
    return {key: (at(page, key).inner_text(), at(page, f"{key}-beside").inner_text()) for key in keys}


def expect_figures(page, figures):
    """Wait until the page shows these figures: each is drawn by itself, some a moment after the round."""
    for key, (value, beside) in figures.items():
        expect(at(page, key)).to_have_text(value)
        expect(at(page, f"{key}-beside")).to_have_text(beside)
    assert shown(page) == figures  # all at once, too


def test_start_step_change_a_control_and_read_the_numbers(visit):
    page = visit()
    write(page, "Rounds per step", "25")
    press(page, "Step")
    expect(at(page, "round")).to_have_text("25")
    expect_figures(page, expected(25))
    press(page, "Step")
    expect(at(page, "round")).to_have_text("50")
    expect_figures(page, expected(50))
    choose(page, "Mechanism", "first-come")
    choose(page, "How they lie", "inflate-concurrency")
    for control, text in (
        ("Capacity", "9"),
        ("Load", "150"),
        ("Owners who lie", "40"),
        ("By how much", "2"),
        ("Seed", "8"),
    ):
        write(page, control, text)
    expect(at(page, "applied")).to_have_text("changed: not applied yet")
    expect(at(page, "round")).to_have_text("50")  # nothing happens before it is asked for
    apply_and_wait(page, 9)
    press(page, "Step")
    expect(at(page, "round")).to_have_text("25")
    changed = {"mechanism": "first-come", "lie": "inflate-concurrency", "capacity": "9", "load": "150"}
    expect_figures(page, expected(25, **changed, liars="40", amount="2", seed="8"))
    expect(at(page, "groups").locator("tbody tr")).to_have_count(2)


def test_it_can_be_used_without_a_mouse(visit):
    page = visit()
    page.get_by_role("button", name="Play", exact=True).focus()
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "who is where is to be seen"
    page.keyboard.press("Enter")
    expect(at(page, "round")).to_have_text("4")
    capacity = page.get_by_role("textbox", name="Capacity")
    capacity.focus()
    page.keyboard.type("9")  # one letter: a press of a button may overtake a second one on its way
    expect(at(page, "applied")).to_have_text("changed: not applied yet")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText").strip() == "Apply and restart":
            break
    page.keyboard.press("Enter")
    expect(at(page, "load-beside")).to_have_text("of 9")


def test_a_second_visitor_has_a_market_of_their_own(visit):
    first, second = visit(), visit()
    write(first, "Rounds per step", "5")
    press(first, "Step")
    expect(at(first, "round")).to_have_text("5")
    expect(at(second, "round")).to_have_text("0")
    write(second, "Capacity", "20")
    apply_and_wait(second, 20)
    write(second, "Rounds per step", "7")
    press(second, "Play")
    press(first, "Step")
    expect(at(first, "round")).to_have_text("10")
    expect(at(first, "load-beside")).to_have_text("of 12")
    first.close()
    expect(at(second, "state")).to_have_text(re.compile("^over: all"))
    expect(at(second, "load-beside")).to_have_text("of 20")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_browser_and_fits_a_laptop(visit, scheme, tmp_path):
    page = visit(scheme)
    write(page, "Rounds per step", "30")
    press(page, "Step")
    expect(at(page, "round")).to_have_text("30")
    ink, paper = page.evaluate(
        """() => [getComputedStyle(document.querySelector('.ms-value')).color,
                  getComputedStyle(document.querySelector('.v-application')).backgroundColor]"""
    )
    assert contrast(ink, paper) > 7
    assert (brightness(paper) > 0.5) == (scheme == "light")
    button = page.get_by_role("button", name="Play", exact=True)
    assert contrast(*button.evaluate("x => [getComputedStyle(x).color, getComputedStyle(x).backgroundColor]")) > 4.5
    svg_ink = page.evaluate("getComputedStyle(document.querySelector('.ms-figure svg text')).fill")
    assert contrast(svg_ink, paper) > 7
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.evaluate("window.scrollTo(0, 0)")
    for panel in page.locator(".ms-grid .ms-panel").all():
        box = panel.bounding_box()
        assert box["y"] + box["height"] <= LAPTOP["height"] + 40, "the four figures fit on the first screen"
    write(page, "Capacity", "x")
    assert contrast(colour(page.locator(".ms-controls .error--text .v-messages__message")), paper) > 4.5
    write(page, "Capacity", "1")
    expect(page.get_by_role("button", name="Apply and restart")).to_be_enabled()
    press(page, "Apply and restart")
    assert contrast(colour(page.locator(".ms-error .v-alert__content")), paper) > 6  # its ground is tinted a little
    for width, height in ((1280, 720), (1440, 900), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        cut = page.evaluate(
            """() => [...document.querySelectorAll('.ms-label, .ms-value, .ms-beside, .ms-table')]
                .filter(x => x.scrollWidth > x.clientWidth).map(x => x.innerText)"""
        )
        assert not cut, f"cut off at {width} pixels"
