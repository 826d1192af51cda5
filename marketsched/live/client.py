"""A Python client of a live market; the command line and the Slurm bridge use it, too."""

from __future__ import annotations

import json
import os
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

try:
    import httpx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"marketsched.live.client needs {error.name}: pip install 'marketsched[live]'", name=error.name
    ) from None

from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError

URL = "http://127.0.0.1:8765"
AGAIN = (429, 502, 503, 504)  # statuses after which a call is repeated
LONGEST_TOKEN = 300  # bytes
LEFT_OUT: Any = object()


class LiveError(MarketschedError, RuntimeError):
    """A market refused a call.

    Attributes
    ----------
    status : int
        Of HTTP.
    problem : dict
        The problem details: ``detail``, and where they are known ``place``, ``value``, ``legal``.
    """

    status: int = 0
    problem: Mapping[str, Any] = MappingProxyType({})


class LiveUnavailableError(MarketschedError, ConnectionError):
    """No answer; the request may have taken effect, and can be repeated with the same key."""


class LiveClient:
    """The calls of a live market.

    Every call that changes something carries an ``Idempotency-Key``, a new one unless ``key`` is given, so that it
    can be repeated without happening twice when there is no answer.

    Parameters
    ----------
    url : str, optional
        Of the service; by default ``MARKETSCHED_URL``, or port 8765 of this machine.
    token : str, optional
        By default ``MARKETSCHED_TOKEN``, or the content of the file ``MARKETSCHED_TOKEN_FILE``.
    timeout : float
        Seconds that one answer may take.
    patience : float
        Seconds for which a call is repeated while there is no answer.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marketsched.live.serving import serving
    >>> config = {"capacity": 1, "max_concurrency": 1, "max_duration": 2, "max_value": 9, "max_delay": 9,
    ...           "pricing": {"kind": "posted", "prices": [0.5]}}
    >>> sow = {"concurrency": 1, "value": {"kind": "deadline", "value": 4.0, "deadline": 5},
    ...        "requirements": [{"arrival": 1, "duration": 1, "probability": 1.0}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     token = Path(folder, "token")
    ...     with serving(config, f"{folder}/market.db", operator_token_file=token) as url:
    ...         operator = LiveClient(url, token.read_text().strip())
    ...         ann = LiveClient(url, operator.create_owner("ann", deposit=10)["token"])
    ...         job = ann.submit(sow)["job"]
    ...         _ = ann.arrive(job, signal=1)
    ...         _ = operator.advance()
    ...         operator.complete(job)["charge"], ann.account()["balance"]
    (0.5, 9.5)
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout: float = 30.0, patience: float = 60.0
    ) -> None:
        self.url = (url or os.environ.get("MARKETSCHED_URL") or URL).rstrip("/")
        token = token or _token_of_environment()
        if not token:
            legal = "MARKETSCHED_TOKEN_FILE or MARKETSCHED_TOKEN, or --token-file (token= in Python)"
            raise InvalidParameterError("no token is given", legal=legal)
        headers = {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise InvalidParameterError(f"url or token: {error}", legal="such as http://127.0.0.1:8765") from None
        self._patience = patience
        weakref.finalize(self, self._http.close)

    def __enter__(self) -> LiveClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    # -- owners -------------------------------------------------------------------------------------------

    def market(self, rounds: int = 100) -> dict[str, Any]:
        """Return round, clock, limits, and the prices of the coming rounds."""
        return self._get("/v1/market", rounds=rounds)

    def quote(self, sow: Mapping[str, Any], *, owner: str | None = None) -> dict[str, Any]:
        """Return the plan and price of a submission now; nothing is changed."""
        return self._post("/v1/quotes", _said(sow=dict(sow), owner=owner))

    def submit(
        self, sow: Mapping[str, Any], *, name: str | None = None, owner: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Submit a statement of work; return the job, its plan and the plan's price."""
        return self._post("/v1/jobs", _said(sow=dict(sow), name=name, owner=owner), key)

    def arrive(
        self, job: str, *, signal: Any = LEFT_OUT, duration: Any = LEFT_OUT, key: str | None = None
    ) -> dict[str, Any]:
        """Report that a job is ready, with its signal."""
        said = {"signal": signal, "duration": duration}
        said = {name: value for name, value in said.items() if value is not LEFT_OUT}
        return self._post(f"/v1/jobs/{job}/arrival", said, key)

    def withdraw(self, job: str, *, key: str | None = None) -> dict[str, Any]:
        """Take a job back: at the no-show fee before it came, at the price of its rounds once it runs."""
        return self._post(f"/v1/jobs/{job}/withdrawal", {}, key)

    def batch(self, calls: Sequence[Mapping[str, Any]], *, key: str | None = None) -> list[dict[str, Any]]:
        """Make several calls in one request and one transaction; return the status and answer, or problem, of each.

        A call is ``{"call": "submit", "body": {"sow": ..., "name": ...}}``, ``{"call": "arrive", "job": ..., "body":
        {"signal": ...}}``, ``{"call": "complete", "job": ...}`` or ``{"call": "advance"}``; at most 100, in 64 KiB.
        """
        found: list[dict[str, Any]] = self._post("/v1/batch", {"calls": list(calls)}, key)["answers"]
        return found

    def jobs(self, *, owner: str | None = None, state: str | None = None) -> list[dict[str, Any]]:
        """Return all jobs that can be seen, in order of submission."""
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["job"] if found else ""
            page = self._get("/v1/jobs", **_said(owner=owner, state=state), after=after, limit=1000)
            found += page["jobs"]
            if not page["more"]:
                return found

    def job(self, job: str) -> dict[str, Any]:
        """Return a job with its statement of work and its history."""
        return self._get(f"/v1/jobs/{job}")

    def explanation(self, job: str) -> dict[str, Any]:
        """Return why a job waits, or waited."""
        return self._get(f"/v1/jobs/{job}/explanation")

    def account(self, owner: str | None = None) -> dict[str, Any]:
        """Return a balance."""
        return self._get("/v1/account", **_said(owner=owner))

    def purse(self, owner: str | None = None) -> dict[str, Any]:
        """Return a purse where credits renew: credits, income, cap, regular jobs; of all, for an operator."""
        return self._get("/v1/purse", **_said(owner=owner))

    def ledger(self, owner: str | None = None, *, after: int = 0, limit: int = 1000) -> dict[str, Any]:
        """Return entries of the ledger behind event ``after``, those of one event together.

        As long as there is ``more``, the next page begins behind the ``seq`` of the last entry.
        """
        return self._get("/v1/ledger", **_said(owner=owner), after=after, limit=limit)

    def events(self, after: int = 0, *, follow: bool = True) -> Iterator[dict[str, Any]]:
        """Yield the events behind row ``after``, and those to come as they come.

        A stream that breaks is taken up again behind the last event; that ends in `LiveUnavailableError` if nothing
        answers for ``patience`` seconds.
        """
        since = time.monotonic()
        timeout = httpx.Timeout(30.0)
        while True:
            try:
                asked: dict[str, Any] = {"after": after, "follow": str(follow).lower()}
                with self._http.stream("GET", "/v1/events", params=asked, timeout=timeout) as answer:
                    if answer.status_code not in AGAIN:
                        if answer.status_code >= 400:
                            answer.read()
                            raise _refusal(answer)
                        for line in answer.iter_lines():
                            since = time.monotonic()
                            if line.startswith("data: "):
                                event = json.loads(line.removeprefix("data: "))
                                after = event["seq"]
                                yield event
                        if not follow:
                            return
            except httpx.TransportError as error:
                if time.monotonic() - since > self._patience:
                    raise LiveUnavailableError(f"{self.url}: {error}") from None
            time.sleep(0.1)

    # -- operators ----------------------------------------------------------------------------------------

    def complete(
        self, job: str, *, outcome: str = "done", exit_code: int | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Report that a job ran its last round in the round cleared last; ``node-failed`` is not charged."""
        said = {"outcome": outcome, **_said(exit_code=exit_code)}
        return self._post(f"/v1/jobs/{job}/completion", said, key)

    def advance(self, rounds: int = 1, *, key: str | None = None) -> dict[str, Any]:
        """Clear rounds, with a manual clock; return the round that is open then, and the decisions."""
        return self._post("/v1/rounds", {"rounds": rounds}, key)

    def nodes(
        self, usable: int, *, held: Sequence[str] = (), removed: Sequence[str] = (), key: str | None = None
    ) -> dict[str, Any]:
        """Remark how many nodes can be used, and which jobs were held back or removed for it."""
        return self._post("/v1/nodes", {"usable": usable, "held": list(held), "removed": list(removed)}, key)

    def create_owner(
        self,
        owner: str,
        *,
        role: str = "owner",
        deposit: float = 0.0,
        limit: float | None = None,
        group: str | None = None,
        share: float | None = None,
        account: str | None = None,
    ) -> dict[str, Any]:
        """Create an account; the answer holds its token, which cannot be read again.

        Where credits renew it may have a ``share`` in ``account``, such as ``"physics/"``; None: at the top.
        """
        said = _said(limit=limit, group=group, share=share, account=account)
        return self._post("/v1/owners", {"owner": owner, "role": role, "deposit": deposit, **said})

    def owners(self) -> list[dict[str, Any]]:
        """Return all accounts."""
        found: list[dict[str, Any]] = self._get("/v1/owners")["owners"]
        return found

    def deposit(self, owner: str, credits: float, *, key: str | None = None) -> dict[str, Any]:
        """Deposit credits; return the account."""
        return self._post(f"/v1/owners/{owner}/deposits", {"credits": credits}, key)

    def share(self, place: str, share: float, *, new: bool = False, key: str | None = None) -> dict[str, Any]:
        """Give an account, ``"physics/"``, or an owner, ``"physics/ann"``, another share where credits renew.

        With ``new`` the account may be one that is not there yet.
        """
        return self._post("/v1/shares", {"place": place, "share": share, "new": new}, key)

    def renew(self, owner: str) -> dict[str, Any]:
        """Make a new token; those before it are revoked."""
        return self._post(f"/v1/owners/{owner}/tokens", {})

    def revoke(self, owner: str) -> dict[str, Any]:
        """Revoke all tokens of an account."""
        return self._call("DELETE", f"/v1/owners/{owner}/tokens", headers={"Idempotency-Key": str(uuid.uuid4())})

    def health(self) -> dict[str, Any]:
        """Return whether requests are taken."""
        return self._get("/v1/health")

    def metrics(self) -> str:
        """Return the figures for Prometheus."""
        return self._answer("GET", "/metrics").text

    # -- calls --------------------------------------------------------------------------------------------

    def _get(self, path: str, **asked: Any) -> dict[str, Any]:
        return self._call("GET", path, params=asked)

    def _post(self, path: str, said: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        return self._call("POST", path, json=said, headers={"Idempotency-Key": key or str(uuid.uuid4())})

    def _call(self, method: str, path: str, **what: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._answer(method, path, **what).json()
        return found

    def _answer(self, method: str, path: str, **what: Any) -> httpx.Response:
        end, wait = time.monotonic() + self._patience, 0.05
        while True:
            try:
                answer = self._sent(method, path, **what)
                reason = f"HTTP status {answer.status_code}"
                if answer.status_code not in AGAIN:
                    if answer.status_code >= 400:
                        raise _refusal(answer)
                    return answer
            except httpx.TransportError as error:
                answer, reason = None, str(error)
            if time.monotonic() + wait > end:
                if answer is not None:
                    raise _refusal(answer)
                raise LiveUnavailableError(f"{self.url}: {reason}", legal="a service that answers")
            time.sleep(wait)
            wait = min(1.0, 2 * wait)

    def _sent(self, method: str, path: str, **what: Any) -> httpx.Response:
        """Send one request.

        Raises InvalidParameterError if it cannot be written down: NaN in a body, a line break in a name.
        """
        if "json" in what:
            try:
                text = json.dumps(what.pop("json"), allow_nan=False).encode()
            except (ValueError, TypeError, RecursionError) as error:
                raise InvalidParameterError(f"what is sent: {error}", legal="plain data, its numbers finite") from None
            what = {**what, "content": text, "headers": {"Content-Type": "application/json", **what["headers"]}}
        try:
            return self._http.request(method, quote(path, safe="/"), **what)
        except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError) as error:
            raise InvalidParameterError(f"a name or key: {error}", legal="letters and digits of ASCII") from None


def _refusal(answer: httpx.Response) -> LiveError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {"detail": answer.text[:200]}
    problem = problem if isinstance(problem, dict) else {}
    error = LiveError(str(problem.get("detail", f"HTTP status {answer.status_code}")))
    error.status, error.problem = answer.status_code, problem
    return error


def _said(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def token_in(file: str | Path) -> str:
    """Return the token that a file holds.

    Raises InvalidParameterError if it holds something else, and OSError if it cannot be read.
    """
    with open(file, "rb") as found:
        text = found.read(LONGEST_TOKEN + 1).decode("ascii", "replace").strip()
    if not text.isascii() or not text.isprintable() or not 0 < len(text) < LONGEST_TOKEN or " " in text:
        raise InvalidParameterError(str(file), legal="a file with one token, as `marketsched live owner` prints it")
    return text


def _token_of_environment() -> str:
    file = os.environ.get("MARKETSCHED_TOKEN_FILE")
    if "MARKETSCHED_TOKEN" not in os.environ and file:
        return token_in(file)
    return os.environ.get("MARKETSCHED_TOKEN", "")
