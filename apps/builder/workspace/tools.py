"""The tools with which the builder writes and tries code, and talks with the user."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Annotated
from uuid import UUID

from django.conf import settings

from apps.agent.tools.base import Tier, ToolFailure, tool
from apps.builder.builds.ending import others_spoke
from apps.builder.builds.running import hosts_allow
from apps.builder.models import Build
from apps.builder.workspace.context import Workshop
from apps.capabilities.catalog.names import clean_host
from apps.capabilities.sandbox.base import CodeResult, CommandResult
from apps.core.db.pool import in_db
from apps.core.http.addresses import private_hosts

OUTPUT_CHARS = 8_000
ERROR_CHARS = 4_000


def code_text(result: CodeResult) -> str:
    """Output, the value of the last expression, and what was raised."""
    parts = [_part("stdout", result.stdout), _part("stderr", result.stderr)]
    if result.value:
        parts.append(_part("value", result.value))
    if result.error is not None:
        parts.append(f"{result.error.code}: {ends(result.error.message, ERROR_CHARS)}")
    return _joined(parts) or "Done, without output."


def command_text(result: CommandResult) -> str:
    """The exit code with the output."""
    parts = [f"exit code {result.exit_code}", _part("stdout", result.stdout), _part("stderr", result.stderr)]
    if result.error is not None:
        parts.append(f"{result.error.code}: {result.error.message}")
    return _joined(parts)


def ends(text: str, limit: int) -> str:
    """Beginning and end of a long text: an error stands at the end, what led to it at the beginning."""
    if len(text) <= limit:
        return text
    head, tail = limit // 3, limit - limit // 3
    return f"{text[:head]}\n[… {len(text) - limit:,} characters left out …]\n{text[-tail:]}"


def _part(name: str, text: str) -> str:
    return f"{name}:\n{ends(text.rstrip(), OUTPUT_CHARS)}" if text.strip() else ""


def _joined(parts: list[str]) -> str:
    return "\n".join(part for part in parts if part)


MAX_CODE_SECONDS, MAX_COMMAND_SECONDS = 180, 300
GRACE_SECONDS = 90  # making a sandbox and its queue may add these to a call before the pipeline gives it up


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: Annotated[str, {"minLength": 1, "maxLength": 300}]
    content: str


@tool(tier=Tier.SIDE_EFFECTING, timeout=30 + GRACE_SECONDS)
async def write_file(shop: Workshop, arguments: WriteFile) -> str:
    """Write a text file in the sandbox's home folder; it replaces one of that name. Give a relative path. The tool's code belongs
    into main.py, its packages into requirements.txt."""
    path, content = arguments.path, arguments.content
    await shop.post.progress(f"Writing {path}", "writing")
    await shop.bench.write_file(path, content)
    lines = content.count("\n") + (not content.endswith("\n"))
    return await shop.noted(f"Wrote {path} ({lines} lines, {len(content):,} characters).")


@dataclass(frozen=True, slots=True)
class RunCode:
    code: Annotated[str, {"minLength": 1, "maxLength": 100_000}]
    seconds: Annotated[float, {"minimum": 1, "maximum": MAX_CODE_SECONDS}] = 60


@tool(tier=Tier.SIDE_EFFECTING, timeout=MAX_CODE_SECONDS + GRACE_SECONDS)
async def run_code(shop: Workshop, arguments: RunCode) -> str:
    """Run Python in the sandbox and get its output and the value of its last line. Variables stay between calls; a module that
    you write anew is imported anew. To try the tool: import main; print(main.run({...}))."""
    await shop.post.progress("Trying the code", "testing")
    result = await shop.bench.run_code(arguments.code, seconds=arguments.seconds)
    text = await shop.noted(code_text(result))
    return text if result.ok else await _failed(shop, text, "That did not work yet; looking into it")


@dataclass(frozen=True, slots=True)
class RunCommand:
    command: Annotated[str, {"minLength": 1, "maxLength": 20_000}]
    seconds: Annotated[float, {"minimum": 1, "maximum": MAX_COMMAND_SECONDS}] = 120


@tool(tier=Tier.SIDE_EFFECTING, timeout=MAX_COMMAND_SECONDS + GRACE_SECONDS)
async def run_command(shop: Workshop, arguments: RunCommand) -> str:
    """Run a shell command in the sandbox's home folder, such as `python3 test_main.py`. `pip install PACKAGE` works there; nobody
    can answer a prompt."""
    found = re.search(r"pip3? install (.+)", arguments.command)
    packages = found[1].strip()[:100] if found else ""
    words, stage = (f"Installing {packages}", "installing") if packages else ("Running a command", "testing")
    await shop.post.progress(words, stage)
    result = await shop.bench.run_command(arguments.command, seconds=arguments.seconds)
    text = await shop.noted(command_text(result))
    return text if result.ok else await _failed(shop, text, "A command failed; looking into it")


async def _failed(shop: Workshop, text: str, words: str) -> str:
    await shop.failed(text)
    await shop.post.progress(words, "testing")
    raise ToolFailure(text)


MAX_HOSTS = 20
ANSWER_GRACE_SECONDS = 15
NEVER = "The user's settings allow builds no network. Build it without; if that cannot be done, end by saying so to the user."
DECLINED = "The user declined {hosts}. Do not ask again: build it without, or end with what is missing."
NO_DECISION = (
    "The user has not decided within {seconds:g} seconds. Go on with what needs no network; if they allow it later you will "
    "be told. If the tool needs these hosts, register it with them: the user then approves them before its first run."
)
NO_ANSWER = "The user has not answered within {seconds:g} seconds. Go on with what seems most sensible, and say in RUN.md what you assumed."


@dataclass(frozen=True, slots=True)
class AskUser:
    question: Annotated[str, {"minLength": 1, "maxLength": 2_000}]


@tool(tier=Tier.SIDE_EFFECTING, timeout=settings.IZZY_BUILD_ANSWER_SECONDS + ANSWER_GRACE_SECONDS)
async def ask_user(shop: Workshop, arguments: AskUser) -> str:
    """Ask the user one question, when you cannot choose sensibly yourself. Waits a minute, then goes on without."""
    asked = {"kind": "answer", "text": arguments.question}
    answer = await shop.post.ask(asked, seconds=shop.answer_seconds)
    if answer is None:
        await shop.post.progress("No answer came; going on", "working")
        return NO_ANSWER.format(seconds=shop.answer_seconds)
    return await shop.noted(f"The user answers: {answer.get('text', '')}")


@dataclass(frozen=True, slots=True)
class Report:
    text: Annotated[str, {"minLength": 1, "maxLength": 300}]


@tool(tier=Tier.SIDE_EFFECTING)
async def report_progress(shop: Workshop, arguments: Report) -> str:
    """Tell the user in a few plain words what you are doing. Once per larger step is enough."""
    await shop.post.progress(arguments.text, "working")
    return await shop.noted("Told.")


@dataclass(frozen=True, slots=True)
class Network:
    hosts: Annotated[
        list[Annotated[str, {"minLength": 1, "maxLength": 300}]], {"minItems": 1, "maxItems": MAX_HOSTS}
    ]
    why: Annotated[str, {"minLength": 1, "maxLength": 500}]


@tool(tier=Tier.SIDE_EFFECTING, timeout=settings.IZZY_BUILD_ANSWER_SECONDS + ANSWER_GRACE_SECONDS)
async def request_network(shop: Workshop, arguments: Network) -> str:
    """Ask for the sandbox, and the finished tool, to reach hosts on the internet. Without it nothing but packages can be
    reached. Name hosts such as api.example.org, without scheme or path, and say why in a sentence for the user."""
    hosts = list(dict.fromkeys(clean_host(host) for host in arguments.hosts))
    missing = [host for host in hosts if host not in shop.bench.hosts]
    if not missing:
        return await shop.noted(f"Allowed already: {', '.join(hosts)}.")
    if shop.network == "never":
        raise ToolFailure(NEVER)
    if refused := [host for host in missing if host in shop.declined]:
        raise ToolFailure(DECLINED.format(hosts=", ".join(refused)))
    private = any(is_private(host) for host in missing)
    if shop.network == "any" and not private and not await in_db(has_read_others, shop.build_id):
        await in_db(partial(hosts_allow, build_id=shop.build_id, hosts=missing))
        return await _granted(shop, missing, "by the user's settings")
    return await _ask(shop, missing, arguments.why)


async def _ask(shop: Workshop, hosts: list[str], why: str) -> str:
    named = ", ".join(hosts)
    wish = {"kind": "network", "hosts": hosts, "why": why, "text": f"May it reach {named}?"}
    shop.unanswered |= set(hosts)
    answer = await shop.post.ask(wish, seconds=shop.answer_seconds)
    if answer is None:
        await shop.post.progress("No decision came; going on without network", "working")
        return NO_DECISION.format(seconds=shop.answer_seconds)
    shop.unanswered -= set(hosts)
    if answer.get("decision") == "allow":
        return await _granted(shop, hosts, "by the user")
    shop.declined |= set(hosts)
    raise ToolFailure(DECLINED.format(hosts=named))


async def _granted(shop: Workshop, hosts: list[str], by: str) -> str:
    await shop.bench.allow_hosts(set(hosts))
    return await shop.noted(f"Allowed {by}: {', '.join(hosts)}. Name exactly these hosts when you register.")


def has_read_others(build_id: UUID) -> bool:
    """Whether others' words may be behind what the builder does: read in its conversation, or from hosts that it reached."""
    build = Build.objects.unscoped().get(pk=build_id)
    return bool(build.hosts) or others_spoke(build)


def is_private(host: str) -> bool:
    """Whether it may be a machine of the user's own network, which *any public host* does not mean."""
    name = host.partition(":")[0]
    return "." not in name or any(entry.host == name for entry in private_hosts())
