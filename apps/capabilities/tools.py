"""The tools over the catalog: find a capability, read about it, run it."""

from typing import Any
from uuid import UUID

from apps.agent.protocols import CatalogTools
from apps.agent.tools.base import Asking, Reach, Tier, Tool, ToolContext, ToolFailure, ToolOutput

from .cap_tools import CALL_SECONDS, permission_needed, reach_of, run_in_catalog
from .models import MAX_NAME_CHARS, Status
from .names import PREFIX

TOOLSET = "capabilities"
LIST_LIMIT = 100


def _catalog(context: ToolContext) -> CatalogTools:
    if context.catalog is None:
        raise ToolFailure("Capabilities are out of reach here. Do without them and tell the user so.")
    return context.catalog


async def lookup_capability(context: ToolContext, args: dict[str, Any]) -> dict[str, Any]:
    """The capability of a name, or the best one for what is to be done."""
    name, query = args.get("name", ""), args.get("query", "")
    if not (name.strip() or query.strip()):
        raise ToolFailure("Give the name of a capability, or a query that says what it should do.")
    return await _catalog(context).lookup(name=name, query=query)


async def list_capabilities(context: ToolContext, args: dict[str, Any]) -> dict[str, Any]:
    """The user's capabilities by name."""
    return await _catalog(context).list(
        status=args.get("status", ""), limit=args.get("limit", 50), offset=args.get("offset", 0)
    )


async def read_capability_docs(context: ToolContext, args: dict[str, Any]) -> ToolOutput:
    """The RUN.md of a capability."""
    guide = await _catalog(context).docs(args["name"])
    return ToolOutput(guide.text, own_words=guide.own_words)


async def execute_capability(context: ToolContext, args: dict[str, Any]) -> ToolOutput:
    """Runs a capability in a fresh sandbox."""
    return await run_in_catalog(context, plain_name(args["name"]), args.get("input", {}))


def plain_name(name: str) -> str:
    """The name without the prefix under which it may have been listed."""
    return name.strip().removeprefix(PREFIX)


def _permission(user_id: UUID, args: dict[str, Any]) -> dict[str, Any] | None:
    return permission_needed(plain_name(str(args.get("name", ""))), user_id, args)


def _reach(asking: Asking) -> Reach | None:
    return reach_of(plain_name(asking.arguments["name"]), asking)


def _schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_NAME_CHARS + len(PREFIX),
    "description": "Its name.",
}

CAPABILITY_TOOLS = (
    Tool(
        name="lookup_capability",
        description=(
            "Find one of the user's own capabilities (tools that were made for them): by its exact name, or by a query that says "
            "what it should do. Returns found, name, description, status and the input schema to call it with. Look here "
            "before you say that something cannot be done."
        ),
        input_schema=_schema(
            [],
            name={**_NAME, "description": "The exact name, if you know it."},
            query={"type": "string", "minLength": 1, "maxLength": 1000, "description": "What it should do."},
        ),
        handler=lookup_capability,
        tier=Tier.READ_ONLY,
        toolset=TOOLSET,
    ),
    Tool(
        name="list_capabilities",
        description="List the user's own capabilities by name, with description and status.",
        input_schema=_schema(
            [],
            status={"type": "string", "enum": list(Status.values), "description": "Only those; default all."},
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": LIST_LIMIT,
                "description": "How many; default 50.",
            },
            offset={
                "type": "integer",
                "minimum": 0,
                "maximum": 1_000_000,
                "description": "How many to skip.",
            },
        ),
        handler=list_capabilities,
        tier=Tier.READ_ONLY,
        toolset=TOOLSET,
    ),
    Tool(
        name="read_capability_docs",
        description=(
            "Read the RUN.md of a capability: usage, details of its parameters, examples. Only needed where the input "
            "schema does not say enough."
        ),
        input_schema=_schema(["name"], name=_NAME),
        handler=read_capability_docs,
        tier=Tier.READ_ONLY,
        toolset=TOOLSET,
        result_limit=60_000,
        untrusted=True,
    ),
    Tool(
        name="execute_capability",
        description=(
            "Run one of the user's capabilities by name, with an input that fits its input schema (lookup_capability "
            "gives it). It runs in a fresh sandbox. A capability that is listed as cap_… is called by that tool instead."
        ),
        input_schema=_schema(
            ["name"], name=_NAME, input={"type": "object", "description": "What its input schema asks for."}
        ),
        handler=execute_capability,
        tier=Tier.SIDE_EFFECTING,
        timeout=CALL_SECONDS,
        toolset=TOOLSET,
        untrusted=True,
        reach=_reach,
        permission=_permission,
    ),
)
