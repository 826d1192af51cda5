"""An audit whose search is counted in plays finds the same on every machine."""

import pandas as pd
import pytest

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.truthfulness.audit import audit

MARKET = {
    "name": "small",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 8, "birth_rounds": 20},
    "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 20}},
}


@pytest.mark.slow
@pytest.mark.compiled
def test_plays_in_place_of_seconds():
    found = [audit(MARKET, ["pay-as-bid"], owners=1, plays=120, seed=3) for _ in range(2)]
    one, two = (each.summary for each in found)
    pd.testing.assert_frame_equal(one, two)
    assert 0 < one["plays"].iloc[0] <= 120 and found[0].meta["plays"] == 120
    assert audit(MARKET, ["pay-as-bid"], owners=1, plays=240, seed=3).summary["plays"].iloc[0] > one["plays"].iloc[0]
    with pytest.raises(InvalidParameterError, match="plays = 3: expected a whole number >= 100"):
        audit(MARKET, ["pay-as-bid"], plays=3)
