"""What the dashboard shows is what happened: sessions, explanations, bounds, figures and words."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest

from marketsched.agents.market import Market
from marketsched.config.scenario import Scenario
from marketsched.dashboard.descriptions import bound_rows, group_rows, numbers, sentences, start_rows
from marketsched.dashboard.figures import FEWEST_ROUNDS, pictures, rounds_across
from marketsched.dashboard.reasons import WatchedMechanism
from marketsched.dashboard.session import Session, bound_by_round
from marketsched.dashboard.settings import first_form, read_form
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import TableValue
from marketsched.play.running import run
from marketsched.relaxed_lp.duality import dual_bound
from marketsched.relaxed_lp.hindsight import hindsight_optimum
from refusals import refused

SMALL = Scenario.from_dict(
    {
        "name": "small",
        "workload": {
            "kind": "synthetic-pipelines",
            "recurring_jobs": 40,
            "birth_rounds": 60,
            "max_duration": 12,
            "capacity": 10,
        },
        "mechanism": {"epsilon": -0.4, "oracle": {"kind": "monte-carlo", "samples": 100}},
    }
)


def session(**controls: str) -> Session:
    """Return a market of SMALL with some controls set."""
    settings, faults = read_form({**first_form(SMALL, seed=1), **controls})
    assert settings is not None, faults
    return Session(SMALL, settings)


@pytest.fixture(scope="module")
def played() -> Session:
    """Return a market in which a third of the owners lied, played to its end."""
    market = session(liars="33", lie="scale-value", amount="0.4")
    market.compute_bound()
    market.step(1000)
    return market


@pytest.mark.parametrize("mechanism", ["posted-price", "first-come", "vcg"])
def test_a_session_is_the_run_with_the_same_settings(mechanism):
    shown = session(mechanism=mechanism)
    shown.step(1000)
    view = shown.view()
    real = run(SMALL.with_mechanism(mechanism), seed=1).outcome
    assert view.complete and view.round == view.horizon == real["rounds"]
    assert view.welfare[-1] == pytest.approx(real["welfare"], rel=1e-12)
    assert view.revenue[-1] == pytest.approx(real["revenue"], rel=1e-12, abs=1e-12)
    assert view.counts["evict"] == real["evicted"] and view.counts["complete"] == real["completed"]
    assert view.asked == real["load"]


def test_watching_changes_nothing():
    """With paths drawn afresh for each submission, and with kept ones."""
    posted = [
        SMALL.with_mechanism("posted-price", {"oracle.refresh": x, "oracle.samples": 50}) for x in ("submission", 0.1)
    ]
    for scenario in (*posted, SMALL.with_mechanism("bid-price")):
        tables = []
        for watched in (False, True):
            rng = np.random.default_rng(5)
            setup = scenario.setup(rng)
            if watched:
                happens = {job.name: (job.arrival, job.signal) for job in setup.jobs}
                object.__setattr__(setup, "mechanism", WatchedMechanism(setup.mechanism, setup.max_delay, happens))
            tables.append(Market(setup, rng).run().events)
        assert tables[0].equals(tables[1])


def test_a_menu_at_arrival_is_what_the_job_met_and_paid():
    """Of a busy market at bid prices: the start that was booked, at the price that was paid, best of what is shown."""
    shown = session(mechanism="bid-price")
    shown.step(1000)
    jobs, booked = shown.market.result().jobs.set_index("name"), 0
    for name, reason in shown._watched.reasons.items():
        told = " ".join(sentences(shown.story(name)))
        if jobs["arrival"].isna()[name] or not reason.foreseen or not reason.at_arrival:
            continue
        offered = reason.surpluses.max(initial=-np.inf)
        if reason.chosen is None:
            assert jobs["outcome"][name] == "dropped" and offered <= 1e-9 and "It is not run" in told
            continue
        booked += 1
        i = reason.chosen - reason.starts[0]
        assert reason.chosen == jobs["start"][name] and reason.surpluses[i] == pytest.approx(offered, abs=1e-9)
        assert reason.prices[i] == pytest.approx(jobs["payment"][name], abs=1e-9) and "At its arrival it books" in told
    assert len(shown._watched.inner._menus) < 10  # those of one round: each has all rounds to come
    assert booked > 50 and (jobs["outcome"] == "dropped").any()


def test_a_reason_is_the_menu_that_was_announced():
    """Prices and failures of `menu`, asked for independently just before each submission."""
    scenario, rng = SMALL, np.random.default_rng(2)
    setup = scenario.setup(rng)
    inner = setup.mechanism
    watched = WatchedMechanism(inner, setup.max_delay, {job.name: (job.arrival, job.signal) for job in setup.jobs})
    menus, submit = {}, inner.submit

    def listen(job, sow):
        menus[job] = inner.menu(sow.concurrency)
        return submit(job, sow)

    inner.submit = listen
    object.__setattr__(setup, "mechanism", watched)
    Market(setup, rng).run()
    compared = 0
    for job in setup.jobs:
        reason = watched.reasons[job.name]
        if not reason.foreseen or not reason.starts.size:
            continue
        menu, d = menus[job.name], job.duration  # durations are revealed: the case has this one alone
        np.testing.assert_allclose(reason.prices, menu.price(reason.starts, d), rtol=1e-12)
        np.testing.assert_allclose(reason.failures, menu.failure(reason.starts, d), atol=1e-12)
        np.testing.assert_allclose(reason.values, [job.truth.value(s + d) for s in reason.starts.tolist()])
        best = reason.surpluses.max()
        if reason.chosen is None:
            assert best <= 1e-9
        else:
            assert reason.surpluses[reason.chosen - reason.starts[0]] == pytest.approx(best, abs=1e-9)
        compared += 1
    assert compared > 100


def test_hidden_durations_are_weighed():
    """One case, two durations: values, prices and failures are means, by hand."""
    data = SMALL.to_dict()
    data["workload"] = {
        "kind": "jobs", "capacity": 2, "horizon": 12, "max_concurrency": 2, "max_duration": 3, "max_value": 20,
        "max_delay": 12,
        "jobs": [{"name": "A", "birth": 1, "concurrency": 2, "value": {"kind": "deadline", "value": 20, "deadline": 5},
                  "requirements": [{"arrival": 2, "duration": 1, "probability": 0.25, "signal": "x"},
                                   {"arrival": 2, "duration": 3, "probability": 0.75, "signal": "x"}],
                  "arrival": 2, "duration": 3, "signal": "x"}],
    }  # fmt: skip
    data["mechanism"] = {"pricing": {"kind": "posted", "prices": [0.5]}}
    base = Scenario.from_dict(data)
    settings, _ = read_form(first_form(base, seed=0))
    market = Session(base, settings)
    market.step(1)
    reason = market.story("A").reason
    assert reason.starts.tolist() == [2, 3, 4] and reason.chosen == 2
    np.testing.assert_allclose(reason.values, [20, 0.25 * 20, 0.25 * 20])
    np.testing.assert_allclose(reason.prices, 2 * 0.5 * (0.25 * 1 + 0.75 * 3))
    np.testing.assert_allclose(reason.failures, 0)


def test_a_case_nobody_foresaw_is_said_to_be_one(played):
    jobs = played.market.setup.jobs
    surprised = [job for job in jobs if job.arrival is not None and not job.tags["covered"]]
    for job in surprised[:5]:
        story = played.story(job.name)
        assert not story.reason.foreseen
        assert "not among these cases" in " ".join(sentences(story))
    assert played.story("nobody's job") is None and played.story("") is None


def test_the_bound_holds_for_every_prefix_and_ends_at_the_dual_bound():
    rng = np.random.default_rng(0)
    for _ in range(6):
        jobs = []
        for _ in range(6):
            birth, d = int(rng.integers(1, 5)), int(rng.integers(1, 4))
            arrival = birth + int(rng.integers(0, 3))
            curve = {
                t: float(v)
                for t, v in enumerate(sorted(rng.uniform(0, 9, 12 - arrival - d), reverse=True), arrival + d)
            }
            sow = StatementOfWork(birth, int(rng.integers(1, 3)), TableValue(curve), [(arrival, d, 1.0)])
            jobs.append((sow, arrival, d))
        jobs.sort(key=lambda job: job[0].birth)
        realised = RealisedJobs.build(jobs, horizon=10, max_delay=20)
        dual = dual_bound(realised, 2, 10)
        bound = bound_by_round(realised, 2, dual.prices)
        assert bound[-1] == pytest.approx(dual.value, rel=1e-9)
        assert (np.diff(bound) >= -1e-12).all()
        for t in (2, 4, 6, 8, 10):
            best = hindsight_optimum(jobs, 2, t, max_delay=20)
            assert best.proven and best.value <= bound[t - 1] + 1e-9


def test_welfare_never_passes_the_bound(played):
    view = played.view()
    assert (view.welfare <= view.bound + 1e-6).all()
    assert 0 < view.share_of_bound <= 1


def test_figures_show_what_happened_large(played):
    view = played.view()
    for now in range(view.horizon + 1):
        shown = rounds_across(replace(view, round=now))
        assert now <= shown <= view.horizon
        assert shown == view.horizon or FEWEST_ROUNDS <= shown <= max(2 * FEWEST_ROUNDS, 2.4 * now) + 1


def test_a_view_adds_up(played):
    view, jobs = played.view(), played.market.result().jobs
    assert view.load.max() <= view.capacity
    assert sum(group.owners for group in view.groups) == jobs["owner"].nunique()
    assert sum(group.completed for group in view.groups) == view.counts["complete"]
    total = sum(group.mean * group.owners for group in view.groups)
    assert total == pytest.approx(jobs["utility"].sum(), rel=1e-9)
    for group in view.groups:
        assert group.by_round[-1] == pytest.approx(group.mean, rel=1e-9)
    assert [group.name for group in view.groups] == ["truthful", "scale-value 0.4"]


def test_an_eviction_is_marked_where_it_happens():
    """Estimates are ignored: B runs until A, submitted before it, becomes ready and wants the only node."""
    job = {"birth": 1, "concurrency": 1, "value": {"kind": "deadline", "value": 5, "deadline": 12}}
    first, second = (3, 2), (1, 6)  # arrival and duration of A and B
    jobs = [
        {
            "name": n,
            **job,
            "arrival": a,
            "duration": d,
            "requirements": [{"arrival": a, "duration": d, "probability": 1}],
        }
        for n, (a, d) in (("A", first), ("B", second))
    ]
    sizes = {"capacity": 1, "horizon": 12, "max_concurrency": 1, "max_duration": 6, "max_value": 5, "max_delay": 12}
    rules = {"threshold": 1, "epsilon": -1, "pricing": {"kind": "posted", "prices": [0.1]}}
    base = Scenario.from_dict({"name": "two", "workload": {"kind": "jobs", **sizes, "jobs": jobs}, "mechanism": rules})
    settings, _ = read_form(first_form(base, seed=0))
    shown = Session(base, settings)
    shown.step(12)
    view = shown.view()
    assert view.evicted.tolist() == [0, 0, 1] + [0] * 9 and view.load[:4].tolist() == [1, 1, 1, 1]
    assert ">evicted 1<" in pictures(view, None)["load"]
    assert sentences(shown.story("B"))[-1] == "So far: started in round 1, evicted in round 3; utility 0."
    assert ("B", "evicted in round 3") in view.recent


def test_every_story_has_words_and_rows(played):
    for name in list(played._watched.reasons)[::7]:
        story = played.story(name)
        told = sentences(story)
        assert len(told) == 4 and all(told) and "nan" not in " ".join(told)
        rows = start_rows(story)
        assert sum(chosen for chosen, _ in rows) == (story.reason.chosen is not None)
        assert not any("nan" in cell for _, cells in rows for cell in cells)


@pytest.mark.parametrize(
    "mechanism", ["posted-price", pytest.param("first-come", marks=pytest.mark.slow), "pay-as-bid"]
)
def test_there_is_something_to_see_at_any_time(mechanism):
    shown = session(mechanism=mechanism, liars="50")
    for rounds in (0, 1, 30):
        if rounds:
            shown.step(rounds)
        view = shown.view()
        story = shown.story(view.recent[0][0]) if view.recent else None
        texts = [x for each in numbers(view) for x in each] + [x for row in group_rows(view) for x in row]
        texts += [x for row in bound_rows(view) for x in row]
        assert all(isinstance(x, str) and "nan" not in x for x in texts)
        drawn = pictures(view, story)
        assert drawn["load"] and drawn["welfare"] and drawn["utilities"]
        for svg in filter(None, drawn.values()):
            ElementTree.fromstring(svg)
            assert "#010203" not in svg and "currentColor" in svg  # the page's own ink
    if mechanism != "posted-price":
        assert drawn["prices"] == ""


def test_a_job_s_name_is_no_markup():
    shown = session()
    shown.step(30)
    view = shown.view()
    assert "<script>" not in pictures(view, None)["load"]
    from dataclasses import replace

    groups = (replace(view.groups[0], name="<script>alert(1)</script>"),)
    assert "<script>" not in pictures(replace(view, groups=groups), None)["utilities"]


def test_what_cannot_be_built_is_said():
    refused(lambda: session(capacity="1"), "max_concurrency", error=InvalidParameterError)
