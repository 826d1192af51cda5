"""The commands `marketsched live share` and `purse`: a market whose credits renew."""

from __future__ import annotations

from typing import Annotated

import typer

from marketsched.live.command import (
    OwnerOption,
    TokenOption,
    UrlOption,
    live_app,
    live_client,
    live_errors,
    print_answer,
)


@live_app.command(no_args_is_help=True)
def share(
    place: Annotated[str, typer.Argument(help="An account, physics/, or an owner in it, physics/ann.")],
    number: Annotated[float, typer.Argument(help="Its share, beside those of the same account; 0: none.", min=0.0)],
    new: Annotated[bool, typer.Option("--new", help="The account is not there yet.")] = False,
    url: UrlOption = None,
    token_file: TokenOption = None,
) -> None:
    """Give an account or an owner another share, where credits renew. Prints the purses; for operators."""
    with live_errors(), live_client(url, token_file) as client:
        print_answer(client.share(place, number, new=new))


@live_app.command()
def purse(owner: OwnerOption = None, url: UrlOption = None, token_file: TokenOption = None) -> None:
    """Print your purse of credits that renew, your regular jobs, and how soon such jobs start. For operators all."""
    with live_errors(), live_client(url, token_file) as client:
        print_answer(client.purse(owner))
