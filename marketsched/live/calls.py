"""The calls of a market, who may make each, and what it does: the same over HTTP, in a batch and in Python.

Each function takes the caller and the request, and returns the work that `LiveService.ask` does: what is at fault is
raised there, before anything is changed. An owner's view ends at its own jobs: another owner's job is as unknown as
one that does not exist. A reader sees figures and no names.
"""

from __future__ import annotations

from typing import Any

from marketsched.live.accounts import MICRO, Account
from marketsched.live.announcements import too_surprising
from marketsched.live.bodies import (
    Arrival,
    Completion,
    Deposit,
    NewOwner,
    Nodes,
    Rounds,
    Submission,
    Withdrawal,
    read,
)
from marketsched.live.costs import check_announced, fee, held_at_arrival, most_of
from marketsched.live.credit_calls import outlook_of
from marketsched.live.job import WITHDRAWN, LiveJob, name_of_next
from marketsched.live.market_view import PRICED_ROUNDS, market_view, pool_prices, promises_to_owners, shown_at
from marketsched.live.owner_view import offered, seen
from marketsched.live.principal import Principal, Said
from marketsched.live.statements import check_size, first_arrival, nodes_of
from marketsched.live.turn import Turn, Work
from marketsched.mechanisms.errors import (
    EventError,
    InvalidParameterError,
    UnknownNameError,
)

QUOTED_ROUNDS = 100  # whose prices a quote shows where starts are decided at arrival
PAGE = 200  # jobs or entries in one answer
MOST_ON_PAGE = 1000


# -- owners -------------------------------------------------------------------------------------------------


def quote(who: Principal, said: Said) -> Work:
    """Return the plan and price of a submission now; nothing is changed."""
    who.must_be("owner", "operator")
    asked = read(Submission, said)
    report = asked.report
    check_size(report)

    def work(turn: Turn) -> dict[str, Any]:
        owner = _acting_for(turn, who, asked.owner)
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

    return work


def submit(who: Principal, said: Said) -> Work:
    """Take a statement of work; its plan is final."""
    who.must_be("owner", "operator")
    asked = read(Submission, said)
    report = asked.report
    check_size(report)

    def work(turn: Turn) -> dict[str, Any]:
        owner = _acting_for(turn, who, asked.owner)
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

    return work


def arrive(who: Principal, job: str, said: Said) -> Work:
    """Take note that a job is ready; it counts when the open round is cleared."""
    who.must_be("owner", "operator")
    came = read(Arrival, said)
    if "duration" in said:
        who.must_be("operator")

    def work(turn: Turn) -> dict[str, Any]:
        found = _own_job(turn, who, job)
        event = {"event": "arrive", "owner": found.owner, "job": job, **said}
        if found.gone and found.arrived is None:  # nothing follows from it
            return turn.shown([found])[0]
        if found.arrived is not None:
            raise EventError(f"arrive of {job!r}: it arrived in round {found.arrived}")
        turn.market.check_arrival(job, event)
        longest = max(found.longest, default=0)
        if came.duration is not None and came.duration > longest:
            raise EventError(place="duration", value=came.duration, legal=f"at most {longest}, as {job} announced")
        if too_surprising(turn.market, found, turn.market.case_of(job, event)):
            event |= {"refused": "surprise", "micro": found.fee}
        turn.record(event, who.name)
        return turn.shown([found])[0]

    return work


def withdraw(who: Principal, job: str, said: Said) -> Work:
    """Take a job back: one that has not come costs the fee, one that came or runs the rounds until it ends."""
    who.must_be("owner", "operator")
    read(Withdrawal, said)

    def work(turn: Turn) -> dict[str, Any]:
        found = _own_job(turn, who, job)
        event: dict[str, Any] = {"owner": found.owner, "job": job}
        if found.gone:
            raise EventError(f"withdrawal of {job!r}, which is {found.state}", legal="a job that has not gone")
        if found.state == "running":
            event |= {"event": "complete", "outcome": WITHDRAWN, "exit_code": None}
        else:
            event |= {
                "event": "withdraw",
                "micro": found.fee if found.state == "submitted" else 0,
            }
        turn.record(event, who.name)
        return turn.shown([found])[0]

    return work


def complete(who: Principal, job: str, said: Said) -> Work:
    """Take note that a running job ran its last round in the round cleared last."""
    who.must_be("operator")
    how = read(Completion, said)
    outcome, code = how.outcome, how.exit_code

    def work(turn: Turn) -> dict[str, Any]:
        found = turn.job(job)
        if found.gone:
            raise EventError(f"complete of {job!r}, which is {found.state}", legal="a running job")
        event = {"event": "complete", "owner": found.owner, "job": job, "outcome": outcome, "exit_code": code}
        turn.record(event, who.name)
        return turn.shown([found])[0]

    return work


def jobs(who: Principal, owner: str | None, state: str | None, after: str, limit: int) -> Work:
    """List jobs in order of submission, those behind ``after``."""
    who.must_be("owner", "operator")

    def work(turn: Turn) -> dict[str, Any]:
        wanted = turn.one_or_all(who, owner)
        begin = _own_job(turn, who, after).rows[0] if after else 0
        found = turn.jobs(begin, limit + 1, wanted, state)
        return {"jobs": turn.shown(found[:limit]), "more": len(found) > limit}

    return work


def job(who: Principal, name: str) -> Work:
    """Show a job with its statement of work and all that happened to it."""
    who.must_be("owner", "operator")

    def work(turn: Turn) -> dict[str, Any]:
        found = _own_job(turn, who, name)
        rows = [seen(who, row, turn.cursors) for row in turn.rows(found.rows)]
        history = [row for row in rows if row is not None]
        for row in history:
            row["decisions"] = [each for each in row["decisions"] if each["job"] == name]
        return {**turn.shown([found])[0], "sow": history[0].pop("sow"), "history": history}

    return work


def account(who: Principal, owner: str | None) -> Work:
    """Show a balance."""
    who.must_be("owner", "operator")

    def work(turn: Turn) -> dict[str, Any]:
        return turn.market.accounts.shown(turn.whose(who, owner))

    return work


def ledger(who: Principal, owner: str | None, after: int, limit: int) -> Work:
    """List entries, and the sums: those of the whole market for an operator or a reader."""

    def work(turn: Turn) -> dict[str, Any]:
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

    return work


# -- everybody ----------------------------------------------------------------------------------------------


def market(who: Principal, rounds: int) -> Work:
    """Show the round, the limits, and the prices of the coming rounds."""

    def work(turn: Turn) -> dict[str, Any]:
        return shown_at(market_view(turn.market, turn.last_seq), turn.clock, rounds, who)

    return work


# -- operators ----------------------------------------------------------------------------------------------


def advance(who: Principal, said: Said) -> Work:
    """Clear rounds, with a manual clock."""
    who.must_be("operator")
    rounds = read(Rounds, said).rounds

    def work(turn: Turn) -> dict[str, Any]:
        if turn.clock.kind != "manual":
            raise EventError("rounds end on the clock of this market", legal="a market with a manual clock")
        if rounds > turn.market.rounds_left:
            raise EventError(place="rounds", value=rounds, legal=f"at most {turn.market.rounds_left}, by the horizon")
        rows = [row for _ in range(rounds) for row in turn.clear_round(who.name)]
        return {"round": turn.market.round, "decisions": [each for row in rows for each in row.decisions]}

    return work


def nodes(who: Principal, said: Said) -> Work:
    """Record how many nodes are usable, and the measures taken."""
    who.must_be("operator")
    remark = read(Nodes, said)
    usable, lists = remark.usable, {"held": remark.held, "removed": remark.removed}

    def work(turn: Turn) -> dict[str, Any]:
        capacity = turn.market.config.capacity
        if usable > capacity:
            raise InvalidParameterError(place="usable", value=usable, legal=f"at most {capacity}, the nodes there are")
        for name in (*remark.held, *remark.removed):
            turn.job(name)
        turn.record({"event": "nodes", "usable": usable, **lists}, who.name)
        return {"usable_nodes": usable, "rounds_short_of_nodes": turn.market.short_rounds}

    return work


def create_owner(who: Principal, said: Said) -> Work:
    """Create an account with a token, and perhaps a first deposit."""
    who.must_be("operator")
    asked = read(NewOwner, said)
    if asked.account and asked.share is None:
        raise InvalidParameterError(place="account", value=asked.account, legal="nothing without a share")
    role, limit, deposit_, group = asked.role, said.get("limit"), said.get("deposit", 0), asked.group

    def work(turn: Turn) -> dict[str, Any]:
        accounts = turn.market.accounts
        new = accounts.check_new(asked.owner, role, limit, group)
        more = {key: each for key, each in (("limit", limit), ("group", group)) if each is not None}
        event = {"event": "owner", "owner": new.name, "role": role, **more}
        if deposit_ != 0:
            accounts.check_deposit(deposit_)
        if asked.share is not None:  # first: what is wrong with it is found before anything is changed
            turn.record({"event": "share", "place": f"{asked.account}{new.name}", "share": asked.share}, who.name)
        row = turn.record(event, who.name)
        turn.enter_account(new.name)
        if deposit_ != 0:
            turn.record({"event": "deposit", "owner": new.name, "credits": deposit_}, who.name)
        return {**accounts.shown(accounts.get(new.name)), "token": turn.new_token(new.name, row.seq)}

    return work


def owners(who: Principal) -> Work:
    """List the accounts."""
    who.must_be("operator")

    def work(turn: Turn) -> dict[str, Any]:
        accounts = turn.market.accounts
        return {"owners": [accounts.shown(each) for each in accounts.known.values()]}

    return work


def deposit(who: Principal, owner: str, said: Said) -> Work:
    """Deposit credits."""
    who.must_be("operator")
    read(Deposit, said)

    def work(turn: Turn) -> dict[str, Any]:
        found = turn.market.accounts.get(owner)
        turn.market.accounts.check_deposit(said["credits"])
        turn.record({"event": "deposit", "owner": found.name, "credits": said["credits"]}, who.name)
        return turn.market.accounts.shown(found)

    return work


def renew(who: Principal, owner: str) -> Work:
    """Make a new token for an account; those before it are revoked."""
    if owner != who.name:
        who.must_be("operator")

    def work(turn: Turn) -> dict[str, Any]:
        found = turn.market.accounts.get(owner)
        row = turn.record({"event": "token", "owner": found.name, "action": "new"}, who.name)
        turn.revoke_tokens(found.name, row.seq)
        return {"owner": found.name, "token": turn.new_token(found.name, row.seq)}

    return work


def revoke(who: Principal, owner: str) -> Work:
    """Revoke every token of an account; the last operator's stays."""
    if owner != who.name:
        who.must_be("operator")

    def work(turn: Turn) -> dict[str, Any]:
        found = turn.market.accounts.get(owner)
        if found.role == "operator":
            others = [each.name for each in turn.market.accounts.known.values() if each.role == "operator"]
            if not any(name != owner and turn.has_token(name) for name in others):
                raise EventError(f"owner = {owner!r} is the last operator with a token", legal="another one first")
        row = turn.record({"event": "token", "owner": found.name, "action": "revoke"}, who.name)
        turn.revoke_tokens(found.name, row.seq)
        return {"owner": found.name, "token": None}

    return work


# -- parts --------------------------------------------------------------------------------------------------


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
