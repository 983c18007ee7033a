"""REST outputs of what notes and files were, and of when notes came up."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from apps.core.http.shapes import Moment, Shape
from apps.memory.models import Kind, OccasionsBy, Origin, Status, Tier, Trust, UsedIn


class StateOutput(Shape):
    """A state of a note or file: what it held from `at` on, and who made it so."""

    version: int = Field(description="Pass it to undo/ or restore/ as `version`.")
    current: bool
    actor: Origin
    reason: str
    at: datetime
    content: str
    trust: Trust


class VersionOutput(StateOutput):
    """A state of a note."""

    action: str = Field(
        description="created, updated, deleted, restored, archived, undone, superseded, merged, accepted"
    )
    tier: Tier
    kind: Kind
    importance: int
    tags: list[str]
    category: str
    occasions: list[str]
    occasions_by: OccasionsBy
    status: Status
    decay_rate: float
    valid_from: Moment | None
    valid_to: Moment | None
    priority: float
    superseded_by: UUID | None


class UseOutput(Shape):
    """A time that a note came up."""

    at: datetime = Field(validation_alias="created_at")
    used_in: UsedIn
    question: str = Field(description="What it came up beside, cut at 300 characters.")
    reason: str
    conversation: UUID | None = Field(validation_alias="conversation_id")
    message: UUID | None = Field(validation_alias="message_id")


class FileVersionOutput(StateOutput):
    """A state of a file."""

    action: str = Field(
        description="created, edited, renamed, deleted, restored, undone; kept: the oldest"
    )
    path: str
