"""The page at ``/`` in a real browser: what everybody, two owners and an operator see, and how it looks.

Needs Chromium and the extra ``browser``. ``MARKETSCHED_SCREENS`` names a folder for the screenshots. What the console
calls an error or a warning, and every request to another host, fails the test.
"""

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from live_tools import sow
from marketsched.live.client import LiveClient
from marketsched.live.serving import serving
from page_tools import contrast

CHROMIUM = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: install the extra browser")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")]
expect = playwright.expect
WIDTHS, SCHEMES = (1400, 420), ("light", "dark")
RULES = {
    "name": "Institute-of-Mechanics",
    "mechanism": "bid-price",
    "capacity": 8,
    "max_concurrency": 8,
    "max_duration": 6,
    "max_value": 100,
    "max_delay": 30,
    "announced_nodes": "unlimited",
}
LONG = "a-label-that-is-as-long-as-labels-may-be-because-some-owners-do"
TEXTS = "h1, h2, p, th, td, label, button"
CUT = """() => [...document.querySelectorAll("h1, h2, p, label, button, input, table, svg")].filter((each) => {
  if (!each.checkVisibility()) return false;
  const place = each.getBoundingClientRect(), room = each.closest(".wide");
  const inside = room ? place.left >= room.getBoundingClientRect().left - 1 : place.right <= innerWidth + 1;
  return !inside || (each.matches("h1, h2, p, button") && each.scrollWidth > each.clientWidth + 1);
}).map((each) => each.outerHTML.slice(0, 200))"""
COLOURS = """(texts) => [...document.querySelectorAll(texts)].filter((each) => each.checkVisibility()
  && each.textContent.trim()).map((each) => {
  let behind = each, ground = "rgba(0, 0, 0, 0)";
  while (behind && ground === "rgba(0, 0, 0, 0)") {
    ground = getComputedStyle(behind).backgroundColor;
    behind = behind.parentElement;
  }
  return [each.textContent.slice(0, 40), getComputedStyle(each).color, ground];
})"""


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    """Serve a market with jobs that run, wait, are done and are refused; give its address and the tokens."""
    folder = tmp_path_factory.mktemp("market")
    with serving(RULES, f"{folder}/m.db", operator_token_file=folder / "token") as url:
        operator = LiveClient(url, (folder / "token").read_text().strip())
        tokens = {n: operator.create_owner(n, deposit=250.5, limit=1000)["token"] for n in ("ann", "ben")}
        _work(operator)
        yield url, {**tokens, "operator": (folder / "token").read_text().strip()}
        operator.close()


def _work(operator):
    for t in range(1, 7):
        for owner, label, duration in (("ann", f"train-{t}", 3), ("ben", LONG if t == 2 else f"fit-{t}", 5)):
            report = sow(t, duration, nodes=3, value=20.0 + 9 * t, deadline=t + 16)
            job = operator.submit(report, name=label, owner=owner)
            operator.arrive(job["job"], signal=duration)
        operator.advance()
        for job in operator.jobs():
            if job["state"] == "running" and job["start"] + (3 if "train" in job["job"] else 5) == t + 1:
                operator.complete(job["job"])
    operator.submit(sow(30, 1, deadline=36), name="announced", owner="ann")


@pytest.fixture(scope="module")
def browser():
    """Start Chromium, once."""
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def visit(browser, market):
    """Open the page; at the end there must have been no complaint and no request to others."""
    pages, faults = [], []

    def opened(width=1400, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        here = urlsplit(market[0]).netloc
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda each: faults.append(each.url) if urlsplit(each.url).netloc != here else None)
        page.goto(market[0])
        expect(page.locator("#state")).to_contain_text("round 7")
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not faults, faults


def enter(page, token):
    page.get_by_label("Token of an owner").fill(token)
    page.get_by_role("button", name="Show").click()


def test_everybody_sees_prices_and_queue_and_no_job(visit):
    page = visit()
    expect(page.locator("h1")).to_have_text("Institute-of-Mechanics")
    expect(page.locator("#load")).to_have_text("3 of 8 nodes are busy; up to 10 jobs wait")
    expect(page.locator("#past")).to_contain_text("Busy nodes of the last 6 rounds; at most 10 jobs waited.")
    expect(page.locator("#prices")).to_contain_text("Credits for a node and round; now")
    expect(page.locator("#prices svg rect")).to_have_count(48)
    expect(page.locator("#promises")).to_contain_text("truth is best for each job")
    for part in ("account", "quote", "jobs", "owners"):
        expect(page.locator(f"#{part}-part")).to_be_hidden()
    assert "train-" not in page.content() and "250.5" not in page.content()


def test_two_owners_see_their_own_jobs_balance_and_quotes(visit, market):
    for owner, other in (("ann", "ben"), ("ben", "ann")):
        page = visit()
        enter(page, market[1][owner])
        expect(page.locator("#account")).to_contain_text(f"{owner} (owner): ")
        expect(page.locator("#jobs")).to_contain_text(f"{owner}.")
        assert f"{other}." not in page.content()
        expect(page.locator("#owners-part")).to_be_hidden()
        page.get_by_label("Nodes").fill("2")
        page.get_by_role("button", name="Quote").click()
        expect(page.locator("#quoted")).to_contain_text("If it does not come: 2.00 credits")
        page.get_by_role("button", name="Forget it").click()
        expect(page.locator("#jobs-part")).to_be_hidden()
        assert f"{owner}." not in page.content()


def test_an_operator_sees_the_whole_market(visit, market):
    page = visit()
    enter(page, market[1]["operator"])
    for words in ("ann.train-1", "ben.fit-1", "ann.announced"):
        expect(page.locator("#jobs")).to_contain_text(words)
    for words in ("ann", "ben", "operator"):
        expect(page.locator("#owners")).to_contain_text(words)
    expect(page.locator("#quote-part")).to_be_hidden()
    page.get_by_role("button", name="Forget it").click()
    expect(page.locator("#owners-part")).to_be_hidden()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_and_all_can_be_read(visit, market, width, scheme, tmp_path):
    folder = Path(os.environ.get("MARKETSCHED_SCREENS", tmp_path))
    for who in ("everybody", "ann", "operator"):
        page = visit(width, scheme)
        if who != "everybody":
            enter(page, market[1][who])
            expect(page.locator("#jobs")).to_contain_text("ann.train-1")
        if who == "ann":
            page.get_by_role("button", name="Quote").click()
            expect(page.locator("#quoted")).to_contain_text("credits")
        page.screenshot(path=folder / f"{who}-{width}-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == []
        for text, colour, ground in page.evaluate(COLOURS, TEXTS):
            assert contrast(colour, ground) >= 4.5, (text, colour, ground)
