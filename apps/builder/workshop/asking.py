"""The tools with which the builder talks with the user: a question, a line of progress, a wish for hosts."""

from functools import partial
from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext, ToolFailure
from apps.builder.services.running import hosts_allow
from apps.builder.workshop.workshop import Workshop
from apps.capabilities.names import clean_host
from apps.core.addresses import private_hosts
from apps.core.database import in_db

MAX_HOSTS = 20
GRACE_SECONDS = 15
NEVER = (
    "The user's settings allow builds no network. Build it without, or say in RUN.md that it cannot be done."
)
DECLINED = "The user declined {hosts}. Do not ask again: build it without, or end with what is missing."
NO_DECISION = (
    "The user has not decided within {seconds:g} seconds. Go on with what needs no network; if they allow it later you will "
    "be told. If the tool needs these hosts, register it with them: the user then approves them before its first run."
)
NO_ANSWER = "The user has not answered within {seconds:g} seconds. Go on with what seems most sensible, and say in RUN.md what you assumed."


def asking_tools(shop: Workshop) -> list[Tool]:
    """`ask_user`, `report_progress` and `request_network` of one build."""

    async def ask_user(context: ToolContext, args: dict[str, Any]) -> str:
        question = {"kind": "answer", "text": args["question"]}
        answer = await shop.post.ask(question, seconds=shop.answer_seconds)
        if answer is None:
            await shop.post.progress("No answer came; going on", "working")
            return NO_ANSWER.format(seconds=shop.answer_seconds)
        return await shop.noted(f"The user answers: {answer.get('text', '')}")

    async def report_progress(context: ToolContext, args: dict[str, Any]) -> str:
        await shop.post.progress(args["text"], "working")
        return await shop.noted("Told.")

    async def request_network(context: ToolContext, args: dict[str, Any]) -> str:
        hosts = list(dict.fromkeys(clean_host(host) for host in args["hosts"]))
        missing = [host for host in hosts if host not in shop.bench.hosts]
        if not missing:
            return await shop.noted(f"Allowed already: {', '.join(hosts)}.")
        if shop.network == "never":
            raise ToolFailure(NEVER)
        if refused := [host for host in missing if host in shop.declined]:
            raise ToolFailure(DECLINED.format(hosts=", ".join(refused)))
        if shop.network == "any" and not any(is_private(host) for host in missing):
            await in_db(partial(hosts_allow, build_id=shop.build_id, hosts=missing))
            return await _granted(missing, "by the user's settings")
        return await _ask(missing, args["why"])

    async def _ask(hosts: list[str], why: str) -> str:
        named = ", ".join(hosts)
        wish = {"kind": "network", "hosts": hosts, "why": why, "text": f"May it reach {named}?"}
        shop.unanswered |= set(hosts)
        answer = await shop.post.ask(wish, seconds=shop.answer_seconds)
        if answer is None:
            await shop.post.progress("No decision came; going on without network", "working")
            return NO_DECISION.format(seconds=shop.answer_seconds)
        shop.unanswered -= set(hosts)
        if answer.get("decision") == "allow":
            return await _granted(hosts, "by the user")
        shop.declined |= set(hosts)
        raise ToolFailure(DECLINED.format(hosts=named))

    async def _granted(hosts: list[str], by: str) -> str:
        await shop.bench.allow_hosts(set(hosts))
        return await shop.noted(
            f"Allowed {by}: {', '.join(hosts)}. Name exactly these hosts when you register."
        )

    return [
        Tool(
            name="ask_user",
            description=(
                "Ask the user one question, when you cannot choose sensibly yourself. Waits a minute, then goes on without."
            ),
            input_schema={
                "type": "object",
                "properties": {"question": {"type": "string", "minLength": 1, "maxLength": 2_000}},
                "required": ["question"],
                "additionalProperties": False,
            },
            handler=ask_user,
            tier=Tier.SIDE_EFFECTING,
            timeout=shop.answer_seconds + GRACE_SECONDS,
        ),
        Tool(
            name="report_progress",
            description="Tell the user in a few plain words what you are doing. Once per larger step is enough.",
            input_schema={
                "type": "object",
                "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 300}},
                "required": ["text"],
                "additionalProperties": False,
            },
            handler=report_progress,
            tier=Tier.SIDE_EFFECTING,
        ),
        Tool(
            name="request_network",
            description=(
                "Ask for the sandbox, and the finished tool, to reach hosts on the internet. Without it nothing but packages "
                "can be reached. Name hosts such as api.example.org, without scheme or path, and say why in a sentence for the user."
            ),
            input_schema={
                "type": "object",
                "properties": {
                    "hosts": {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1, "maxLength": 300},
                        "minItems": 1,
                        "maxItems": MAX_HOSTS,
                    },
                    "why": {"type": "string", "minLength": 1, "maxLength": 500},
                },
                "required": ["hosts", "why"],
                "additionalProperties": False,
            },
            handler=request_network,
            tier=Tier.SIDE_EFFECTING,
            timeout=shop.answer_seconds + GRACE_SECONDS,
        ),
    ]


def is_private(host: str) -> bool:
    """Whether it may be a machine of the user's own network, which *any public host* does not mean."""
    name = host.partition(":")[0]
    return "." not in name or any(entry.host == name for entry in private_hosts())
