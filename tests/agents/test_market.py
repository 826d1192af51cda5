"""The Mesa market: the order of calls it owes a mechanism, and the books it keeps."""

import gc
import pickle
import weakref

import mesa
import numpy as np
import pandas as pd
import pytest

from marketsched.agents.job import Job
from marketsched.agents.lies import InflateConcurrency, ScaleValue, Truthful
from marketsched.agents.market import Market
from marketsched.agents.owner import JobOwner, NamedOwner
from marketsched.agents.result import OUTCOMES
from marketsched.agents.setup import MarketSetup
from marketsched.config import scenario as described
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.play.running import run
from refusals import refused
from strict_mechanism import StrictMechanism


def job(name, birth, arrival, duration, *, law=None, nodes=1, value=10.0, deadline=30, **more):
    """A job whose law is, unless given, what really happens."""
    law = law or [(arrival or birth, duration, 1.0)]
    truth = StatementOfWork(birth, nodes, DeadlineValue(value, deadline), law)
    more = {"signal": duration, "tags": {"band": "free"}} | more
    return Job(name, more.pop("owner", "ann"), truth, arrival, duration, **more)


def market(jobs, *, capacity=4, horizon=12, mechanism=None, **options):
    mechanism = mechanism or StrictMechanism(capacity, horizon)
    options = {"max_delay": 20, "name": "test"} | options
    return Market(MarketSetup(jobs=jobs, mechanism=mechanism, capacity=capacity, horizon=horizon, **options))


def row(result, name):
    return result.jobs.set_index("name").loc[name]


def test_calls_come_in_the_order_of_the_contract():
    jobs = [
        job("late", 3, 3, 1),
        job("first", 1, 2, 2),
        job("second", 1, 1, 3),
        job("never", 1, None, 1),
    ]
    model = market(jobs, horizon=4)
    result = model.run()
    assert model.mechanism.calls == [
        ("submit", 1, "first"),
        ("submit", 1, "second"),
        ("submit", 1, "never"),
        ("arrive", 1, "second", 3),
        ("arrive", 2, "first", 2),
        ("submit", 3, "late"),
        ("arrive", 3, "late", 1),
        ("complete", 3, "first"),  # both end in round 3: in order of submission, not of start
        ("complete", 3, "second"),
        ("complete", 3, "late"),
    ]
    assert result.jobs["name"].tolist() == ["late", "first", "second", "never"]
    assert result.jobs["outcome"].tolist() == ["completed"] * 3 + ["never_arrived"]
    assert result.jobs["completion"].tolist()[:3] == [4, 4, 4]


def test_books_of_a_small_market():
    jobs = [
        job("a", 1, 2, 3, nodes=3),
        job("b", 1, 3, 2, nodes=2, value=7.0),  # overload in round 3: c, then b, go
        job("c", 2, 6, 1, tags={"band": "middle"}, owner="bob"),
        job("d", 4, 5, 2, nodes=2, deadline=6),  # completes at 7, too late to be worth anything
        job("e", 10, 11, 9, nodes=1),  # does not end before the horizon
        job("f", 99, 99, 1),  # born after the horizon
    ]
    result = market(jobs).run()
    outcomes = dict(zip(result.jobs["name"], result.jobs["outcome"], strict=True))
    assert outcomes == {
        "a": "completed",
        "b": "cancelled",
        "c": "cancelled",
        "d": "completed",
        "e": "unfinished",
        "f": "unfinished",
    }
    a, d = row(result, "a"), row(result, "d")
    assert (a.start, a.completion, a.value, a.payment, a.utility) == (2, 5, 10.0, 4.5, 5.5)
    assert (d.completion, d.value, d.payment, d.utility) == (7, 0.0, 2.0, -2.0)
    assert pd.isna(row(result, "b").start)
    assert row(result, "b").removed == row(result, "c").removed == 3
    assert row(result, "f").isna()[["submitted", "start", "planned_start"]].all()
    assert result.rounds["load"].tolist() == [0, 3, 3, 3, 2, 2, 0, 0, 0, 0, 1, 1]
    assert result.rounds["demand"].tolist() == [0, 3, 5, 5, 2, 3, 0, 0, 0, 0, 1, 1]
    assert result.rounds["cancelled"].tolist() == [0, 0, 2] + [0] * 9
    assert result.rounds["price"].tolist() == [0.5 * t for t in range(1, 13)]
    assert result.rounds["promised"].tolist() == [1.5] * 12
    summary = result.outcome
    assert summary["complete"] is True
    assert [summary[word] for word in OUTCOMES] == [2, 0, 2, 0, 0, 2]
    assert (summary["welfare"], summary["revenue"], summary["owners_utility"]) == (10.0, 6.5, 3.5)
    assert summary["utilisation"] == 15 / 48
    assert (summary["price_lowest"], summary["price_median"], summary["price_highest"]) == (0.5, 2.75, 5.0)
    assert summary["mechanism"] == {"calls": 11}
    assert result.price_surface.shape == (12, 20)
    assert result.price_surface.dtype == np.float32
    assert result.price_surface[2, 4] == 0.5 * 7
    assert result.jobs["band"].tolist() == ["free", "free", "middle", "free", "free", "free"]
    closed = result.events[result.events["event"] == "close"]
    assert closed[["round", "job"]].values.tolist() == [[12, "e"]]


def test_events_are_the_whole_story():
    """The jobs and rounds tables can be recounted from the events table alone."""
    rng = np.random.default_rng(8)
    births = rng.integers(1, 40, 200)
    jobs = [
        job(f"j{i}", int(b), int(b + rng.integers(0, 5)), int(rng.integers(1, 6)), nodes=int(rng.integers(1, 4)))
        for i, b in enumerate(births)
    ]
    result = market(jobs, capacity=20, horizon=50).run()
    events = result.events
    held = {j.name: j.truth.concurrency for j in jobs}
    load = np.zeros(52, dtype=int)
    for name, story in events.groupby("job"):
        told = dict(zip(story["event"], story["round"], strict=True))
        if "start" in told:
            end = told["complete"] + 1 if "complete" in told else told.get("evict", 51)
            load[told["start"] : end] += held[name]
    assert result.rounds["load"].tolist() == load[1:51].tolist()
    assert result.rounds["load"].max() <= 20
    assert {"completed", "cancelled"} < set(result.jobs["outcome"])  # or this test shows nothing
    for word, column in (("submit", "submitted"), ("cancel", "cancelled"), ("complete", "completed")):
        assert result.rounds[column].sum() == (events["event"] == word).sum()
    assert events["payment"].sum() == pytest.approx(result.outcome["revenue"])
    assert events["round"].is_monotonic_increasing


def test_a_surprised_owner_submits_again_next_round():
    foreseen = [(3, 2, 1.0)]
    jobs = [job("late", 1, 4, 2, law=foreseen), job("longer", 1, 3, 3, law=foreseen, nodes=2)]
    without = market(jobs).run()
    assert without.jobs["outcome"].tolist() == ["dropped", "dropped"]
    model = market(jobs, resubmit=True)
    result = model.run()
    calls = [call for call in model.mechanism.calls if call[2].endswith("+")]
    assert calls == [
        ("submit", 4, "longer+"),
        ("arrive", 4, "longer+", 3),
        ("submit", 5, "late+"),
        ("arrive", 5, "late+", 2),
        ("complete", 6, "longer+"),
        ("complete", 6, "late+"),
    ]
    assert result.jobs["outcome"].tolist() == ["completed", "completed"]
    assert result.jobs["resubmitted"].tolist() == [True, True]
    assert result.jobs["submitted"].tolist() == [1, 1]
    assert result.jobs["planned_start"].tolist() == [5, 4]
    assert result.jobs["removed"].isna().all()
    assert result.outcome["resubmitted"] == 2
    again = result.events[result.events["statement"] == "late+"]
    assert again["event"].tolist() == ["submit", "arrive", "start", "complete"]
    assert again["job"].unique().tolist() == ["late"]


def test_the_second_statement_is_worth_no_more_than_the_first():
    """Value ends at the first birth + max_delay = 7, and the second report says so."""
    jobs = [job("late", 1, 5, 1, law=[(3, 1, 1.0)])]
    model = market(jobs, resubmit=True, max_delay=6)
    reports = []
    submit = model.mechanism.submit
    model.mechanism.submit = lambda name, sow: reports.append(sow) or submit(name, sow)
    result = model.run()
    assert reports[1].birth == 6
    assert [reports[1].value(f) for f in (6, 7)] == [10.0, 0.0]
    assert row(result, "late").completion == 7
    assert row(result, "late").value == 0.0


def test_an_owner_that_hides_its_case_by_lying_is_not_surprised():
    """Dropped because the report left the case out, not the truth: no second statement."""

    class Narrow:
        def report(self, truth, public):
            return StatementOfWork(truth.birth, truth.concurrency, truth.value, [(2, 1, 0.5)])

    jobs = [job("a", 1, 3, 1, law=[(2, 1, 0.5), (3, 1, 0.5)])]
    result = market(jobs, resubmit=True, strategy=Narrow()).run()
    assert result.jobs["outcome"].tolist() == ["dropped"]
    assert not result.jobs["resubmitted"].any()


def test_too_few_nodes_never_complete_and_too_many_are_held():
    jobs = [job("short", 1, 2, 2, nodes=2), job("wide", 1, 2, 2)]
    lies = {"short": InflateConcurrency(-1), "wide": InflateConcurrency(2)}
    mechanism = StrictMechanism(4, 12, max_duration=4)
    result = market(jobs, mechanism=mechanism, strategy=lambda j: lies[j.name]).run()
    short, wide = row(result, "short"), row(result, "wide")
    assert (short.outcome, short.removed, short.value, short.payment) == ("evicted", 6, 0.0, 0.0)
    assert (wide.outcome, wide.declared_concurrency, wide.concurrency) == ("completed", 3, 1)
    assert wide.payment == 0.5 * 3 * 2
    assert result.rounds["load"].tolist()[:6] == [0, 4, 4, 1, 1, 0]


def test_owners_are_mesa_agents_that_come_and_go():
    jobs = [job("a", 1, 1, 2), job("b", 3, 4, 1)]
    model = market(jobs)
    assert isinstance(model, mesa.Model)
    assert len(model.agents) == 0
    model.step()
    (owner,) = model.agents_by_type[JobOwner]
    assert (owner.truth, owner.report, owner.strategy) == (jobs[0].truth, jobs[0].truth, Truthful())
    assert owner.plan.start(1, 2) == 1
    assert owner.utility == 0.0
    assert (model.round, model.load) == (1, 1)
    model.step()
    assert owner.utility == 9.0
    assert (model.round, model.load) == (2, 1)
    assert len(model.agents) == 0
    model.step()
    assert [agent.job.name for agent in model.agents] == ["b"]


def test_named_owners_have_policies_of_their_own_and_are_followed_over_the_day():
    class Half:
        def report(self, truth, public):
            return ScaleValue(0.5).report(truth, public)

    setup = described.Scenario.load("stochastic-mix").with_mechanism("pay-as-bid").setup(np.random.default_rng(3))
    collector = mesa.DataCollector(
        agenttype_reporters={NamedOwner: {"name": "name", "paid": "payment", "jobs": "active"}}
    )
    model = Market(setup, strategies={"report": Half(), "alarm": Truthful()})
    while model.running:
        model.step()
        collector.collect(model)
    jobs = model.result().jobs.groupby("owner")[["value", "payment"]].sum()
    seen = collector.get_agenttype_vars_dataframe(NamedOwner)
    assert seen.groupby("name").size().to_dict() == dict.fromkeys(("report", "alarm"), setup.horizon)
    for name, owner in model.named.items():
        paid = seen[seen["name"] == name]["paid"]
        assert paid.is_monotonic_increasing and paid.iloc[-1] == owner.payment == jobs["payment"][name]
        assert owner.utility == jobs["value"][name] - jobs["payment"][name] and owner.active == 0
    again = Market(setup).run().jobs.groupby("owner")["payment"].sum()  # the same setup, and nobody lies
    assert again["report"] > jobs["payment"]["report"]
    with pytest.raises(InvalidParameterError, match=r"strategies = 'ann': expected owners with a job, as alarm, build"):
        Market(setup, strategies={"ann": Half()})
    with pytest.raises(InvalidParameterError, match=r"expected an object with report\(truth, public\)"):
        Market(setup, strategies={"alarm": Half})


def test_a_script_in_mesas_own_idioms():
    """A DataCollector over the model, its agents and its AgentSet, and a loop over `step`."""
    model = market([job("a", 1, 1, 3), job("b", 2, 3, 2), job("c", 2, 2, 1)])
    collector = mesa.DataCollector(
        model_reporters={"load": "load", "active": lambda m: len(m.agents)},
        agent_reporters={"running": lambda owner: owner.start is not None, "name": "name"},
    )
    while model.running:
        model.step()
        collector.collect(model)
    table = collector.get_model_vars_dataframe()
    assert model.steps == len(table) == model.setup.horizon
    assert table["load"].tolist() == model.result().rounds["load"].tolist()
    owners = collector.get_agent_vars_dataframe()
    assert set(owners["name"]) == {"a", "b"}  # c comes and goes within round 2
    assert owners.index.get_level_values("AgentID").nunique() == 2
    assert owners.groupby("Step")["running"].sum().loc[2] == 1  # a, since round 1
    again = market([job("a", 1, 5, 1), job("b", 1, 5, 1)])
    again.step()
    planned = again.agents.select(lambda owner: owner.plan is not None)
    assert len(planned) == len(again.agents) == 2
    assert sorted(planned.get("name")) == ["a", "b"]


@pytest.mark.skipif(not hasattr(mesa.Model, "run_for"), reason="this Mesa advances by step alone")
def test_mesas_own_clock_plays_rounds():
    """Mesa from 3.5 on advances time itself; a unit of it is a round, and nothing has to call `step`."""
    jobs = [job("a", 1, 1, 3), job("b", 2, 3, 2)]
    model, stepped = market(jobs), market(jobs)
    model.run_for(3)
    assert (model.round, model.time, model.steps) == (3, 3.0, 3)
    model.run_until(model.setup.horizon)
    assert not model.running
    pd.testing.assert_frame_equal(model.result().events, stepped.run().events)


def test_interruption_leaves_all_finished_rounds():
    jobs = [job(f"j{i}", 1 + i, 1 + i, 3) for i in range(9)]
    whole = market(jobs).run()

    def interrupt_inside_a_round(model):
        submit = model.mechanism.submit

        def impatient(name, sow):
            plan = submit(name, sow)
            if name == "j5":
                raise KeyboardInterrupt
            return plan

        model.mechanism.submit = impatient

    model = market(jobs)
    interrupt_inside_a_round(model)
    with pytest.raises(KeyboardInterrupt):
        model.run()
    part = model.result()
    assert part.outcome["complete"] is False
    assert part.outcome["rounds"] == len(part.rounds) == 5
    pd.testing.assert_frame_equal(part.rounds, whole.rounds.head(5))
    pd.testing.assert_frame_equal(part.events, whole.events[whole.events["round"] <= 5])
    assert part.price_surface.tolist() == whole.price_surface[:5].tolist()
    assert part.jobs["outcome"].tolist() == ["completed"] * 3 + ["unfinished"] * 6
    assert not model.running  # a loop over `step` ends, whatever Mesa makes of a step that was interrupted
    refused(lambda: model.run(), "interrupted", error=EventError)


def test_a_market_without_jobs_or_prices_gives_whole_tables():
    result = market([], horizon=3, mechanism=StrictMechanism(4, 3, prices=False)).run()
    assert result.rounds["load"].tolist() == [0, 0, 0]
    assert result.rounds["price"].isna().all()
    assert result.outcome["price_median"] is None
    assert result.price_surface is None


def test_mesa_forgets_a_market_that_nobody_holds():
    model = market([job("a", 1, 1, 1), job("b", 1, None, 1)])
    model.step()  # and not to its end
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_same_seed_same_result_and_results_can_be_pickled():
    class Scenario:
        def setup(self, rng):
            arrivals = rng.integers(1, 9, 20).tolist()
            jobs = [job(f"j{i}", 1, a, 2) for i, a in enumerate(arrivals)]
            return MarketSetup("drawn", jobs, StrictMechanism(9, 12), 9, 12, 20)

    one, two, other = (Market(Scenario(), rng=seed).run() for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(one.events, two.events)
    assert not one.jobs["arrival"].equals(other.jobs["arrival"])
    direct = Market(Scenario().setup(np.random.default_rng(3))).run()
    pd.testing.assert_frame_equal(one.events, direct.events)
    copy = pickle.loads(pickle.dumps(one))
    pd.testing.assert_frame_equal(copy.jobs, one.jobs)


def test_a_mechanism_that_oversells_is_caught():
    mechanism = StrictMechanism(9, 12)  # believes in more nodes than there are
    with pytest.raises(EventError, match="round 2: the mechanism runs 6 nodes, capacity is 4"):
        market([job("a", 1, 2, 2, nodes=6)], mechanism=mechanism).run()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 99}, "horizon = 99: expected at most the mechanism's last round 12"),
        ({"jobs": [job("a", 1, 1, 1)] * 2}, "two jobs are named 'a'"),
        ({"jobs": [job("a", 1, 1, 1), job("a+", 1, 1, 1)], "resubmit": True}, "'a' and 'a\\+'"),
        ({"jobs": [Job("a", "o", job("x", 2, 2, 1).truth, 1, 1)]}, "arrives in round 1"),
        ({"jobs": [Job("a", "o", job("x", 2, 2, 1).truth, 2, 0)]}, "duration 0"),
    ],
)
def test_bad_setups_are_refused(change, message):
    good = {"name": "s", "jobs": [], "mechanism": StrictMechanism(4, 12), "capacity": 4, "horizon": 12, "max_delay": 9}
    MarketSetup(**good)
    with pytest.raises(InvalidParameterError, match=message):
        MarketSetup(**good | change)


def test_a_played_mechanism_and_other_objects_are_refused():
    model = market([])
    model.run()
    refused(lambda: MarketSetup("again", [], model.mechanism, 4, 12, 9), "round 13", error=InvalidParameterError)
    refused(lambda: model.step(), "over", error=EventError)
    refused(lambda: Market("google-recurring"), "setup", error=InvalidParameterError)


# -- what plays a scenario ----------------------------------------------------------------------


class Watches:
    """Reports half its value while no node is busy."""

    def __init__(self):
        self.loads = []

    def watch(self, market):
        self.loads.append((market.round, market.load))

    def report(self, truth, public):
        return truth if self.loads[-1][1] else ScaleValue(0.5).report(truth, public)


def test_an_owner_sees_the_market_before_it_reports():
    watching = Watches()
    jobs = [job("a", 1, 2, 3), job("b", 4, 5, 1), job("c", 9, 9, 2)]
    model = market(jobs, strategy=watching)
    reports = {}
    while model.running:
        model.step()
        reports |= {owner.name: owner.report.value.value for owner in model.agents}
    assert watching.loads == [(0, 0), (3, 1), (8, 0)]  # the round before theirs
    assert reports == {"a": 5.0, "b": 10.0, "c": 5.0}
    assert model.setup.looks and not market(jobs, strategy=ScaleValue(0.5)).setup.looks


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("owners", [{}, {"misreporting": 0.5, "strategy": {"kind": "scale-value", "factor": 0.5}}])
@pytest.mark.parametrize("mechanism", ["bid-price", "exponential", "pay-as-bid"])
def test_owners_as_agents_give_the_tables_of_the_engine_where_reports_are_known_beforehand(mechanism, owners):
    scenario = described.Scenario.load("stochastic-mix").with_changes(f"owners={owners}" if owners else "name=x")
    engine, agents = (run(scenario.with_mechanism(mechanism), 3, model=model) for model in (False, True))
    assert engine.outcome == agents.outcome and list(engine.tables) == list(agents.tables)
    assert all(engine.tables[name].equals(agents.tables[name]) for name in engine.tables)
