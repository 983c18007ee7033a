"""The tool with which the assistant has a missing tool built, or one changed."""

from dataclasses import dataclass
from typing import Annotated, Any

from apps.agent.tools.base import Tier, ToolContext, ToolOutput, tool
from apps.builder.builds.messages import origin_of
from apps.builder.builds.requesting import Requested, build_change, build_request

UNDER_WAY = (
    "The builder works on it now, and the user sees its progress. Tell the user so in one sentence and end your turn: the tool "
    "is there from the next message on. Do not wait for it or ask for it again."
)
STAYS = (
    "Izzy has read here what others wrote, and that may be behind this. What a tool says of itself stands before Izzy in every "
    "conversation from then on."
)
THERE = "It exists already: call cap_{name}, or execute_capability where that is not among your tools."


@dataclass(frozen=True, slots=True)
class Wanted:
    name: Annotated[
        str,
        {"minLength": 1, "maxLength": 100},
        "Lower-case letters, digits and underscores, such as weather_lookup.",
    ]
    description: Annotated[str, {"minLength": 1, "maxLength": 1_000}]
    input_schema: Annotated[dict[str, Any], "JSON schema of the tool's input: an object."]
    feedback: Annotated[
        str, {"maxLength": 4_000}, "Only to change an existing one: what it should do differently."
    ] = ""


@tool(
    tier=Tier.SIDE_EFFECTING,
    timeout=20,
    toolset="capabilities",
    takes=lambda _: STAYS,
    title="Have a capability built",
    doing="Asking for a capability",
    done="Asked for a capability",
    shows=("name",),
)
def request_capability(context: ToolContext, arguments: Wanted) -> ToolOutput:
    """Have a tool built that you need and do not have: a builder writes and tests it in Python while the user watches, and it
    is yours from then on, as cap_NAME. Look with lookup_capability first. Describe what it does, what it takes and what it
    returns, generally enough to be useful again. With feedback, a new version of an existing one is built
    ("return Fahrenheit"). Not for what you can do yourself."""
    origin = origin_of(context.user_id, context.conversation_id, context.turn_id)
    if feedback := arguments.feedback.strip():
        build = build_change(
            user_id=context.user_id, name=arguments.name, feedback=feedback, origin=origin
        )
        requested = Requested(build.capability, build)
    else:
        requested = build_request(
            user_id=context.user_id,
            name=arguments.name,
            description=arguments.description,
            input_schema=arguments.input_schema,
            origin=origin,
        )
    made = requested.capability
    data = {"status": requested.status, "capability_id": str(made.pk)}
    if requested.build is None:
        there = {"input_schema": made.input_schema, "next": THERE.format(name=made.name)}
        return ToolOutput(data | there)
    build_id = str(requested.build.pk)
    return ToolOutput(data | {"build_id": build_id, "next": UNDER_WAY}, build_id=build_id)
