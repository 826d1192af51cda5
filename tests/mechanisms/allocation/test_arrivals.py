"""Arrival processes: laws, repetition, independence, recorded counts, and counting from a list of times."""

import numpy as np
import pytest

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import BernoulliArrivals, BinomialArrivals, RecordedArrivals
from refusals import refused


def slots_of(process, n):
    """Return the counts of the next n slots."""
    return np.array([process.draw() for _ in range(n)])


def test_bernoulli_has_its_probabilities():
    probabilities = np.array([0.0, 0.2, 0.7, 1.0])
    drawn = slots_of(BernoulliArrivals(probabilities, np.random.default_rng(5)), 4000)
    assert set(np.unique(drawn)) == {0, 1}
    half_width = 4.0 * np.sqrt(probabilities * (1 - probabilities) / 4000)  # wrong once in 16,000 for each port
    assert (np.abs(drawn.mean(axis=0) - probabilities) <= half_width).all()
    together = np.mean(drawn[:, 1] * drawn[:, 2])  # ports are independent
    assert abs(together - 0.14) <= 4.0 * np.sqrt(0.14 * 0.86 / 4000)


def test_binomial_counts_users():
    most = np.array([0, 1, 5])
    process = BinomialArrivals(most, 0.3, np.random.default_rng(5))
    drawn = slots_of(process, 4000)
    assert (drawn <= process.most).all()
    assert drawn.dtype == np.int64
    assert (np.abs(drawn.mean(axis=0) - 0.3 * most) <= 4.0 * np.sqrt(0.21 * most / 4000)).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: BernoulliArrivals(0.5, np.random.default_rng(7), n_ports=4),
        lambda: BinomialArrivals([1, 2, 3, 4], 0.5, np.random.default_rng(7)),
        lambda: RecordedArrivals(np.arange(40).reshape(10, 4)),
    ],
)
def test_the_same_arrivals_come_again(make):
    process = make()
    first = slots_of(process, 10)
    process.begin()
    assert np.array_equal(slots_of(process, 10), first)
    assert np.array_equal(slots_of(make(), 10), first)
    assert process.n_ports == 4
    process.begin()
    process.draw()[:] = 99  # the caller's own
    assert np.array_equal(process.draw(), first[1])


def test_processes_of_one_generator_are_independent_and_leave_it_alone():
    rng, untouched = np.random.default_rng(7), np.random.default_rng(7)
    first, second = (BernoulliArrivals(0.5, rng, n_ports=40) for _ in range(2))
    alone = slots_of(first, 5)
    assert not np.array_equal(alone, slots_of(second, 5))
    assert rng.random() == untouched.random()


def test_recorded_arrivals():
    process = RecordedArrivals(np.array([[2.0, 0.0], [0.0, 3.0]]))
    assert (process.n_ports, process.slots, process.most.tolist()) == (2, 2, [2, 3])
    assert slots_of(process, 2).tolist() == [[2, 0], [0, 3]]
    refused(lambda: process.draw(), "slot 3: expected at most 2", error=InvalidParameterError)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rng: BernoulliArrivals(0.5, rng), "n_ports = None"),
        (lambda rng: BernoulliArrivals(1.5, rng, 2), "probabilities"),
        (lambda rng: BernoulliArrivals([0.5, np.nan], rng), r"probabilities\[1\] = nan"),
        (lambda rng: BernoulliArrivals([0.5, 0.5], rng, 3), r"probabilities has shape \(2,\)"),
        (lambda rng: BernoulliArrivals([], rng), "n_ports = 0"),
        (lambda rng: BernoulliArrivals([0.5], "seven"), "rng = .seven.: expected a whole number"),
        (lambda rng: BinomialArrivals([1, -1], 0.5, rng), r"most\[1\] = -1"),
        (lambda rng: BinomialArrivals([1.5], 0.5, rng), r"most\[0\] = 1.5"),
        (lambda rng: BinomialArrivals(3, 0.5, rng), "most has shape"),
        (lambda rng: RecordedArrivals([1, 0]), "counts has shape"),
        (lambda rng: RecordedArrivals(np.zeros((0, 3))), "counts has shape"),
        (lambda rng: RecordedArrivals([[1, np.inf]]), r"counts\[0, 1\] = inf"),
        (lambda rng: RecordedArrivals([["a"]]), "entries of type"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make(np.random.default_rng(0))
