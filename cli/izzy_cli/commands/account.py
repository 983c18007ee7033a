"""Signing in and out, and who is signed in."""

import sys
from contextlib import suppress
from typing import Any

import click

from izzy_cli import config
from izzy_cli.client import Answer, Client, connect
from izzy_cli.config import Account
from izzy_cli.errors import Exit, Problem, missing
from izzy_cli.options import decoded, json_option
from izzy_cli.output import moment, note, plain, say, say_json, somebody_is_there

DEFAULT_URL = "http://127.0.0.1:8000"


@click.command()
@click.argument("url", required=False)
@click.option("--url", "address", metavar="URL", help="The same as the argument.")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input.")
@json_option
def login(url: str | None, address: str | None, token_stdin: bool, as_json: bool) -> None:
    """Sign in to an Izzy server with an API token.

    The token comes from Settings → API tokens, or from `manage.py createtoken USER`. It is checked and then kept in
    ~/.config/izzy/config.toml, which only you can read.
    """
    asks = somebody_is_there()
    url = url or address
    if url is None:
        known = _known_url()
        url = click.prompt("Server", default=known, err=True) if asks and not token_stdin else known
    address = config.clean_url(url)
    if token_stdin:
        token = decoded(sys.stdin.buffer.read(), "The token")
    elif asks:
        token = click.prompt("API token (not shown)", hide_input=True, err=True)
    else:
        raise missing("Nobody is there to be asked; pipe the token in: izzy login URL --token-stdin")
    account = Account(address, config.clean_token(token))
    if config.is_in_the_clear(address):
        note(f"Whoever is between here and {address} can read the token: use https where you can.")
    answer = who(Client(account))
    file = config.save(account)
    if as_json:
        say_json(answer.content)
        return
    say(f"Signed in to {address} as {plain(answer.value['user']['username'])}. Saved in {file}.")


def _known_url() -> str:
    with suppress(Problem):  # a configuration that cannot be read is about to be written anew
        return config.saved().url or DEFAULT_URL
    return DEFAULT_URL


def who(client: Client) -> Answer:
    """`GET /me/`: the user, the token and the server's version."""
    try:
        answer = client.get("me/")
        _ = answer.value["user"]["username"], answer.value["version"]
    except (KeyError, TypeError, ValueError):
        message = f"What answers at {client.url} is not Izzy. Check the address: izzy login"
        raise Problem(message, Exit.UNREACHABLE) from None
    return answer


@click.command()
def logout() -> None:
    """Forget the server and the token.

    The token itself stays valid: revoke it under Settings → API tokens.
    """
    file = config.config_file()
    say(f"Signed out: {file} is deleted." if config.forget() else "You were not signed in.")


@click.command()
@json_option
def status(as_json: bool) -> None:
    """Show which server, who you are there, and what the token may do."""
    client = connect()
    answer = who(client)
    if as_json:
        say_json(answer.content)
        return
    say(f"Server   {client.url} (Izzy {plain(answer.value['version'])})")
    say(f"User     {plain(answer.value['user']['username'])}")
    say(f"Token    {token_line(answer.value['token'])}")


def token_line(token: dict[str, Any] | None) -> str:
    """A token's name, scopes and end."""
    if token is None:
        return "none"
    until = f", until {moment(token['expires_at'])}" if token["expires_at"] else ""
    return f"{plain(token['name'])} ({', '.join(token['scopes'])}{until})"
