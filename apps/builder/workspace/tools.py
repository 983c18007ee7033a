"""The tools with which the builder writes and tries code, and talks with the user."""

import re
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.agent.tools.base import Tier, ToolFailure, tool
from apps.agent.tools.results import Scrubber
from apps.builder.builds.ending import asked_among_others, others_spoke
from apps.builder.builds.running import hosts_grant
from apps.builder.models import Build
from apps.builder.workspace.context import BuildContext
from apps.capabilities.catalog.drafts import clean_host
from apps.capabilities.sandbox.base import CodeResult, CommandResult
from apps.core.db.pool import in_db
from apps.core.http.addresses import private_hosts

OUTPUT_CHARS = 8_000
ERROR_CHARS = 4_000
MAX_CODE_SECONDS, MAX_COMMAND_SECONDS = 180, 300
GRACE_SECONDS = (
    90  # making a sandbox and its queue may add these to a call before the pipeline gives it up
)
MAX_HOSTS = 20
ANSWER_GRACE_SECONDS = 15
NEVER = "The user's settings allow builds no network. Build it without; if that cannot be done, end by saying so to the user."
DECLINED = "The user declined {hosts}. Do not ask again: build it without, or end with what is missing."
NO_DECISION = (
    "The user has not decided within {seconds:g} seconds. Go on with what needs no network; if they allow it later you will "
    "be told. If the tool needs these hosts, register it with them: the user then approves them before its first run."
)
NO_ANSWER = "The user has not answered within {seconds:g} seconds. Go on with what seems most sensible, and say in RUN.md what you assumed."


def ends(text: str, limit: int) -> str:
    """Beginning and end of a long text: an error stands at the end, what led to it at the beginning."""
    if len(text) <= limit:
        return text
    head, tail = limit // 3, limit - limit // 3
    return f"{text[:head]}\n[… {len(text) - limit:,} characters left out …]\n{text[-tail:]}"


def output_text(result: CodeResult | CommandResult, scrubber: Scrubber) -> str:
    """Exit code or value with the output, and what was raised; without secrets, since long texts are cut."""
    texts = {"stdout": result.stdout, "stderr": result.stderr}
    if isinstance(result, CommandResult):
        parts = [f"exit code {result.exit_code}"]
    else:
        parts, texts["value"] = [], result.value
    parts += [
        f"{name}:\n{ends(scrubber.text(text.rstrip()), OUTPUT_CHARS)}"
        for name, text in texts.items()
        if text.strip()
    ]
    if result.error is not None:
        message = ends(scrubber.text(result.error.message), ERROR_CHARS)
        parts.append(f"{result.error.code}: {message}")
    return "\n".join(parts) or "Done, without output."


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: Annotated[str, {"minLength": 1, "maxLength": 300}]
    content: str


@tool(tier=Tier.SIDE_EFFECTING, timeout=30 + GRACE_SECONDS, done="Wrote a file", shows=("path",))
async def write_file(context: BuildContext, arguments: WriteFile) -> str:
    """Write a text file in the sandbox's home folder; it replaces one of that name. Give a relative path. The tool's code belongs
    into main.py, its packages into requirements.txt."""
    path, content = arguments.path, arguments.content
    await context.mailbox.progress(f"Writing {path}", "writing")
    await context.sandbox.write_file(path, content)
    lines = content.count("\n") + (not content.endswith("\n"))
    return await context.noted(f"Wrote {path} ({lines} lines, {len(content):,} characters).")


@dataclass(frozen=True, slots=True)
class RunCode:
    code: Annotated[str, {"minLength": 1, "maxLength": 100_000}]
    seconds: Annotated[float, {"minimum": 1, "maximum": MAX_CODE_SECONDS}] = 60


@tool(tier=Tier.SIDE_EFFECTING, timeout=MAX_CODE_SECONDS + GRACE_SECONDS, done="Tried code")
async def run_code(context: BuildContext, arguments: RunCode) -> str:
    """Run Python in the sandbox and get its output and the value of its last line. Variables stay between calls; a module that
    you write anew is imported anew. To try the tool: import main; print(main.run({...}))."""
    await context.mailbox.progress("Trying the code", "testing")
    result = await context.sandbox.run_code(arguments.code, seconds=arguments.seconds)
    text = await context.noted(output_text(result, await context.scrubber()))
    if not result.ok:
        raise await context.failed(text, "That did not work yet; looking into it")
    return text


@dataclass(frozen=True, slots=True)
class RunCommand:
    command: Annotated[str, {"minLength": 1, "maxLength": 20_000}]
    seconds: Annotated[float, {"minimum": 1, "maximum": MAX_COMMAND_SECONDS}] = 120


@tool(tier=Tier.SIDE_EFFECTING, timeout=MAX_COMMAND_SECONDS + GRACE_SECONDS, done="Ran a command")
async def run_command(context: BuildContext, arguments: RunCommand) -> str:
    """Run a shell command in the sandbox's home folder, such as `python3 test_main.py`. `pip install PACKAGE` works there; nobody
    can answer a prompt."""
    found = re.search(r"pip3? install (.+)", arguments.command)
    packages = found[1].strip()[:100] if found else ""
    words, stage = (
        (f"Installing {packages}", "installing") if packages else ("Running a command", "testing")
    )
    await context.mailbox.progress(words, stage)
    result = await context.sandbox.run_command(arguments.command, seconds=arguments.seconds)
    text = await context.noted(output_text(result, await context.scrubber()))
    if not result.ok:
        raise await context.failed(text, "A command failed; looking into it")
    return text


@dataclass(frozen=True, slots=True)
class AskUser:
    question: Annotated[str, {"minLength": 1, "maxLength": 2_000}]


@tool(
    tier=Tier.SIDE_EFFECTING,
    timeout=settings.IZZY_BUILD_ANSWER_SECONDS + ANSWER_GRACE_SECONDS,
    done="Asked you",
    shows=("question",),
)
async def ask_user(context: BuildContext, arguments: AskUser) -> str:
    """Ask the user one question, when you cannot choose sensibly yourself. Waits a minute, then goes on without."""
    asked = {"kind": "answer", "text": arguments.question}
    answer = await context.mailbox.ask(asked)
    if answer is None:
        await context.mailbox.progress("No answer came; going on", "working")
        return NO_ANSWER.format(seconds=settings.IZZY_BUILD_ANSWER_SECONDS)
    return await context.noted(f"The user answers: {answer.get('text', '')}")


@dataclass(frozen=True, slots=True)
class Report:
    text: Annotated[str, {"minLength": 1, "maxLength": 300}]


@tool(tier=Tier.SIDE_EFFECTING, done="Told you how far it is", shows=("text",))
async def report_progress(context: BuildContext, arguments: Report) -> str:
    """Tell the user in a few plain words what you are doing. Once per larger step is enough."""
    await context.mailbox.progress(arguments.text, "working")
    return await context.noted("Told.")


@dataclass(frozen=True, slots=True)
class Network:
    hosts: Annotated[
        list[Annotated[str, {"minLength": 1, "maxLength": 300}]], {"minItems": 1, "maxItems": MAX_HOSTS}
    ]
    why: Annotated[str, {"minLength": 1, "maxLength": 500}]


@tool(
    tier=Tier.SIDE_EFFECTING,
    timeout=settings.IZZY_BUILD_ANSWER_SECONDS + ANSWER_GRACE_SECONDS,
    done="Asked for network",
)
async def request_network(context: BuildContext, arguments: Network) -> str:
    """Ask for the sandbox, and the finished tool, to reach hosts on the internet. Without it nothing but packages can be
    reached. Name hosts such as api.example.org, without scheme or path, and say why in a sentence for the user."""
    hosts = list(dict.fromkeys(clean_host(host) for host in arguments.hosts))
    missing = [host for host in hosts if host not in context.sandbox.hosts]
    if not missing:
        return await context.noted(f"Allowed already: {', '.join(hosts)}.")
    if context.network == "never":
        raise ToolFailure(NEVER)
    if refused := [host for host in missing if host in context.declined]:
        raise ToolFailure(DECLINED.format(hosts=", ".join(refused)))
    if context.network == "any" and await in_db(_allowed_unasked, context.build_id, missing):
        return await _granted(context, missing, "by the user's settings")
    named = ", ".join(missing)
    question = {
        "kind": "network",
        "hosts": missing,
        "why": arguments.why,
        "text": f"May it reach {named}?",
    }
    context.unanswered |= set(missing)
    answer = await context.mailbox.ask(question)
    if answer is None:
        await context.mailbox.progress("No decision came; going on without network", "working")
        return NO_DECISION.format(seconds=settings.IZZY_BUILD_ANSWER_SECONDS)
    context.unanswered -= set(missing)
    if answer.get("decision") == "allow":
        return await _granted(context, missing, "by the user")
    context.declined |= set(missing)
    raise ToolFailure(DECLINED.format(hosts=named))


async def _granted(context: BuildContext, hosts: list[str], by: str) -> str:
    await context.sandbox.allow_hosts(set(hosts))
    return await context.noted(
        f"Allowed {by}: {', '.join(hosts)}. Name exactly these hosts when you register."
    )


@transaction.atomic
def _allowed_unasked(build_id: UUID, hosts: list[str]) -> bool:
    """Allows them where they are public, which *any public host* means, and no words of others may be behind what the
    builder does; hosts that the tool reaches already, also where it may have read their words. Returns whether it did."""
    build = Build.objects.unscoped().select_for_update().get(pk=build_id)
    names = {host.partition(":")[0] for host in hosts}
    private = {entry.host for entry in private_hosts()}
    if names & private or any("." not in name for name in names) or asked_among_others(build):
        return False
    current = build.capability.current
    reached = set(current.hosts) if current is not None and current.is_approved else set()
    if not reached.issuperset(hosts) and others_spoke(build):
        return False
    hosts_grant(build=build, hosts=hosts)
    return True
