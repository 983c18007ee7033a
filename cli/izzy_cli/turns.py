"""A turn of a conversation: its events as text, what it asks, and stopping it."""

import json
import sys
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import click

from izzy_cli.client import Client
from izzy_cli.errors import ConnectionLost, Exit, Problem
from izzy_cli.output import cut, exact, is_terminal, note, plain, say, somebody_is_there, styled, width
from izzy_cli.patience import Patience

Event = dict[str, Any]

LAST = frozenset({"response", "turn_stopped", "error"})
DECISIONS = {"y": "allow", "n": "decline", "c": "conversation", "a": "always"}


class Printer:
    """Writes a turn: the answer to standard output, all about it to standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._in_line = False  # whether the answer stands in the middle of a line

    def show(self, event: Event) -> None:
        """One event; those that say nothing to people are left out."""
        kind = event["type"]
        if kind == "text_delta":
            text = plain(event["text"])
            sys.stdout.write(text)
            sys.stdout.flush()
            self._in_line = not text.endswith("\n") if text else self._in_line
        elif kind == "response":
            self.end_line()
            if event.get("notice"):
                self.aside(str(event["notice"]["message"]))
        elif line := _line(event):
            self.aside(line)

    def end_line(self) -> None:
        """The answer, or this part of it, is over."""
        if self._in_line:
            say()
            self._in_line = False

    def aside(self, text: str) -> None:
        """A line about the turn."""
        if self.quiet:
            return
        if is_terminal(sys.stdout):
            self.end_line()
        note(styled(cut(text, max(20, width() - 1)), "dim", sys.stderr))


def _line(event: Event) -> str:
    """An event's message about the turn, "" for nothing."""
    match event["type"]:
        case "memory_context" if count := len(event["items"]):
            return f"· {count} {'note' if count == 1 else 'notes'} came up"
        case "tool_start":
            return f"→ {event['name']} {json.dumps(event['input'], ensure_ascii=False)}"
        case "tool_progress":
            return "  " + " ".join(str(value) for value in event["data"].values())
        case "tool_result" if event["is_error"]:
            return f"✗ {event['name']}: {event['result']}"
        case "tool_result":
            return f"✓ {event['name']} ({event['duration_ms']} ms)"
        case "model_retry":
            return f"· {event['message']}"
        case "build":
            payload = event["message"].get("payload", {})
            said = payload.get("text") or event["message"].get("type", "")
            return f"· build: {said}"
    return ""


class Talk:
    """A conversation, new where it has no id yet."""

    def __init__(
        self, client: Client, printer: Printer, conversation: str | None, *, use_memory: bool = True
    ) -> None:
        self.client, self.printer = client, printer
        self.conversation = conversation
        self.use_memory = use_memory
        self._said: dict[str, Any] | None = None

    def say(self, message: str) -> None:
        """Send a message and follow its turn to its end.

        Raises Problem: WAITING where it asks something and nobody is there, INTERRUPTED where Ctrl-C stopped it.
        """
        body: dict[str, Any] = {"message": message, "client_id": uuid4().hex, "stream": True}
        if self.conversation:
            body["conversation"] = self.conversation
        elif not self.use_memory:
            body["use_memory"] = False
        self._said = body
        self._until_done(self._follow("chat/", body))

    def answer(self, text: str, call: str | None = None) -> None:
        """Answer what the conversation asks, and follow its turn."""
        self._until_done(self._decide("answer", {"text": text}, call))

    def decide(self, decision: str, call: str | None = None) -> None:
        """Allow or decline the call that the conversation waits with, and follow its turn."""
        self._until_done(self._decide("approve", {"decision": decision}, call))

    def _decide(self, what: str, body: dict[str, Any], call: str | None) -> Event:
        sent = {**body, "stream": True, **({"id": call} if call else {})}
        return self._follow(f"conversations/{self.conversation}/{what}/", sent)

    def _until_done(self, last: Event) -> None:
        """Ask the person as long as the turn asks."""
        while True:
            question: Event = last.get("pending_question") or {}
            approval: Event = last.get("pending_approval") or {}
            if not question and not approval:
                return
            if not somebody_is_there():
                raise Problem(waiting_line(str(self.conversation), question, approval), Exit.WAITING)
            try:
                if question:
                    last = self._decide("answer", {"text": _asked(question)}, question["id"])
                else:
                    last = self._decide("approve", {"decision": _allowed(approval)}, approval["id"])
            except click.Abort:
                raise Problem(
                    waiting_line(str(self.conversation), question, approval), Exit.WAITING
                ) from None

    def _follow(self, path: str, body: dict[str, Any]) -> Event:
        """The event that ends the stream. Where the connection breaks, it is taken up again where it broke."""
        patience, seen = Patience(self._away), 0
        try:
            while True:
                try:
                    with self.client.events("POST", path, body) as events:
                        patience.answered()
                        for answer in events:
                            event: Event = answer.value
                            self.conversation = event.get("conversation") or self.conversation
                            if event["type"] in LAST:
                                return self._ended(event)
                            if event.get("seq", 0) > seen:
                                seen = event["seq"]
                                patience.came()
                                self.printer.show(event)
                    raise ConnectionLost("The answer ended before its end.")
                except Problem as problem:
                    path, body = self._again(path, body, problem, patience)
        except KeyboardInterrupt:
            self.printer.end_line()
            try:
                self._stop(path, body)
            except Problem as problem:
                raise Problem(f"Not stopped: {problem.message}", Exit.INTERRUPTED) from None
            raise Problem("Stopped.", Exit.INTERRUPTED) from None

    def _again(
        self, path: str, body: dict[str, Any], problem: Problem, patience: Patience
    ) -> tuple[str, dict[str, Any]]:
        """The request that goes on after a connection broke: the message once more, which has a client_id so that it is not said twice."""
        try:
            if path != "chat/" and not (self._said and isinstance(problem, ConnectionLost)):
                raise problem
            patience.wait(problem)
        except Problem:
            self.printer.end_line()
            begun = patience.waited or isinstance(problem, ConnectionLost)
            if begun and problem.exit_code == Exit.UNREACHABLE and self.conversation:
                problem.message += (
                    f" The turn goes on without you; see: izzy chat -c {self.conversation}"
                )
            raise
        return "chat/", self._said or body

    def _away(self, text: str) -> None:
        self.printer.end_line()
        self.printer.aside(text)

    def _ended(self, event: Event) -> Event:
        self.printer.show(event)
        self.printer.end_line()
        if event["type"] == "error":
            raise Problem(str(event["message"]), code=str(event["code"]))
        if event["type"] == "turn_stopped":
            raise Problem("Stopped.", Exit.INTERRUPTED)
        return event

    def _stop(self, path: str, body: dict[str, Any]) -> None:
        if self.conversation is None:  # it was not even known yet which one it became
            with self.client.events("POST", path, body) as events:
                for answer in events:
                    self.conversation = answer.value.get("conversation")
                    break
        self.client.post(f"conversations/{self.conversation}/stop/", {})


def _asked(question: Mapping[str, Any]) -> str:
    if question.get("reason"):
        note(plain(question["reason"]))
    note(plain(question["text"]))
    return str(click.prompt("Your answer", err=True))


def _allowed(approval: Mapping[str, Any]) -> str:
    """The person's decision about a call, among those that the server takes for it."""
    note(f"Izzy wants to run {plain(approval['name'])} with")
    note(exact(approval["input"]))
    if approval.get("reason"):
        note(plain(approval["reason"]))
    for name in ("permission", "reach"):
        if approval.get(name):
            note(f"{name}: {plain(json.dumps(approval[name], ensure_ascii=False))}")
    choices = "[y]es, [n]o"
    keys = "yn"
    if approval.get("reach"):
        choices, keys = f"{choices}, yes in this [c]onversation", keys + "c"
    if approval.get("reach") or approval.get("always"):
        choices, keys = f"{choices}, [a]lways", keys + "a"
    while True:
        key = str(click.prompt(choices, err=True)).strip().lower()[:1]
        if key and key in keys:
            return DECISIONS[key]


def waiting_line(
    conversation: str, question: Mapping[str, Any] | None, approval: Mapping[str, Any] | None
) -> str:
    """The thing a turn waits for, and the command that goes on with it."""
    again = f"izzy chat -c {conversation}"
    if question:
        return f"Izzy asks: {question['text']} Answer with: {again} --answer TEXT"
    wanted = approval or {}
    given = json.dumps(wanted.get("input"), ensure_ascii=False)
    call = f"{wanted.get('name')} with {cut(given, 200)}"
    return f"Izzy asks whether it may run {call}. Decide with: {again} --approve allow (or decline)"
