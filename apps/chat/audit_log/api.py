"""REST: the decision log of a conversation."""

from typing import Any, Literal
from uuid import UUID

from pydantic import Field
from rest_framework.request import Request

from apps.chat.audit_log.selectors import decision_log
from apps.chat.conversations.selectors import conversation_get
from apps.core.http.rest import UserView, operation
from apps.core.http.shapes import Moment, Shape


class LogStepOutput(Shape):
    id: UUID
    at: Moment
    round: int
    tool: str
    input: dict[str, Any]
    result: str
    title: str = Field(description="What the call is, in words.")
    target: str = Field(description="What it is about: a file, a query, a note's text.")
    outcome: str
    state: Literal["ok", "error", "not_run", "open"]
    error_code: str
    is_recovery: bool = Field(description="Belongs to what made good an earlier error.")
    recovered_by: UUID | None = Field(description="The later call that made this error good.")
    duration_ms: int
    lines: int = Field(description="Written into a file or a note.")
    characters: int


class LogTurnOutput(Shape):
    turn: UUID
    at: Moment
    said: str
    state: str
    replaced_by: UUID | None = Field(description="The turn that an edit or a retry put in its place.")
    error: dict[str, Any] | None
    model: str
    duration_ms: int | None
    steps: list[LogStepOutput]
    answer: str
    outcome: list[str]
    written: dict[str, int]
    memories: list[dict[str, Any]]
    files: list[dict[str, Any]]
    usage: dict[str, Any]


class LogOutput(Shape):
    conversation: dict[str, Any]
    turns: list[LogTurnOutput]
    totals: dict[str, Any]


class LogView(UserView):
    """`GET /conversations/{id}/log/`: turn by turn what the model chose to do, oldest first."""

    @operation("conversations_log", answer=LogOutput)
    def get(self, request: Request, conversation_id: str) -> dict[str, Any]:
        """Read turn by turn what the model chose to do and what came of it, oldest first."""
        return decision_log(conversation_get(self.user_id, conversation_id))
