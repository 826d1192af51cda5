"""The page at ``/``: served without a token, and what its script shows to everybody, to owners and to an operator."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from live_tools import PLAIN, sow
from marketsched.live.client import LiveClient
from marketsched.live.market_view import PUBLIC
from marketsched.live.page import PAGES
from marketsched.live.serving import serving

NODE = shutil.which("node")
BROWSER = """
const fs = require("fs");
const made = new Map();
class Element {
  constructor(name) { Object.assign(this, { name, children: [], own: "", hidden: false, value: "", on: {} }); }
  set textContent(text) { this.own = text; this.children = []; }
  get textContent() { return this.own + this.children.map((each) => each.textContent).join(" "); }
  append(...more) { this.children.push(...more); }
  replaceChildren(...more) { this.own = ""; this.children = more; }
  setAttribute() {}
  addEventListener(kind, act) { this.on[kind] = act; }
  createTHead() { return this.inside("thead"); }
  createTBody() { return this.inside("tbody"); }
  insertRow() { return this.inside("tr"); }
  inside(name) { const each = new Element(name); this.append(each); return each; }
}
globalThis.document = {
  getElementById: (id) => made.get(id) ?? made.set(id, new Element(id)).get(id),
  createElement: (name) => new Element(name),
  createElementNS: (_, name) => new Element(name),
};
globalThis.FormData = class { constructor(form) { return form.fields; } };
let look = null;
globalThis.setInterval = (act) => { look = act; };
const [url, script, ...tokens] = process.argv.slice(2);
const fetched = globalThis.fetch;
globalThis.fetch = (path, options) => fetched(url + path, options);
eval(fs.readFileSync(script, "utf8"));
(async () => {
  const said = [];
  const parts = ["name", "state", "load", "prices", "account", "jobs", "owners", "quoted", "trouble"];
  const see = () => said.push(Object.fromEntries(parts.map((id) => [id, document.getElementById(id).textContent])));
  const event = { preventDefault() {} };
  await look();
  see();
  for (const token of tokens) {
    document.getElementById("token").value = token;
    await document.getElementById("access").on.submit(event);
    const fields = [["nodes", "1"], ["duration", "2"], ["later", "0"], ["value", "8"], ["deadline", "9"]];
    await document.getElementById("quote").on.submit({ ...event, target: { fields } });
    await look();
    see();
  }
  document.getElementById("forget").on.click();
  see();
  console.log(JSON.stringify(said));
  process.exit(0);
})();
"""


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


def seen_by(folder, url, tokens):
    """Return what everybody sees, then who has each token, then everybody again."""
    script = Path(__file__).parents[2] / "marketsched/live/assets/page.js"
    (folder / "browser.js").write_text(BROWSER)
    done = subprocess.run(
        [NODE, str(folder / "browser.js"), url, str(script), *tokens],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="no node on the PATH")
def test_what_each_sees(market, tmp_path):
    url, tokens = market
    everybody, ann, ben, operator, wrong, after = seen_by(tmp_path, url, tokens)
    assert everybody["load"] == "1 of 2 nodes are busy; no job waits" and "now 0.50" in everybody["prices"]
    assert everybody["state"].startswith("posted-price, round 2")
    assert everybody["account"] == everybody["jobs"] == everybody["owners"] == ""
    assert "ann (owner): 20.00 credits" in ann["account"] and "ann.a running" in ann["jobs"]
    assert "ben." not in json.dumps(ann) and "ann." not in json.dumps(ben)
    assert "ben.secret missed" in ben["jobs"] and "1.00" in ben["quoted"]
    assert "ann.a" in operator["jobs"] and "ben.secret" in operator["jobs"] and "ben owner" in operator["owners"]
    assert "expected Bearer and a token that is good" in wrong["trouble"] and wrong["jobs"] == wrong["account"] == ""
    assert after["account"] == after["jobs"] == after["quoted"] == "" and after["prices"] == everybody["prices"]


@pytest.mark.skipif(NODE is None, reason="no node on the PATH")
def test_a_market_of_credits_shows_classes_and_quotes_in_words(tmp_path):
    token, rules = tmp_path / "token", {**PLAIN, "mechanism": "credits", "parameters": {"shares": {"ann": 1}}}
    del rules["pricing"], rules["threshold"]
    with serving(rules, f"{tmp_path}/m.db", operator_token_file=token) as url:
        with LiveClient(url, token.read_text().strip()) as operator:
            ann = operator.create_owner("ann")["token"]
            operator.submit(sow(1, 1, deadline=2), name="a", owner="ann")
            operator.arrive("ann.a", signal=1)
            operator.advance()
        _, own, _ = seen_by(tmp_path, url, [ann])
    assert "ann.a running 1 regular" in own["jobs"]
    assert own["quoted"].startswith(
        "regular: about 2 of your 471 credits (1 of them are held for your regular jobs), from "
    )
