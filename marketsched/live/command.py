"""The commands `marketsched live ...`: a market over HTTP, and its client."""

from __future__ import annotations

import gc
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marketsched.live.readable import readable
from marketsched.live.times import in_rounds
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, placed
from marketsched.show.commands.tools import REPORTED, one_line_errors, stop

if TYPE_CHECKING:
    from marketsched.live.client import LiveClient

NEEDED = ("fastapi", "httpx", "prometheus_client", "psycopg", "sqlalchemy", "uvicorn")  # of the extra
MISSING = 2  # exit status: what the commands need is not installed

live_app = typer.Typer(
    help="Serve a market over HTTP, and submit jobs to it.",
    epilog="A client's service and token: --url and MARKETSCHED_TOKEN_FILE (or MARKETSCHED_URL, MARKETSCHED_TOKEN).",
    rich_markup_mode=None,
    no_args_is_help=True,
)

UrlOption = Annotated[
    str | None,
    typer.Option("--url", help="Of the service (default: MARKETSCHED_URL, or port 8765 here).", show_default=False),
]
TokenOption = Annotated[
    Path | None,
    typer.Option("--token-file", help="Holds the token (default: MARKETSCHED_TOKEN_FILE).", show_default=False),
]
OF_ALL = (("url", UrlOption), ("token_file", TokenOption))  # options of every command of a client
DatabaseOption = Annotated[
    str, typer.Option("--db", help="An SQLite file, or a URL such as postgresql://user@host/name.")
]
OwnerOption = Annotated[str | None, typer.Option("--owner", help="For an operator: whose it is.", show_default=False)]
PatienceOption = Annotated[
    str | None,
    typer.Option("--patience", help="Rounds, or such as '2 h', to wait for a start (two-offers).", show_default=False),
]
CheckpointOption = Annotated[
    str | None,
    typer.Option("--checkpoint", help="Rounds, or such as '30 min', after which work is saved.", show_default=False),
]
JobArgument = Annotated[str, typer.Argument(help="As submit printed it.")]
SowArgument = Annotated[Path, typer.Argument(help="Statement of work, YAML or JSON.", show_default=False)]


def client_command(**settings: Any) -> Callable[[Callable[..., None]], None]:
    """Return a decorator that lists a function of a client as a command, which takes the service and token, too."""

    def listed(function: Callable[..., None]) -> None:
        @wraps(function)
        def command(url: str | None, token_file: Path | None, **given: Any) -> None:
            with live_errors(), live_client(url, token_file) as client:
                function(client, **given)

        del function.__annotations__["client"]  # a class of the extra `live`, for type checkers alone
        own = [*signature(function, eval_str=True).parameters.values()][1:]
        of_all = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in OF_ALL]
        taken = [*(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own), *of_all]
        command.__signature__ = Signature(taken)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in taken}
        live_app.command(**settings)(command)

    return listed


@live_app.command()
def serve(
    config: Annotated[
        Path | None,
        typer.Argument(help="Configuration, YAML; may be left out for a market that is there.", show_default=False),
    ] = None,
    db: DatabaseOption = "market.db",
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8765,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="Let --host be no loopback: a reverse proxy alone reaches it, with limits."
        ),
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="A host name under which it is reached, as through a proxy.", show_default=False),
    ] = None,
    operator_token: Annotated[
        Path, typer.Option(help="New file for the first operator's token, of a market that is made.")
    ] = Path("operator.token"),
    new_operator_token: Annotated[
        bool, typer.Option("--new-operator-token", help="Write one more token of the operator to that file.")
    ] = False,
    snapshot_rows: Annotated[
        int, typer.Option(help="Rows of the journal between two snapshots; 0: none.", min=0)
    ] = 10_000,
    snapshot_key: Annotated[
        Path | None,
        typer.Option(
            help="Holds the key that seals snapshots; made if it is not there (default: beside the database).",
            show_default=False,
        ),
    ] = None,
    check_all: Annotated[
        bool, typer.Option("--check-all", help="Play the whole journal first, not what follows the last snapshot.")
    ] = False,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Clear the rounds that ended while no service ran, if they are many.")
    ] = False,
) -> None:
    """Serve a market until it is asked to end (SIGTERM, Ctrl-C)."""
    with live_errors():
        from marketsched.live.service import LiveService  # the extra `live`
        from marketsched.live.serving import LiveServer, ending_signals, listening  # the extra `live`

        logging.basicConfig(format="marketsched: %(message)s", stream=sys.stderr)
        listening(host, port, behind_proxy=behind_proxy).close()  # its faults are said before anything is made
        service = LiveService(
            db,
            config,
            operator_token_file=operator_token,
            snapshot_rows=snapshot_rows,
            check_all=check_all,
            key_file=snapshot_key,
            catch_up=catch_up,
        )
        try:
            if new_operator_token:
                service.write_operator_token(operator_token)
            server = LiveServer(service, host, port, behind_proxy=behind_proxy, hosts=name or ())
        except BaseException:
            service.stop()
            raise
        typer.echo(f"marketsched live: {service.config.name}, round {service.market.round}, {server.url}", err=True)
        # What the market holds stays: many short looks for cycles keep an answer waiting less than a few long ones.
        gc.collect()
        gc.freeze()
        gc.set_threshold(5_000, 10, 1_000)
        server.run()
        for each in ending_signals():  # all is written: one more would end it with words to the contrary
            signal.signal(each, signal.SIG_IGN)


@client_command()
def owner(
    client: LiveClient,
    name: Annotated[str | None, typer.Argument(help="Left out: list all.", show_default=False)] = None,
    role: Annotated[str, typer.Option(help="owner, operator or reader.")] = "owner",
    deposit: Annotated[float, typer.Option(help="Credits.", min=0.0)] = 0.0,
    limit: Annotated[
        float | None,
        typer.Option(help="How far below zero jobs may bring the account (default: 0).", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="New file for the token, which only you can read; else it is printed.", show_default=False),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Related accounts, which count as one owner: any name they share.", show_default=False),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="Of the machine, where credits renew (mechanism: credits).", min=0.0, show_default=False),
    ] = None,
    account: Annotated[
        str, typer.Option(help="That the share is in, such as physics/; left out: the top.", show_default=False)
    ] = "",
    renew: Annotated[bool, typer.Option("--renew", help="Make a new token of one that is there.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke all its tokens.")] = False,
) -> None:
    """Create an owner and print the token. Or deposit to, share with, renew or revoke one that is there."""
    with _token_file(out) as write:
        given = {
            "--deposit": deposit > 0, "--limit": limit is not None, "--group": group is not None,
            "--share": share is not None, "--account": account != "", "--renew": renew, "--revoke": revoke,
            "--out": out is not None, "--role": role != "owner",
        }  # fmt: skip

        def is_there() -> bool:  # asked of operators alone: an owner may renew its own token
            return any(each["owner"] == name for each in client.owners())

        if name is None:
            _only(given, "a list of all accounts")
            for each in client.owners():
                typer.echo(f"{each['owner']:32} {each['role']:8} {each['balance']:16.6f}  {_can_lose(each)}")
        elif revoke:
            _only(given, "--revoke", "--revoke")
            client.revoke(name)
        elif renew:
            _only(given, "--renew", "--renew", "--out")
            write(client.renew(name)["token"])
        elif deposit and is_there():
            _only(given, f"--deposit to {name}, who is there", "--deposit")
            print_answer(client.deposit(name, deposit))
        elif share is not None and is_there():
            _only(given, f"--share of {name}, who is there", "--share", "--account")
            print_answer(client.share(f"{account}{name}", share))
        else:
            made = client.create_owner(
                name, role=role, deposit=deposit, limit=limit, group=group, share=share, account=account or None
            )
            write(made["token"])
            typer.echo(f"{name}: {_can_lose(made)}", err=True)


def _can_lose(account: Mapping[str, Any]) -> str:
    if account["role"] != "owner":
        return ""
    if account["limit"] is None:
        return "no limit on what it can lose"
    return f"can lose at most {account['balance'] + account['limit']:.6g} credits"


def _only(given: Mapping[str, bool], what: str, *legal: str) -> None:
    """Raise InvalidParameterError if options are given that this would not carry out."""
    more = [name for name, there in given.items() if there and name not in legal]
    if more:
        raise InvalidParameterError(
            f"{' and '.join(more)} beside {what}", legal="one after the other, or a new account"
        )


@client_command(no_args_is_help=True)
def quote(
    client: LiveClient,
    sow: SowArgument,
    patience: PatienceOption = None,
    checkpoint: CheckpointOption = None,
    owner: OwnerOption = None,
) -> None:
    """Print what a submission would get now. Plan, prices and failure probabilities; nothing is changed."""
    answer = client.quote(live_statement(sow, client, patience, checkpoint), owner=owner)
    print_answer(answer)
    if "in_words" in answer:
        typer.echo(answer["in_words"])


@client_command(no_args_is_help=True)
def submit(
    client: LiveClient,
    sow: SowArgument,
    name: Annotated[str | None, typer.Option(help="Of the job, behind the owner's.", show_default=False)] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: sent again with it, nothing happens twice.", show_default=False)
    ] = None,
    patience: PatienceOption = None,
    checkpoint: CheckpointOption = None,
    owner: OwnerOption = None,
) -> None:
    """Submit a statement of work; print the job and its plan."""
    print_answer(client.submit(live_statement(sow, client, patience, checkpoint), name=name, owner=owner, key=key))


@client_command(no_args_is_help=True)
def arrive(
    client: LiveClient,
    job: JobArgument,
    signal: Annotated[
        str | None,
        typer.Option(help="What is seen at arrival, as JSON: a duration in rounds, say.", show_default=False),
    ] = None,
    unannounced: Annotated[
        bool, typer.Option("--unannounced", help="Report a signal that was not announced; the job pays the fee.")
    ] = False,
) -> None:
    """Report that a job is ready. Exits with 1 if it is not let in as announced."""
    said = {} if signal is None else {"signal": _signal(signal)}
    if said and not unannounced:
        _check_announced(said["signal"], client.job(job))
    answer = client.arrive(job, **said)
    print_answer(answer)
    if answer["reason"]:
        stop(f"{job}: {answer['reason']}", REPORTED)


@client_command(no_args_is_help=True)
def complete(
    client: LiveClient,
    job: JobArgument,
    outcome: Annotated[str, typer.Option(help="done, failed or node-failed; the last one is not charged.")] = "done",
    exit_code: Annotated[int | None, typer.Option(help="Of its script.", show_default=False)] = None,
) -> None:
    """Report that a running job ended in the round cleared last. For operators."""
    print_answer(client.complete(job, outcome=outcome, exit_code=exit_code))


@client_command(no_args_is_help=True)
def cancel(client: LiveClient, job: JobArgument) -> None:
    """Take a job back. At the no-show fee before it came, at the price of its rounds once it runs."""
    print_answer(client.withdraw(job))


@client_command()
def rounds(
    client: LiveClient,
    count: Annotated[int, typer.Argument(help="How many.", min=1, max=1000)] = 1,
) -> None:
    """Clear rounds of a market with a manual clock. Prints the decisions; for operators."""
    print_answer(client.advance(count))


@client_command()
def status(
    client: LiveClient,
    job: Annotated[str | None, typer.Argument(help="Left out: the market, and your jobs.", show_default=False)] = None,
) -> None:
    """Print the market and the jobs in it, or one job."""
    if job is not None:
        print_answer(client.job(job))
        return
    market = client.market(rounds=12)
    prices = market["prices"]
    typer.echo(f"{market['name']}: round {market['round']}, {market['busy']} of {market['limits']['capacity']} busy")
    typer.echo(f"{market['mechanism']}: {market['promises']}")
    if prices is not None:
        shown = "  ".join("none" if price is None else f"{price:.4g}" for price in prices)
        typer.echo(f"prices from this round on: {shown}")
    for each in client.jobs():
        charge = "" if each["charge"] is None else f"{each['charge']:.6f}"
        why = f"  {each['reason']}" if each["reason"] else ""
        typer.echo(f"{each['job']:40} {each['state']:10} {each['nodes']:6} {charge:>14}{why}")


@client_command()
def ledger(client: LiveClient, owner: OwnerOption = None) -> None:
    """Print balance and entries. Your own, or for an operator the whole market's."""
    after, more = 0, True
    found: dict[str, Any] = {}
    while more:
        found = client.ledger(owner, after=after)
        for each in found["entries"]:
            typer.echo(
                f"{each['time']}  {each['account']:32} {each['credits']:16.6f}  {each['what']} {each['job'] or ''}"
            )
        more = found["more"]
        after = found["entries"][-1]["seq"] if found["entries"] else 0
    for name, credits in found.get("sums", {}).items():
        typer.echo(f"sum {name}: {credits:.6f}")


@live_app.command()
def export(
    db: DatabaseOption = "market.db",
    decisions: Annotated[
        bool, typer.Option("--decisions", help="The decisions instead, as replay prints them.")
    ] = False,
    config: Annotated[bool, typer.Option("--config", help="The configuration instead, for replay.")] = False,
) -> None:
    """Print the journal as the log that `marketsched replay` reads."""
    with live_errors():
        from marketsched.live.playing import export_lines  # the extra `live`

        for line in export_lines(db, "config" if config else "decisions" if decisions else "events"):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()


@live_app.command()
def check(db: DatabaseOption = "market.db") -> None:
    """Play the whole journal of a market, or of a copy. Everything in the database is compared with it."""
    with live_errors():
        from marketsched.live.playing import check_market  # the extra `live`

        played = check_market(db)
        counts = ", ".join(f"{count} of {name}" for name, count in sorted(played.counts.items()))
        typer.echo(f"in order up to round {played.market.round}: rows {counts}")


@contextmanager
def live_errors() -> Iterator[None]:
    """Turn errors into one line; also that the extra is not installed."""
    with one_line_errors():
        try:
            yield
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in NEEDED:
                raise
            stop(f"{error.name} is not installed: expected pip install 'marketsched[live]'", MISSING)


def live_client(url: str | None, token_file: Path | None) -> LiveClient:
    """Return a client with the token in a file, or that of the environment."""
    from marketsched.live.client import LiveClient, token_in  # the extra `live`

    token = None if token_file is None else token_in(token_file)
    return LiveClient(url, token, patience=10.0)


def live_statement(
    path: Path, client: LiveClient, patience: str | None = None, checkpoint: str | None = None
) -> Mapping[str, Any]:
    """Read a statement of work: YAML, of which JSON is a part; its times become rounds of the market.

    ``patience`` and ``checkpoint`` take the place of those that the file states.
    """
    from marketsched.config.strict_yaml import read_yaml  # pydantic, which --help does without

    found = read_yaml(path)
    if not isinstance(found, Mapping):
        raise InvalidReportError(str(path), legal="a table with concurrency, value and requirements, or with shapes")
    if patience is not None:
        found = {**found, "patience": _rounds_or_time(patience)}
    if checkpoint is not None:
        found = {**found, "checkpoint": {"every": _rounds_or_time(checkpoint)}}
    with placed(source=str(path)):
        return in_rounds(found, client.market(rounds=0))


def _rounds_or_time(text: str) -> int | str:
    """Return what stands behind an option: a number of rounds, or a time such as '2 h'."""
    return int(text) if text.isdecimal() else text


@contextmanager
def _token_file(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Give what writes a token: to a new file that only its owner can read, made first, or to standard output."""
    if path is None:
        yield typer.echo
        return
    from marketsched.live.tokens import new_private_file  # not for --help

    with new_private_file(path) as file:
        try:
            yield lambda token: file.write(f"{token}\n")
        finally:
            if not file.tell():
                path.unlink()


def _signal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _check_announced(signal: Any, job: Mapping[str, Any]) -> None:
    """Raise InvalidReportError if a job that has not come announced other signals: it would be dropped for a fee."""
    announced = list(dict.fromkeys(json.dumps(case["signal"]) for case in job["plan"]))
    if job["state"] == "submitted" and announced and json.dumps(signal) not in announced:
        legal = f"as announced, {' or '.join(announced)}; or --unannounced"
        raise InvalidReportError(place="--signal", value=signal, legal=legal)


def print_answer(answer: Mapping[str, Any]) -> None:
    """Print an answer as JSON that fits on a screen."""
    typer.echo(readable(answer))


@client_command(no_args_is_help=True)
def share(
    client: LiveClient,
    place: Annotated[str, typer.Argument(help="An account, physics/, or an owner in it, physics/ann.")],
    number: Annotated[float, typer.Argument(help="Its share, beside those of the same account; 0: none.", min=0.0)],
    new: Annotated[bool, typer.Option("--new", help="The account is not there yet.")] = False,
) -> None:
    """Give an account or an owner another share, where credits renew. Prints the purses; for operators."""
    print_answer(client.share(place, number, new=new))


@client_command()
def purse(client: LiveClient, owner: OwnerOption = None) -> None:
    """Print your purse of credits that renew, your regular jobs, and how soon such jobs start. For operators all."""
    print_answer(client.purse(owner))
