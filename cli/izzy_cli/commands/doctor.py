"""Whether all that the command line needs is there."""

import json
import os
import stat
from collections.abc import Iterator

import click

from izzy_cli import __version__, config
from izzy_cli.checks import Check, provided
from izzy_cli.client import Client
from izzy_cli.commands.account import token_line, who
from izzy_cli.config import Account
from izzy_cli.errors import Exit, Problem
from izzy_cli.output import plain, say, styled


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> None:
    """Check the server, the token, and what is installed into other programs.

    The exit code is 1 where something does not work.
    """
    found = []
    for check in _checks():
        found.append(check)
        if not as_json:
            _show(check)
    failed = [check for check in found if not check.ok and not check.optional]
    if as_json:
        say(json.dumps({"ok": not failed, "checks": [check.to_json() for check in found]}))
    if failed:
        raise Problem(f"{len(failed)} of {len(found)} checks failed.", Exit.FAILURE)


def _show(check: Check) -> None:
    sign, style = ("✓", "green") if check.ok else ("–", "dim") if check.optional else ("✗", "red")
    say(f"{styled(sign, style)} {check.name}: {plain(check.message, one_line=True)}")
    if check.hint and not check.ok:
        say(f"  {plain(check.hint, one_line=True)}")


def _checks() -> Iterator[Check]:
    """In an order in which each needs those before it; it ends where nothing more can be found out."""
    yield from _configuration()
    try:
        account = config.present()
    except Problem as problem:
        yield Check("account", False, problem.message, "Run: izzy login")
        return
    client = Client(account)
    yield from _server(client, account)


def _configuration() -> Iterator[Check]:
    file = config.config_file()
    if not file.exists():
        where = "IZZY_URL and IZZY_TOKEN" if os.environ.get("IZZY_TOKEN") else "nowhere"
        yield Check("configuration", True, f"There is no {file}; the account comes from {where}.")
        return
    is_open = os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077
    if is_open:
        yield Check("configuration", False, f"Others can read {file}.", f"Run: chmod 600 {file}")
    else:
        yield Check("configuration", True, f"{file}, which only you can read.")


def _server(client: Client, account: Account) -> Iterator[Check]:
    if config.is_in_the_clear(account.url):
        message = f"{account.url} is not encrypted; whoever is between can read the token."
        yield Check("encryption", False, message, "Use https://.", optional=True)
    try:
        health = client.probe("/healthz")
    except Problem as problem:
        yield Check("server", False, problem.message, "Is the address right? izzy login")
        return
    if health.status != 200:
        yield Check("server", False, f"{account.url} answers {health.status}.", "See the server's log.")
        return
    try:
        me = who(client).value
    except Problem as problem:
        yield Check("server", True, f"{account.url} answers.")
        yield Check(
            "token", False, problem.message, "Make one under Settings → API tokens, then: izzy login"
        )
        return
    same = me["version"] == __version__
    versions = f"Izzy {me['version']}" + ("" if same else f", this command line is {__version__}")
    yield Check("server", True, f"{account.url} answers ({versions}).")
    yield _token(me)
    yield _health(client)
    yield from provided(client)


def _token(me: dict[str, object]) -> Check:
    token = me["token"]
    user = me["user"]
    if not isinstance(token, dict) or not isinstance(user, dict):
        return Check("token", False, "The server knows no token.", "Run: izzy login")
    line = f"{token_line(token)} of {user['username']}"
    if not {"write", "admin"} & set(token["scopes"]):
        hint = "Saving, talking and running need the scope write."
        return Check("token", False, f"{line}: it may only read.", hint, optional=True)
    return Check("token", True, f"{line}.")


def _health(client: Client) -> Check:
    """The server's parts, as `/readyz` tells of them."""
    try:
        answer = client.probe("/readyz")
        parts = answer.value["checks"]
    except (Problem, ValueError, KeyError, TypeError):
        return Check("health", False, "The server does not say how it is.", "See the server's log.")
    broken = sorted(name for name, is_whole in parts.items() if not is_whole)
    if broken:
        hint = "On the server, manage.py doctor says more."
        return Check("health", False, f"Broken: {', '.join(broken)}.", hint)
    return Check("health", True, f"{len(parts)} parts are whole.")
