"""Garbage: requests that the OpenAPI document allows, and some that it does not; none is a fault of the service."""

import contextlib
import os
import time

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from live_tools import PLAIN, check_journal
from marketsched.live.client import LiveClient
from marketsched.live.serving import serving

SECONDS = float(os.environ.get("MARKETSCHED_FUZZ_SECONDS", "0"))  # 0: a few cases of each call


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    rules, options = {**PLAIN, "requests_per_second": 1e6}, {"snapshot_rows": 500}
    with serving(rules, f"{folder}/m.db", operator_token_file=folder / "token", **options) as url:
        token = (folder / "token").read_text().strip()
        owner = LiveClient(url, token).create_owner("ann", deposit=5)["token"]
        yield url, {"operator": token, "owner": owner}, f"{folder}/m.db"


def schema_of(url):
    return schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("role", [pytest.param("operator", marks=pytest.mark.long), "owner"])
def test_no_request_is_a_fault_of_the_service(market, role):
    url, tokens, database = market
    client = LiveClient(url, tokens["operator"])
    end = time.monotonic() + SECONDS / 2
    tried, refused, statuses = 0, 0, set()
    while tried == 0 or time.monotonic() < end:
        for result in schema_of(url).get_all_operations():
            operation = result.ok()

            @settings(
                max_examples=10 if not SECONDS else 60,
                deadline=None,
                database=None,
                derandomize=not SECONDS,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def attempt(case):
                nonlocal tried, refused
                if case.path.endswith("/tokens") and str((case.path_parameters or {}).get("owner")) in (
                    "operator",
                    "ann",
                ):
                    return  # a token that is made anew or revoked would end the test
                if case.path == "/v1/events":
                    case.query = {**(case.query if isinstance(case.query, dict) else {}), "follow": "false"}
                before = client.market(rounds=0)["last_event"]
                answer = case.call(headers={"Authorization": f"Bearer {tokens[role]}"}, timeout=30)
                tried += 1
                statuses.add(answer.status_code)
                assert answer.status_code < 500, (case.method, case.path, case.body, answer.text)
                if answer.status_code >= 400:
                    refused += 1
                    since = [event["event"] for event in client.events(after=before, follow=False)]
                    assert not set(since) - {"snapshot"}, (case.method, case.path, since)

            for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
                strategy = operation.as_strategy(generation_mode=mode)
                with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with a call that takes nothing
                    given(case=strategy)(attempt)()
    check_journal(database)
    print(f"{role}: {tried} requests, {refused} refused, statuses {sorted(statuses)}")
    assert {200, 422} <= statuses and refused > tried / 10
