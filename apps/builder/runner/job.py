"""One build from its rows to its end."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.accounts.secrets import secret_values
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import ModelClient, model_for
from apps.agent.model.sdk import default_client
from apps.agent.selectors import ConversationTaint, turn_usage
from apps.agent.tools.base import Approval, Tool
from apps.agent.turn.events import TurnFailed
from apps.agent.turn.executor import ToolExecutor
from apps.agent.turn.loop import LoopState, run_turn
from apps.agent.turn.rounds import TurnTaken
from apps.builder.builds.ending import GAVE_UP
from apps.builder.builds.running import dialogue_add, taken_end
from apps.builder.builds.selectors import text_of
from apps.builder.models import Build, State
from apps.builder.runner.dialogue import (
    SMALLER,
    BuildFailed,
    DialogueStore,
    brief_for,
    dialogue_read,
    made_in,
    system_prompt,
)
from apps.builder.workspace.context import BuildContext, BuildMailbox, BuildSandbox
from apps.builder.workspace.registering import register_capability
from apps.builder.workspace.tools import (
    ask_user,
    report_progress,
    request_network,
    run_code,
    run_command,
    write_file,
)
from apps.core.db.pool import in_db, shielded
from apps.core.log_ids import log_ids_add

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
    return DialogueStore(build, state, sandbox), _executor(build, sandbox, mailbox)


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
