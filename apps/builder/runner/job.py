"""One build from its rows to its end; and the builder's talk with its model: the brief that begins it, where it is kept, and the checks
between its rounds."""

import asyncio
import json
from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.accounts.secrets import secret_values
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import ModelClient, model_for
from apps.agent.model.sdk import default_client
from apps.agent.selectors import ConversationTaint, turn_usage
from apps.agent.tools.base import Approval, Tool
from apps.agent.tools.results import Scrubber
from apps.agent.turn.events import TurnFailed
from apps.agent.turn.executor import ToolExecutor
from apps.agent.turn.loop import LoopState, run_turn
from apps.agent.turn.rounds import TurnTaken
from apps.builder.builds.ending import GAVE_UP
from apps.builder.builds.running import dialogue_add, taken_end
from apps.builder.builds.selectors import text_of
from apps.builder.models import Build, DialogueMessage, Kind, State
from apps.builder.workspace.context import BuildContext, BuildMailbox, BuildSandbox, in_home, is_install
from apps.builder.workspace.registering import register_capability
from apps.builder.workspace.tools import (
    ask_user,
    report_progress,
    request_network,
    run_code,
    run_command,
    write_file,
)
from apps.capabilities.catalog.drafts import MAIN, REQUIREMENTS, RUN_MD
from apps.capabilities.catalog.selectors import capability_get, version_waiting
from apps.capabilities.catalog.versions import draft_of
from apps.capabilities.models import Execution
from apps.core.db.pool import in_db, shielded
from apps.core.log_ids import log_ids_add

SMALLER = "You can try again at once, or ask for something smaller."
MAX_FAILURE_CHARS = 6_000
NO_SCHEMA = "none was given. Design one from the description, and hand it in as input_schema."


@cache
def system_prompt(*, rounds: int) -> str:
    """The same text for every build, so that it stays cached."""
    text = (Path(__file__).parent.parent / "prompts" / "builder.md").read_text(encoding="utf-8")
    return text.strip().replace("{rounds}", str(rounds))


def brief_for(build: Build) -> tuple[str, dict[str, str]]:
    """`(text, files)`: the first message, without secrets, and the files that lie in the sandbox from the start, as they are. Reads
    the current version, where there is one, and the failed run of a repair."""
    scrubbed = Scrubber(secret_values(build.user_id)).text
    # Builds asked for on the builds page have no schema.
    given = build.kind != Kind.NEW or bool(build.input_schema.get("properties"))
    schema = json.dumps(build.input_schema, ensure_ascii=False) if given else NO_SCHEMA
    lines = [
        "Build this tool." if build.kind == Kind.NEW else "Make a new version of this tool.",
        f"Name: {build.name}",
        f"Description: {build.description}",
        f"Input schema: {schema}",
    ]
    if build.request:
        lines.append(f"The user had said: <said>{build.request}</said>")
    if build.feedback:
        lines.append(f"What to do differently: <feedback>{build.feedback}</feedback>")
    run = None
    if build.execution_id is not None:
        run = Execution.objects.for_user(build.user_id).filter(pk=build.execution_id).first()
    files = _present_files(build, run)
    if run is not None:
        # Before anything is cut: half a secret would not be found.
        tried = scrubbed(json.dumps(run.input, ensure_ascii=False))
        output = scrubbed(run.stdout + run.stderr).strip()
        lines += [
            "It failed on this input; find out why and correct it. Use this input as one of the examples where it makes sense.",
            f"Input: {tried[:MAX_FAILURE_CHARS]}",
            f"Error ({run.error_code}): {scrubbed(run.error_message)[-MAX_FAILURE_CHARS:]}",
            *([f"It printed: {output[-MAX_FAILURE_CHARS:]}"] if output else []),
        ]
    if files:
        lines.append("These files of its present version lie in the sandbox:")
        lines += [f"--- {name}\n{text}" for name, text in files.items()]
    return scrubbed("\n\n".join(lines)), files


def _present_files(build: Build, run: Execution | None) -> dict[str, str]:
    """Those of the newest version: one that waits beside the current one is what the user saw last. For a repair those of
    the version that failed, where it is one of the two."""
    capability = capability_get(build.user_id, build.name)
    if capability.current is None:
        return {}
    waiting = version_waiting(capability)
    meant = waiting is not None and (run is None or run.version == waiting.number)
    draft = draft_of(capability, waiting if meant else None)
    parts = {
        MAIN: draft.main,
        REQUIREMENTS: draft.requirements,
        RUN_MD: draft.run_md,
        "examples.json": json.dumps(list(draft.examples), ensure_ascii=False, indent=1),
    }
    return {name: text for name, text in parts.items() if text.strip()}


class BuildFailed(Exception):
    """A build cannot go on. `args` are a code for programs and the reason for the user."""


@dataclass
class DialogueStore:
    """`TurnStore` of a build, as this process has read it. Each message is committed when its method returns; then the build
    may end."""

    build: Build
    state: LoopState
    sandbox: BuildSandbox
    mailbox: BuildMailbox

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        await self.add("assistant", blocks, round, stop_reason)

    async def save_tool_results(
        self, uses: list[dict[str, Any]], blocks: list[dict[str, Any]], round: int
    ) -> list[dict[str, Any]]:
        """Raises BuildFailed where there is no sandbox, or the tokens are used up."""
        await self.add("user", blocks, round, answers=self.mailbox.taken)
        self.mailbox.taken.clear()
        if self.sandbox.unavailable:
            raise BuildFailed("sandbox_unavailable", self.sandbox.unavailable)
        usage, most = self.state.usage, settings.IZZY_BUILD_TOKENS
        used = (
            usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        )
        if used >= most:
            reason = f"It used up its {most:,} tokens (IZZY_BUILD_TOKENS). {SMALLER}"
            raise BuildFailed("too_many_tokens", reason)
        return blocks

    async def add(
        self,
        role: str,
        blocks: list[dict[str, Any]],
        round: int,
        stop_reason: str = "",
        answers: Collection[UUID] = (),
    ) -> None:
        """Raises TurnTaken."""
        if not await in_db(
            dialogue_add,
            build=self.build,
            role=role,
            blocks=blocks,
            round=round,
            stop_reason=stop_reason,
            answers=answers,
        ):
            raise TurnTaken


def dialogue_read(build: Build) -> tuple[list[dict[str, Any]], int, str]:
    """`(messages, rounds, stop_reason)` of the stored talk, in the shape of the Messages API; empty for a build that begins."""
    rows = DialogueMessage.objects.for_user(build.user_id).filter(build=build).order_by("position")
    messages: list[dict[str, Any]] = []
    rounds, stop_reason = 0, ""
    for row in rows:
        messages.append({"role": row.role, "content": json.loads(row.blocks)})
        if row.role == "assistant":
            rounds, stop_reason = row.round, row.stop_reason
    return messages, rounds, stop_reason


def made_in(messages: list[dict[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """`(files, installs)` by the calls that succeeded, in order: what a new sandbox needs."""
    blocks = [block for message in messages for block in message["content"]]
    done = {
        block["tool_use_id"]
        for block in blocks
        if block["type"] == "tool_result" and not block.get("is_error")
    }
    calls = [block for block in blocks if block["type"] == "tool_use" and block["id"] in done]
    files: dict[str, str] = {}
    installs: list[str] = []
    for call in calls:
        given = call["input"]
        if call["name"] == "write_file":
            files[in_home(str(given["path"]))] = str(given["content"])
        elif call["name"] == "run_command" and is_install(str(given["command"])):
            installs.append(str(given["command"]))
    return files, installs


MAX_ROUNDS = 25
MAX_TOKENS = 4_096
MAX_REMINDERS = 2
RETRY_SECONDS = (2.0, 10.0, 30.0)
TRANSIENT = frozenset({"rate_limited", "overloaded", "model_unavailable", "model_timeout", "stream_cut"})

REMINDER = (
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


@dataclass(kw_only=True)
class BuilderTools(ToolExecutor):
    """The pipeline with the tools of the build alone: no other tool of Izzy exists for the builder, and the user's
    preferences for chat tools do not bear on these. What the tools get as their context is the build at work."""

    build: BuildContext

    def context(self, **call: Any) -> Any:
        return self.build

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    def approval(self, tool: Tool) -> Approval:
        return "allow"


class Job:
    """A build as a task. `mailbox` takes what users say."""

    def __init__(self, build_id: UUID, *, client: ModelClient | None = None) -> None:
        self.mailbox = BuildMailbox(build_id)
        self._client = client or default_client()

    async def run(self) -> None:
        """Runs to the end and writes it. Cancellation passes through, the sandbox is gone then."""
        if (begun := await in_db(_begin, self.mailbox)) is None:
            return
        store, executor = begun
        try:
            async with asyncio.timeout(settings.IZZY_BUILD_SECONDS) as limit:
                await self._rounds(store, executor)
        except TurnTaken:  # it is done, or another process goes on with it
            return
        except BuildFailed as error:
            failure = error
        except TimeoutError:
            if not limit.expired():
                raise
            minutes = f"{settings.IZZY_BUILD_SECONDS / 60:.3g}"
            reason = f"It was not finished within {minutes} minutes (IZZY_BUILD_SECONDS). {SMALLER}"
            failure = BuildFailed("timed_out", reason)
        finally:
            await shielded(executor.build.sandbox.close())
        await in_db(taken_end, store.build.pk, store.build.runner, *failure.args)

    async def _rounds(self, store: DialogueStore, executor: BuilderTools) -> None:
        """Until something ends it: BuildFailed, TurnTaken and the like."""
        state = store.state
        begins = "Going on after an interruption" if executor.build.sandbox.restarted else "Planning"
        await self.mailbox.progress(begins, "working")
        reminders = failures = 0
        answer = ""
        seen = state.rounds_done
        while True:
            failed = None
            async with aclosing(
                run_turn(state, client=self._client, executor=executor, store=store)
            ) as events:
                async for event in events:
                    if isinstance(event, TurnFailed):
                        failed = event
            if state.rounds_done > seen:
                failures = 0
            if failed is not None:
                if failed.code not in TRANSIENT or failures >= len(RETRY_SECONDS):
                    raise BuildFailed(failed.code, failed.message)
                await self.mailbox.progress("The model did not answer; trying again", "working")
                await asyncio.sleep(RETRY_SECONDS[failures])
                failures += 1
                state.partial_blocks.clear()
            elif state.stop_reason == "max_rounds" or state.rounds_done >= MAX_ROUNDS:
                raise BuildFailed(
                    "max_rounds", f"It was not finished within {MAX_ROUNDS} rounds. {SMALLER}"
                )
            else:
                reminders = reminders + 1 if state.rounds_done == seen + 1 else 1
                cut = state.stop_reason == "max_tokens"
                before, answer = answer, text_of(state.messages[-1]["content"])
                if reminders > MAX_REMINDERS or (reminders > 1 and answer == before):
                    raise BuildFailed(GAVE_UP, TOO_LONG if cut else answer or SILENT)
                reminder = [{"type": "text", "text": CUT if cut else REMINDER}]
                state.messages.append({"role": "user", "content": reminder})
                await store.add("user", reminder, state.rounds_done)
            seen = state.rounds_done


def _begin(mailbox: BuildMailbox) -> tuple[DialogueStore, BuilderTools] | None:
    """Reads all that a build needs in one hop; None where it runs no more. One that begins has its brief stored as the first
    message, one that goes on gets the files and packages of before."""
    build = Build.objects.unscoped().filter(pk=mailbox.build_id, state=State.RUNNING).first()
    if build is None:
        return None
    log_ids_add(user=build.user_id, conversation=build.conversation_id)
    brief, files = brief_for(build)
    messages, rounds, stop_reason = dialogue_read(build)
    written, installs = made_in(messages)
    sandbox = BuildSandbox(
        user_id=build.user_id,
        hosts=set(build.hosts),
        files=files | written,
        installs=installs,
        restarted=bool(messages),
    )
    if not messages:
        messages = [{"role": "user", "content": [{"type": "text", "text": brief}]}]
        if not dialogue_add(build=build, role="user", blocks=messages[0]["content"], round=0):
            return None
    state = LoopState(
        user_id=build.user_id,
        conversation_id=build.conversation_id or build.pk,
        turn_id=build.pk,
        system=system_prompt(rounds=MAX_ROUNDS),
        tools=list(TOOLS),
        messages=messages,
        model=model_for("builder"),
        purpose="builder",
        max_rounds=MAX_ROUNDS,
        rounds_done=rounds,
        max_tokens=MAX_TOKENS,
        stop_reason=stop_reason,
        usage=turn_usage(user_id=build.user_id, turn_id=build.pk),
    )
    return DialogueStore(build, state, sandbox, mailbox), _executor(build, sandbox, mailbox)


def _executor(build: Build, sandbox: BuildSandbox, mailbox: BuildMailbox) -> BuilderTools:
    context = BuildContext(
        build_id=build.pk,
        user_id=build.user_id,
        name=build.name,
        network=preferences_for(build.user_id).build_network,
        sandbox=sandbox,
        mailbox=mailbox,
    )
    return BuilderTools(
        user_id=build.user_id,
        conversation_id=None,
        turn_id=build.pk,
        taint=ConversationTaint(user_id=build.user_id),
        secrets=tuple(secret_values(build.user_id)),
        tools={tool.name: tool for tool in TOOLS},
        build=context,
    )
