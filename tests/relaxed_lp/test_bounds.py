"""The bounds (11), (12) and (23): equal to their definitions, and above what schedules can be worth."""

import numpy as np
import pytest

from draws import many
from marketsched.mechanisms import (
    DeadlineValue,
    InvalidParameterError,
    StatementLaw,
    StatementOfWork,
    TableValue,
)
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.relaxed_lp import dual_bound, hindsight_optimum, law_bound, offline_bound, plan_bound, realised_bound
from naive_programs import (
    best_schedule,
    expected_best_schedule,
    optimum,
    random_jobs,
    random_statement,
    starts_of_plans,
    starts_of_reports,
    worth,
)


def market(seed, n_jobs=5, revealed=True, horizon=7, **options):
    rng = np.random.default_rng(seed)
    return [random_statement(rng, horizon, revealed=revealed, **options) for _ in range(n_jobs)], horizon, rng


def point_laws(jobs):
    """Statements that know what will happen; those of jobs that never arrive are left out."""
    return [StatementOfWork(s.birth, s.concurrency, s.value, [(a, d, 1.0)]) for s, a, d in jobs if a is not None]


def value_of(bound):
    assert bound.optimal and 0 <= bound.gap <= 1e-7 * max(1.0, bound.value)
    assert bound.gap == bound.dual_value - bound.value
    return bound.value


# -- equal to the definition -------------------------------------------------------------------------------


@pytest.mark.parametrize("max_delay", [None, 4])
@pytest.mark.parametrize("seed", range(many(25)))
def test_offline_and_plan_bound_are_their_programs(seed, max_delay):
    sows, horizon, rng = market([11, seed], revealed=seed % 3 == 0, most_points=5)
    capacity = float(rng.uniform(0.4, 4)) if seed % 2 else int(rng.integers(1, 4))
    found = value_of(offline_bound(sows, capacity, horizon, max_delay=max_delay))
    assert found == pytest.approx(optimum(starts_of_reports(sows, horizon, max_delay), capacity, horizon), abs=1e-7)
    found = value_of(plan_bound(sows, capacity, horizon, max_delay=max_delay))
    assert found == pytest.approx(optimum(starts_of_plans(sows, horizon, max_delay), capacity, horizon), abs=1e-7)


def test_the_benchmark_of_the_worked_example():
    sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    bound = offline_bound([sow] * 6, 5, 9)  # W4 (a): OPTrel = 20
    assert value_of(bound) == pytest.approx(20) and bound.prices.tolist() == pytest.approx([4.0] + [0.0] * 8)


def test_a_wide_job_counts_if_it_is_unlikely_enough():
    sow = StatementOfWork(1, 3, DeadlineValue(6.0, 2), [(1, 1, 0.2)])
    assert value_of(offline_bound([sow], 1, 1)) == pytest.approx(0.2 * 6)
    assert value_of(offline_bound([sow], 0.3, 1)) == pytest.approx(0.1 * 6)
    sure = StatementOfWork(1, 3, DeadlineValue(6.0, 2), [(1, 1, 1.0)])
    assert value_of(offline_bound([sure], 1, 1)) == pytest.approx(2)
    assert value_of(realised_bound(RealisedJobs.build([(sure, 1, 1)], horizon=1, max_delay=9), 1, 1)) == 0


@pytest.mark.parametrize("seed", range(many(25)))
def test_realised_bound_is_the_program_of_what_happened(seed):
    rng = np.random.default_rng([12, seed])
    jobs, capacity = random_jobs(rng, 7, 8), int(rng.integers(1, 4))
    realised = RealisedJobs.build(jobs, horizon=8, max_delay=6)
    narrow = [sow for sow in point_laws(jobs) if sow.concurrency <= capacity]
    found = value_of(realised_bound(realised, capacity, 8))
    assert found == pytest.approx(optimum(starts_of_reports(narrow, 8, 6), capacity, 8), abs=1e-7)
    assert dual_bound(realised, capacity, 8).value >= found - 1e-9


@pytest.mark.parametrize("seed", range(many(25)))
def test_law_bound_is_its_program(seed):
    laws, sows, shares = random_laws(np.random.default_rng([13, seed]))
    found = value_of(law_bound(laws, 2, 7))
    assert found == pytest.approx(optimum(starts_of_reports(sows, 7, shares=shares), 2, 7), abs=1e-7)


def random_laws(rng, n_jobs=3):
    """Laws of two statements or none each; all statements, and their probabilities."""
    laws, sows, shares = [], [], []
    for _ in range(n_jobs):
        birth, p, cases = int(rng.integers(1, 6)), rng.dirichlet(np.ones(3)), []
        for chance in p[:2]:
            drawn = random_statement(rng, 7, most_points=2)
            rows = [(birth + r.arrival - drawn.birth, r.duration, r.probability) for r in drawn.requirements]
            cases.append((StatementOfWork(birth, drawn.concurrency, drawn.value, rows), float(chance)))
        laws.append(StatementLaw([*cases, (None, float(p[2]))]))
        sows += [sow for sow, _ in cases]
        shares += [chance for _, chance in cases]
    return laws, sows, shares


# -- above what can be had ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(many(250)))
def test_no_schedule_beats_the_offline_bound(seed):
    rng = np.random.default_rng([14, seed])
    jobs, capacity = random_jobs(rng, int(rng.integers(1, 7)), 7), int(rng.integers(1, 4))
    laws = point_laws(jobs)
    if laws:
        assert best_schedule(jobs, capacity, 7) <= value_of(offline_bound(laws, capacity, 7)) + 1e-9


@pytest.mark.parametrize("seed", range(many(60)))
def test_the_expected_best_schedule_is_below_the_bounds(seed):
    sows, horizon, rng = market([15, seed], n_jobs=4, most_points=2)
    capacity = int(rng.integers(1, 4))
    expected = expected_best_schedule(sows, capacity, horizon)
    assert expected <= value_of(offline_bound(sows, capacity, horizon)) + 1e-9
    laws, _, _ = random_laws(rng, 2)
    expected = 0.0
    for first, p in laws[0].cases:
        for second, q in laws[1].cases:
            drawn = [sow for sow in (first, second) if sow is not None]
            expected += p * q * expected_best_schedule(drawn, capacity, 7)
    assert expected <= value_of(law_bound(laws, capacity, 7)) + 1e-9


def test_a_bound_for_a_smaller_cluster_is_broken():
    """Negative control: the comparisons above notice a bound that is too low."""
    sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    assert best_schedule([(sow, 1, 1)] * 3, 2, 2) > offline_bound([sow] * 3, 1, 2).value + 1e-9
    assert expected_best_schedule([sow] * 3, 2, 2) > law_bound([sow] * 3, 1, 2).value + 1e-9


@pytest.mark.parametrize("seed", range(many(250)))
def test_less_supply_costs_at_most_its_share(seed):
    sows, horizon, rng = market([16, seed], n_jobs=8, revealed=seed % 2 == 0, widest=5)
    capacity, epsilon = int(rng.integers(1, 6)), float(rng.uniform(0.01, 0.9))
    bound = plan_bound if seed % 5 == 0 else offline_bound
    full, part = (value_of(bound(sows, share * capacity, horizon)) for share in (1.0, 1 - epsilon))
    assert (1 - epsilon) * full - 1e-9 <= part <= full + 1e-9


@pytest.mark.parametrize("seed", range(many(60)))
def test_plans_do_at_most_as_well_as_hindsight_and_equally_well_if_they_see_durations(seed):
    hidden, horizon, rng = market([17, seed], revealed=False, most_points=5)
    capacity = float(rng.uniform(0.3, 3))
    offline, plans = (value_of(bound(hidden, capacity, horizon)) for bound in (offline_bound, plan_bound))
    assert plans <= offline + 1e-9
    shown = [
        StatementOfWork(
            s.birth, s.concurrency, s.value, [(r.arrival, r.duration, r.probability) for r in s.requirements]
        )
        for s in hidden
    ]
    assert value_of(plan_bound(shown, capacity, horizon)) == pytest.approx(offline, abs=1e-9)


def test_hidden_durations_cost_the_factor_of_the_gap():
    """G3: jobs of one round with probability 1/D, else of D, worth 1 after exactly one round."""
    longest, capacity, births = 8, 2, 60
    horizon = births + longest - 1
    points = [(1, 1 / longest), (longest, 1 - 1 / longest)]
    sows = [
        StatementOfWork(b, 1, TableValue({b + 1: 1.0}), [(b, d, p, None) for d, p in points])
        for b in range(1, births + 1)
        for _ in range(longest * capacity)
    ]
    assert value_of(offline_bound(sows, capacity, horizon)) == pytest.approx(capacity * births)
    rate = capacity / (longest + (longest - 1) ** 2)
    assert rate == capacity / 57
    found = value_of(plan_bound(sows, capacity, horizon))
    # Launching at a constant rate is feasible; a constant price over all rounds is feasible in the dual.
    assert births * rate - 1e-9 <= found <= horizon * rate + 1e-9


def test_law_of_statements_known_for_certain_is_the_offline_bound():
    sows, horizon, _ = market([18, 0], n_jobs=6)
    assert value_of(law_bound(sows, 2, horizon)) == pytest.approx(value_of(offline_bound(sows, 2, horizon)))


# -- ends --------------------------------------------------------------------------------------------------


def test_nothing_useful_is_worth_nothing():
    late = StatementOfWork(5, 1, DeadlineValue(1.0, 5), [(5, 1, 1.0)])
    assert worth(late, 6, 9) == 0
    realised = RealisedJobs.build([(late, None, 1)], horizon=9, max_delay=9)
    for bound in (
        *(solve([late], 2, 9) for solve in (offline_bound, plan_bound, law_bound)),
        realised_bound(realised, 2, 9),
    ):
        assert (bound.value, bound.dual_value, bound.gap, bound.optimal) == (0.0, 0.0, 0.0, True)
        assert bound.prices.tolist() == [0.0] * 9


SOW = StatementOfWork(1, 1, DeadlineValue(1.0, 5), [(1, 1, 1.0)])


@pytest.mark.parametrize("solve", [offline_bound, plan_bound, law_bound])
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], 2, 9), {}, "is empty: expected at least one"),
        (([SOW, 3], 2, 9), {}, r"\[1\]"),
    ],
)
def test_bad_arguments_are_named(solve, arguments, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        solve(*arguments, **options)


class Unchecked(DeadlineValue):
    """A curve of one's own, that checks nothing."""

    __slots__ = ()

    def __post_init__(self):
        pass


ENORMOUS = StatementOfWork(1, 1, Unchecked(1e308, 4), [(1, 1, 1.0)])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: offline_bound(None, 1, 5), "sows = None: expected a list of at least one"),
        (lambda: hindsight_optimum(None, 1, 5), r"jobs = None: expected \(StatementOfWork"),
        (lambda: hindsight_optimum([3], 1, 5), r"jobs\[0\] = 3: expected \(StatementOfWork"),
        (lambda: hindsight_optimum([(ENORMOUS, 1)], 1, 5), r"jobs\[0\] = .*expected \(StatementOfWork"),
        (lambda: realised_bound([(ENORMOUS, 1, 1)], 1, 5), "jobs = list: expected RealisedJobs"),
        (lambda: law_bound(None, 1, 5), "laws = None: expected a list of at least one"),
        (lambda: offline_bound([ENORMOUS] * 3, 1, 5), r"values up to 1e\+308 credits: expected less"),
    ],
)
def test_what_is_no_list_of_jobs_or_cannot_be_added_up_is_named(call, words):
    with pytest.raises(InvalidParameterError, match=words):
        call()
