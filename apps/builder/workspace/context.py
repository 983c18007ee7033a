"""The tools of one build share a context: its sandbox, its mailbox to the user, and what is allowed."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings

from apps.accounts.secrets import secret_values
from apps.agent.tools.base import ToolFailure
from apps.agent.tools.results import Scrubber
from apps.builder.builds.running import message_to_user
from apps.builder.models import Build, BuilderMessage, MessageType
from apps.capabilities.sandbox.base import (
    BUILD_LIMITS,
    HOME,
    CodeResult,
    CommandResult,
    Purpose,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
)
from apps.capabilities.sandbox.running import open_sandbox
from apps.core.db.pool import in_db, shielded
from apps.core.errors import InvalidInput, TooLarge

MAX_PROGRESS_CHARS, MAX_ERROR_CHARS = 400, 4_000
logger = logging.getLogger(__name__)
T = TypeVar("T")
MAX_FILE_CHARS = 400_000
MAX_FILES = 200
RESTARTED = (
    "[The sandbox was started anew: the files you wrote and the packages you installed are there again, variables of "
    "run_code are not.]\n"
)
GONE = (
    "The sandbox ended: {message} A new one with your files and packages starts with your next call; variables of run_code "
    "are lost. Do it in a way that needs less."
)
FORGET = "for _ in {names!r}: __import__('sys').modules.pop(_, None)"
"""The kernel keeps its modules: `import main` after it was written anew has to find what was written."""


class BuildEnded(ToolFailure):
    """The build is over, because the user cancelled it or another process has it."""


class BuildMailbox:
    """Messages between one build and its user. The pool hands in what users say (`deliver`)."""

    def __init__(self, build_id: UUID) -> None:
        self.build_id = build_id
        self._last = ""
        self.delivered: set[UUID] = set()
        self.answers: dict[str, BuilderMessage] = {}  # by question, those that nobody has taken yet
        self.taken: list[UUID] = []  # answers for the model that no stored results hold yet
        self._news = asyncio.Event()

    async def progress(self, text: str, stage: str) -> None:
        """One line for the user; the same one twice in a row is shown once."""
        line = " ".join(text.split())[:MAX_PROGRESS_CHARS]
        if line and line != self._last:
            self._last = line
            await in_db(
                message_to_user, self.build_id, MessageType.PROGRESS, {"stage": stage, "text": line}
            )

    async def ask(self, payload: dict[str, Any]) -> dict[str, Any] | None:
        """Asks and waits IZZY_BUILD_ANSWER_SECONDS; the answer's payload, or None when nobody answered in time."""
        self._last, seconds = "", settings.IZZY_BUILD_ANSWER_SECONDS
        question = payload | {"seconds": round(seconds)}
        asked = await in_db(message_to_user, self.build_id, MessageType.QUESTION, question)
        if asked is None:
            raise BuildEnded("This build has ended.")
        try:
            async with asyncio.timeout(seconds):
                while str(asked) not in self.answers:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return None
        return self.take(str(asked))

    def take(self, question: str) -> dict[str, Any]:
        """The payload of the answer to this question, for the results under way."""
        message = self.answers.pop(question)
        self.taken.append(message.pk)
        return dict(message.payload)

    def deliver(self, message: BuilderMessage) -> None:
        """An answer has come; one that was here already is passed over."""
        if message.pk not in self.delivered:
            self.delivered.add(message.pk)
            self.answers[str(message.payload.get("question", ""))] = message
            self._news.set()


@dataclass
class BuildSandbox:
    """`files` and `installs` are what a new sandbox gets; `hosts` what it may reach besides packages; `unavailable` says why
    none can be made at all."""

    user_id: UUID
    hosts: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    installs: list[str] = field(default_factory=list)
    restarted: bool = False
    unavailable: str = ""
    _rewritten: set[str] = field(default_factory=set)
    _sandbox: Sandbox | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_open(self) -> bool:
        """Whether there is a sandbox that may hold more than was written."""
        return self._sandbox is not None

    async def write_file(self, path: str, content: str) -> None:
        """Raises InvalidInput, TooLarge."""
        if len(content) > MAX_FILE_CHARS:
            message = f"A file may have {MAX_FILE_CHARS:,} characters; this one has {len(content):,}. Write less, or make it in the sandbox."
            raise TooLarge(message, field="content", limit=MAX_FILE_CHARS)
        name = in_home(path)
        if name not in self.files and len(self.files) >= MAX_FILES:
            raise InvalidInput(f"There are {MAX_FILES} files already. Use fewer.", field="path")
        await self._call(lambda sandbox: sandbox.write_file(path, content))
        if name in self.files and name.endswith(".py"):
            self._rewritten.add(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        self.files[name] = content

    async def run_code(self, code: str, *, seconds: float) -> CodeResult:
        async def run(sandbox: Sandbox) -> CodeResult:
            if self._rewritten:
                names, self._rewritten = sorted(self._rewritten), set()
                await sandbox.run_code(FORGET.format(names=names))
            return await sandbox.run_code(code, seconds=seconds)

        return await self._call(run)

    async def run_command(self, command: str, *, seconds: float) -> CommandResult:
        result = await self._call(lambda sandbox: sandbox.run_command(command, seconds=seconds))
        if result.ok and is_install(command):
            self.installs.append(command)
        return result

    async def allow_hosts(self, hosts: set[str]) -> None:
        """Lets the sandbox that runs, and later ones, reach these hosts too."""
        self.hosts |= hosts
        async with self._lock:
            if self._sandbox is not None:
                await self._sandbox.allow_hosts(hosts)

    async def close(self) -> None:
        """Nothing is left."""
        async with self._lock:
            await self._drop()

    def note(self) -> str:
        """A note for the model on its sandbox, given once."""
        restarted, self.restarted = self.restarted, False
        return RESTARTED if restarted else ""

    async def _call(self, work: Callable[[Sandbox], Awaitable[T]]) -> T:
        """One call at a time. Where an earlier call has ended the sandbox, this one has not begun: it is made in a new one.
        Raises ToolFailure where that ends as well, and SandboxUnavailable."""
        ended = False
        async with self._lock:
            while True:
                try:
                    return await work(await self._ready())
                except SandboxGone as error:
                    await self._lost()
                    if ended:
                        raise ToolFailure(GONE.format(message=error.message)) from error
                    ended = True
                    logger.info("the sandbox of a build had ended; the call is made in a new one")
                except asyncio.CancelledError:
                    await shielded(self._lost())
                    raise
                except SandboxUnavailable as error:
                    self.unavailable = error.message
                    raise

    async def _ready(self) -> Sandbox:
        if self._sandbox is None:
            spec = SandboxSpec(
                user_id=self.user_id,
                purpose=Purpose.BUILD,
                hosts=frozenset(self.hosts),
                limits=BUILD_LIMITS,
                secrets=await in_db(secret_values, self.user_id),
            )
            self._sandbox = await self._stack.enter_async_context(open_sandbox(spec))
            for path, content in self.files.items():
                await self._sandbox.write_file(path, content)
            for command in self.installs:
                await self._sandbox.run_command(command)
        return self._sandbox

    async def _lost(self) -> None:
        self.restarted, self._rewritten = bool(self.files or self.installs), set()
        await self._drop()

    async def _drop(self) -> None:
        stack, self._stack, self._sandbox = self._stack, AsyncExitStack(), None
        await stack.aclose()


def in_home(path: str) -> str:
    """The one spelling of a file's path: `main.py` for `./main.py` and `/home/user/main.py` too."""
    full = HOME / path
    return str(full.relative_to(HOME) if full.is_relative_to(HOME) else full)


def is_install(command: str) -> bool:
    """Whether a command only installs packages, so that it can be repeated in a new sandbox."""
    return re.match(r"\s*(?:python3? -m )?pip3? install ", command) is not None


@dataclass(kw_only=True)
class BuildContext:
    """One build at work, as its tools get it."""

    build_id: UUID
    user_id: UUID
    name: str
    network: str  # the user's preference for hosts: ask, any, never
    sandbox: BuildSandbox
    mailbox: BuildMailbox
    declined: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)
    declined_secrets: set[str] = field(default_factory=set)
    asked_secrets: set[tuple[frozenset[str], frozenset[str]]] = field(default_factory=set)

    async def scrubber(self) -> Scrubber:
        """Takes the secrets of the user and the server out of texts. Use it before you cut one: half a secret is not found."""
        return Scrubber(await in_db(secret_values, self.user_id))

    async def failed(self, text: str, progress: str) -> ToolFailure:
        """The failure to raise. It is kept without secrets as the newest one, which a build that gives up names; the user
        gets the line of progress."""
        kept = (await self.scrubber()).text(text)[:MAX_ERROR_CHARS]

        def note() -> None:
            Build.objects.unscoped().filter(pk=self.build_id).update(last_error=kept)

        await in_db(note)
        await self.mailbox.progress(progress, "testing")
        return ToolFailure(text)

    async def noted(self, text: str) -> str:
        """A tool's result behind what the model has to know first: late answers, a new sandbox."""
        notes = [await self._late(self.mailbox.take(asked)) for asked in list(self.mailbox.answers)]
        return "".join(notes) + self.sandbox.note() + text

    async def _late(self, answer: dict[str, Any]) -> str:
        allowed = answer.get("decision") == "allow"
        decided = "allowed" if allowed else "declined"
        if answer.get("kind") == "secrets":
            names = set(answer["secrets"])
            kept = self.declined_secrets - names
            self.declined_secrets = kept if allowed else kept | names
            return f"[The user has {decided} the secrets {', '.join(sorted(names))} meanwhile.]\n"
        if answer.get("kind") == "network":
            hosts = set(answer["hosts"])
            self.unanswered -= hosts
            if allowed:
                await self.sandbox.allow_hosts(hosts)
            else:
                self.declined |= hosts
            return f"[The user has {decided} {', '.join(sorted(hosts))} meanwhile.]\n"
        return f"[The user has answered your earlier question meanwhile: {answer.get('text', '')}]\n"
