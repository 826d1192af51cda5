"""The page at ``/``: served without a token, and what its script shows to everybody, to owners and to an operator."""

import httpx
import pytest

from live_tools import PLAIN, sow
from marketsched.live.client import LiveClient
from marketsched.live.market_view import PUBLIC
from marketsched.live.page import PAGES
from marketsched.live.serving import serving


@pytest.fixture
def market(tmp_path):
    token = tmp_path / "token"
    with serving(PLAIN, f"{tmp_path}/m.db", operator_token_file=token) as url:
        operator = LiveClient(url, token.read_text().strip())
        tokens = [operator.create_owner(name, deposit=20)["token"] for name in ("ann", "ben")]
        for owner, name in (("ann", "a"), ("ben", "secret")):
            operator.submit(sow(1, 1), name=name, owner=owner)
        operator.arrive("ann.a", signal=1)
        operator.advance()
        yield url, [*tokens, token.read_text().strip(), "wrong"]
        operator.close()


def test_the_page_needs_no_token_and_loads_nothing_from_elsewhere(market):
    url, _ = market
    for path, (_, kind) in PAGES.items():
        found = httpx.get(url + path, trust_env=False)
        assert found.status_code == 200 and found.headers["content-type"] == kind
        assert "script-src 'self'" in found.headers["content-security-policy"]
        assert "//" not in found.text.replace("// ", "").replace("http://www.w3.org/2000/svg", "")
        assert "innerHTML" not in found.text and "localStorage" not in found.text
    public = httpx.get(f"{url}/v1/public", trust_env=False).json()
    assert public["load"] == 1 and public["prices"][0] == 0.5 and not {"last_event", "limits"} & public.keys()
    assert set(public) == {*PUBLIC, "clock", "capacity"}
    assert httpx.get(url, headers={"Host": "evil.example"}, trust_env=False).status_code == 421
