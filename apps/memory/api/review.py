"""REST of what waits for the user's word: the review queue and open contradictions."""

from dataclasses import replace
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field
from rest_framework.request import Request

from apps.core.errors import NotFound
from apps.core.http.rest import Listed, operation
from apps.core.http.shapes import Beside, ClosedInput, NoteId, Refused, Shape, page_of, text
from apps.memory.models import Memory, Proposal
from apps.memory.notes import selectors
from apps.memory.notes.fields import MAX_CONTENT_CHARS
from apps.memory.notes.joining import contradiction_resolve
from apps.memory.notes.review import (
    note_approve,
    review_accept,
    review_decide,
    review_merge,
    review_queue,
    review_reject,
)
from apps.memory.notes.revisions import MAX_REASON_CHARS
from apps.memory.pages.review import waiting_of

from .notes import NotesView
from .shapes import EdgeOutput, Ids, MemoryOutput


class PieceOutput(Shape):
    """A run of text of a diff."""

    kind: Literal["same", "added", "removed"]
    text: str


class SimilarOutput(Shape):
    """The note that stands against one that waits."""

    id: UUID
    content: str
    similarity: float | None = Field(description="0 to 1; null for the target of a proposal.")


class WaitingOutput(MemoryOutput):
    """A note that waits for review."""

    proposal: Proposal = Field(validation_alias="action", description="What accepting it does.")
    most_similar: SimilarOutput | None
    diff: list[PieceOutput] = Field(description="From the other note's text to this one's.")


class ContradictionOutput(EdgeOutput):
    """Two active notes that cannot both be true."""

    notes: list[MemoryOutput]


class ReviewAccept(ClosedInput):
    content: Annotated[str, text(MAX_CONTENT_CHARS)] | None = Field(
        None, description="Another text to accept instead."
    )


class ReviewReject(ClosedInput):
    reason: Annotated[str, text(MAX_REASON_CHARS, allow_empty=True)] | None = Field(
        None, description="Kept in its history."
    )


class ReviewMerge(ClosedInput):
    into: Annotated[NoteId, Refused("missing_field")] = Field(
        description="The active note that takes it in."
    )
    content: Annotated[str, text(MAX_CONTENT_CHARS)] | None = Field(
        None, description="The merged text; else both, one below the other."
    )


class ReviewDecide(ClosedInput):
    decision: Annotated[Literal["accept", "reject"], Refused("")]
    notes: Ids = Field(description="Ids.")


class ReviewFailure(Shape):
    id: UUID
    code: str
    message: str


class ReviewDecided(Shape):
    count: int
    failed: list[ReviewFailure]


class ContradictionKeep(ClosedInput):
    keep: Annotated[NoteId | None, Refused("missing_field")] = Field(
        description="The note that is true; null: both are."
    )


class ReviewView(NotesView):
    """Notes awaiting review."""

    @operation("review_list", answer=page_of("ReviewPage", WaitingOutput))
    def get(self, request: Request) -> Listed:
        """The notes that wait, newest first, each with what it proposes and what differs."""
        return Listed(review_queue(self.user_id), self._rows)

    def _rows(self, notes: list[Memory]) -> list[Beside]:
        return [
            Beside(waiting.note, waiting, most_similar=waiting.other and Beside(waiting.other, waiting))
            for waiting in waiting_of(self.user_id, notes)
        ]

    @operation("review_decide", body=ReviewDecide, answer=ReviewDecided)
    def post(self, request: Request) -> dict[str, Any]:
        """Accept or reject several notes; one that cannot be decided on does not hold up the others."""
        body = self.body(ReviewDecide)
        accept = body.decision == "accept"
        done = review_decide(
            user_id=self.user_id, memory_ids=body.notes, accept=accept, change=self.change
        )
        failed = [Beside(error, id=key) for key, error in done.failed.items()]
        return {"count": done.count, "failed": failed}


class AcceptView(NotesView):
    """Yes."""

    @operation("review_accept", body=ReviewAccept, answer=MemoryOutput)
    def post(self, request: Request, memory_id: UUID) -> Memory:
        """Do what a waiting note proposes, or with another text; answers the note that holds it now."""
        content = self.body(ReviewAccept).content
        note = review_accept(
            user_id=self.user_id, memory_id=memory_id, content=content, change=self.change
        )
        return self.note(note.pk)


class ApproveView(NotesView):
    """Yes to one that is in use already."""

    @operation("memories_approve", answer=MemoryOutput)
    def post(self, request: Request, memory_id: UUID) -> Memory:
        """Say yes to an untrusted note, whether it waits or is in use: it counts as reviewed, and its trust stays."""
        note = note_approve(user_id=self.user_id, memory_id=memory_id, change=self.change)
        return self.note(note.pk)


class RejectView(NotesView):
    """No."""

    @operation("review_reject", body=ReviewReject, status=204)
    def post(self, request: Request, memory_id: UUID) -> None:
        """Turn a waiting note down; it can be restored for 30 days."""
        reason = self.body(ReviewReject).reason or ""
        review_reject(
            user_id=self.user_id, memory_id=memory_id, change=replace(self.change, reason=reason)
        )


class ReviewMergeView(NotesView):
    """Into another."""

    @operation("review_merge", body=ReviewMerge, answer=MemoryOutput)
    def post(self, request: Request, memory_id: UUID) -> Memory:
        """Let an active note take in a waiting one."""
        key = self.note(memory_id).pk
        body = self.body(ReviewMerge)
        note = review_merge(
            user_id=self.user_id,
            memory_id=key,
            into_id=body.into,
            content=body.content,
            change=self.change,
        )
        return self.note(note.pk)


class ContradictionsView(NotesView):
    """Open contradictions."""

    @operation("contradictions_list", answer=page_of("ContradictionPage", ContradictionOutput))
    def get(self, request: Request) -> Listed:
        """The open contradictions: pairs of active notes, oldest first."""
        rows = selectors.open_contradictions(self.user_id)
        return Listed(rows, lambda shown: [Beside(row, notes=[row.source, row.target]) for row in shown])


class ContradictionView(NotesView):
    """One contradiction."""

    @operation("contradictions_resolve", body=ContradictionKeep, status=204)
    def post(self, request: Request, edge_id: UUID) -> None:
        """Say which note is true: the other is superseded by it. Null says that both are."""
        if not selectors.open_contradictions(self.user_id).filter(pk=edge_id).exists():
            raise NotFound("There is no open contradiction with this id.")
        contradiction_resolve(
            user_id=self.user_id,
            edge_id=edge_id,
            keep_id=self.body(ContradictionKeep).keep,
            change=self.change,
        )
