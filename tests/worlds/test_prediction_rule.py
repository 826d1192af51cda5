"""The prediction rule: by hand, against a slow exact version of its text, and its limits."""

from fractions import Fraction
from itertools import pairwise
from statistics import median
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.worlds import PredictionRule, predict, prediction
from marketsched.worlds.prediction import History, IntegerLaw, distinct_rows, joint_law

PLAIN = PredictionRule(filling=0.0)


def history(submits, run_s, rule=PLAIN):
    """Return runs that start when they are submitted."""
    ends = [s + r for s, r in zip(submits, run_s, strict=True)]
    return History([float(s) for s in submits], ends, [rule.rounds_of(r) for r in run_s])


# --- laws of one quantity ---------------------------------------------------------------------------


def test_quantile_and_mean():
    law = IntegerLaw(np.array([1, 2, 5]), np.array([0.5, 0.45, 0.05]))
    assert (law.quantile(0.5), law.quantile(0.51), law.quantile(0.95), law.quantile(0.96)) == (1, 2, 2, 5)
    assert law.mean == pytest.approx(1.65)


# --- the joint law ----------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.integers(1, 700),
)
def test_no_point_left_out_is_heavier_than_one_kept(x, y, most):
    arrival = IntegerLaw(np.arange(len(x)), np.array(x) / sum(x))
    duration = IntegerLaw(np.arange(len(y)), np.array(y) / sum(y))
    a, d, p = joint_law(arrival, duration, most)
    assert p.size == min(most, len(x) * len(y)) and p.sum() == pytest.approx(1)
    everything = np.outer(arrival.probabilities, duration.probabilities)
    kept = np.zeros(everything.shape, dtype=bool)
    kept[a, d] = True
    assert kept.sum() == p.size
    assert np.all(np.diff(a * 1000 + d) > 0)
    assert p * everything[kept].sum() == pytest.approx(everything[a, d])
    if not kept.all():
        assert everything[~kept].max() <= everything[kept].min()


# --- a whole prediction -----------------------------------------------------------------------------


def test_runs_without_an_end_do_not_count():
    past = history([3600 * k for k in range(1, 8)], [700.0] * 7)
    past = past._replace(ends=[*past.ends[:4], float("nan"), *past.ends[5:]], durations=[3, 3, 3, 3, 40, 3, 3])
    assert 40 not in predict(past, 6, PLAIN, origin=0.0).durations


def test_nothing_is_predicted_from_too_little():
    past = history([3600 * k for k in range(1, 8)], [700] * 7)
    assert predict(past, 5, PLAIN, origin=0.0) is None  # four gaps
    assert predict(past, 0, PLAIN, origin=0.0) is None
    never = past._replace(ends=[float("nan")] * 7)
    assert predict(never, 6, PLAIN, origin=0.0) is None


# --- a slow, exact version of the rule's text ---------------------------------------------------------


def slowly_filled(weights):
    low, high, total = min(weights), max(weights), sum(weights.values())
    if high - low + 1 > 40:
        return {x: w / total for x, w in weights.items()}
    width = high - low + 1
    return {x: Fraction(19, 20) * weights.get(x, 0) / total + Fraction(1, 20) / width for x in range(low, high + 1)}


def slowly(submits, runs, now, lead):
    """Return (birth time, marginal laws) of run number ``now``; times are whole seconds, rounds of 300 s."""
    gaps = [b - a for a, b in pairwise(submits[:now])][-20:]
    m = Fraction(median([Fraction(g) for g in gaps]))
    e = submits[now - 1] + m
    birth = e - min(lead, m)
    certain = submits[now] < birth
    birth = min(birth, Fraction(submits[now]))
    birth_round = birth // 300 + 1
    arrivals, durations = {}, {}
    for gap in gaps:
        x = max((e + (gap - m)) // 300 + 1, birth_round)
        for y, w in ((x - 1, 1), (x, 8), (x + 1, 1)):
            y = max(y, birth_round)
            arrivals[y] = arrivals.get(y, 0) + Fraction(w, 10)
    if certain:
        arrivals = {birth_round: Fraction(1)}
    ended = [r for s, r in zip(submits[:now], runs[:now], strict=True) if s + r <= birth][-20:]
    for run in ended:
        d = min(max(-(-run // 300), 1), 48)
        for y, w in ((max(d * 100 // 125, 1), 1), (d, 8), (min(d + -(-d // 4), 48), 1)):
            durations[y] = durations.get(y, 0) + Fraction(w, 10)
    return birth, slowly_filled(arrivals), slowly_filled(durations) if durations else None


@given(
    gaps=st.lists(st.one_of(st.integers(0, 20_000), st.sampled_from([600, 900, 3600])), min_size=6, max_size=45),
    runs=st.lists(st.one_of(st.integers(0, 20_000), st.sampled_from([30, 300, 1500])), min_size=46, max_size=46),
    lead=st.sampled_from([0, 600, 7200, 50_000]),
)
def test_against_the_slow_version(gaps, runs, lead):
    submits = np.cumsum([600, *gaps]).tolist()
    now = len(gaps)
    rule = PredictionRule(lead_seconds=float(lead))
    with patch.object(prediction, "MOST_POINTS", 10**6):
        made = predict(history(submits, runs[: now + 1], rule), now, rule, origin=0.0)
    birth, arrivals, durations = slowly(submits, runs, now, lead)
    if durations is None:
        assert made is None
        return
    assert made.birth_s == float(birth) and made.birth == birth // 300 + 1
    expected = {(a, d): float(p * q) for a, p in arrivals.items() for d, q in durations.items()}
    found = dict(
        zip(zip(made.arrivals.tolist(), made.durations.tolist(), strict=True), made.probabilities, strict=True)
    )
    assert found == pytest.approx(expected, abs=1e-12)


@given(
    submits=st.lists(st.floats(0, 1e5), min_size=8, max_size=40).map(sorted),
    origin=st.floats(0, 1e5),
    lead=st.floats(0, 1e5),
)
def test_what_every_prediction_keeps(submits, origin, lead):
    rule = PredictionRule(lead_seconds=lead)
    past = history(submits, [250.0 + (k * 977) % 9000 for k in range(len(submits))], rule)
    made = predict(past, len(submits) - 1, rule, origin)
    assume(made is not None)
    assert made.arrivals.min() >= made.birth
    assert made.durations.min() >= 1 and made.durations.max() <= 48
    assert (made.probabilities > 0).all() and made.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert made.probabilities.size <= 600
    assert submits[-2] <= made.birth_s <= submits[-1]  # or it would be announced after it came
    assert made.expected - made.birth <= rule.lead_rounds or made.early


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"history": 4}, "history = 4: expected a whole number >= 5"),
    ],
)
def test_bad_parameters(wrong, said):
    with pytest.raises(InvalidParameterError, match=said):
        PredictionRule(**wrong)


@given(hnp.arrays(np.int64, st.tuples(st.integers(0, 12), st.integers(1, 4)), elements=st.integers(-1, 1)))
def test_distinct_rows_are_those_of_numpy(rows):
    wanted, which = np.unique(rows, axis=0, return_inverse=True)
    found, place = distinct_rows(rows)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(place, which.ravel())
