"""The command that a client's hook runs: its event goes to the server as it is, and the answer to standard output as it is.

It fails open: whatever goes wrong is a line on standard error, and the client goes on as without it. Only the standard library
is loaded, since the client waits.
"""

import json
import os
import sys
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import IO
from urllib.parse import urlsplit

from izzy_cli import __version__
from izzy_cli.config import API, LOOPBACK, Account, clean_url, present
from izzy_cli.errors import Problem

SECONDS = 3.0
MAX_BYTES = 10_000_000
CLIENTS = ("claude-code", "codex", "gemini-cli", "cursor")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to no other address."""

    def redirect_request(
        self, req: object, fp: object, code: object, msg: object, headers: object, newurl: object
    ) -> None:
        return None


def main(client: str, seconds: float = SECONDS) -> int:
    """Runs one hook; always 0. It takes no longer than so many seconds, reading included."""
    source = _own(sys.stdin.buffer)
    answers: list[bytes] = []
    troubles: list[str] = []

    def work() -> None:
        try:
            answers.append(answer_of(client, source.read(MAX_BYTES + 1), seconds))
        except Problem as problem:
            troubles.append(problem.message)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if answers:
        sys.stdout.buffer.write(answers[0])
        sys.stdout.buffer.flush()
    else:
        trouble = troubles[0] if troubles else _late(seconds)
        print(f"izzy hook {client}: {trouble}", file=sys.stderr, flush=True)
    return 0


def _own(source: IO[bytes]) -> IO[bytes]:
    """A buffer of our own over the same input: where its end never comes, the one of `sys.stdin` would abort the process as it
    ends, as the thread that reads holds its lock."""
    try:
        return open(source.fileno(), "rb", closefd=False)
    except OSError:  # it is no file of the system's
        return source


def answer_of(client: str, event: bytes, seconds: float) -> bytes:
    """The server's answer to an event, a JSON object. Raises Problem."""
    if len(event) > MAX_BYTES:
        raise Problem(f"The event has more than {MAX_BYTES:,} bytes.")
    account = account_of_hook()
    url = f"{account.url}{API}/hooks/{client}/"
    headers = {
        "Authorization": f"Bearer {account.token}",
        "Content-Type": "application/json",
        "User-Agent": f"izzy-cli/{__version__}",
    }
    request = urllib.request.Request(url, data=event, headers=headers, method="POST")  # noqa: S310  clean_url takes http alone
    handlers: list[urllib.request.BaseHandler] = [NoRedirect()]
    if urlsplit(url).hostname in LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(request, timeout=seconds) as response:
            answer: bytes = response.read(MAX_BYTES)
    except urllib.error.HTTPError as error:
        raise Problem(f"{account.url} answered {error.code}: {_said(error.read(100_000))}") from None
    except TimeoutError:
        raise Problem(_late(seconds)) from None
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise Problem(f"Izzy does not answer at {account.url}: {reason}") from None
    try:
        if not isinstance(json.loads(answer), dict):
            raise ValueError
    except ValueError:
        raise Problem(f"What answers at {account.url} is not Izzy.") from None
    return answer


def account_of_hook() -> Account:
    """The account that the plugin of Claude Code was given, else the account of the command line."""
    url = os.environ.get("CLAUDE_PLUGIN_OPTION_URL", "").strip()
    token = os.environ.get("CLAUDE_PLUGIN_OPTION_TOKEN", "").strip()
    return Account(clean_url(url), token) if url and token else present()


def _late(seconds: float) -> str:
    return f"Izzy did not answer within {seconds:.0f} seconds."


def _said(body: bytes) -> str:
    """The sentence of an error, on one line."""
    try:
        message = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        message = "no reason given"
    return " ".join(message.split())[:300]
