"""Capabilities as tools of their own: `cap_<name>`."""

from functools import partial
from typing import Any
from uuid import UUID

from apps.agent.tools.base import (
    MAY_BE_BEHIND,
    Asking,
    Reach,
    Tier,
    Tool,
    ToolContext,
    ToolFailure,
    ToolOutput,
)
from apps.core.errors import NotFound

from .models import Capability, Status
from .names import NAME, PREFIX
from .selectors import capability_get

CALL_SECONDS = 900.0
"""An outer ring: the sandbox has its own limits for running, beside which there is waiting and installing."""
ANY_OBJECT: dict[str, Any] = {"type": "object"}
MARKED = "[Capability] "
EXECUTE = "execute_capability"
"""The tool that runs any of them; in the preferences it stands for all."""


def capability_tool(capability: Capability) -> Tool:
    """The tool by which the model calls an active capability."""
    return named_tool(
        capability.name,
        description=f"{MARKED}{capability.description}",
        shown_schema=capability.input_schema,
        tier=tier_of(capability),
    )


def tier_of(capability: Capability | None) -> Tier:
    """Read-only where nothing outside its sandbox can be reached: such calls may run side by side, and again."""
    version = capability.current if capability else None
    return Tier.READ_ONLY if version is not None and not version.hosts else Tier.SIDE_EFFECTING


def named_tool(
    name: str,
    *,
    description: str = "",
    shown_schema: dict[str, Any] | None = None,
    tier: Tier = Tier.SIDE_EFFECTING,
) -> Tool:
    """`cap_<name>`, whatever may be known of it. The input is checked against the version that is run."""
    return Tool(
        name=f"{PREFIX}{name}",
        description=description or f"{MARKED}{name}",
        input_schema=ANY_OBJECT,
        shown_schema=shown_schema,
        handler=partial(_run, name),
        tier=tier,
        timeout=CALL_SECONDS,
        untrusted=True,
        set_with=EXECUTE,
        reach=partial(reach_of, name),
        permission=partial(permission_needed, name),
    )


def tool_of_family(tool_name: str) -> Tool | None:
    """The tool of a name that begins with `cap_`; whether there is such a capability shows when it is called."""
    name = tool_name.removeprefix(PREFIX)
    return named_tool(name) if NAME.fullmatch(name) else None


def permission_needed(name: object, user_id: UUID, args: dict[str, Any]) -> dict[str, Any] | None:
    """What the user has to allow before the current version may run; None for nothing (or nothing to run)."""
    try:
        capability = capability_get(user_id, name)
    except NotFound:
        return None
    version = capability.current
    if version is None or capability.status != Status.ACTIVE or version.is_approved:
        return None
    return {
        "id": str(capability.pk),
        "capability": capability.name,
        "description": capability.description,
        "version": version.number,
        "hosts": version.hosts,
        "secrets": version.secrets,
    }


def reach_of(name: object, asking: Asking) -> Reach | None:
    """The hosts and secrets of the current version; None where it has neither."""
    try:
        capability = capability_get(asking.user_id, name)
    except NotFound:
        return None
    version = capability.current
    if version is None or not (version.hosts or version.secrets):
        return None
    can = [f"pass on what it is given to {', '.join(version.hosts)}"] if version.hosts else []
    can += [f"use your secret {', '.join(version.secrets)}"] if version.secrets else []
    return Reach(
        reason=f"{MAY_BE_BEHIND} {capability.name} can {' and '.join(can)}.",
        tool=f"{PREFIX}{capability.name}",
        hosts=version.hosts,
        secrets=version.secrets,
        capability=str(capability.pk),
        version=version.number,
    )


async def _run(name: str, context: ToolContext, args: dict[str, Any]) -> ToolOutput:
    return await run_in_catalog(context, name, args)


async def run_in_catalog(context: ToolContext, name: str, args: dict[str, Any]) -> ToolOutput:
    """What a run gives to the model."""
    if context.catalog is None:
        raise ToolFailure("Capabilities are out of reach here. Do without them and tell the user so.")
    answer = await context.catalog.execute(
        name, args, progress=context.emit, tool_call_id=context.tool_call_id, permission=context.permission
    )
    return ToolOutput(answer.text, own_words=answer.own_words)
