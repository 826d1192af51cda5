"""Whose request is next, and connections that ask for nothing: who works is not kept waiting by who does not."""

import asyncio
import http.client
import json
import socket
import time
from functools import partialmethod

import pytest

from live_tools import PLAIN, refused, sow
from marketsched.live import connections, guard
from marketsched.live.batches import batch
from marketsched.live.client import LiveClient, LiveError
from marketsched.live.fairness import FairQueue
from marketsched.live.large import LargeRequests
from marketsched.live.principal import Principal
from marketsched.live.serving import serving
from marketsched.mechanisms.errors import InvalidParameterError


def served(costs, seconds):
    """Return how long each account was served, where all always wait, each with requests of its own cost."""
    waiting, spent = FairQueue(), dict.fromkeys(costs, 0.0)
    for account in costs:
        waiting.put(account, account)
        waiting.put(account, account)
    while sum(spent.values()) < seconds:
        account, item = waiting.get(0.0)
        assert account == item
        spent[account] += costs[account]
        waiting.spent(account, costs[account])
        waiting.put(account, account)
    return spent


def test_accounts_share_the_time_whatever_their_requests_cost():
    spent = served({"ann": 0.06, "ben": 0.001, "cid": 0.0002}, 6.0)
    assert all(abs(each - 2.0) < 0.1 for each in spent.values()), spent


def test_a_small_request_waits_for_one_large_one_at_most():
    waiting = FairQueue()
    for _ in range(8):
        waiting.put("ann", "large")
    order = []
    for n in range(8):
        account, item = waiting.get(0.0)
        waiting.spent(account, 0.06 if item == "large" else 0.001)
        order.append(account)
        if n in (0, 2, 4):
            waiting.put("ben", "small")
    assert order == ["ann", "ben", "ann", "ben", "ann", "ben", "ann", "ann"]


def test_requests_of_one_account_keep_their_order_and_nobody_alone_waits():
    waiting = FairQueue()
    for n in range(5):
        waiting.put("ann", n)
    found = []
    while (each := waiting.get(0.0)) is not None:
        found.append(each[1])
        waiting.spent("ann", 9.0)
    assert found == [0, 1, 2, 3, 4] and waiting.get(0.01) is None
    waiting.put("ben", 1)
    waiting.put("ann", 2)  # what she took kept nobody back
    assert {waiting.get(0.0), waiting.get(0.0)} == {("ben", 1), ("ann", 2)}


def test_a_batch_clears_no_more_rounds_than_one_call():
    operator = Principal("operator", "operator")
    calls = [{"call": "advance", "body": {"rounds": 1000}}, {"call": "advance"}]
    assert refused(InvalidParameterError, batch, operator, {"calls": calls}).value == "1001 rounds"


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.5)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 50)
    monkeypatch.setattr(connections.Pool, "__init__", partialmethod(connections.Pool.__init__, 50))
    with serving(PLAIN, f"{tmp_path}/m.db", operator_token_file=tmp_path / "token") as found:
        yield found.removeprefix("http://"), (tmp_path / "token").read_text().strip()


def asked(url, token, path="/v1/market"):
    client = http.client.HTTPConnection(url, timeout=5)
    client.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    status = client.getresponse().status
    client.close()
    return status


def left(sockets):
    """Return how many of these the other side has not closed."""
    found = 0
    for each in sockets:
        each.setblocking(False)
        try:
            while each.recv(9999):
                pass
        except BlockingIOError:
            found += 1
        except OSError:
            pass
    return found


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("head", [b"", b"GET /v1/market HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_idle_connections_are_closed_and_keep_nobody_out(url, head):
    host, port = url[0].split(":")
    idle = []
    for _ in range(150):  # three times as many as there is room for
        each = socket.create_connection((host, int(port)))
        each.sendall(head)
        idle.append(each)
    assert [asked(*url), asked(*url, "/v1/health")] == [200, 200]
    assert left(idle) <= 50
    end = time.monotonic() + 5
    while left(idle) and time.monotonic() < end:
        time.sleep(0.05)
    assert left(idle) == 0 and asked(*url) == 200
    for each in idle:
        each.close()


def served_in_order(accounts, *, small):
    """Let requests enter at once, each taking 50 ms; return the accounts in order, and how long all of it took."""

    async def one(large, account, order):
        await large.enter(account)
        order.append(account)
        await asyncio.sleep(0.05)
        if small:
            large.small()
        large.leave()

    async def several():
        large, order, began = LargeRequests(), [], time.monotonic()
        tasks = [asyncio.create_task(one(large, account, order)) for account in accounts]
        await asyncio.sleep(0.02)
        if accounts[-1] == "gone":
            tasks.pop().cancel()
        await asyncio.gather(*tasks)
        return order, time.monotonic() - began

    return asyncio.run(several())


def test_large_requests_take_turns_by_account_and_rest_while_others_ask():
    alone, took = served_in_order(["ann", "ann", "ann", "ben", "gone"], small=False)
    assert alone == ["ann", "ann", "ben", "ann"] and took >= 4 * 0.05
    beside, longer = served_in_order(["ann", "ann", "ann", "ben"], small=True)
    assert beside == alone and longer >= 4 * 0.05 + 3 * 0.1  # twice what each took


def test_a_large_request_that_is_refused_makes_room_for_the_next(url, tmp_path):
    host = f"http://{url[0]}"
    operator = LiveClient(host, url[1])
    client = LiveClient(host, operator.create_owner("ann")["token"], patience=0)
    many = {**sow(), "requirements": 300 * sow()["requirements"]}
    for _ in range(3):
        assert refused(LiveError, client.submit, many).status == 422
    connection = http.client.HTTPConnection(url[0], timeout=5)
    head = {"Content-Type": "application/json"}
    for path, status in (("/", 405), ("/v1/jobs", 401)):  # without a token
        connection.request("POST", path, json.dumps({"sow": many}), head)
        answer = connection.getresponse()
        assert answer.read() and answer.status == status
    assert client.submit(sow(arrival=2))["job"] == "ann.1"
    operator.close(), client.close(), connection.close()


def test_a_body_that_does_not_come_is_answered(url):
    host, port = url[0].split(":")
    with socket.create_connection((host, int(port)), timeout=5) as half:
        head = f"POST /v1/quotes HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {url[1]}\r\n"
        half.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{{".encode())
        assert half.recv(99).startswith(b"HTTP/1.1 408 ")
    with socket.create_connection((host, int(port)), timeout=5) as half:
        half.sendall(f"{head}Content-Length: 500\r\n\r\n{{".encode())  # and goes
    assert asked(*url) == 200


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize("chunk", [b"5\r\nhello!!\r\n", b"11170\r\n" + b"a" * 70000 + b"xx\r\n0\r\n\r\n"])
def test_a_body_that_is_no_http_is_refused_once_and_without_a_fault(url, good, chunk, caplog):
    host, port = url[0].split(":")
    token = url[1] if good else "none"
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=5) as wrong:
        wrong.sendall(head.encode() + chunk)
        wrong.shutdown(socket.SHUT_WR)
        answer = b""
        while more := wrong.recv(9999):
            answer += more
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 4")
    assert asked(*url) == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.slow
def test_a_client_that_works_keeps_its_connection(url):
    client = http.client.HTTPConnection(url[0], timeout=5)
    for _ in range(4):
        client.request("GET", "/v1/market", headers={"Authorization": f"Bearer {url[1]}"})
        answer = client.getresponse()
        assert answer.status == 200 and answer.read()
        time.sleep(0.2)  # together longer than one head may take
    client.close()


def test_streams_are_counted_when_they_are_opened(url):
    """Twenty-five at once: twenty follow, five are refused."""

    async def opened():
        async def one():
            reader, writer = await asyncio.open_connection(*url[0].split(":"))
            writer.write(
                f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {url[1]}\r\n\r\n".encode()
            )
            return int((await reader.readline()).split()[1]), writer

        found = await asyncio.gather(*(one() for _ in range(25)))
        for _, writer in found:
            writer.close()
        return sorted(status for status, _ in found)

    assert asyncio.run(opened()) == [200] * 20 + [429] * 5
    time.sleep(0.2)
    assert asyncio.run(opened()) == [200] * 20 + [429] * 5  # those that went have made room
