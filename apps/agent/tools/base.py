"""The contract of a tool: what the model sees of it, what runs, and within which limits.

The JSON schema of its input is read from the dataclass that its function takes: a field's type says what kind of value it is; in
`Annotated`, a string describes it and a dict adds keywords of JSON Schema.
"""

import pkgutil
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from importlib import import_module
from inspect import iscoroutinefunction, signature
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from apps.core.db.pool import in_db

UNSAID: tuple[tuple[str, object], ...] = (("additionalProperties", False), ("required", []))
KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


def input_schema(arguments: Any) -> dict[str, Any]:
    """The schema of an object with the fields of this dataclass and no others; those without a default are required."""
    hints = get_type_hints(arguments, include_extras=True)
    return {
        "type": "object",
        "properties": {field.name: _schema(hints[field.name]) for field in fields(arguments)},
        "required": [
            field.name
            for field in fields(arguments)
            if field.default is MISSING and field.default_factory is MISSING
        ],
        "additionalProperties": False,
    }


def _schema(hint: Any) -> dict[str, Any]:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        schema = _schema(parts[0])
        for note in parts[1:]:
            schema |= {"description": note} if isinstance(note, str) else note
        return schema
    if kind in (
        Union,
        UnionType,
    ):  # `… | None`: None stands for a field that was left out, and is not accepted itself
        return _schema(next(part for part in parts if part is not NoneType))
    if kind is Literal:
        return {"enum": list(parts)}
    items = {"items": _schema(parts[0])} if kind is list else {}
    return {"type": KINDS[kind], **items}


if TYPE_CHECKING:
    from apps.agent.selectors import ConversationTaint

Approval: TypeAlias = Literal["allow", "ask", "never"]
NoteAction: TypeAlias = Literal["", "read", "linked", "written", "changed", "deleted"]
Emit: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

NO_MEMORY = (
    "No memory is configured for this conversation: notes, memory files and past conversations are out of reach, so nothing "
    "can be searched, read, saved, changed or deleted. Say so if the user asked for it, and go on without."
)
MAY_BE_BEHIND = "Izzy has read here what others wrote, and that may be behind this."


class Tier(StrEnum):
    """Safety tier. Read-only calls of one round run side by side, side-effecting ones in order."""

    READ_ONLY = "read_only"
    SIDE_EFFECTING = "side_effecting"


class ToolFailure(Exception):
    """The call failed in a way the model can act on; the message tells it what to do next.

    `untrusted` says that the message quotes what others wrote.
    """

    def __init__(self, message: str, *, untrusted: bool = False) -> None:
        super().__init__(message)
        self.untrusted = untrusted


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result with more than text: `data` is JSON for the model, `build_id` starts a build card on the page.

    `untrusted` says that this result quotes what others wrote, of a tool whose results do not always. `own_words` says
    the opposite of a tool whose results mostly do.
    """

    data: str | dict[str, Any] | list[Any]
    build_id: str | None = None
    untrusted: bool = False
    own_words: bool = False


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """One call: its user, where it was made, and what it may use."""

    user_id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    tool_call_id: UUID
    taint: "ConversationTaint"
    emit: Emit  # sends a `tool_progress` event with the given data
    message_id: UUID | None = None  # the user's message that began the turn
    use_memory: bool = False  # whether notes, files and past conversations are within reach
    by_program: bool = False  # another program's model calls, whose reading Izzy does not see
    permission: dict[str, Any] | None = (
        None  # what the user has just allowed, as `Tool.permission` asked
    )
    # What the call was seen to reach when it was let run (`Reach.to_json`; {}: nothing), and so all it may; None: no yes was needed.
    reach: dict[str, Any] | None = None
    answer: str = ""  # what the user said, to a tool that waits for an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuery:
    """A call that may wait for the user's yes where others' words were read in its conversation before it. Synchronous."""

    user_id: UUID
    arguments: dict[str, Any]
    conversation_id: UUID | None = None  # None for a program's call
    own: Callable[[], Sequence[str]] = tuple  # the user's messages there, without what they quote
    turn_id: UUID | None = None
    place: tuple[int, int] = (0, 0)  # the call's round, and its position in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The hosts and secrets that a call can reach. A yes to it may hold for further calls of the same reach."""

    reason: str  # why it waits, a sentence for the card
    tool: str
    hosts: Sequence[str] = ()
    secrets: Sequence[str] = ()
    capability: str = ""  # the id of the capability, and the number of its version
    version: int = 0

    def to_json(self) -> dict[str, Any]:
        """`{tool, hosts, secrets, capability, version}`"""
        kept = {"tool": self.tool, "hosts": sorted(self.hosts), "secrets": sorted(self.secrets)}
        return kept | {"capability": self.capability, "version": self.version}


Result: TypeAlias = ToolOutput | str | dict[str, Any] | list[Any]
# (context, arguments) -> Result: a plain function does its queries on the database pool, a coroutine waits for others.
Handler: TypeAlias = Callable[[Any, Any], Any]


def may_be_behind(query: ApprovalQuery) -> str:
    """For `Tool.takes`: such a call waits with any input."""
    return MAY_BE_BEHIND


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. A function becomes one by the decorator `tool`."""

    name: str
    description: str
    input_schema: dict[str, Any]
    handler: Handler
    arguments: type | None = None  # the dataclass the handler takes; None: the input as it came
    tier: Tier
    timeout: float = 15.0  # seconds
    result_limit: int = 20_000  # characters of the text the model gets
    toolset: str = ""
    approval: Approval = "allow"  # where the user has set none
    set_with: str = ""  # the tool whose setting holds where the user has set none for this one
    needs_memory: bool = False  # fails in a conversation without memory
    untrusted: bool = (
        False  # results quote others: what is written to memory afterwards waits for review
    )
    # Once others' words were read a call waits for a yes where it can reach hosts of others' choosing or use secrets, unless the
    # user always allows the tool, and where it takes something away or makes it stay: a sentence for the card, or "".
    reach: Callable[[ApprovalQuery], Reach | None] | None = None
    takes: Callable[[ApprovalQuery], str] | None = None
    # What the user must allow before this very call may run, synchronous; None for nothing. The card shows it.
    permission: Callable[[UUID, dict[str, Any]], dict[str, Any] | None] | None = None
    waits_for_answer: bool = False  # the handler runs once the user has answered
    shown_schema: dict[str, Any] | None = None  # for the model, where more than that is accepted
    typed: str = ""  # its type at Anthropic's endpoint, sent there instead of the definition
    typed_fields: dict[str, Any] = field(default_factory=dict)
    runs_at_endpoint: bool = False  # where it is sent by type and the user neither asks nor forbids

    # What people read of it: what it does ("Search memories"), what a call is doing, and what it has done.
    title: str = ""
    doing: str = ""
    done: str = ""
    shows: tuple[str, ...] = ()  # fields of the input: the first that is given stands behind these words
    icon: str = "tool"
    # (title, doing, done) of single commands, by the input's `command`
    variants: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    notes: NoteAction = ""  # what it does with the notes of its input and its result

    def definition(self) -> dict[str, Any]:
        """The entry of the Messages API's `tools` list. It leaves out what calls are checked for but no model needs to read in every
        request: that there are no other fields, and that a text is not empty."""
        schema = self.shown_schema or self.input_schema
        schema = {key: value for key, value in schema.items() if (key, value) not in UNSAID}
        if "properties" in schema:
            schema["properties"] = {
                name: {key: value for key, value in field.items() if key != "minLength"}
                if isinstance(field, dict)
                else field
                for name, field in schema["properties"].items()
            }
        return {"name": self.name, "description": self.description, "input_schema": schema}

    async def run(self, context: ToolContext, given: dict[str, Any]) -> Result:
        """The handler's result for an input that fits the schema."""
        if self.needs_memory and not context.use_memory:
            raise ToolFailure(NO_MEMORY)
        arguments = self.arguments(**self._whole(given)) if self.arguments else given
        if iscoroutinefunction(self.handler):
            result: Result = await self.handler(context, arguments)
        else:
            result = await in_db(self.handler, context, arguments)
        return result

    def _whole(self, given: dict[str, Any]) -> dict[str, Any]:
        """The input with 5 for 5.0 where a whole number is wanted: JSON has one kind of number, and some models write all so."""
        kinds = self.input_schema["properties"]
        return {
            name: int(value)
            if isinstance(value, float) and kinds.get(name, {}).get("type") == "integer"
            else value
            for name, value in given.items()
        }


def tool(**options: Any) -> Callable[[Handler], Tool]:
    """Makes a tool of a function `(context, arguments)`; `options` are fields of `Tool`.

    Its name is the function's, its description the docstring with white space joined, and its input schema that of the
    dataclass with which `arguments` is annotated.
    """

    def made(function: Handler) -> Tool:
        arguments = list(signature(function).parameters.values())[1].annotation
        derived: dict[str, Any] = {
            "name": function.__name__,
            "description": " ".join((function.__doc__ or "").split()),
        }
        if is_dataclass(arguments):
            derived |= {"arguments": arguments, "input_schema": input_schema(arguments)}
        return Tool(handler=function, **derived | options)

    return made


# The tools of all apps; each `AppConfig.ready` names the modules where its own are found.
_tools: dict[str, Tool] = {}
_families: dict[str, Callable[[str], Tool | None]] = {}


def register_tools(module_name: str) -> None:
    """Adds the tools in a module and, where it is a package, in its modules. A name can be registered again only with an
    equal tool."""
    module = import_module(module_name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module_name}."):
        register_tools(found.name)
    for tool in filter(lambda value: isinstance(value, Tool), vars(module).values()):
        known = _tools.get(tool.name)
        if known is not None and known != tool:
            raise ValueError(f"two different tools are called {tool.name}")
        _tools[tool.name] = tool


def register_family(prefix: str, make: Callable[[str], Tool | None]) -> None:
    """Adds all tools whose names begin with `prefix`: `make` gives the one of a name, None where there can be none.

    They stand in no toolset; whoever knows which of them exist lists them.
    """
    _families[prefix] = make


def find_tool(name: str) -> Tool | None:
    """The tool of that name, whatever toolset it is in."""
    made = (make(name) for prefix, make in _families.items() if name.startswith(prefix))
    return _tools.get(name) or next(made, None)


def tool_title(name: str, command: str = "") -> str:
    """Title of a tool, or of one of its commands, for people; a tool that is gone has its name alone."""
    tool = find_tool(name)
    if tool is None or not tool.title:
        return name.replace("_", " ").capitalize()
    return tool.variants.get(command, (tool.title,))[0]


def tool_words() -> dict[str, dict[str, Any]]:
    """How the chat page shows calls of each tool: those fields of `Tool` that are for people, by the tool's name."""
    shown = ("title", "doing", "done", "shows", "icon", "variants", "notes")
    return {tool.name: {name: getattr(tool, name) for name in shown} for tool in all_tools()}


def all_tools() -> list[Tool]:
    """Every registered tool, in the order of the names."""
    return [_tools[name] for name in sorted(_tools)]


def tools_for(toolsets: Collection[str]) -> list[Tool]:
    """The tools of these toolsets and of the always-offered one (""), in the order of their names.

    The order depends on the set alone, so that the beginning of a request stays the same.
    """
    return [tool for _, tool in sorted(_tools.items()) if not tool.toolset or tool.toolset in toolsets]
