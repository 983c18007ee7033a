"""`izzy hook`: what hooks of coding agents run, and installing them."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from izzy_cli.config import present
from izzy_cli.errors import Exit, Problem, missing
from izzy_cli.hooks import run
from izzy_cli.hooks.changes import Change, installed, installing, removing, write
from izzy_cli.hooks.clients import CLIENTS, TOKEN_VARIABLE, HookClient, Place, Setup
from izzy_cli.options import yes_option
from izzy_cli.output import is_terminal, note, plain, say, somebody_is_there, styled

CLIENT = click.Choice(list(CLIENTS))
COLOURS = {"+": "green", "-": "red", "@": "dim"}


class HookGroup(click.Group):
    """The sub-commands, and one for each client, which its hook runs."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in CLIENTS:
            return click.Command(cmd_name, callback=lambda: _run(cmd_name), help=_run.__doc__)
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=HookGroup, subcommand_metavar="COMMAND|CLIENT", epilog=f"Clients: {', '.join(CLIENTS)}."
)
def hook() -> None:
    """Install Izzy into the hooks of coding agents.

    `izzy hook CLIENT` is what an installed hook runs: it takes the client's event on standard input.
    """


def _run(client: str) -> int:
    """Pass an event from standard input to the server, and its answer to standard output. Always ends with exit code 0."""
    if is_terminal(sys.stdin):
        raise missing(
            f"This is for {CLIENTS[client].title}, which gives it an event. You may mean: install"
        )
    return run.main(client)


project_option = click.option(
    "--project", is_flag=True, help="For this folder's project alone, not for all of yours."
)


@hook.command()
@click.argument("client", type=CLIENT)
@project_option
@click.option("--mcp", is_flag=True, help="Add Izzy's MCP server too.")
@click.option(
    "--http/--command",
    default=None,
    help=f"Claude Code alone: call the server over HTTP (the default where {TOKEN_VARIABLE} is set), or run izzy.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@yes_option
def install(client: str, project: bool, mcp: bool, http: bool | None, dry_run: bool, yes: bool) -> None:
    """Put Izzy's hooks into a client's settings; shows the changes and asks first.

    Everything else in the settings stays as it is, and a copy of each file is kept beside it.
    """
    account = present()
    chosen, place = _place(client, project)
    over_http = client == "claude-code" and (
        bool(os.environ.get(TOKEN_VARIABLE)) if http is None else http
    )
    changes = installing(chosen, place, Setup(account.url, http=over_http), mcp=mcp)
    if not _carry_out(changes, yes=yes, dry_run=dry_run, nothing="It is installed already."):
        return
    note(chosen.note)
    if (over_http or mcp) and not os.environ.get(TOKEN_VARIABLE):
        note(f"{chosen.title} needs the token in its environment as {TOKEN_VARIABLE}.")
    note("Whether each hook works says: izzy doctor")


@hook.command()
@click.argument("client", type=CLIENT)
@project_option
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@yes_option
def remove(client: str, project: bool, dry_run: bool, yes: bool) -> None:
    """Take Izzy's hooks and MCP server out of a client's settings, and nothing else."""
    chosen, place = _place(client, project)
    changes = removing(chosen, place)
    _carry_out(changes, yes=yes, dry_run=dry_run, nothing="It is not installed.")


@hook.command()
@click.argument("client", type=CLIENT, required=False)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(client: str | None, as_json: bool) -> None:
    """Show what is installed, for you and for this folder's project."""
    rows = [
        _status(CLIENTS[name], level, place)
        for name in ([client] if client else CLIENTS)
        for level, place in CLIENTS[name].places().items()
    ]
    if as_json:
        say(json.dumps({"clients": rows}))
        return
    for row in rows:
        what = _described(row)
        say(f"{row['title']}, {row['level']}: {what}")
        if row["hooks"] or row["mcp"]:
            say(f"  {plain(row['file'])}")


def _status(client: HookClient, level: str, place: Place) -> dict[str, Any]:
    found = installed(client, place)
    absent = [event for event in client.events if event not in found.hooks] if found.hooks else []
    return {
        "client": client.name,
        "title": client.title,
        "level": level,
        "file": str(found.file),
        "hooks": {
            event: "http" if entry.get("type") == "http" else "command"
            for event, entry in found.hooks.items()
        },
        "missing": absent,
        "mcp": found.mcp,
    }


def _described(row: dict[str, Any]) -> str:
    parts = []
    if row["hooks"]:
        parts.append(f"hooks for {', '.join(row['hooks'])}")
    if row["missing"]:
        parts.append(f"without {', '.join(row['missing'])} (install again)")
    if row["mcp"]:
        parts.append("MCP server")
    return "; ".join(parts) or "nothing"


def _place(client: str, project: bool) -> tuple[HookClient, Place]:
    chosen = CLIENTS[client]
    return chosen, chosen.project(Path.cwd()) if project else chosen.user()


def _carry_out(changes: list[Change], *, yes: bool, dry_run: bool, nothing: str) -> bool:
    """Shows the changes, asks, writes; whether anything was written."""
    if not changes:
        say(nothing)
        return False
    for change in changes:
        for line in change.diff():
            style = COLOURS.get(line[:1], "")
            say(styled(plain(line), style) if style else plain(line))
    if dry_run:
        return False
    if not yes:
        if not somebody_is_there():
            raise missing("Nobody is there to be asked, so nothing was written; add --yes.")
        if not click.confirm("Write this?", err=True):
            raise Problem("Nothing was written.", Exit.FAILURE)
    for copy in write(changes):
        note(f"What was there before is kept in {copy}.")
    for change in changes:
        say(f"{'Deleted' if change.new is None else 'Written'}: {change.file}")
    return True
