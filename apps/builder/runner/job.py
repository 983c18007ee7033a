"""One build from its rows to its end."""

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.accounts.secrets import secret_values
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import ModelClient, Usage
from apps.agent.model.endpoint import model_for
from apps.agent.model.sdk import default_client
from apps.agent.selectors import ConversationTaint, turn_usage
from apps.agent.tools.base import Approval, Tool
from apps.agent.turn.events import TurnFailed
from apps.agent.turn.executor import ToolExecutor
from apps.agent.turn.loop import TurnState, TurnTaken, run_turn
from apps.builder.builds.ending import build_end
from apps.builder.models import Build, State
from apps.builder.runner.dialogue import (
    Brief,
    Dialogue,
    DialogueStore,
    NoSandbox,
    OverBudget,
    brief_for,
    dialogue_read,
    system_prompt,
)
from apps.builder.workspace.context import Bench, Network, Post, Workshop
from apps.builder.workspace.registering import register_capability
from apps.builder.workspace.tools import (
    ask_user,
    report_progress,
    request_network,
    run_code,
    run_command,
    write_file,
)
from apps.core.db.pool import in_db

SMALLER = "You can try again at once, or ask for something smaller."
LIMITS = frozenset({"max_rounds", "timed_out", "too_many_tokens"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a build failed: `code` for programs, `reason` for the user."""

    code: str
    reason: str


def out_of_time() -> Failure:
    minutes = f"{settings.IZZY_BUILD_SECONDS / 60:.3g}"
    reason = f"It was not finished within {minutes} minutes (IZZY_BUILD_SECONDS). {SMALLER}"
    return Failure(code="timed_out", reason=reason)


def out_of_tokens() -> Failure:
    reason = f"It used up its {settings.IZZY_BUILD_TOKENS:,} tokens (IZZY_BUILD_TOKENS). {SMALLER}"
    return Failure(code="too_many_tokens", reason=reason)


def out_of_rounds(rounds: int) -> Failure:
    return Failure(code="max_rounds", reason=f"It was not finished within {rounds} rounds. {SMALLER}")


def build_failed(taken: Build, failure: Failure) -> None:
    """Ends the build as this process has taken it; nothing where another has taken it up meanwhile. What stopped at a limit
    names the last error as well."""
    build = Build.objects.unscoped().filter(pk=taken.pk, runner=taken.runner).first()
    if build is None:
        return
    reason = failure.reason
    if build.last_error and failure.code in LIMITS:
        reason = f"{reason}\nThe last error: {build.last_error}"
    build_end(build=build, state=State.FAILED, code=failure.code, reason=reason)


logger = logging.getLogger(__name__)

MAX_ROUNDS = 25
MAX_TOKENS = 4_096
MAX_NUDGES = 2
RETRY_SECONDS = (2.0, 10.0, 30.0)
TRANSIENT = frozenset({"rate_limited", "overloaded", "model_unavailable", "model_timeout", "stream_cut"})

NUDGE = (
    "Nothing is registered yet. Go on: write, try and hand in the tool with register_capability. If it cannot be built, say why "
    "in one or two sentences for the user, and nothing else."
)
CUT = "Your answer was cut off at its length limit. Go on in smaller steps."
TOO_LONG = "The model's answers were cut off at their length limit each time, and no tool came of them."
SILENT = "The builder ended without a tool."
TOOLS = (
    write_file,
    run_code,
    run_command,
    ask_user,
    report_progress,
    request_network,
    register_capability,
)
NETWORKS: dict[str, Network] = {"ask": "ask", "any": "any", "never": "never"}


@dataclass(kw_only=True)
class BuilderTools(ToolExecutor):
    """The pipeline with the tools of the build alone: no other tool of Izzy exists for the builder, and the user's
    preferences for chat tools do not bear on these. What the tools get as their context is the build at work."""

    shop: Workshop

    def context(self, **call: Any) -> Any:
        return self.shop

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    def approval(self, tool: Tool) -> Approval:
        return "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """All that a build needs, read in one hop."""

    build: Build
    brief: Brief
    dialogue: Dialogue
    network: Network
    model: str
    secrets: tuple[str, ...]
    usage: Usage


class Job:
    """A build as a task. `post` takes what users say."""

    def __init__(self, build_id: UUID, *, client: ModelClient | None = None) -> None:
        self.build_id = build_id
        self.post = Post(build_id)
        self._client = client or default_client()

    async def run(self) -> None:
        """Runs to the end and writes it. Cancellation passes through, the sandbox is gone then."""
        if (start := await in_db(_start, self.build_id)) is None:
            return
        shop = self._shop(start)
        try:
            failure = await self._within_time(start, shop)
        except TurnTaken:  # it is done, or another process goes on with it
            return
        finally:
            await asyncio.shield(asyncio.ensure_future(shop.bench.close()))
        await in_db(partial(build_failed, start.build, failure))

    def _shop(self, start: Start) -> Workshop:
        build = start.build
        bench = Bench(
            user_id=build.user_id,
            hosts=set(build.hosts),
            files=start.brief.files | start.dialogue.files,
            installs=list(start.dialogue.installs),
            restarted=bool(start.dialogue.messages),
        )
        return Workshop(
            build_id=build.pk,
            user_id=build.user_id,
            name=build.name,
            network=start.network,
            answer_seconds=settings.IZZY_BUILD_ANSWER_SECONDS,
            bench=bench,
            post=self.post,
        )

    async def _within_time(self, start: Start, shop: Workshop) -> Failure:
        try:
            async with asyncio.timeout(settings.IZZY_BUILD_SECONDS) as limit:
                return await self._build(start, shop)
        except TimeoutError:
            if not limit.expired():
                raise
            return out_of_time()
        except OverBudget:
            return out_of_tokens()
        except NoSandbox as error:
            return Failure(code="sandbox_unavailable", reason=str(error))

    async def _build(self, start: Start, shop: Workshop) -> Failure:
        state = _state(start)
        store = DialogueStore(start.build, state, shop)
        if not start.dialogue.messages:
            state.messages.append({"role": "user", "content": [{"type": "text", "text": start.brief.text}]})
            await store.add("user", state.messages[0]["content"], 0)
            await self.post.progress("Planning", "working")
        else:
            await self.post.progress("Going on after an interruption", "working")
        executor = BuilderTools(
            user_id=state.user_id,
            conversation_id=None,
            turn_id=self.build_id,
            taint=ConversationTaint(user_id=state.user_id),
            secrets=start.secrets,
            tools={tool.name: tool for tool in state.tools},
            shop=shop,
        )
        return await self._rounds(state, executor, store)

    async def _rounds(self, state: TurnState, executor: ToolExecutor, store: DialogueStore) -> Failure:
        """Until something ends it: TurnTaken and the like pass through, a failure is returned."""
        nudges = failures = 0
        said = ""
        seen = state.rounds_done
        while True:
            failed = await self._turn(state, executor, store)
            if state.rounds_done > seen:
                failures = 0
            if failed is not None:
                if failed.code not in TRANSIENT or failures >= len(RETRY_SECONDS):
                    return Failure(code=failed.code, reason=failed.message)
                await self.post.progress("The model did not answer; trying again", "working")
                await asyncio.sleep(RETRY_SECONDS[failures])
                failures += 1
                state.partial_blocks.clear()
            elif state.stop_reason == "max_rounds" or state.rounds_done >= MAX_ROUNDS:
                return out_of_rounds(MAX_ROUNDS)
            else:
                nudges = nudges + 1 if state.rounds_done == seen + 1 else 1
                cut, before, said = state.stop_reason == "max_tokens", said, _last_words(state)
                if nudges > MAX_NUDGES or (nudges > 1 and said == before):
                    return Failure(code="gave_up", reason=TOO_LONG if cut else said or SILENT)
                words = CUT if cut else NUDGE
                state.messages.append({"role": "user", "content": [{"type": "text", "text": words}]})
                await store.add("user", state.messages[-1]["content"], state.rounds_done)
            seen = state.rounds_done

    async def _turn(
        self, state: TurnState, executor: ToolExecutor, store: DialogueStore
    ) -> TurnFailed | None:
        failed = None
        async with aclosing(run_turn(state, client=self._client, executor=executor, store=store)) as events:
            async for event in events:
                if isinstance(event, TurnFailed):
                    failed = event
        return failed


def _start(build_id: UUID) -> Start | None:
    build = Build.objects.unscoped().filter(pk=build_id, state=State.RUNNING).first()
    if build is None:
        return None
    preferences = preferences_for(build.user_id)
    return Start(
        build=build,
        brief=brief_for(build),
        dialogue=dialogue_read(build),
        network=NETWORKS.get(preferences.build_network, "ask"),
        model=model_for("builder"),
        secrets=tuple(secret_values(build.user_id)),
        usage=turn_usage(user_id=build.user_id, turn_id=build.pk),
    )


def _state(start: Start) -> TurnState:
    build = start.build
    return TurnState(
        user_id=build.user_id,
        conversation_id=build.conversation_id or build.pk,
        turn_id=build.pk,
        system=system_prompt(rounds=MAX_ROUNDS),
        tools=list(TOOLS),
        messages=start.dialogue.messages,
        model=start.model,
        purpose="builder",
        max_rounds=MAX_ROUNDS,
        rounds_done=start.dialogue.rounds,
        max_tokens=MAX_TOKENS,
        stop_reason=start.dialogue.stop_reason,
        usage=start.usage,
    )


def _last_words(state: TurnState) -> str:
    content: list[dict[str, Any]] = state.messages[-1]["content"]
    return " ".join(block["text"] for block in content if block["type"] == "text").strip()
