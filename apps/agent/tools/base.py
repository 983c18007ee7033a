"""The contract of a tool: what the model sees of it, what runs, and within which limits."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias
from uuid import UUID

from apps.agent.protocols import CatalogTools, ConversationTools, FileTools, MemoryTools

Approval: TypeAlias = Literal["allow", "ask", "never"]
Emit: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

MAY_BE_BEHIND = "Izzy has read here what others wrote, and that may be behind this."


class Tier(StrEnum):
    """Safety tier. Read-only calls of one round run side by side, side-effecting ones in order."""

    READ_ONLY = "read_only"
    SIDE_EFFECTING = "side_effecting"


class WaitsFor(StrEnum):
    """What a call waits for before it can end."""

    NOTHING = ""
    APPROVAL = "approval"
    ANSWER = "answer"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Whom a call belongs to and what it may use. `emit` sends a `tool_progress` event with the given data.

    `permission` is what the user has just allowed for this call, as `Tool.permission` asked for it; else None.
    """

    user_id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    tool_call_id: UUID
    emit: Emit
    memory: MemoryTools | None = None
    conversations: ConversationTools | None = None
    files: FileTools | None = None
    catalog: CatalogTools | None = None
    permission: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A call before which others' words were read in its conversation: may it run without the user's yes?

    `said` gives the user's messages there, `own` the same without what they quote. Synchronous.
    """

    user_id: UUID
    conversation_id: UUID
    arguments: dict[str, Any]
    said: Callable[[], Sequence[str]]
    own: Callable[[], Sequence[str]]
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


Handler: TypeAlias = Callable[
    [ToolContext, dict[str, Any]], Awaitable[ToolOutput | str | dict[str, Any] | list[Any]]
]


def always(arguments: dict[str, Any]) -> bool:
    """Whatever the input is: for `Tool.asks_when_untrusted`."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool.

    `timeout` is in seconds, `result_limit` in characters of the text the model gets. `approval` is the default
    where the user has set none; where they have set none for this tool, what they set for the one named by `set_with`
    holds. `untrusted` marks results that quote other people's text (pages, files): the
    model is told not to follow instructions in them, and what it writes to memory afterwards waits for the user's
    review. `reach` (synchronous) says which hosts of others' choosing, and which secrets, a call can reach, None for neither: such a
    call waits for the user's yes once others' words were read. `asks_when_untrusted` names other calls, by their input, that wait for the user's yes once such a result
    was read in the conversation, unless the user always allows the tool. `reason` (synchronous) says in a sentence why
    such a call waits; "" excepts it again, where it can carry nothing out. `permission` (synchronous, given the user's id and
    the input) says what the user must allow before this very call may run, however the tool itself is set; None for
    nothing. The card shows it, and the handler finds it in its context after the yes. `waits_for` is `ANSWER` for a tool whose result is what the
    user says next; such a tool's handler gets the answer as `{"answer": text}` merged into its input.
    `shown_schema` is what the model sees where that is narrower than what is accepted. `typed` is the type under
    which Anthropic's own endpoint knows the tool: sent there, with `typed_fields`, instead of description and schema.
    `runs_at_endpoint`: such a tool is then run by the endpoint itself, unless the user wants to be asked or never
    to have it run.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    handler: Handler
    tier: Tier
    timeout: float = 15.0
    result_limit: int = 20_000
    toolset: str = ""
    approval: Approval = "allow"
    set_with: str = ""
    untrusted: bool = False
    asks_when_untrusted: Callable[[dict[str, Any]], bool] | None = None
    reach: Callable[[Asking], Reach | None] | None = None
    reason: Callable[[Asking], str] | None = None
    permission: Callable[[UUID, dict[str, Any]], dict[str, Any] | None] | None = None
    waits_for: WaitsFor = WaitsFor.NOTHING
    shown_schema: dict[str, Any] | None = None
    typed: str = ""
    typed_fields: dict[str, Any] = field(default_factory=dict)
    runs_at_endpoint: bool = False

    def definition(self) -> dict[str, Any]:
        """The entry of the Messages API's `tools` list."""
        schema = self.shown_schema or self.input_schema
        return {"name": self.name, "description": self.description, "input_schema": schema}
