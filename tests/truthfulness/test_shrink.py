"""The smallest lie that still pays, and the one file that replays it."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from marketsched.agents.lies import Combination, DelaySubmission, InflateConcurrency, ScaleValue, ShiftDeadline
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.show.cli import app
from marketsched.truthfulness import (
    Other,
    Situation,
    replay_witness,
    save_witness,
    score,
    search,
    shrink,
    situation_of,
)
from marketsched.truthfulness.searches.own_lies import misreport_of
from marketsched.truthfulness.searches.witness_file import read_witness
from small_mechanisms import BIDDER, UNIFORM, HighestBid, OpenMarket, auction


def rivals_auction(n_rivals=1):
    return auction("first", *[UNIFORM] * n_rivals)


def gain_of(factor):
    """Return the gain of bidding ``10 * factor`` against one rival: (10 - b) P(rival < b)."""
    bid = 10 * factor
    return (10 - bid) * sum(p for other, p in UNIFORM if other < bid)


# --- shrinking --------------------------------------------------------------------------------------


def test_the_smallest_shading_is_where_the_gain_reaches_the_tolerance():
    found = search(rivals_auction(), budget_seconds=None, max_plays=12_000, tolerance=1.5)
    small = shrink(rivals_auction(), found[0])
    factor = small.misreport.f
    # From the best bid upwards the gain falls through 1.5 between 8.0 and 8.25: 31 and 32 of 40 rivals are beaten.
    crossing = min(f for f in np.linspace(0.5, 1, 5001)[1:] if gain_of(f) <= 1.5)
    assert small.confirmed and small.gain_mean == pytest.approx(gain_of(factor))
    assert factor == pytest.approx(crossing, abs=1e-3)
    assert small.size < found[0].size


def test_parts_that_are_not_needed_are_left_out():
    both = Combination((ScaleValue(0.6), ShiftDeadline(1)))
    given = score(rivals_auction(), both, tolerance=0.5)
    small = shrink(rivals_auction(), given)
    assert small.misreport.kind == "scale-value" and small.confirmed


def test_whole_numbers_shrink_to_the_smallest_that_pays():
    """Two nodes more are needed for the cheap tariff."""
    price = lambda sow, *_: 6.0 if sow.concurrency < 3 else 2.0  # noqa: E731
    situation = Situation(lambda rng: OpenMarket(4, 4, price), BIDDER, capacity=4, horizon=4, max_delay=4)
    given = score(situation, InflateConcurrency(3))
    small = shrink(situation, given)
    assert small.misreport == InflateConcurrency(2) and small.gain_mean == 4.0 and small.exact
    assert shrink(situation, small) is small  # nothing smaller pays


def test_a_lie_that_is_not_confirmed_is_not_shrunk():
    given = score(rivals_auction(), ScaleValue(0.3), tolerance=5.0)
    assert not given.confirmed and shrink(rivals_auction(), given) is given


@pytest.mark.slow
def test_drawn_worlds_shrink_as_far_as_is_confirmed():
    situation = rivals_auction(2)  # 1600 worlds
    given = score(situation, ScaleValue(0.65), tolerance=0.5, budget_seconds=None, max_plays=20_000)
    small = shrink(situation, given, budget_seconds=None, max_plays=60_000)
    assert given.confirmed and small.confirmed and not small.exact
    truth = (10 - 10 * small.misreport.f) * np.prod([sum(p for b, p in UNIFORM if b < 10 * small.misreport.f)] * 2)
    assert small.size < given.size and truth > 0.5 and small.gain_low <= truth <= small.gain_high
    again = shrink(situation, given, budget_seconds=None, max_plays=60_000)
    assert replace(again, seconds=0) == replace(small, seconds=0)


def test_a_small_budget_gives_the_lie_back():
    situation = rivals_auction(2)
    given = score(situation, ScaleValue(0.65), tolerance=0.5, budget_seconds=None, max_plays=20_000)
    assert shrink(situation, given, budget_seconds=None, max_plays=3) is given


# --- the file ---------------------------------------------------------------------------------------

G1 = {
    "name": "G1",
    "workload": {
        "kind": "jobs",
        "capacity": 2,
        "horizon": 6,
        "max_concurrency": 2,
        "max_duration": 2,
        "max_value": 10,
        "max_delay": 6,
        "jobs": [
            {
                "name": "earlier",
                "birth": 1,
                "concurrency": 1,
                "value": {"kind": "deadline", "value": 10, "deadline": 3},
                "requirements": [{"arrival": 2, "duration": 1, "probability": 1}],
            },
            {
                "name": "new",
                "birth": 1,
                "concurrency": 1,
                "value": {"kind": "table", "values": {"2": 10}},
                "requirements": [
                    {"arrival": 1, "duration": 1, "probability": 0.5, "signal": None},
                    {"arrival": 1, "duration": 2, "probability": 0.5, "signal": None},
                ],
            },
        ],
    },
    "mechanism": {"epsilon": -0.5, "pricing": {"kind": "posted", "prices": [1, 4, 100]}, "oracle": {"kind": "exact"}},
}


@pytest.mark.parametrize("history", [True, False])
def test_a_witness_file_runs_as_a_scenario_and_replays_the_lie(tmp_path, history):
    situation = situation_of(G1, "new", history=history)
    found = shrink(situation, search(situation, budget_seconds=None, max_plays=2000)[0])
    path = tmp_path / "lie.yaml"
    save_witness(path, situation, found)
    text = path.read_text()
    assert "declares 2 nodes instead of 1" in text.splitlines()[0]
    replayed = replay_witness(path)
    assert replayed.confirmed and replayed.recorded == (2.0, 2.0, 2.0)
    assert replayed.again.misreport == InflateConcurrency(1)
    read, _ = read_witness(path)
    assert (read.truth, read.history, read.n_ahead, read.capacity) == (situation.truth, situation.history, 1, 2)
    assert [other.law for other in read.others] == [other.law for other in situation.others]
    done = CliRunner().invoke(app, ["run", str(path), "--json"])
    assert done.exit_code == 0, done.output
    save_witness(tmp_path / "again.yaml", read, replayed.again)  # written once more, it says the same
    assert Scenario.load(tmp_path / "again.yaml") == Scenario.load(path)


def test_drawn_worlds_are_the_same_in_the_replay(tmp_path):
    """Monte Carlo estimates, a history of a larger market: the gain is found again to the last digit."""
    scenario = {
        "name": "small",
        "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 12, "birth_rounds": 30},
        "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 50}, "epsilon": -0.3},
    }
    for history in (True, False):
        situation = situation_of(scenario, 6, 3, history=history)
        given = score(situation, ScaleValue(0.0), budget_seconds=None, max_plays=120)
        save_witness(tmp_path / "lie.yaml", situation, given)
        replayed = replay_witness(tmp_path / "lie.yaml", budget_seconds=None, max_plays=120)
        assert not given.exact and given.n_fresh > 20 and given.gain_mean != 0
        assert replayed.again.gain_mean == given.gain_mean
        assert replayed.again.n_fresh == given.n_fresh


def test_statements_of_others_that_are_drawn_are_written_as_mixtures(tmp_path):
    law = StatementLaw([(StatementOfWork(1, 1, DeadlineValue(5.0, 3), [(1, 1, 1.0)]), 0.5), (None, 0.5)])
    limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 3}
    described = {"name": "first-come", "capacity": 1, "horizon": 3, "pricing": {"kind": "posted", "prices": [2.0]}}
    market = lambda rng: get_mechanism("first-come", capacity=1, horizon=3, price=2.0, **limits)  # noqa: E731
    situation = Situation(market, BIDDER, [law], capacity=1, horizon=3, max_delay=3, described=described | limits)
    given = score(situation, DelaySubmission(1))
    save_witness(tmp_path / "lie.yaml", situation, given)
    assert Scenario.load(tmp_path / "lie.yaml").workload.kind == "mixtures"
    replayed = replay_witness(tmp_path / "lie.yaml")
    assert replayed.again.gain_mean == given.gain_mean and replayed.again.exact
    assert isinstance(read_witness(tmp_path / "lie.yaml")[0].mechanism_at_turn(), FirstCome)


def test_a_mechanism_without_a_name_is_asked_for(tmp_path):
    path = tmp_path / "lie.yaml"
    save_witness(path, rivals_auction(), score(rivals_auction(), ScaleValue(0.51)))
    assert "given as a Python function" in path.read_text()
    with pytest.raises(InvalidParameterError, match="known by a Python function alone: expected factory"):
        replay_witness(path)
    replayed = replay_witness(path, factory=lambda rng: HighestBid("first"))
    assert replayed.confirmed and replayed.again.gain_mean == pytest.approx(gain_of(0.51))
    other = replay_witness(path, factory=lambda rng: HighestBid("second"))
    assert not other.confirmed  # another mechanism: the lie gains nothing
    done = CliRunner().invoke(app, ["run", str(path)])
    assert done.exit_code == 2 and "(a Python function)" in done.output


def test_a_users_own_lie_is_written_as_what_it_reports(tmp_path):
    class Half:
        def report(self, truth, public):
            return ScaleValue(0.51).report(truth, public)

    situation = rivals_auction()
    save_witness(tmp_path / "lie.yaml", situation, score(situation, misreport_of(Half())))
    replayed = replay_witness(tmp_path / "lie.yaml", factory=situation.factory)
    assert replayed.confirmed and replayed.again.misreport.kind == "statement"


def test_files_that_are_no_witness_are_refused(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(Scenario.from_dict(G1).to_yaml())
    with pytest.raises(InvalidParameterError, match=r"scenario.yaml: expected lines that begin with '#\| '"):
        replay_witness(path)
    situation = situation_of(G1, "new")
    save_witness(path, situation, score(situation, InflateConcurrency(1)))
    text = path.read_text()
    for old, new, message in (
        ("#| owner: new", "#| owner: nobody", "owner = 'nobody': expected a job with one statement"),
        ("kind: inflate-concurrency", "kind: nonsense", "misreport kind = 'nonsense'"),
        ("#| seed: 0\n", "", "expected lines that begin with"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(InvalidParameterError, match=message):
            replay_witness(path)


def test_a_signal_that_no_file_can_hold_is_refused(tmp_path):
    truth = StatementOfWork(1, 1, DeadlineValue(10.0, 3), [(1, 1, 1.0, ("a", "b"))])
    situation = Situation(
        lambda rng: OpenMarket(1, 4, lambda *_: 1.0), truth, [Other.of(0, BIDDER)], capacity=1, horizon=4, max_delay=4
    )
    with pytest.raises(InvalidReportError, match=r"signal \('a', 'b'\): expected a number, a string or None"):
        save_witness(tmp_path / "lie.yaml", situation, score(situation, ScaleValue(0.5)))


@pytest.mark.parametrize(
    ("line", "damaged", "message"),
    [
        ("#|   worlds: ", "#|   worlds: many", "gain.worlds = 'many': expected a whole number >= 0"),
        ("#|   mean: ", "#|   mean: .nan", "gain.mean = nan: expected a finite number"),
        ("#|   low: ", "", "expected a table of mean, low, high, worlds"),
        ("#| seed: ", "#| seed: -1", "seed = -1: expected a whole number >= 0"),
        ("#| confidence: ", "#| confidence: 1", "confidence = 1: expected a finite number in"),
        ("#| tolerance: ", "#| tolerance: [1]", r"tolerance = \[1\]: expected a finite number >= 0"),
        ("#| registered: ", "#| registered: 1", "registered = 1: expected true or false"),
        ("#|   kind: ", "#|   kind: [1]", r"misreport kind = \[1\]: expected one of"),
    ],
)
def test_a_damaged_figure_of_a_witness_file_is_named(tmp_path, line, damaged, message):
    path = tmp_path / "lie.yaml"
    save_witness(path, rivals_auction(), score(rivals_auction(), ScaleValue(0.51)))
    lines = path.read_text().splitlines()
    assert sum(old.startswith(line) for old in lines) == 1
    path.write_text("\n".join(damaged if old.startswith(line) else old for old in lines))
    with pytest.raises(InvalidParameterError, match=message):
        replay_witness(path, factory=lambda rng: HighestBid("first"))
