"""Who may do what over HTTP, and what is answered to those who try something else."""

import json
import socket
import statistics
import time
from urllib.parse import urlsplit

import httpx
import pytest

from live_tools import PLAIN, refused, sow
from marketsched.live.calls import batch
from marketsched.live.client import LiveClient, LiveError, LiveUnavailableError
from marketsched.live.principal import Principal
from marketsched.live.serving import LiveServer, listening, serving
from marketsched.mechanisms.errors import InvalidParameterError

ROLES = ("operator", "reader", "ann", "ben", "nobody")


class Market:
    """A service with an operator, a reader, and two owners; ``ann.open`` waits, ``ann.runs`` runs."""

    def __init__(self, url, operator_token):
        self.url, self.tokens = url, {"operator": operator_token, "nobody": "x" * 43}
        operator = self.client("operator")
        self.tokens["reader"] = operator.create_owner("eve", role="reader")["token"]
        for name in ("ann", "ben"):
            self.tokens[name] = operator.create_owner(name, deposit=5)["token"]
        ann = self.client("ann")
        ann.submit(sow(1, 2), name="runs")
        ann.submit(sow(3, 1), name="open")
        ann.arrive("ann.runs", signal=2)
        operator.advance()

    def client(self, who, **options):
        return LiveClient(self.url, self.tokens[who], patience=3, **options)

    def ask(self, who, method, path, body=None, **headers):
        headers = {"Authorization": f"Bearer {self.tokens[who]}", **headers}
        return httpx.request(method, self.url + path, json=body, headers=headers, trust_env=False)


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    with serving(PLAIN, f"{folder}/m.db", operator_token_file=folder / "token") as url:
        yield Market(url, (folder / "token").read_text().strip())


OK, FORBIDDEN, UNKNOWN, CONFLICT, STRANGER = 200, 403, 404, 409, 401
BODY = {"sow": sow(5, 1)}
CALLS = {  # call: its body, and the status for operator, reader, ann (whose job it is), ben
    ("GET", "/v1/market"): (None, OK, OK, OK, OK),
    ("POST", "/v1/quotes"): (BODY, 422, FORBIDDEN, OK, OK),
    ("POST", "/v1/quotes?for=ben"): ({**BODY, "owner": "ben"}, OK, FORBIDDEN, UNKNOWN, OK),
    ("POST", "/v1/jobs"): (BODY, 422, FORBIDDEN, 201, 201),
    ("POST", "/v1/jobs?for=ben"): ({**BODY, "owner": "ben"}, 201, FORBIDDEN, UNKNOWN, 201),
    ("GET", "/v1/jobs"): (None, OK, FORBIDDEN, OK, OK),
    ("GET", "/v1/jobs?owner=ann"): (None, OK, FORBIDDEN, OK, UNKNOWN),
    ("GET", "/v1/jobs?after=ann.open"): (None, OK, FORBIDDEN, OK, UNKNOWN),
    ("GET", "/v1/jobs/ann.open"): (None, OK, FORBIDDEN, OK, UNKNOWN),
    ("GET", "/v1/jobs/ann.none"): (None, UNKNOWN, FORBIDDEN, UNKNOWN, UNKNOWN),
    ("GET", "/v1/jobs/ann.runs/explanation"): (None, OK, FORBIDDEN, OK, UNKNOWN),
    ("POST", "/v1/jobs/ann.runs/arrival"): ({"signal": 1}, CONFLICT, FORBIDDEN, CONFLICT, UNKNOWN),
    ("POST", "/v1/jobs/ann.runs/arrival#simulated"): ({"duration": 1}, CONFLICT, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/jobs/ann.open/completion"): ({}, CONFLICT, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/jobs/ann.none/withdrawal"): ({}, UNKNOWN, FORBIDDEN, UNKNOWN, UNKNOWN),
    ("POST", "/v1/batch"): ({"calls": [{"call": "advance", "body": {"rounds": 0}}]}, OK, FORBIDDEN, OK, OK),
    ("POST", "/v1/batch#none"): ({"calls": []}, 422, FORBIDDEN, 422, 422),
    ("GET", "/v1/account"): (None, OK, FORBIDDEN, OK, OK),
    ("GET", "/v1/account?owner=ann"): (None, OK, FORBIDDEN, OK, UNKNOWN),
    ("GET", "/v1/ledger"): (None, OK, OK, OK, OK),
    ("GET", "/v1/ledger?owner=ann"): (None, OK, OK, OK, UNKNOWN),
    ("GET", "/v1/ledger?ower=ann"): (None, 422, 422, 422, 422),
    ("GET", "/v1/purse"): (None, CONFLICT, FORBIDDEN, CONFLICT, CONFLICT),
    ("GET", "/v1/events?follow=false"): (None, OK, OK, OK, OK),
    ("POST", "/v1/rounds"): ({"rounds": 0}, 422, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/nodes"): ({"usable": 2}, OK, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/nodes#held"): ({"usable": 2, "held": [{}]}, 422, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/shares"): ({"place": "ann", "share": 1}, CONFLICT, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("GET", "/v1/owners"): (None, OK, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/owners"): ({"owner": "ann"}, CONFLICT, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/owners/ann/deposits"): ({"credits": 1}, OK, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("POST", "/v1/owners/none/tokens"): ({}, UNKNOWN, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("DELETE", "/v1/owners/none/tokens"): (None, UNKNOWN, FORBIDDEN, FORBIDDEN, FORBIDDEN),
    ("GET", "/metrics"): (None, OK, OK, FORBIDDEN, FORBIDDEN),
    ("GET", "/v1/nowhere"): (None, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_call_for_every_role(market, call):
    body, *expected = CALLS[call]
    for who, status in zip(ROLES, (*expected, STRANGER), strict=True):
        answer = market.ask(who, *call, body)
        assert answer.status_code == status, (who, answer.text)
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == status and answer.json()["detail"]


def test_the_table_names_every_call(market):
    """Few need nothing: supervision, prices, the document itself, and the page."""
    document = httpx.get(market.url + "/openapi.json", trust_env=False).json()
    documented = {(method.upper(), path) for path, calls in document["paths"].items() for method in calls}
    tried = {(method, path.partition("?")[0].partition("#")[0]) for method, path in CALLS}

    def pattern(path):
        return path.replace("ann.open", "{job}").replace("ann.runs", "{job}").replace("ann.none", "{job}")

    tried = {
        (method, pattern(path).replace("/ann/", "/{owner}/").replace("/none/", "/{owner}/")) for method, path in tried
    }
    open_ = {("GET", "/v1/health"), ("GET", "/v1/public")}
    assert documented - tried == open_ and tried - documented == {("GET", "/v1/nowhere")}


def test_a_batch_is_its_calls_one_by_one(market):
    """Each is allowed or refused as by itself, and the batch as a whole happens once."""
    ann = market.client("ann")
    asked = [
        {"call": "submit", "body": {"sow": sow(9, 1), "name": "first"}},
        {"call": "submit", "body": {"sow": sow(9, 1), "name": "first"}},
        {"call": "arrive", "job": "ann.first", "body": {"signal": 1}},
        {"call": "arrive", "job": "ben.open", "body": {"signal": 1}},
        {"call": "complete", "job": "ann.runs"},
        {"call": "advance"},
        {"call": "submit", "body": {"sow": sow(9, 1), "name": "second", "more": 1}},
        {"call": "cancel"},
        {"call": "arrive", "job": {"ann": "runs"}},
        {"call": "arrive", "body": {}},
        {"call": "submit", "body": []},
        {"call": "advance", "job": "ann.runs"},
        3,
    ]
    answers = ann.batch(asked, key="batch")
    expected = [201, 409, 200, 404, 403, 403, 422, 422, 422, 422, 422, 422, 422]
    assert [each["status"] for each in answers] == expected
    assert answers[0]["answer"]["job"] == "ann.first" and answers[2]["answer"]["state"] == "arrived"
    assert answers[1]["problem"]["detail"].startswith("job = 'ann.first' was submitted before")
    operator = market.client("operator")
    last = operator.market(rounds=0)["last_event"]
    assert ann.batch(asked, key="batch") == answers and operator.market(rounds=0)["last_event"] == last
    assert refused(LiveError, ann.batch, [{"call": "advance"}] * 101).status == 422


def test_a_batch_clears_no_more_rounds_than_one_call():
    asked = [{"call": "advance", "body": {"rounds": 1000}}, {"call": "advance"}]
    error = refused(InvalidParameterError, batch, Principal("operator", "operator"), {"calls": asked})
    assert error.value == "1001 rounds"


def test_a_batch_takes_as_much_of_the_rate_as_its_calls(tmp_path):
    with serving({**PLAIN, "requests_per_second": 30}, f"{tmp_path}/m.db", operator_token_file=tmp_path / "t") as url:
        client = LiveClient(url, (tmp_path / "t").read_text().strip(), patience=0.0)
        client.batch([{"call": "advance"}] * 100)
        assert refused(LiveError, client.market).status == 429


def test_nobody_sees_the_jobs_of_another(market):
    ben, reader = market.client("ben"), market.client("reader")
    assert not [job for job in ben.jobs() if job["owner"] != "ben"]
    for event in ben.events(follow=False):
        assert "ann" not in json.dumps(event)
    seen = list(reader.events(follow=False))
    assert seen and "ann" not in json.dumps(seen) and {event["event"] for event in seen} >= {"submit", "advance"}
    assert "ann" not in reader.metrics()
    assert not [entry for entry in ben.ledger()["entries"] if entry["account"] != "ben"]
    assert "ann.runs" in json.dumps(list(market.client("ann").events(follow=False)))


def test_owners_names_collide_with_nobodys(market):
    """The same label is two jobs, and a taken one of another owner is no news."""
    assert market.client("ben").submit(sow(6, 1), name="open")["job"] == "ben.open"
    refusal = refused(LiveError, market.client("ann").submit, sow(6, 1), name="open")
    assert refusal.status == 409


def test_problem_details_are_the_librarys_own(market):
    refusal = refused(LiveError, market.client("ann").submit, sow(5, 1, nodes=9))
    assert (refusal.status, refusal.problem["place"], refusal.problem["value"]) == (422, "concurrency", "9")
    assert refusal.problem["legal"] == "a whole number in [1, 2]"


HEADERS = {
    "another host (a name that was made to point here)": ({"Host": "evil.example"}, 421),
    "a page of another site": ({"Origin": "https://evil.example"}, 403),
    "no origin that is one": ({"Origin": "null"}, 403),
    "another scheme of tokens": ({"Authorization": "Basic eDp5"}, 401),
    "a token of nothing": ({"Authorization": "Bearer"}, 401),
    "a token that never ends": ({"Authorization": "Bearer " + "x" * 5000}, 401),
    "a text that is no JSON to a browser": ({"Content-Type": "text/plain"}, 415),
    "an empty key": ({"Idempotency-Key": ""}, 400),
    "a long key": ({"Idempotency-Key": "k" * 256}, 400),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers(market, case):
    headers, status = HEADERS[case]
    answer = market.ask("ann", "POST", "/v1/quotes", BODY, **headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


BODIES = {
    "too large": (b'{"sow": "' + b"x" * 65536 + b'"}', 413),
    "nested": (b'{"sow":' * 100 + b"1" + b"}" * 100, 400),
    "nested without an end": (b"[" * 60_000, 400),
    "no JSON": (b"{", 400),
    "no UTF-8": (b'{"sow": "\xff"}', 400),
    "no number": (b'{"sow": NaN}', 400),
    "a field twice": (b'{"sow": 1, "sow": 2}', 400),
    "a list": (b"[]", 400),
    "a zero byte": (b'{"sow": "\\u0000"}', 400),
    "half a character": (b'{"sow": "\\ud800"}', 400),
    "thousands of digits": (b'{"sow": ' + b"9" * 5000 + b"}", 400),
    "unknown fields": (json.dumps({**BODY, "__class__": "x"}).encode(), 422),
    "SQL in a name": (json.dumps({**BODY, "name": "x'; DROP TABLE journal; --"}).encode(), 422),
    "a path in a name": (json.dumps({**BODY, "name": "../../ben.open"}).encode(), 422),
}


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("case", BODIES)
def test_bodies(market, case):
    content, status = BODIES[case]
    before = market.client("operator").market()["last_event"]
    headers = {"Authorization": f"Bearer {market.tokens['ann']}", "Content-Type": "application/json"}
    answer = httpx.post(f"{market.url}/v1/jobs", content=content, headers=headers, trust_env=False)
    assert answer.status_code == status, answer.text
    assert market.client("operator").market()["last_event"] == before


def test_a_body_that_lies_about_its_length_is_not_waited_for(market):
    host = urlsplit(market.url)
    for length in ("99999999999999999999", "-1", "1e3"):
        with socket.create_connection((host.hostname, host.port), timeout=5) as raw:
            head = f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {market.tokens['ann']}\r\n"
            raw.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode())
            assert raw.recv(100).split()[1] in (b"413", b"400")


def test_bytes_that_trickle_in_parts_are_counted(market):
    def parts():
        for _ in range(40):
            yield b" " * 4096

    headers = {"Authorization": f"Bearer {market.tokens['ann']}", "Content-Type": "application/json"}
    answer = httpx.post(f"{market.url}/v1/jobs", content=parts(), headers=headers, trust_env=False)
    assert answer.status_code == 413


def test_tokens_are_renewed_and_revoked(market):
    operator = market.client("operator")
    first = operator.create_owner("dan")["token"]
    dan = LiveClient(market.url, first, patience=0)
    second = dan.renew("dan")["token"]
    assert refused(LiveError, dan.market).status == 401
    dan = LiveClient(market.url, second, patience=0)
    assert dan.account()["owner"] == "dan"
    assert refused(LiveError, market.client("ben").revoke, "dan").status == 403
    operator.revoke("dan")
    assert refused(LiveError, dan.market).status == 401
    assert refused(LiveError, operator.revoke, "operator").status == 409
    by = [event["by"] for event in operator.events(follow=False) if event["owner"] == "dan"]
    assert by == ["operator", "dan", "operator"]


def test_a_stream_ends_with_its_token(market):
    operator = market.client("operator")
    fay = LiveClient(market.url, operator.create_owner("fay")["token"], patience=0)
    stream = fay.events()
    assert next(stream)["event"] in ("owner", "advance")
    operator.revoke("fay")
    refused(LiveError, list, stream)


def test_events_go_on_from_any_row(market):
    operator = market.client("operator")
    rows = [event["seq"] for event in operator.events(follow=False)]
    assert rows == list(range(1, rows[-1] + 1))
    for after in (0, 3, rows[-1]):
        assert [event["seq"] for event in operator.events(after, follow=False)] == rows[after:]
    headers = {"Authorization": f"Bearer {market.tokens['operator']}", "Last-Event-ID": str(rows[-1] - 1)}
    answer = httpx.get(f"{market.url}/v1/events?follow=false", headers=headers, trust_env=False)
    assert answer.text.startswith(f"id: {rows[-1]}\nevent: ")
    stream = operator.events(rows[-1])
    operator.deposit("ann", 1)
    assert next(stream)["event"] == "deposit"
    stream.close()


def test_a_wrong_token_takes_no_longer_the_more_of_it_is_right(market):
    """Medians over many tries; what the comparison itself could tell is thousands of times less than this allows."""
    right = market.tokens["ann"]
    wrong = {"none of it": "A" * 43, "all but the end": right[:-1] + ("A" if right[-1] != "A" else "B")}
    times = {name: [] for name in wrong}
    with httpx.Client(trust_env=False) as client:
        for _ in range(60):
            for name, token in wrong.items():
                begin = time.perf_counter()
                answer = client.get(f"{market.url}/v1/account", headers={"Authorization": f"Bearer {token}"})
                times[name].append(time.perf_counter() - begin)
                assert answer.status_code == 401
    middle = {name: statistics.median(found) for name, found in times.items()}
    assert max(middle.values()) < 3 * min(middle.values())


def test_too_many_requests(tmp_path):
    slow = {**PLAIN, "requests_per_second": 2}
    with serving(slow, f"{tmp_path}/m.db", operator_token_file=tmp_path / "token") as url:
        client = LiveClient(url, (tmp_path / "token").read_text().strip(), patience=0)
        refusal = None
        for _ in range(8):
            try:
                client.market()
            except LiveError as error:
                refusal = error
        assert refusal.status == 429


def test_only_the_loopback_unless_told(tmp_path):
    refusal = refused(InvalidParameterError, LiveServer, None, "0.0.0.0")
    assert refusal.place == "host" and "--behind-proxy" in str(refusal)
    listening("0.0.0.0", 0, behind_proxy=True).close()


def test_nobody_answers():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused(LiveUnavailableError, LiveClient(f"http://127.0.0.1:{port}", "x", patience=0).market)
