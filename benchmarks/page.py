"""Measures what the chat page holds over many turns, and how it opens and types in a very long conversation, in Chromium.

A model server of the benchmark's own answers; heap, nodes and listeners are counted after the browser has collected its garbage.
Opening and typing stand beside the same in a conversation of 20 messages, in the same run. What is compared is processor time: of
the server, and of the page's own thread for script, style and layout.
"""

import asyncio
import os
import subprocess
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.accounts.models import User
from apps.chat.models import Conversation, Message, Role, Turn, TurnStatus
from apps.core.text import canonical_json
from benchmarks._chats import PIECES, PROSE, Pace
from benchmarks._network import WebProcess, environment_of, model_server, web_process
from benchmarks._scratch import database_environment, make_user, scratch_database
from benchmarks.report import Report, Timing

TURNS = 200
MESSAGES = 2_000
FEW = 20
KEYS = 20
OPENED = 12
TYPINGS = 5
GROWTH = 1.5
CHROMIUM = os.environ.get("IZZY_TEST_CHROMIUM", "/usr/bin/chromium")
COUNTED = ("JSHeapUsedSize", "Nodes", "JSEventListeners")
WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
LET_IN = """
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from apps.accounts.models import User
user, session = User.objects.get(), SessionStore()
session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), settings.AUTHENTICATION_BACKENDS[0]
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.save()
print(session.session_key)
"""
TYPED = """(count) => (async () => {
  const field = document.getElementById("message");
  for (let key = 0; key < count; key += 1) {
    field.setRangeText("x", field.value.length, field.value.length, "end");
    field.dispatchEvent(new InputEvent("input", { bubbles: true, data: "x" }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }
})()"""
"""Keys, each with the second frame after it, which has what it changed on the screen."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help="turns of one page")


def run(options: dict[str, Any]) -> Report:
    from playwright.sync_api import sync_playwright

    turns = options["turns"]
    report = Report("page", settings={"turns": turns, "messages": MESSAGES})
    with scratch_database() as path:
        user = make_user("alice")
        small, large = _conversation(user, FEW), _conversation(user, MESSAGES)
        session = _session(path.parent)
        with (
            _model() as model,
            web_process(path.parent, **_beside(path.parent, model)) as web,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            url = f"http://127.0.0.1:{web.port}"
            cookie: Any = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": url}
            context = browser.new_context(storage_state={"cookies": [cookie], "origins": []})
            page = context.new_page()
            try:
                _compare(report, context, web, small, large)
                _hold(report, page, url, turns)
            finally:
                browser.close()
    return report


def _hold(report: Report, page: Any, url: str, turns: int) -> None:
    counts = page.context.new_cdp_session(page)
    counts.send("Performance.enable")
    page.goto(url)
    page.wait_for_selector("#composer[data-ready]")
    section = report.section(
        "one page over its turns", ["turn", "heap MB", "nodes", "listeners", "turns shown"]
    )
    marks = [mark for mark in (20, 100, 200, 400) if mark <= turns]
    found: dict[int, dict[str, float]] = {}
    for number in range(1, turns + 1):
        page.fill("#message", f"Question {number} about the garden")
        page.press("#message", "Enter")
        page.wait_for_function(
            "(text) => [...document.querySelectorAll('.turn')].some((turn) => turn.dataset.state === 'done'"
            " && turn.querySelector('.bubble')?.textContent.trim() === text)",
            arg=f"Question {number} about the garden",
            timeout=60_000,
        )
        if number in marks:
            counts.send("HeapProfiler.collectGarbage")
            metrics = counts.send("Performance.getMetrics")["metrics"]
            found[number] = {each["name"]: each["value"] for each in metrics if each["name"] in COUNTED}
            heap, nodes, listeners = (found[number][name] for name in COUNTED)
            section.add(number, heap / 1e6, int(nodes), int(listeners), page.locator(".turn").count())
    first, last = found[marks[-2]], found[marks[-1]]
    for name in COUNTED:
        growth = last[name] / first[name]
        aim = f"{name} at turn {marks[-1]} at most {GROWTH} × that at {marks[-2]} ({growth:.2f} ×)"
        report.aims[aim] = growth <= GROWTH


class Opened:
    """A page of its own, and what it and the server spend on it."""

    def __init__(self, context: Any, url: str, server: int) -> None:
        self.page, self.url, self.server = context.new_page(), url, server
        self.devtools = context.new_cdp_session(self.page)
        self.devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def open(self, place: UUID) -> None:
        self.page.goto(f"{self.url}/c/{place}/")
        self.page.wait_for_selector("#composer[data-ready]")
        self.page.wait_for_load_state("networkidle")

    def of_server(self) -> float:
        """Milliseconds of processor time until now."""
        threads = Path(f"/proc/{self.server}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in threads) / 1e6

    def of_page(self) -> float:
        """Milliseconds of its thread for script, style and layout."""
        metrics = self.devtools.send("Performance.getMetrics")["metrics"]
        return sum(float(each["value"]) for each in metrics if each["name"] in WORK) * 1000

    def typing(self) -> float:
        """Cost of a key."""
        before = self.of_page()
        self.page.evaluate(TYPED, KEYS)
        return (self.of_page() - before) / KEYS

    def show_all(self) -> int:
        """Loads all earlier messages; how many turns there are then."""
        while self.page.locator("#earlier").is_visible():
            count = self.page.locator(".turn").count()
            self.page.evaluate("document.getElementById('earlier').click()")
            self.page.wait_for_function(
                "(count) => document.querySelectorAll('.turn').length > count"
                " || document.getElementById('earlier').hidden",
                arg=count,
            )
        return int(self.page.locator(".turn").count())


def _opening(context: Any, web: WebProcess, place: UUID) -> tuple[float, float]:
    """Cost of opening a conversation, to the server and the page."""
    opened = Opened(context, f"http://127.0.0.1:{web.port}", web.pid)
    server = opened.of_server()
    opened.open(place)
    spent = opened.of_server() - server, opened.of_page()
    opened.page.close()
    return spent


def _compare(report: Report, context: Any, web: WebProcess, small: UUID, large: UUID) -> None:
    section = report.section(
        f"{MESSAGES:,} messages beside {FEW} (milliseconds of processor time)",
        ["what", "p50", "p95", f"p50 of {FEW}", "ratio"],
    )

    def compare(what: str, many: list[float], few: list[float]) -> None:
        timing, beside = Timing.of(many), Timing.of(few)
        ratio = timing.p50 / beside.p50
        section.add(what, *timing, beside.p50, ratio)
        report.aims[f"{what} costs at most 1.5 × that of {FEW} messages ({ratio:.2f} ×)"] = ratio <= 1.5

    costs: dict[UUID, list[tuple[float, float]]] = {small: [], large: []}
    for number in range(OPENED + 1):
        for place, spent in costs.items():
            cost = _opening(context, web, place)
            spent.extend([cost] if number else [])  # not the first, for which the server warms up
    for part, what in enumerate(("opening, the server", "opening, the page")):
        compare(what, [each[part] for each in costs[large]], [each[part] for each in costs[small]])
    page = Opened(context, f"http://127.0.0.1:{web.port}", web.pid)
    page.open(small)
    few = [page.typing() for _ in range(TYPINGS)]
    page.open(large)
    compare("a key", [page.typing() for _ in range(TYPINGS)], few)
    shown = page.show_all()
    compare(f"a key, {shown:,} turns shown", [page.typing() for _ in range(TYPINGS)], few)
    page.page.close()


def _conversation(user: User, count: int) -> UUID:
    place = Conversation.objects.create(user=user, title=f"{count} messages", last_position=count)
    turns = [
        Turn(user=user, conversation=place, position=position, state=TurnStatus.DONE)
        for position in range(1, count, 2)
    ]
    Turn.objects.bulk_create(turns)
    rows = []
    for turn in turns:
        for offset, (role, text) in enumerate(((Role.USER, "And then?"), (Role.ASSISTANT, PROSE))):
            blocks = canonical_json([{"type": "text", "text": text}])
            rows.append(
                Message(
                    user=user,
                    conversation=place,
                    turn=turn,
                    position=turn.position + offset,
                    role=role,
                    blocks=blocks,
                    text=text,
                    speaker=role,
                    round=offset,
                )
            )
    Message.objects.bulk_create(rows)
    return place.pk


def _session(folder: Path) -> str:
    """The key of a session of the user's, made by a process of the server's own keys."""
    command = [sys.executable, "manage.py", "shell", "-v", "0", "-c", LET_IN]
    environment = environment_of(folder, database_environment(folder))
    made = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, text=True, check=True, capture_output=True
    )
    return made.stdout.split()[-1]


def _beside(folder: Path, model: str) -> dict[str, str]:
    """The environment of the web process."""
    server = {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "none"}
    return database_environment(folder) | server


@contextmanager
def _model() -> Iterator[str]:
    """The address of a model server that runs beside, in a thread: the browser's library has the loop of this one."""
    ready, over = Queue[tuple[str, asyncio.AbstractEventLoop]](), asyncio.Event()

    async def serve() -> None:
        async with model_server(Pace(rate=400, count=len(PIECES)).answer) as (address, _):
            ready.put((address, asyncio.get_running_loop()))
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    address, loop = ready.get(timeout=10)
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
