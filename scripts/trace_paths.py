"""Prints how many of the project's functions and files five requests pass through, each counted once.

    python scripts/trace_paths.py [--list] [folder]

`folder` is a checkout, this one without it, so that one script measures before and after. Everything happens in a data
directory that is deleted in the end, over REST and with the model server of the tests. Each path runs six times on
different data, over all threads and tasks; counted is what every run but the first enters, so that neither imports nor what
comes by the clock beside it counts. Modules' and classes' bodies and comprehensions are no functions.
A tool's path begins when the model has named the tool and ends when the model is given its result. `--list` names
what was entered.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOMS = ("apps", "izzysite")
NO_FUNCTIONS = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
RUNS = 5
SETTLE = 1.0  # Seconds after which all that a turn leaves to do is done.
GREETING = 'def run(args: dict) -> str:\n    """Greet."""\n    return f"Hello, {args[\'name\']}!"\n'
NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Whom to greet."}},
    "required": ["name"],
}

Entered = set[tuple[str, str, int]]


class Tracer:
    """Collects the code objects that are entered while `entered` is a set."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entered: Entered | None = None
        self.known: dict[CodeType, str] = {}  # by code its file, "" where that is not counted

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.entered is None or event != "call":
            return
        code = frame.f_code
        # Comprehensions are functions in some versions of Python; bodies of classes run in no namespace of their own.
        if code.co_name in NO_FUNCTIONS or not code.co_flags & CO_NEWLOCALS:
            return
        if code not in self.known:
            file = Path(code.co_filename)
            inside = file.is_relative_to(self.root) and file.relative_to(self.root).parts[0] in ROOMS
            self.known[code] = str(file.relative_to(self.root)) if inside else ""
        if file_name := self.known[code]:
            self.entered.add((file_name, code.co_qualname, code.co_firstlineno))

    @contextmanager
    def counting(self, into: Entered) -> Iterator[None]:
        self.entered = into
        try:
            yield
        finally:
            self.entered = None


class Paths:
    """The five scripted requests; `number` tells one run's data from the others'."""

    def __init__(self, tracer: Tracer, model: Any, token: str) -> None:
        from django.test import AsyncClient

        self.tracer = tracer
        self.model = model
        self.client = AsyncClient()
        self.headers = {"authorization": f"Bearer {token}"}

    async def post(self, path: str, body: object) -> Any:
        """Raises AssertionError for an answer that is no success."""
        answer = await self.client.post(
            f"/api/v1/{path}", data=body, content_type="application/json", headers=self.headers
        )
        assert answer.status_code < 300, answer.content
        return answer.json()

    async def conversation(self, number: int) -> str:
        """A conversation with a title, so that nobody makes one beside what is counted."""
        return str((await self.post("conversations/", {"title": f"Talk {number}"}))["id"])

    async def message(self, number: int, into: Entered) -> None:
        from tests.peers.anthropic_server import reply

        place = await self.conversation(number)
        self.model.add(reply("Good morning."))
        with self.tracer.counting(into):
            answer = await self.post("chat/", {"message": "Good morning", "conversation": place})
            await asyncio.sleep(SETTLE)  # What is written of it comes after the answer.
        assert answer["text"] == "Good morning.", answer

    async def tool(
        self, number: int, into: Entered, words: str, name: str, given: dict[str, Any]
    ) -> Any:
        """A turn in which the model calls one tool; returns the conversation and the recorded call."""
        from tests.peers.anthropic_server import reply, tool

        def call(_: object) -> Any:
            self.tracer.entered = into
            return reply(tool(name, given))

        def close(_: object) -> Any:
            self.tracer.entered = None
            return reply("Done.")

        place = await self.conversation(number)
        self.model.add(call, close)
        answer = await self.post("chat/", {"message": words, "conversation": place})
        await asyncio.sleep(SETTLE)
        (made,) = answer["tool_calls"]
        assert (made["name"], made["is_error"]) == (name, False), made
        return place, made

    async def save(self, number: int, into: Entered) -> None:
        bicycles = f"{number + 7} bicycles stand in the cellar."
        await self.tool(
            number, into, f"My {bicycles}", "memory_save", {"content": f"The user's {bicycles}"}
        )

    async def search(self, number: int, into: Entered) -> None:
        await self.post(
            "memories/", {"content": f"Anna is allergic to {number + 3} kinds of shellfish."}
        )
        with self.tracer.counting(into):
            answer = await self.post("search/", {"query": f"what must Anna not eat {number}"})
        assert answer["results"], answer

    async def capability(self, number: int, into: Entered) -> None:
        if not number:
            await self.post(
                "capabilities/",
                {
                    "name": "greeter",
                    "description": "Greet somebody by name.",
                    "input_schema": NAME,
                    "files": {"main.py": GREETING},
                },
            )
        _, made = await self.tool(number, into, "Greet Ada", "cap_greeter", {"name": "Ada"})
        assert "Hello, Ada!" in str(made), made

    async def purge(self, number: int, into: Entered) -> None:
        """A note that came up in a conversation, with its messages."""
        words = f"The user keeps the key number {number + 40} under the third stair."
        place, _ = await self.tool(number, set(), words, "memory_save", {"content": words})
        answer = await self.client.get("/api/v1/memories/", headers=self.headers)
        note = next(note for note in answer.json()["results"] if note["content"] == words)
        with self.tracer.counting(into):
            receipt = await self.post(f"memories/{note['id']}/purge/", {"redact": True})
        assert receipt["state"] == "done", receipt
        assert [entry["conversation"] for entry in receipt["source_messages"]] == [place], receipt


async def traced(tracer: Tracer, model: Any, token: str) -> dict[str, Entered]:
    paths = Paths(tracer, model, token)
    named: dict[str, Callable[[int, Entered], Awaitable[None]]] = {
        "a chat message": paths.message,
        "memory_save": paths.save,
        "a search": paths.search,
        "a capability call": paths.capability,
        "a purge": paths.purge,
    }
    found: dict[str, Entered] = {}
    for name, path in named.items():
        await path(0, set())
        runs: list[Entered] = [set() for _ in range(RUNS)]
        for number, entered in enumerate(runs, 1):
            await path(number, entered)
        found[name] = set.intersection(*runs)
    return found


def prepare() -> str:
    """Make the tables and a user who may do everything; returns the user's token."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from apps.accounts.models import Preferences, User
    from apps.accounts.services import token_create

    settings.ALLOWED_HOSTS = ["*"]
    call_command("migrate", verbosity=0)
    user = User.objects.create_superuser("alice", password="correct horse battery")
    Preferences.objects.create(user=user)
    return token_create(user=user, name="trace", scopes=["read", "write"])[1]


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent)
    options = parser.parse_args()
    root = options.folder.resolve()
    os.chdir(root)
    sys.path[0] = str(root)
    os.environ["DJANGO_SETTINGS_MODULE"] = (
        "tests.settings"  # Makes the directories for data, and deletes them.
    )
    tracer = Tracer(root)
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    token = prepare()
    from django.conf import settings

    from tests.peers.anthropic_server import AnthropicServer

    with AnthropicServer.in_thread() as model:
        settings.ANTHROPIC_BASE_URL, settings.ANTHROPIC_API_KEY = model.url, "key-for-tests"
        found = asyncio.run(traced(tracer, model, token))
    print(f"{'':20}{'functions':>10}{'files':>7}")
    for name, entered in found.items():
        print(f"{name:20}{len(entered):10}{len({file for file, _, _ in entered}):7}")
        if options.list:
            print(
                *(f"    {file}:{line} {function}" for file, function, line in sorted(entered)), sep="\n"
            )


if __name__ == "__main__":
    main()
