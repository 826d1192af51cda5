"""The log of a market grows without a second copy, and its tables come in parts."""

import pickle

import numpy as np
import pandas as pd
import pytest

from marketsched.agents.market_log import ROUNDS_TOGETHER, ROWS_TOGETHER, MarketLog, RowKind
from marketsched.agents.market_run import MarketRun
from marketsched.config.scenario import Scenario
from marketsched.results.tables import Tables, columns_of, parts_of
from marketsched.worlds.runs import TagsButOne

ROWS = 3 * ROWS_TOGETHER + 7


def rows_noted(log, begin, end):
    for i in range(begin, end):
        log.event(i + 1, RowKind.COMPLETE, i, bool(i % 2), i + 2, i / 8, i / 4)


@pytest.mark.parametrize("again", [False, True], ids=["new", "unpickled"])
def test_rows_that_were_handed_out_stay_as_they_are_while_the_log_grows(again):
    log = MarketLog()
    rows_noted(log, 0, ROWS_TOGETHER)
    if again:
        log = pickle.loads(pickle.dumps(log))
    early = log.events.first(ROWS_TOGETHER)
    before = early.copy()
    rows_noted(log, ROWS_TOGETHER, ROWS)
    whole = log.events.first(ROWS)
    assert len(log.events) == ROWS and early.tobytes() == before.tobytes()
    assert whole[:ROWS_TOGETHER].tobytes() == before.tobytes()
    assert whole["round"].tolist() == list(range(1, ROWS + 1))
    assert whole["value"].tolist() == [i / 4 for i in range(ROWS)]
    assert log.counts[RowKind.COMPLETE] == ROWS and log.payment == sum(i / 8 for i in range(ROWS))


def test_prices_of_many_rounds_are_kept():
    log, prices = MarketLog(), np.random.default_rng(3).exponential(size=(2 * ROUNDS_TOGETHER + 5, 4))
    prices[7, 2] = 1e300  # as float32 infinite: not on sale
    for row in prices:
        log.close_round(0, 0.0, row[0], row)
    with np.errstate(over="ignore"):
        expected = prices.astype(np.float32)
    assert log.surfaces.first(len(prices)).tobytes() == expected.tobytes()


@pytest.fixture(scope="module")
def result():
    setup = Scenario.from_dict(
        {
            "name": "small",
            "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 20, "birth_rounds": 60},
            "mechanism": {"name": "first-come"},
        }
    ).setup(np.random.default_rng(1))
    return MarketRun(setup).run()


@pytest.mark.parametrize("name", ["jobs", "events"])
def test_parts_of_a_table_make_it_whole(result, name, monkeypatch):
    monkeypatch.setattr("marketsched.results.tables.PART_ROWS", 37)
    long, whole = {"jobs": result.job_rows, "events": result.event_rows}[name], getattr(result, name)
    tables = Tables({name: long})
    parts = list(parts_of(tables, name))
    assert len(parts) == -(-len(whole) // 37) > 1
    pd.testing.assert_frame_equal(pd.concat(parts), whole)
    wanted = [*whole.columns[1:4], "no such column"]
    pd.testing.assert_frame_equal(columns_of(tables, name, wanted), whole[wanted[:3]].reset_index(drop=True))
    pd.testing.assert_frame_equal(columns_of({name: whole}, name, wanted), whole[wanted[:3]].reset_index(drop=True))


def test_tags_but_one_are_a_mapping_of_their_own():
    shared = {"group": "g", "deadline": None, "band": "free"}
    one, two = TagsButOne(shared, "deadline", 7), TagsButOne(shared, "deadline", 9)
    assert dict(one) == {"group": "g", "deadline": 7, "band": "free"} and list(one) == list(shared)
    assert one != two and one == {**shared, "deadline": 7} and one.get("none") is None
    assert pickle.loads(pickle.dumps(two)) == two
    with pytest.raises(KeyError):
        one["none"]
