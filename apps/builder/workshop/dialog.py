"""The tools with which the builder talks with the user: a question, a line of progress, a wish for hosts."""

from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from apps.agent.tools.base import Tier, Tool, ToolContext, ToolFailure
from apps.builder.models import Build
from apps.builder.services.ending import others_spoke
from apps.builder.services.running import hosts_allow
from apps.builder.workshop.workshop import Workshop
from apps.capabilities.names import clean_host
from apps.core.addresses import private_hosts
from apps.core.database import in_db

MAX_HOSTS = 20
GRACE_SECONDS = 15
NEVER = "The user's settings allow builds no network. Build it without; if that cannot be done, end by saying so to the user."
DECLINED = "The user declined {hosts}. Do not ask again: build it without, or end with what is missing."
NO_DECISION = (
    "The user has not decided within {seconds:g} seconds. Go on with what needs no network; if they allow it later you will "
    "be told. If the tool needs these hosts, register it with them: the user then approves them before its first run."
)
NO_ANSWER = "The user has not answered within {seconds:g} seconds. Go on with what seems most sensible, and say in RUN.md what you assumed."


ASK_USER = "Ask the user one question, when you cannot choose sensibly yourself. Waits a minute, then goes on without."
REPORT = "Tell the user in a few plain words what you are doing. Once per larger step is enough."
REQUEST = (
    "Ask for the sandbox, and the finished tool, to reach hosts on the internet. Without it nothing but packages can be "
    "reached. Name hosts such as api.example.org, without scheme or path, and say why in a sentence for the user."
)


@dataclass(frozen=True)
class UserDialog:
    """What one build says to its user, and asks."""

    shop: Workshop

    async def ask_user(self, context: ToolContext, args: dict[str, Any]) -> str:
        shop = self.shop
        answer = await shop.post.ask(
            {"kind": "answer", "text": args["question"]}, seconds=shop.answer_seconds
        )
        if answer is None:
            await shop.post.progress("No answer came; going on", "working")
            return NO_ANSWER.format(seconds=shop.answer_seconds)
        return await shop.noted(f"The user answers: {answer.get('text', '')}")

    async def report_progress(self, context: ToolContext, args: dict[str, Any]) -> str:
        await self.shop.post.progress(args["text"], "working")
        return await self.shop.noted("Told.")

    async def request_network(self, context: ToolContext, args: dict[str, Any]) -> str:
        shop = self.shop
        hosts = list(dict.fromkeys(clean_host(host) for host in args["hosts"]))
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
            return await self._granted(missing, "by the user's settings")
        return await self._ask(missing, args["why"])

    async def _ask(self, hosts: list[str], why: str) -> str:
        shop, named = self.shop, ", ".join(hosts)
        wish = {"kind": "network", "hosts": hosts, "why": why, "text": f"May it reach {named}?"}
        shop.unanswered |= set(hosts)
        answer = await shop.post.ask(wish, seconds=shop.answer_seconds)
        if answer is None:
            await shop.post.progress("No decision came; going on without network", "working")
            return NO_DECISION.format(seconds=shop.answer_seconds)
        shop.unanswered -= set(hosts)
        if answer.get("decision") == "allow":
            return await self._granted(hosts, "by the user")
        shop.declined |= set(hosts)
        raise ToolFailure(DECLINED.format(hosts=named))

    async def _granted(self, hosts: list[str], by: str) -> str:
        await self.shop.bench.allow_hosts(set(hosts))
        return await self.shop.noted(
            f"Allowed {by}: {', '.join(hosts)}. Name exactly these hosts when you register."
        )


def dialog_tools(shop: Workshop) -> list[Tool]:
    """`ask_user`, `report_progress` and `request_network` of one build."""
    dialog = UserDialog(shop)
    hosts = {"type": "array", "items": _text(300), "minItems": 1, "maxItems": MAX_HOSTS}
    return [
        Tool(
            name="ask_user",
            description=ASK_USER,
            input_schema=_object(question=_text(2_000)),
            handler=dialog.ask_user,
            tier=Tier.SIDE_EFFECTING,
            timeout=shop.answer_seconds + GRACE_SECONDS,
        ),
        Tool(
            name="report_progress",
            description=REPORT,
            input_schema=_object(text=_text(300)),
            handler=dialog.report_progress,
            tier=Tier.SIDE_EFFECTING,
        ),
        Tool(
            name="request_network",
            description=REQUEST,
            input_schema=_object(hosts=hosts, why=_text(500)),
            handler=dialog.request_network,
            tier=Tier.SIDE_EFFECTING,
            timeout=shop.answer_seconds + GRACE_SECONDS,
        ),
    ]


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def has_read_others(build_id: UUID) -> bool:
    """Whether others' words may be behind what the builder does: read in its conversation, or from hosts that it reached."""
    build = Build.objects.unscoped().get(pk=build_id)
    return bool(build.hosts) or others_spoke(build)


def is_private(host: str) -> bool:
    """Whether it may be a machine of the user's own network, which *any public host* does not mean."""
    name = host.partition(":")[0]
    return "." not in name or any(entry.host == name for entry in private_hosts())
