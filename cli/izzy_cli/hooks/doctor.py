"""Whether installed hooks work: each is run as its client would, since they fail without a word."""

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from izzy_cli.checks import Check
from izzy_cli.client import Client
from izzy_cli.errors import Problem
from izzy_cli.hooks.changes import installed
from izzy_cli.hooks.clients import CLIENTS, Entry, HookClient
from izzy_cli.hooks.run import NoRedirect

SECONDS = 10
SLOW_SECONDS = 2.0
SESSION = "izzy doctor"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")

SAMPLE = {
    "session_id": SESSION,
    "conversation_id": SESSION,
    "cwd": ".",
    "transcript_path": None,
    "source": "clear",
    "prompt": "/izzy-doctor",
    "prompt_response": "",
    "last_assistant_message": "",
    "text": "",
    "trigger": "manual",
    "reason": "other",
    "status": "completed",
}
"""An event that shows standing notes at a start, and of which nothing is kept: a command alone, and no answer."""


def checks(client: Client) -> Iterator[Check]:
    """A check for each event that a hook of Izzy's is installed for."""
    for each in CLIENTS.values():
        for level, place in each.places().items():
            try:
                found = installed(each, place)
            except Problem as problem:
                yield Check(f"{each.title} hooks ({level})", False, problem.message)
                continue
            for event, entry in found.hooks.items():
                yield _check(each, level, event, entry)
            absent = [event for event in each.events if event not in found.hooks]
            if found.hooks and absent:
                message = f"Nothing is installed for {', '.join(absent)}."
                yield Check(
                    f"{each.title} hooks ({level})",
                    False,
                    message,
                    f"Run: izzy hook install {each.name}",
                )


def _check(client: HookClient, level: str, event: str, entry: Entry) -> Check:
    name = f"{client.title} {event} ({level})"
    sample = json.dumps({**SAMPLE, "hook_event_name": event}).encode()
    started = time.monotonic()
    try:
        answer = _called(entry, sample) if entry.get("type") == "http" else _commanded(entry, sample)
    except Problem as problem:
        return Check(name, False, problem.message, f"Run: izzy hook install {client.name}")
    seconds = time.monotonic() - started
    message = f"{_described(answer)}, in {seconds * 1000:.0f} ms."
    if seconds > SLOW_SECONDS:
        hint = "The client waits for it at each prompt; is the server busy or far away?"
        return Check(name, False, message, hint, optional=True)
    return Check(name, True, message)


def _commanded(entry: Entry, sample: bytes) -> dict[str, Any]:
    """Runs the command as clients do: in a shell, with the event on its standard input."""
    try:
        done = subprocess.run(  # noqa: S602  clients run it so; it is in the person's own settings
            str(entry["command"]),
            shell=True,
            input=sample,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Problem(f"It took longer than {SECONDS} seconds.") from None
    said = " ".join(done.stderr.decode(errors="replace").split())[:300]
    if done.returncode:
        raise Problem(f"It ended with exit code {done.returncode}: {said or 'no reason given'}")
    if not done.stdout.strip():
        raise Problem(said or "It said nothing.")
    return _answer(done.stdout)


def _called(entry: Entry, sample: bytes) -> dict[str, Any]:
    """Calls the address as Claude Code does, with the variables that the hook names."""
    allowed = [str(name) for name in entry.get("allowedEnvVars", [])]
    absent = [name for name in allowed if not os.environ.get(name)]
    if absent:
        raise Problem(f"{', '.join(absent)} is not set here; Claude Code must be started where it is.")
    headers = {
        str(name): _filled(str(value), allowed) for name, value in dict(entry.get("headers", {})).items()
    }
    headers["Content-Type"] = "application/json"
    url = str(entry["url"])
    if not url.startswith(("http://", "https://")):
        raise Problem(f"{url} is not the address of a server.")
    request = urllib.request.Request(url, data=sample, headers=headers, method="POST")  # noqa: S310  checked above
    try:
        with urllib.request.build_opener(NoRedirect()).open(request, timeout=SECONDS) as response:
            return _answer(response.read())
    except urllib.error.HTTPError as error:
        raise Problem(f"{url} answered {error.code}.") from None
    except OSError as error:
        raise Problem(f"{url} does not answer: {getattr(error, 'reason', error)}") from None


def _filled(value: str, allowed: list[str]) -> str:
    def given(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return os.environ.get(name, "") if name in allowed else ""

    return _VARIABLE.sub(given, value)


def _answer(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Problem("Its answer is not a JSON object; the client throws it away.")
    return answer


def _described(answer: Mapping[str, Any]) -> str:
    own = answer.get("hookSpecificOutput") or {}
    context = str(own.get("additionalContext") or answer.get("additional_context") or "")
    lines = sum(line.startswith("- ") for line in context.splitlines())
    if lines:
        return f"Works: {lines} standing note{'' if lines == 1 else 's'} came back"
    return "Works: it had nothing to say"
