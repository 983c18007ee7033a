"""The tools over the catalog: find a capability, read about it, run it."""

from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from apps.agent.tools.base import ApprovalQuery, Reach, Tier, ToolContext, ToolFailure, ToolOutput, tool
from apps.core.errors import NotFound

from .cap_tools import CALL_SECONDS, capability_run, permission_needed, reach_of, unknown_capability
from .drafts import RUN_MD
from .files import files_verified
from .matching import ABOUT_THIS, capabilities_matching
from .models import MAX_NAME_CHARS, Capability, Status
from .names import PREFIX
from .selectors import capabilities_for, capability_get, others_wrote

TOOLSET = "capabilities"
LIST_LIMIT = 100
OTHERS = 4
QUOTED_CHARS = 200
HOW_TO_CALL = "Call it by execute_capability with this name and an input that fits input_schema."
UNSEEN = "(from an archive; the user has not approved it yet)"

Name = Annotated[str, {"minLength": 1, "maxLength": MAX_NAME_CHARS + len(PREFIX)}, "Its name."]


@dataclass(frozen=True, slots=True)
class Lookup:
    name: Annotated[Name, "The exact name, if you know it."] = ""
    query: Annotated[str, {"minLength": 1, "maxLength": 1000}, "What it should do."] = ""


@tool(
    tier=Tier.READ_ONLY,
    toolset=TOOLSET,
    title="Look for one of your capabilities",
    doing="Looking for a capability",
    done="Looked for a capability",
    shows=("query", "name"),
)
def lookup_capability(context: ToolContext, arguments: Lookup) -> dict[str, Any]:
    """Find one of the user's own capabilities (tools that were made for them): by its exact name, or by a query that says
    what it should do. Returns found, name, description, status and the input schema to call it with. Look here
    before you say that something cannot be done."""
    name, query = arguments.name.strip(), arguments.query.strip()
    if not (name or query):
        raise ToolFailure("Give the name of a capability, or a query that says what it should do.")
    meant = _exact(context.user_id, name or query)
    hits = capabilities_matching(context.user_id, query or name.replace("_", " "), top_k=OTHERS + 1)
    if meant is None and hits and hits[0][0].score >= ABOUT_THIS:
        meant = hits[0][1]
    others = [found for _, found in hits if meant is None or found.pk != meant.pk][:OTHERS]
    listed = [{"name": each.name, "description": shown_description(each)} for each in others]
    if meant is None:
        return {"found": False, "others": listed}
    return {"found": True, **entry_json(meant), "how": HOW_TO_CALL, "others": listed}


@dataclass(frozen=True, slots=True)
class Listing:
    status: Annotated[str, {"enum": list(Status.values)}, "Only those; default all."] = ""
    limit: Annotated[int, {"minimum": 1, "maximum": LIST_LIMIT}, "How many; default 50."] = 50
    offset: Annotated[int, {"minimum": 0, "maximum": 1_000_000}, "How many to skip."] = 0


@tool(
    tier=Tier.READ_ONLY,
    toolset=TOOLSET,
    title="List your capabilities",
    doing="Listing capabilities",
    done="Listed capabilities",
)
def list_capabilities(context: ToolContext, arguments: Listing) -> dict[str, Any]:
    """List the user's own capabilities by name, with description and status."""
    rows = capabilities_for(context.user_id, status=arguments.status)
    entries = [
        {"name": row.name, "description": shown_description(row), "status": row.status}
        for row in rows[arguments.offset : arguments.offset + arguments.limit]
    ]
    return {"count": rows.count(), "capabilities": entries}


@dataclass(frozen=True, slots=True)
class Named:
    name: Name


@tool(
    tier=Tier.READ_ONLY,
    toolset=TOOLSET,
    result_limit=60_000,
    untrusted=True,
    title="Read about one of your capabilities",
    doing="Reading instructions",
    done="Read instructions",
    shows=("name",),
)
def read_capability_docs(context: ToolContext, arguments: Named) -> ToolOutput:
    """Read the RUN.md of a capability: usage, details of its parameters, examples. Only needed where the input
    schema does not say enough."""
    capability = _exact(context.user_id, arguments.name)
    if capability is None:
        raise unknown_capability(context.user_id, arguments.name)
    if capability.current is None:
        raise ToolFailure(f"{capability.name} has no version yet, so there is nothing to read.")
    if is_unseen(capability):
        raise ToolFailure(f"{capability.name} came from an archive and the user has not approved it yet.")
    text = files_verified(capability.current, capability.name)[RUN_MD]
    return ToolOutput(text, own_words=not others_wrote(capability.current))


@dataclass(frozen=True, slots=True)
class Run:
    name: Name
    input: Annotated[dict[str, Any], "What its input schema asks for."] = field(default_factory=dict)


def plain_name(name: str) -> str:
    """The name without the prefix under which it may have been listed."""
    return name.strip().removeprefix(PREFIX)


def _permission(user_id: UUID, args: dict[str, Any]) -> dict[str, Any] | None:
    return permission_needed(plain_name(str(args.get("name", ""))), user_id, args)


def _reach(query: ApprovalQuery) -> Reach | None:
    return reach_of(plain_name(query.arguments["name"]), query)


@tool(
    tier=Tier.SIDE_EFFECTING,
    timeout=CALL_SECONDS,
    toolset=TOOLSET,
    untrusted=True,
    reach=_reach,
    permission=_permission,
    title="Run one of your capabilities",
    doing="Running {name}",
    done="Ran {name}",
    shows=("input", "name"),
)
async def execute_capability(context: ToolContext, arguments: Run) -> ToolOutput:
    """Run one of the user's capabilities by name, with an input that fits its input schema (lookup_capability
    gives it). It runs in a fresh sandbox. A capability that is listed as cap_… is called by that tool instead."""
    return await capability_run(plain_name(arguments.name), context, arguments.input)


def _exact(user_id: UUID, name: str) -> Capability | None:
    plain = name.removeprefix(PREFIX).lower().replace(" ", "_").replace("-", "_")
    try:
        return capability_get(user_id, plain)
    except NotFound:
        return None


def is_unseen(capability: Capability) -> bool:
    """Whether others wrote it and the user has not said yes: until then the model reads none of its words."""
    current = capability.current
    return current is not None and current.untrusted and not current.is_approved


def shown_description(capability: Capability) -> str:
    """Its description as lists quote it."""
    if is_unseen(capability):
        return UNSEEN
    text = capability.description
    return text if len(text) <= QUOTED_CHARS else f"{text[: QUOTED_CHARS - 1]}…"


def entry_json(capability: Capability) -> dict[str, Any]:
    """The entry of one capability: `{id, name, description, status, approved, input_schema}`."""
    unseen = is_unseen(capability)
    return {
        "id": str(capability.pk),
        "name": capability.name,
        "description": UNSEEN if unseen else capability.description,
        "status": capability.status,
        "approved": bool(capability.current and capability.current.is_approved),
        "input_schema": {} if unseen else capability.input_schema,
    }
