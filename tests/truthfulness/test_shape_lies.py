"""Lies about shapes: each is a report with its own law, none pays under menus at arrival, and faults are found."""

from dataclasses import replace

import numpy as np
import pytest

from claims import claiming
from cluster_markets import HORIZON, RULES, SIZES, ChargesFragments, HearsTheRound, tiny_market
from marketsched.agents.conduct import plain
from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, misreport_from
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.posted import ClusterFirstCome
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.truthfulness import certify_owners
from marketsched.truthfulness.audit import audit
from marketsched.truthfulness.certificates.arrival_certificate import certify_served, check_revealed
from marketsched.truthfulness.certificates.menus import lies_of, play_menus
from marketsched.truthfulness.certificates.unchanged import changed_members, require_certified_class
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.families import default_families
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.searches.shape_families import lies_about_shapes
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from refusals import refused

pytestmark = pytest.mark.compiled

FAMILIES = {"drop", "dummy", "invent", "swap", "widen", "stretch", "worth"}
SCENARIO = {
    "name": "two kinds",
    "workload": {
        "kind": "cluster-mix",
        "cluster": {
            "resources": {"cpu": {"unit": "core"}, "gpu": {"device": True, "parts": 10}},
            "groups": [
                {"name": "a", "kind": "a100", "nodes": 1, "each": {"cpu": 8, "gpu": 2}},
                {"name": "v", "kind": "v100", "nodes": 2, "each": {"cpu": 8, "gpu": 1}},
            ],
        },
        "rounds": 16,
        "per_round": 2,
        "sorts": [
            {
                "name": "tune", "share": 1, "value": 8, "patience": 9,
                "shapes": [{"each": {"cpu": 2, "gpu": 1}, "on": {"a100": 3, "v100": 5}}],
            },
            {"name": "cpu", "share": 1, "value": 3, "patience": 6, "shapes": [{"each": {"cpu": 4}, "on": {"v100": 4}}]},
        ],
    }
}  # fmt: skip


def at_hand(cluster, jobs, kind=ClusterBidPrice, **rules):
    given = {**(RULES if issubclass(kind, ClusterBidPrice) and kind is not ClusterFirstCome else {}), **rules}
    return MarketAtHand(
        lambda rng: kind(cluster.nodes, HORIZON, **SIZES, cluster=cluster, **given), jobs,
        capacity=cluster.nodes, horizon=HORIZON, max_delay=SIZES["max_delay"],
    )  # fmt: skip


def public_of(cluster):
    return PublicInformation(cluster.nodes, HORIZON, SIZES["max_delay"], 9, SIZES["max_duration"], 1e4, cluster)


def gains_of(market, families, most=40):
    """Return what lies gain over all owners, by what they are called, and how many changed a completion."""
    found, other = [], 0
    for owner in market.owners([job.name for job in market.setup.jobs]):
        rng = np.random.default_rng(len(found))
        tried = families(owner)
        for i in rng.permutation(len(tried))[:most].tolist():
            try:
                conduct = tried[i].conduct(owner.truth, owner.truth, owner.public)
                owner.check(conduct.statements[0].report)
                played = owner.play(conduct)
            except InvalidReportError:
                continue
            found.append((played.utility - owner.truthful.utility, tried[i]))
            other += played.completion != owner.truthful.completion
    return found, other


def all_lies(owner):
    return [lie for family in default_families(owner.truth, owner.public) for lie in family.members]


def about_shapes(owner):
    return [lie for family in lies_about_shapes(owner.truth, owner.public).values() for lie in family]


@pytest.mark.slow
def test_every_lie_is_a_report_of_other_shapes_with_the_law_of_the_first():
    seen = set()
    for seed in range(6):
        cluster, jobs = tiny_market(seed)
        public = public_of(cluster)
        for job in jobs:
            for family, lies in lies_about_shapes(job.truth, public).items():
                for lie in lies:
                    assert misreport_from(lie.data()) == lie and lie.words(job.truth)
                    report = lie.report(job.truth, public)
                    assert report.concurrency == report.shapes[0].tasks and report.value == job.truth.value
                    first = report.shapes[0].on[report.shapes[0].kinds[0]]
                    assert set(report.durations.tolist()) <= set(first)
                    assert [r.signal for r in report.requirements] == [r.signal for r in job.truth.requirements]
                    if report != job.truth:
                        seen.add(family)
                        assert lie.distance(job.truth, public) > 0
    assert seen == FAMILIES


def test_jobs_of_identical_nodes_have_no_such_lies():
    truth = StatementOfWork(1, 2, DeadlineValue(4.0, 9), [(1, 2, 1.0)])
    assert lies_about_shapes(truth, PublicInformation(4, 9, 9)) == {}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_lie_pays_under_menus_at_arrival(seed):
    found, other = gains_of(at_hand(*tiny_market(seed)), all_lies, most=12)
    assert len(found) > 100 and other > 10
    assert max(gain for gain, _ in found) <= 1e-9


def test_a_shape_of_smaller_worth_brings_its_share():
    """Of ten credits a shape of worth .8 brings eight, in the truth and where the other shape is not named."""
    cluster = Cluster(tiny_market(0)[0].resources, (NodeGroup("x", "a", 1, {"cpu": 4}),))
    shapes = [Shape({"cpu": 2}, {"a": 3}, worth=0.8), Shape({"cpu": 2}, {"a": 6})]
    truth = StatementOfWork.of_shapes(1, DeadlineValue(10.0, 5), 1, shapes)
    market = at_hand(cluster, [Job("job", "ann", truth, 1, 3, 3)], ClusterFirstCome)
    (owner,) = market.owners(["job"])
    assert owner.truthful.utility == market.outcomes["job"].utility == 8
    assert owner.play(plain(truth, 1)).utility == 8


def test_a_surcharge_for_fragments_is_found_by_the_screen():
    """An owner that needs .7 of a device, and would be charged for the rest, claims all of it."""
    cluster = Cluster(tiny_market(0)[0].resources, (NodeGroup("x", "a", 1, {"cpu": 4, "gpu": 1}),))
    truth = StatementOfWork.of_shapes(1, DeadlineValue(10.0, 5), 1, [Shape({"cpu": 2, "gpu": 0.7}, {"a": 3})])
    found = {}
    for kind in (ChargesFragments, ClusterBidPrice):
        screening = Screening(
            at_hand(cluster, [Job("job", "ann", truth, 1, 3, 3)], kind), Budget(200, None), lambda _: 0
        )
        found[kind] = screening.screen(0, 200).best_counted
    assert found[ClusterBidPrice] is None
    assert found[ChargesFragments].misreport.kind == "scale-demand" and found[ChargesFragments].gain > 0


@pytest.mark.slow
def test_prices_that_hear_the_round_are_found():
    for seed in range(12):
        found, _ = gains_of(at_hand(*tiny_market(seed), HearsTheRound, lags=(1, 2)), about_shapes)
        if max(gain for gain, _ in found) > 1e-6:
            return
    pytest.fail("no lie about shapes was found to gain")


@pytest.mark.slow
def test_an_audit_of_a_cluster_finds_nothing_and_certifies_it():
    (found,) = audit(SCENARIO, ["bid-price"], owners=4, plays=100).mechanisms
    assert found.at_hand is not None and len(found.at_hand.gains) > 10 and not found.at_hand.failures
    assert found.at_hand.best_ex_post is None and not found.truth_fails
    assert found.certificates["regret_upper"].max() <= 1e-9
    assert not any("no certificates" in error for error in found.errors)


@pytest.mark.parametrize("name", ["cluster-bid-price", "cluster-first-come", "cluster-exponential"])
def test_owners_on_a_cluster_are_certified_by_all_prices_and_calendars(name):
    table = certify_owners(with_mechanism(name), 12, menu_lies=20)
    assert len(table) > 6 and table["regret_upper"].max() <= 1e-9 and (table["truthful_utility"] > 0).any()
    words = table["rests_on"].iloc[0]
    assert "the same, bit for bit, under 20 lies" in words and "payments equal their menus" in words


def with_mechanism(name):
    return {**SCENARIO, "mechanism": {"name": name}}


def test_what_a_job_did_not_get_is_in_its_certificate():
    setup = Scenario.of(with_mechanism("cluster-first-come")).setup(np.random.default_rng(3))
    jobs = {job.name: [] for job in setup.jobs[:8]}
    by_name = {job.name: job for job in setup.jobs}
    served, _ = play_menus(setup, jobs)
    ran = [(by_name[name], each) for name, each in served.items() if each.completion is not None]
    assert len(ran) > 3
    for job, each in ran:
        got = certify_served(each, job.truth, job.duration, setup)
        assert got.regret_upper == 0.0 and got.truthful_utility > 0
        missed = certify_served(replace(each, completion=None), job.truth, job.duration, setup)
        assert missed.regret_upper == pytest.approx(got.truthful_utility)
        charged = certify_served(replace(each, payment=each.payment + 0.5), job.truth, job.duration, setup)
        assert charged.regret_upper == pytest.approx(0.5)
        full = replace(each.menu, devices=0 * each.menu.devices, free=0 * each.menu.free)
        assert certify_served(replace(each, menu=full), job.truth, job.duration, setup).regret_upper == 0.0


@pytest.mark.parametrize("kind", [HearsTheRound, ChargesFragments])
def test_a_mechanism_with_a_planted_fault_gets_no_certificate(kind):
    cluster, _ = tiny_market(1)
    mechanism = kind(cluster.nodes, HORIZON, **SIZES, cluster=cluster, **RULES)
    changed = changed_members(mechanism, ClusterBidPrice)
    assert changed
    refused(lambda: require_certified_class(mechanism), changed[0], error=InvalidParameterError)


@claiming
class ChargesMore(ClusterBidPrice):
    """A fault: a tenth of a credit on top of what was quoted."""

    def charge(self, x):
        return super().charge(x) + 0.1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", [ClusterBidPrice, HearsTheRound, ChargesMore])
def test_menus_that_move_and_payments_unlike_them_are_seen(kind):
    setup = Scenario.of(SCENARIO).setup(np.random.default_rng(5))
    limits = setup.mechanism.limits
    sizes = {name: getattr(limits, name) for name in ("max_concurrency", "max_duration", "max_value", "max_delay")}
    rules = {**RULES, "lags": (1, 2)}
    mechanism = kind(limits.capacity, limits.horizon, cluster=limits.cluster, **sizes, **rules)
    lies = {job.name: lies_of(job.truth, setup.public, 12, np.random.default_rng(1)) for job in setup.jobs[:12]}
    _, check = play_menus(replace(setup, mechanism=mechanism), lies)
    assert check.lies > 100 and check.payments > 12
    assert (check.moved is not None) == (kind is HearsTheRound)
    assert (check.mischarged is not None) == (kind is ChargesMore)


def test_hidden_durations_on_a_cluster_are_refused():
    shapes = [Shape({"gpu": 1}, {"a100": (2, 3)})]
    for revealed in (True, False):
        said = StatementOfWork.of_shapes(1, DeadlineValue(9.0, 20), 1, shapes, (0.5, 0.5), revealed=revealed)
        job = Job("j", "owner", said, 1, 2, 2 if revealed else None)
        if revealed:
            check_revealed({"j": job})
        else:
            refused(lambda j=job: check_revealed({"j": j}), legal="revealed durations", error=InvalidParameterError)
