"""OPM and OPS: steps against a naive version, budgets, the special case, and what is refused."""

import numpy as np
import pytest

from marketsched.cores.papers.opm_growth import fit_bound
from marketsched.mechanisms.allocation import Opm, PowerUtility
from marketsched.mechanisms.allocation.opm.kernels import BUDGET, DONE, DUAL, N_FIELDS, execute_kernel
from marketsched.mechanisms.arrays import read_only
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from naive_opm import NaiveOpm
from refusals import refused


def play(opm, rng, slots, on_slot=lambda decision, work: None):
    """Play slots with machines of rates U[0, 1]; return all decisions."""
    decisions = []
    for _ in range(slots):
        decision, work = opm.allocate(), rng.random(opm.n_machines)
        on_slot(decision, work)
        opm.update(work)
        decisions.append(decision)
    return np.array(decisions)


def fractional(opm, labels):
    """The shares by label, shape (labels, M)."""
    dense = np.zeros((labels, opm.n_machines))
    dense[opm.open_jobs] = opm.open_fractional
    return dense


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(("machines", "estimate_rates"), [(3, True), (9, True), (137, True), (9, False)])
def test_fractional_path_multipliers_and_rates_follow_the_paper_slot_by_slot(machines, estimate_rates):
    rng = np.random.default_rng(machines)
    prices, horizon = rng.uniform(0.1, 1.0, machines), 120
    opm = Opm(prices, horizon, primal_step=0.3, dual_step=0.05, slack=0.1, floor=0.05, strict_budget=False,
              estimate=estimate_rates, gamma=0.2, rng=1)  # fmt: skip
    naive = NaiveOpm(prices, 0.2, 0.3, 0.05, 0.1, 0.05, None if estimate_rates else np.ones(machines))
    arriving = {1: 2, 5: 1, 6: 3, 40: 2, 41: 1}
    label = 0
    for slot in range(1, 81):
        for _ in range(arriving.get(slot, 0)):
            deadline = int(rng.integers(slot, horizon))
            budget, weight, exponent = rng.uniform(1, 9) * (deadline - slot + 1), rng.uniform(1, 5), rng.uniform(0.5, 1)
            opm.add_job(label, deadline, budget, PowerUtility(weight, exponent))
            naive.add(label, slot - 1, deadline, budget, weight, exponent)
            naive.jobs[label]["deadline"] = deadline
            label += 1
        decision, work = opm.allocate(), rng.random(machines)
        naive.jobs = {job: state for job, state in naive.jobs.items() if state["deadline"] >= slot}
        np.testing.assert_allclose(opm.rates, naive.rates(), rtol=1e-12)
        naive.step(slot)
        assert set(opm.open_jobs) == set(naive.jobs)
        shares = fractional(opm, label)
        for job, state in naive.jobs.items():
            np.testing.assert_allclose(shares[job], state["x"], atol=1e-9)
            assert opm._jobs.table[DUAL, opm._jobs.column(job)] == pytest.approx(state["dual"], abs=1e-9)
        # P4's constraints hold, nobody is drawn without a share, and the draw is a share of the machine
        assert shares.min() >= 0.0 and shares.sum(axis=0).max() <= 1.0 + 1e-12
        used = decision >= 0
        assert (shares[decision[used], np.flatnonzero(used)] > 0.0).all()
        opm.update(work)
        naive.learn(decision, work)


def test_mean_of_decisions_is_the_fractional_path():
    rng = np.random.default_rng(0)
    machines, slots = 60, 400
    opm = Opm(rng.uniform(0.3, 1.0, machines), slots, known_rates=rng.random(machines), strict_budget=False, rng=3)
    for job in range(4):
        opm.add_job(job, slots, 20.0 * slots * rng.random(), PowerUtility(rng.uniform(1, 5), 0.6))
    drawn, planned, variance = np.zeros(4), np.zeros(4), np.zeros(4)
    for _ in range(slots):
        decision, shares = opm.allocate(), opm.open_fractional
        drawn += np.bincount(decision[decision >= 0], minlength=4)
        planned += shares.sum(axis=1)
        variance += (shares * (1 - shares)).sum(axis=1)
        opm.update(np.ones(machines))
    assert (np.abs(drawn - planned) <= 5.0 * np.sqrt(variance)).all()  # with known rates draws do not act on shares


@pytest.mark.parametrize("redraw", [True, False])
def test_kept_draws_follow_the_shares_and_move_no_machine_whose_shares_stay(redraw):
    """Two equal jobs on machines of known rate: their shares settle at a half each, and then only fresh draws move."""
    rates = np.full(400, 0.5)
    opm = Opm(rates, 400, primal_step=0.2, rng=3, redraw=redraw, known_rates=rates)
    for job in (0, 1):
        opm.add_job(job, 400, 1e6, PowerUtility(2.0, 0.5))
    decisions = play(opm, np.random.default_rng(1), 40)
    np.testing.assert_allclose(opm.open_fractional, 0.5)
    assert abs(np.count_nonzero(decisions[-1]) - 200) < 50  # five standard deviations
    assert (decisions[-1] == decisions[-2]).all() == (not redraw)


@pytest.mark.parametrize("seed", range(5))
def test_strict_budgets_are_never_exceeded_and_nearly_used(seed):
    rng = np.random.default_rng(seed)
    machines, slots = 12, 150
    prices = rng.choice([0.1, 0.3, 0.7], machines)  # sums like 0.1 + 0.1 + 0.1 must not creep over a budget of 0.3
    opm = Opm(prices, slots, primal_step=1.0, rng=seed)
    budgets, spent = rng.choice([0.3, 0.7, 2.1, 40.0], 6), np.zeros(6)
    for job in range(6):
        opm.add_job(job, slots, float(budgets[job]), PowerUtility(3.0, 0.5))

    def charge(decision, work):
        for i in np.flatnonzero(decision >= 0):
            spent[decision[i]] += prices[i]
            assert spent[decision[i]] <= budgets[decision[i]]

    play(opm, rng, slots, charge)
    assert opm.fit == pytest.approx((spent - budgets).sum())
    assert (budgets - spent <= 0.7).any()


def test_a_job_that_cannot_pay_for_a_machine_gets_no_cheaper_one_after_it():
    """Algorithm 1, lines 7 to 12: a budget of 5, machines at 6, 2 and 2, of which the first ends the job's run."""

    def executed(strict):
        table, decision = np.zeros((N_FIELDS, 1)), np.empty(3, dtype=np.int64)
        table[BUDGET] = 5.0
        prices = read_only(np.array([6.0, 2.0, 2.0]))  # as a scheduler's are: no second signature is compiled
        done = execute_kernel(np.zeros(3, dtype=np.int64), prices, 1.0, table, 1, strict, decision)
        return decision.tolist(), done, table[DONE, 0]

    assert executed(strict=True) == ([-1, -1, -1], 1, 1.0)
    assert executed(strict=False) == ([0, 0, 0], 0, 0.0)


def test_without_strict_budgets_the_multipliers_keep_them_and_fit_is_reported():
    rng = np.random.default_rng(0)
    opm = Opm(np.ones(5), 2000, strict_budget=False, rng=1)
    opm.add_job(0, 2000, 4000.0, PowerUtility(2.0, 0.5))
    opm.add_job(1, 2000, 1000.0, PowerUtility(2.0, 0.5))
    decisions = play(opm, rng, 2000)
    spent = np.array([(decisions == 0).sum(), (decisions == 1).sum()])
    assert opm.fit == spent.sum() - 5000.0
    assert opm.fit <= fit_bound(np.array([4000.0, 1000.0]), 2000, 5, 0.05)
    assert opm.spent(1) == spent[1]


def test_a_job_whose_budget_is_spent_leaves_its_machines():
    opm = Opm([1.0, 1.0], 50, primal_step=10.0, rng=0)
    opm.add_job(4, 50, 3.0, PowerUtility(5.0, 0.5))
    opm.add_job(9, 50, 1000.0, PowerUtility(1.0, 0.5))
    play(opm, np.random.default_rng(0), 20)
    assert opm.open_jobs.tolist() == [9]
    refused(lambda: opm.spent(4), "job 4: not in the cluster", error=EventError)


def test_prices_above_1_are_scaled_with_budgets_and_spending_is_counted_in_credits():
    def run(scale):
        opm = Opm(np.array([0.5, 1.0, 0.25]) * scale, 60, primal_step=0.2, rng=5)
        opm.add_job(0, 60, 30.0 * scale, PowerUtility(2.0, 0.6))
        return opm, play(opm, np.random.default_rng(1), 60)

    (one, first), (four, second) = run(1.0), run(4.0)
    np.testing.assert_array_equal(first, second)
    assert four.price_scale == 4.0 and four.fit == pytest.approx(4.0 * one.fit)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prices": []}, "at least one machine"),
        ({"prices": [0.5, -0.1]}, r"prices\[1\]"),
        ({"prices": [np.nan]}, r"prices\[0\]"),
        ({"primal_step": 0.0}, "primal_step"),
        ({"dual_step": -1.0}, "dual_step"),
        ({"known_rates": [1.5]}, r"known_rates\[0\]"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(InvalidParameterError, match=message):
        Opm(**{"prices": [0.5], "horizon": 10, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deadline": 0}, "deadline of job 1 = 0"),
        ({"deadline": 2}, "deadline of job 1 = 2: expected a slot after the present one, 2"),
        ({"deadline": 5.5}, "deadline of job 1"),
        ({"budget": 0.0}, "budget of job 1"),
        ({"budget": np.inf}, "budget of job 1"),
        ({"utility": lambda x: x}, "expected a PowerUtility"),
        ({"job": -1}, "job = -1"),
        ({"job": True}, "job = True"),
    ],
)
def test_bad_jobs_are_named_and_change_nothing(change, message):
    opm = Opm([0.5], 10, rng=0)
    play(opm, np.random.default_rng(0), 2)
    legal = {"job": 1, "deadline": 9, "budget": 5.0, "utility": PowerUtility(1.0, 0.5)}
    with pytest.raises(InvalidParameterError, match=message):
        opm.add_job(**{**legal, **change})
    assert not opm.open_jobs.size
    opm.add_job(**legal)
    refused(lambda: opm.add_job(**legal), "job 1: a job of this label", error=EventError)


@pytest.mark.parametrize("work", [[0.5], [1.5, 0.0], [-0.1, 0.0], [np.nan, 0.0], [[0.1, 0.2]]])
def test_bad_work_is_refused_and_can_be_told_again(work):
    opm = Opm([0.5, 0.5], 10, rng=0)
    opm.allocate()
    refused(lambda: opm.update(work), "work", error=InvalidParameterError)
    opm.update([0.5, 0.5])


def test_the_order_of_calls_is_kept():
    opm = Opm([0.5], 1, rng=0)
    refused(lambda: opm.update([0.0]), "expected allocate", error=EventError)
    assert opm.allocate().tolist() == [-1]
    refused(lambda: opm.allocate(), "expected update", error=EventError)
    opm.update([0.0])
    refused(lambda: opm.allocate(), "the horizon is 1", error=EventError)


@pytest.mark.compiled
def test_two_threads_give_the_same_bits():
    runs = []
    for threads in (1, 2):
        rng = np.random.default_rng(1)
        opm = Opm(rng.uniform(0.2, 1.0, 1000), 300, primal_step=0.2, rng=4, threads=threads)
        for job in range(205):  # 205 x 1000 is enough for two threads
            opm.add_job(job, int(rng.integers(5, 300)), 50.0 * rng.random() + 1.0, PowerUtility(2.0, 0.6))
        decisions = play(opm, rng, 12)
        runs.append((decisions, opm.open_fractional, opm.rates))
    for one, two in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, two)
