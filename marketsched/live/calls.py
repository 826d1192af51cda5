"""The calls of a market: the same over HTTP, in a batch and in Python.

An owner's view ends at its own jobs: another owner's job is as unknown as one that does not exist. A reader sees
figures and no names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Path, Query

from marketsched.config.sow_codec import ReadOnce
from marketsched.live import calls
from marketsched.live.accounts import MICRO, Account
from marketsched.live.announcements import too_surprising
from marketsched.live.bodies import (
    MOST_ROUNDS,
    Arrival,
    Call,
    Completion,
    Deposit,
    NewOwner,
    Nodes,
    Rounds,
    Submission,
    Withdrawal,
    read,
)
from marketsched.live.bodies import Batch as Several
from marketsched.live.costs import check_announced, fee, held_at_arrival, most_of
from marketsched.live.credit_calls import outlook_of
from marketsched.live.database import JournalError
from marketsched.live.explained import explained
from marketsched.live.job import STATES, WITHDRAWN, LiveJob, name_of_next
from marketsched.live.market_view import PRICED_ROUNDS, clock_at, pool_prices, promises_to_owners
from marketsched.live.owner_view import offered, seen
from marketsched.live.principal import Principal, Said
from marketsched.live.problems import details_of
from marketsched.live.routes import route
from marketsched.live.statements import check_size, first_arrival, nodes_of
from marketsched.live.times import in_rounds
from marketsched.live.turn import Turn, Work
from marketsched.mechanisms.errors import (
    EventError,
    InvalidParameterError,
    MarketschedError,
    UnknownNameError,
)

QUOTED_ROUNDS = 100  # whose prices a quote shows where starts are decided at arrival
PAGE = 200  # jobs or entries in one answer
LAST_SEQ = 2**53

JobName = Annotated[str, Path(max_length=128, description="OWNER.LABEL")]
OwnerName = Annotated[str, Path(max_length=32)]
AnyOwner = Annotated[str | None, Query(max_length=32)]
Page = Annotated[int, Query(ge=1, le=1000)]
Seq = Annotated[int, Query(ge=0, le=LAST_SEQ)]
StateName = Annotated[str | None, Query(pattern=f"^({'|'.join(STATES)})$")]
After = Annotated[str, Query(max_length=128)]


def _check_size(_: Principal, asked: Submission) -> None:
    check_size(asked.sow)


@route("POST /v1/quotes", "owner", "operator", body=Submission, check=_check_size)
def quote(turn: Turn, who: Principal, asked: Submission) -> dict[str, Any]:
    """Return the plan, prices and failure probabilities of a submission now. Nothing is changed."""
    owner, report = _acting_for(turn, who, asked.owner), _report(turn, asked)
    name = name_of_next(owner, asked.name)
    if asked.name is not None:
        turn.check_new(name)
    offer = turn.market.quote(owner, name, report)
    fee_ = fee(turn.market.config, nodes_of(report, turn.market.config), offer) / MICRO
    found = {
        "round": turn.market.round,
        "no_show_fee": fee_,
        "decided": turn.market.decides,
        "promises": promises_to_owners(turn.market),
        **outlook_of(turn.market, owner, report),
        **offered(who, turn.market, report, offer),
    }
    if turn.market.decides == "at submission":
        return found
    # No start and no price is known before the job comes; what the rounds cost now is.
    first = first_arrival(report) - turn.market.round
    prices = (turn.market.prices(PRICED_ROUNDS) or [])[first : first + QUOTED_ROUNDS]
    now: dict[str, Any] = {"first_round": turn.market.round + first, "prices": prices}
    pools = pool_prices(turn.market, now["first_round"], QUOTED_ROUNDS)
    return {**found, "prices_now": now if pools is None else {**now, "pools": pools}}


@route("POST /v1/jobs", "owner", "operator", body=Submission, check=_check_size, status=201)
def submit(turn: Turn, who: Principal, asked: Submission) -> dict[str, Any]:
    """Submit a statement of work; the plan is final."""
    owner, report = _acting_for(turn, who, asked.owner), _report(turn, asked)
    name = name_of_next(owner, asked.name)
    if asked.name is not None:
        turn.check_new(name)
    offer = turn.market.quote(owner, name, report)  # what it refuses leaves no trace
    nodes = nodes_of(report, turn.market.config)
    check_announced(turn.market, owner, nodes)
    fee_ = fee(turn.market.config, nodes, offer)
    most = most_of(turn.market, owner, offer, report, fee_)
    held = {"held": True} if held_at_arrival(turn.market, owner, offer) else {}
    event = {"event": "submit", "owner": owner.name, "job": name, "sow": report, "most": most, "fee": fee_, **held}
    turn.record(event, who.name)
    job = turn.market.jobs[name]
    more = {"round": turn.market.round, "no_show_fee": fee_ / MICRO}
    return {**job.shown(), **more, **offered(who, turn.market, report, offer, plan=False)}


@route("GET /v1/jobs", "owner", "operator")
def jobs(
    turn: Turn, who: Principal, owner: AnyOwner = None, state: StateName = None, after: After = "", limit: Page = PAGE
) -> dict[str, Any]:
    """List jobs in order of submission, those behind ``after``."""
    wanted = turn.one_or_all(who, owner)
    begin = _own_job(turn, who, after).rows[0] if after else 0
    found = turn.jobs(begin, limit + 1, wanted, state)
    return {"jobs": turn.shown(found[:limit]), "more": len(found) > limit}


@route("GET /v1/jobs/{job}", "owner", "operator", refusals=(404,))
def job(turn: Turn, who: Principal, job: JobName) -> dict[str, Any]:
    """Show a job with its statement of work and all that happened to it."""
    found = _own_job(turn, who, job)
    rows = [seen(who, row, turn.cursors) for row in turn.rows(found.rows)]
    history = [row for row in rows if row is not None]
    for row in history:
        row["decisions"] = [each for each in row["decisions"] if each["job"] == job]
    return {**turn.shown([found])[0], "sow": history[0].pop("sow"), "history": history}


@route("GET /v1/jobs/{job}/explanation", "owner", "operator", refusals=(404,))
def explanation(turn: Turn, who: Principal, job: JobName) -> dict[str, Any]:
    """Explain why a job waits or waited: rounds by cause, and how many nodes others held; no names, no reports."""
    return explained(turn, _own_job(turn, who, job))


def _check_duration(who: Principal, asked: Arrival) -> None:
    if "duration" in asked.model_fields_set:
        who.must_be("operator")


@route("POST /v1/jobs/{job}/arrival", "owner", "operator", body=Arrival, check=_check_duration, refusals=(404,))
def arrive(turn: Turn, who: Principal, job: JobName, asked: Arrival) -> dict[str, Any]:
    """Report that a job is ready, with its signal; it counts when the open round is cleared."""
    found = _own_job(turn, who, job)
    event = {"event": "arrive", "owner": found.owner, "job": job, **asked.model_dump(exclude_unset=True)}
    if found.gone and found.arrived is None:  # nothing follows from it
        return turn.shown([found])[0]
    if found.arrived is not None:
        raise EventError(f"arrive of {job!r}: it arrived in round {found.arrived}")
    turn.market.check_arrival(job, event)
    longest = max(found.longest, default=0)
    if asked.duration is not None and asked.duration > longest:
        raise EventError(place="duration", value=asked.duration, legal=f"at most {longest}, as {job} announced")
    if too_surprising(turn.market, found, turn.market.case_of(job, event)):
        event |= {"refused": "surprise", "micro": found.fee}
    turn.record(event, who.name)
    return turn.shown([found])[0]


@route("POST /v1/jobs/{job}/withdrawal", "owner", "operator", body=Withdrawal, refusals=(404,))
def withdraw(turn: Turn, who: Principal, job: JobName, _: Withdrawal) -> dict[str, Any]:
    """Take a job back: at the no-show fee before it came, at the price of its rounds once it runs."""
    found = _own_job(turn, who, job)
    event: dict[str, Any] = {"owner": found.owner, "job": job}
    if found.gone:
        raise EventError(f"withdrawal of {job!r}, which is {found.state}", legal="a job that has not gone")
    if found.state == "running":
        event |= {"event": "complete", "outcome": WITHDRAWN, "exit_code": None}
    else:
        event |= {"event": "withdraw", "micro": found.fee if found.state == "submitted" else 0}
    turn.record(event, who.name)
    return turn.shown([found])[0]


@route("POST /v1/jobs/{job}/completion", "operator", body=Completion, refusals=(404,))
def complete(turn: Turn, who: Principal, job: JobName, how: Completion) -> dict[str, Any]:
    """Report that a running job ran its last round in the round cleared last."""
    found = turn.job(job)
    if found.gone:
        raise EventError(f"complete of {job!r}, which is {found.state}", legal="a running job")
    event = {"event": "complete", "owner": found.owner, "job": job, "outcome": how.outcome, "exit_code": how.exit_code}
    turn.record(event, who.name)
    return turn.shown([found])[0]


@route("GET /v1/account", "owner", "operator", refusals=(404,))
def account(turn: Turn, who: Principal, owner: AnyOwner = None) -> dict[str, Any]:
    """Show balance and limit."""
    return turn.market.accounts.shown(turn.whose(who, owner))


@route("GET /v1/ledger", refusals=(404,))
def ledger(turn: Turn, who: Principal, owner: AnyOwner = None, after: Seq = 0, limit: Page = PAGE) -> dict[str, Any]:
    """List entries, and the sums: those of the whole market for an operator or a reader."""
    accounts = turn.market.accounts
    sums = {"deposited": accounts.deposited / MICRO, "market": accounts.market / MICRO}
    sums["owners"] = accounts.of_owners / MICRO
    if who.role == "reader":
        return {"entries": [], "more": False, "sums": sums}
    whose = turn.one_or_all(who, owner)
    own = who.role == "owner"
    found, more = turn.journal.entries(whose, turn.cursors.find(who.name, after) if own else after, limit)
    entries = [{**each, "credits": each["micro"] / MICRO} for each in found]
    for each in entries if own else ():
        each["seq"] = turn.cursors.hide(who.name, each["seq"])
    return {"entries": entries, "more": more} | ({"sums": sums} if who.role == "operator" else {})


# -- operators ----------------------------------------------------------------------------------------------


@route("POST /v1/rounds", "operator", body=Rounds)
def advance(turn: Turn, who: Principal, asked: Rounds) -> dict[str, Any]:
    """Clear rounds, with a manual clock."""
    if turn.clock.kind != "manual":
        raise EventError("rounds end on the clock of this market", legal="a market with a manual clock")
    if asked.rounds > turn.market.rounds_left:
        legal = f"at most {turn.market.rounds_left}, by the horizon"
        raise EventError(place="rounds", value=asked.rounds, legal=legal)
    rows = [row for _ in range(asked.rounds) for row in turn.clear_round(who.name)]
    return {"round": turn.market.round, "decisions": [each for row in rows for each in row.decisions]}


@route("POST /v1/nodes", "operator", body=Nodes, refusals=(404,))
def nodes(turn: Turn, who: Principal, remark: Nodes) -> dict[str, Any]:
    """Remark how many nodes can be used, and the measures taken."""
    capacity = turn.market.config.capacity
    if remark.usable > capacity:
        legal = f"at most {capacity}, the nodes there are"
        raise InvalidParameterError(place="usable", value=remark.usable, legal=legal)
    for name in (*remark.held, *remark.removed):
        turn.job(name)
    turn.record({"event": "nodes", **remark.model_dump()}, who.name)
    return {"usable_nodes": remark.usable, "rounds_short_of_nodes": turn.market.short_rounds}


def _check_account(_: Principal, asked: NewOwner) -> None:
    if asked.account and asked.share is None:
        raise InvalidParameterError(place="account", value=asked.account, legal="nothing without a share")


@route("POST /v1/owners", "operator", body=NewOwner, check=_check_account, status=201)
def create_owner(turn: Turn, who: Principal, asked: NewOwner) -> dict[str, Any]:
    """Create an account with a token, and perhaps a first deposit."""
    accounts = turn.market.accounts
    limited = asked.role == "owner" and (not accounts.renew or "limit" in asked.model_fields_set)
    limit = asked.limit if limited else None
    new = accounts.check_new(asked.owner, asked.role, limit, asked.group)
    if asked.deposit:
        accounts.check_deposit(asked.deposit)
    if asked.share is not None:  # first: what is wrong with it is found before anything is changed
        turn.record({"event": "share", "place": f"{asked.account}{new.name}", "share": asked.share}, who.name)
    more = {key: each for key, each in (("limit", limit), ("group", asked.group)) if each is not None}
    row = turn.record({"event": "owner", "owner": new.name, "role": asked.role, **more}, who.name)
    turn.enter_account(new.name)
    if asked.deposit:
        turn.record({"event": "deposit", "owner": new.name, "credits": asked.deposit}, who.name)
    return {**accounts.shown(accounts.get(new.name)), "token": turn.new_token(new.name, row.seq)}


@route("GET /v1/owners", "operator")
def owners(turn: Turn, who: Principal) -> dict[str, Any]:
    """List the accounts."""
    accounts = turn.market.accounts
    return {"owners": [accounts.shown(each) for each in accounts.known.values()]}


@route("POST /v1/owners/{owner}/deposits", "operator", body=Deposit, refusals=(404,))
def deposit(turn: Turn, who: Principal, owner: OwnerName, asked: Deposit) -> dict[str, Any]:
    """Deposit credits."""
    found = turn.market.accounts.get(owner)
    turn.market.accounts.check_deposit(asked.credits)
    turn.record({"event": "deposit", "owner": found.name, "credits": asked.credits}, who.name)
    return turn.market.accounts.shown(found)


@route("POST /v1/owners/{owner}/tokens", refusals=(404,))
def renew(turn: Turn, who: Principal, owner: OwnerName) -> dict[str, Any]:
    """Make a new token for an account; those before it are revoked."""
    found = _own_account(turn, who, owner)
    row = turn.record({"event": "token", "owner": found.name, "action": "new"}, who.name)
    turn.revoke_tokens(found.name, row.seq)
    return {"owner": found.name, "token": turn.new_token(found.name, row.seq)}


@route("DELETE /v1/owners/{owner}/tokens", refusals=(404,))
def revoke(turn: Turn, who: Principal, owner: OwnerName) -> dict[str, Any]:
    """Revoke every token of an account; the last operator's stays."""
    found = _own_account(turn, who, owner)
    if found.role == "operator":
        others = [each.name for each in turn.market.accounts.known.values() if each.role == "operator"]
        if not any(name != owner and turn.has_token(name) for name in others):
            raise EventError(f"owner = {owner!r} is the last operator with a token", legal="another one first")
    row = turn.record({"event": "token", "owner": found.name, "action": "revoke"}, who.name)
    turn.revoke_tokens(found.name, row.seq)
    return {"owner": found.name, "token": None}


# -- parts --------------------------------------------------------------------------------------------------


def _own_account(turn: Turn, who: Principal, owner: str) -> Account:
    """Return the caller's account; another one for an operator alone."""
    if owner != who.name:
        who.must_be("operator")
    return turn.market.accounts.get(owner)


def _report(turn: Turn, asked: Submission) -> Any:
    """Return the statement, its times as rounds of this market, to be read once."""
    if not isinstance(asked.sow, dict):
        return asked.sow
    opened = turn.market.round
    return ReadOnce(in_rounds(asked.sow, {"round": opened, "clock": clock_at(turn.clock, opened)}))


def _acting_for(turn: Turn, who: Principal, owner: str | None) -> Account:
    """Return the account that a job belongs to: the caller's, or the one that an operator names."""
    if who.role == "owner":
        return turn.whose(who, owner)
    if owner is None:
        raise InvalidParameterError("is missing", place="owner")
    found = turn.market.accounts.get(owner)
    if found.role != "owner":
        raise InvalidParameterError(place="owner", value=found.name, legal="an account of the role owner")
    return found


def _own_job(turn: Turn, who: Principal, name: str) -> LiveJob:
    """Return a job; another owner's is as unknown as none."""
    if who.role == "owner" and isinstance(name, str) and not name.startswith(f"{who.name}."):
        raise UnknownNameError(place="job", value=name, legal="one of your own jobs")
    return turn.job(name)


_OF_A_JOB: dict[str, Callable[[Principal, str, Said], Work]] = {"arrive": calls.arrive, "complete": calls.complete}
_OTHERS: dict[str, Callable[[Principal, Said], Work]] = {"submit": calls.submit, "advance": calls.advance}


def batch(who: Principal, said: Said) -> Work:
    """Make several calls, one after the other; one that is refused changes nothing, and the others go on."""
    who.must_be("owner", "operator")
    asked = read(Several, said).calls
    rounds = sum(_rounds(each) for each in asked)
    if rounds > MOST_ROUNDS:
        raise InvalidParameterError(place="calls", value=f"{rounds} rounds", legal=f"at most {MOST_ROUNDS} in all")

    def work(turn: Turn) -> dict[str, Any]:
        return {"answers": [_answered(turn, who, each) for each in asked]}

    return work


def _rounds(asked: object) -> int:
    """Return how many rounds a call would clear; 0 where it is no such call, or will be refused."""
    said = asked.get("body", {}) if isinstance(asked, Mapping) and asked.get("call") == "advance" else None
    rounds = said.get("rounds", 1) if isinstance(said, Mapping) else 0
    return rounds if isinstance(rounds, int) and rounds > 0 else 0


def _answered(turn: Turn, who: Principal, asked: object) -> dict[str, Any]:
    """Make one call; return its status, and its answer or the problem."""
    try:
        kind, work = _work(who, asked)
        answer = work(turn)
    except JournalError:
        raise  # nothing of the request has happened
    except MarketschedError as error:
        found = details_of(error)
        return {"status": found["status"], "problem": found}
    return {"status": 201 if kind == "submit" else 200, "answer": answer}


def _work(who: Principal, asked: object) -> tuple[str, Work]:
    if not isinstance(asked, Mapping):
        raise InvalidParameterError(place="calls", value=asked, legal="objects with call and body")
    one = read(Call, asked)
    if one.call in _OTHERS:
        if one.job is not None:
            raise InvalidParameterError(": is no field of this call", place="job")
        return one.call, _OTHERS[one.call](who, one.body)
    if one.job is None:
        raise InvalidParameterError("is missing", place="job")
    return one.call, _OF_A_JOB[one.call](who, one.job, one.body)
