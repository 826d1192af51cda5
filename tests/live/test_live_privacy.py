"""What owners learn of each other: no counts, no exact probabilities; numbers of rows still say where to read on."""

import json

import numpy as np
import pytest

from live_tools import refused, sow
from marketsched.live.client import LiveClient, LiveError
from marketsched.live.owner_view import FAILURE_STEPS, Cursors
from marketsched.live.serving import serving

RISKY = {"capacity": 2, "max_concurrency": 2, "max_duration": 3, "max_value": 90, "max_delay": 20, "epsilon": -2.0}
RISKY |= {"threshold": 0.0, "pricing": {"kind": "posted", "prices": [0.5]}, "announced_nodes": "unlimited"}


@pytest.fixture
def clients(tmp_path):
    """Three clients of one service: ann, ben and the operator."""
    token = tmp_path / "token"
    with serving(RISKY, f"{tmp_path}/m.db", operator_token_file=token) as url:
        operator = LiveClient(url, token.read_text().strip(), patience=0.0)
        tokens = {name: operator.create_owner(name, deposit=9000)["token"] for name in ("ann", "ben")}
        found = {name: LiveClient(url, each, patience=0.0) for name, each in tokens.items()}
        yield {**found, "operator": operator}
        for each in (*found.values(), operator):
            each.close()


def numbers_in(found, path=""):
    """Return every whole number in an answer, by its place."""
    if isinstance(found, (dict, list)):
        inside = found.items() if isinstance(found, dict) else enumerate(found)
        return {place: n for key, each in inside for place, n in numbers_in(each, f"{path}/{key}").items()}
    return {path: found} if isinstance(found, int) and not isinstance(found, bool) else {}


@pytest.mark.slow
@pytest.mark.long
def test_owners_cannot_count_what_others_submit(clients):
    rng, exact = np.random.default_rng(2), 0
    ann, ben, operator = clients["ann"], clients["ben"], clients["operator"]

    def looks():
        """All that ann can read, after an event of her own."""
        job = ann.submit(sow(operator.market()["round"], 1))["job"]
        ann.withdraw(job)
        rows = list(ann.events(follow=False))
        market = {key: each for key, each in ann.market(rounds=0).items() if key != "limits"}
        return [market, rows[-1], ann.job(job)["history"], ann.ledger()["entries"][-1]]

    before, last = looks(), operator.market()["last_event"]
    for _ in range(40):
        count = int(rng.integers(1, 9))
        for _ in range(count):
            ben.submit(sow(operator.market()["round"], 1))
        now, seq = looks(), operator.market()["last_event"]
        assert "last_event" not in now[0]
        a, b = numbers_in(now), numbers_in(before)
        own = 3  # her submission and its withdrawal, beside the count
        guesses = {count, count + own - 1, seq - last}
        exact += any(a[place] - b[place] in guesses for place in a.keys() & b.keys())
        before, last = now, seq
    assert exact == 0


def test_streams_and_ledgers_go_on_from_the_numbers_that_owners_see(clients):
    ann, ben = clients["ann"], clients["ben"]
    for n in range(6):
        ann.submit(sow(1), name=f"a{n}")
        ben.submit(sow(1), name=f"b{n}")
        clients["operator"].deposit("ann", 1)
    rows = list(ann.events(follow=False))
    assert [row["job"] for row in rows if row["event"] == "submit"] == [f"ann.a{n}" for n in range(6)]
    for n, row in enumerate(rows):
        assert list(ann.events(row["seq"], follow=False)) == rows[n + 1 :]
    entries = ann.ledger()["entries"]
    assert ann.ledger(after=entries[2]["seq"])["entries"] == entries[3:]
    assert "estimated_utility" not in json.dumps(rows)
    assert refused(LiveError, ann.ledger, None, after=2**60).status == 422


@pytest.mark.slow
def test_pages_of_a_ledger_hold_every_entry(clients):
    operator = clients["operator"]
    for n in range(7):
        for label in "xy":
            clients["ann"].submit(sow(operator.market()["round"], 1), name=f"{label}{n}")
            clients["ann"].arrive(f"ann.{label}{n}", signal=1)
        operator.advance(2)
    for who in ("operator", "ann"):
        whole = clients[who].ledger()["entries"]
        several = len(whole) - len({each["seq"] for each in whole})  # the operator sees both sides of a charge
        assert len(whole) > 7 and (several > 7) == (who == "operator")
        for limit in (1, 2, 3, 5, len(whole)):
            found, more = [], True
            while more:
                page = clients[who].ledger(after=found[-1]["seq"] if found else 0, limit=limit)
                found, more = found + page["entries"], page["more"]
            assert found == whole


def test_no_exact_failure_is_shown_to_an_owner(clients):
    ann, ben, operator = clients["ann"], clients["ben"], clients["operator"]
    for chance in (0.5, 0.2, 0.25):
        now = operator.market()["round"]
        ben.submit(sow(now + 3, 1, nodes=2, value=9.0, probability=chance))
        asked = sow(now + 1, 3, nodes=2, value=80.0, deadline=now + 4)
        exact, shown = operator.quote(asked, owner="ann"), ann.quote(asked)
        failures = [run["failure"] for run in exact["runs"]]
        assert max(failures) >= chance - 1e-9  # it is there to be hidden
        assert {run["failure"] for run in shown["runs"]} <= set(FAILURE_STEPS)
        assert all(abs(run["failure"] - chance) > 0.05 for run in shown["runs"])
        assert shown["estimated_utility"] <= exact["estimated_utility"]
        operator.advance(10)
    free = sow(operator.market()["round"], 1)
    assert ann.quote(free)["estimated_utility"] == operator.quote(free, owner="ann")["estimated_utility"] == 3.5


def test_numbers_of_rows_are_permuted_by_account():
    cursors, seqs = Cursors("x"), [*range(300), 2**40, 2**52 - 1]
    shown = {name: [cursors.hide(name, seq) for seq in seqs] for name in ("ann", "ben")}
    for name, found in shown.items():
        assert [cursors.find(name, each) for each in found] == seqs and len(set(found)) == len(seqs)
        assert found[0] == 0 and max(found) < 2**52
        steps = np.diff(np.array(found[1:300], dtype=float))
        assert abs((steps > 0).mean() - 0.5) < 0.1  # no order is left
    assert not set(shown["ann"][1:]) & set(shown["ben"][1:])
