"""The tool with which the assistant has a missing tool built, or one changed."""

from functools import partial
from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext, ToolOutput, always
from apps.builder.services import Requested, build_change, build_request
from apps.builder.services.following import origin_of
from apps.core.database import in_db

UNDER_WAY = (
    "The builder works on it now, and the user sees its progress. Tell the user so in one sentence and end your turn: the tool "
    "is there from the next message on. Do not wait for it or ask for it again."
)
STAYS = (
    "Izzy has read here what others wrote, and that may be behind this. What a tool says of itself stands before Izzy in every "
    "conversation from then on."
)
THERE = "It exists already: call cap_{name}, or execute_capability where that is not among your tools."


async def request_capability(context: ToolContext, args: dict[str, Any]) -> ToolOutput:
    """`{status, capability_id, build_id?}`: active, or building."""
    origin = await in_db(origin_of, context.user_id, context.conversation_id, context.turn_id)
    if feedback := str(args.get("feedback", "")).strip():
        change = partial(
            build_change, user_id=context.user_id, name=args["name"], feedback=feedback, origin=origin
        )
        build = await in_db(change)
        data = {"status": "building", "capability_id": str(build.capability_id), "build_id": str(build.pk)}
        return ToolOutput(data | {"next": UNDER_WAY}, build_id=str(build.pk))
    request = partial(
        build_request,
        user_id=context.user_id,
        name=args["name"],
        description=args["description"],
        input_schema=args["input_schema"],
        origin=origin,
    )
    return _output(await in_db(request))


def _output(requested: Requested) -> ToolOutput:
    data: dict[str, Any] = {"status": requested.status, "capability_id": str(requested.capability.pk)}
    if requested.build is None:
        there = {"input_schema": requested.capability.input_schema}
        return ToolOutput(data | there | {"next": THERE.format(name=requested.capability.name)})
    build_id = str(requested.build.pk)
    return ToolOutput(data | {"build_id": build_id, "next": UNDER_WAY}, build_id=build_id)


REQUEST_CAPABILITY = Tool(
    name="request_capability",
    description=(
        "Have a tool built that you need and do not have: a builder writes and tests it in Python while the user watches, and it "
        "is yours from then on, as cap_NAME. Look with lookup_capability first. Describe what it does, what it takes and what it "
        "returns, generally enough to be useful again. With feedback, a new version of an existing one is built "
        '("return Fahrenheit"). Not for what you can do yourself.'
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": "Lower-case letters, digits and underscores, such as weather_lookup.",
                "minLength": 1,
                "maxLength": 100,
            },
            "description": {"type": "string", "minLength": 1, "maxLength": 1_000},
            "input_schema": {"type": "object", "description": "JSON schema of the tool's input: an object."},
            "feedback": {
                "type": "string",
                "maxLength": 4_000,
                "description": "Only to change an existing one: what it should do differently.",
            },
        },
        "required": ["name", "description", "input_schema"],
        "additionalProperties": False,
    },
    handler=request_capability,
    tier=Tier.SIDE_EFFECTING,
    timeout=20,
    toolset="capabilities",
    asks_when_untrusted=always,
    reason=lambda _: STAYS,
)

BUILDER_TOOLS = (REQUEST_CAPABILITY,)
