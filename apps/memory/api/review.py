"""REST of what waits for the user's word: the review queue and open contradictions."""

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput, NotFound
from apps.core.ids import parse_id
from apps.core.rest_views import ClosedInput, TextField, page_of
from apps.core.text import clean_text
from apps.memory import selectors, services
from apps.memory.fields import MAX_CONTENT_CHARS
from apps.memory.history.diffs import Piece
from apps.memory.models import Memory, Proposal
from apps.memory.review import services as review
from apps.memory.review.selectors import Waiting, review_queue, waiting_of
from apps.memory.services.provenance import MAX_REASON_CHARS

from .base import NotesView
from .inputs import MAX_IDS, body_object, id_list
from .output import edge_json, memory_json
from .serializers import EdgeOutput, MemoryOutput


class PieceOutput(serializers.Serializer[Any]):
    """A run of text of a diff."""

    kind = serializers.ChoiceField(["same", "added", "removed"])
    text = serializers.CharField()


class SimilarOutput(serializers.Serializer[Any]):
    """The note that stands against one that waits."""

    id = serializers.UUIDField()
    content = serializers.CharField()
    similarity = serializers.FloatField(
        allow_null=True, help_text="0 to 1; null for the target of a proposal."
    )


class WaitingOutput(MemoryOutput):
    """A note that waits for review."""

    proposal = serializers.ChoiceField(Proposal.choices, help_text="What accepting it does.")
    most_similar = SimilarOutput(allow_null=True)
    diff = PieceOutput(many=True, help_text="From the other note's text to this one's.")


class ContradictionOutput(EdgeOutput):
    """Two active notes that cannot both be true."""

    notes = MemoryOutput(many=True)


class ReviewAccept(ClosedInput):
    content = TextField(
        required=False, max_length=MAX_CONTENT_CHARS, help_text="Another text to accept instead."
    )


class ReviewReject(ClosedInput):
    reason = serializers.CharField(
        required=False, allow_blank=True, max_length=MAX_REASON_CHARS, help_text="Kept in its history."
    )


class ReviewMerge(ClosedInput):
    into = serializers.CharField(help_text="The active note that takes it in.")
    content = TextField(
        required=False,
        max_length=MAX_CONTENT_CHARS,
        help_text="The merged text; else both, one below the other.",
    )


class ReviewDecide(ClosedInput):
    decision = serializers.ChoiceField(["accept", "reject"])
    notes = serializers.ListField(
        child=serializers.CharField(), min_length=1, max_length=MAX_IDS, help_text="Ids."
    )


class ReviewFailure(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    code = serializers.CharField()
    message = serializers.CharField()


class ReviewDecided(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    failed = ReviewFailure(many=True)


class ContradictionKeep(ClosedInput):
    keep = serializers.CharField(allow_null=True, help_text="The note that is true; null: both are.")


@extend_schema(tags=["review"])
class ReviewView(NotesView):
    """What waits for review."""

    @extend_schema(operation_id="review_list", responses=page_of("ReviewPage", WaitingOutput(many=True)))
    def get(self, request: Request) -> Response:
        """The notes that wait, newest first, each with what it proposes and what differs."""
        return self.pages_of(review_queue(self.user_id), self._rows)

    @extend_schema(operation_id="review_decide", request=ReviewDecide, responses=ReviewDecided)
    def post(self, request: Request) -> Response:
        """Accept or reject several notes; one that cannot be decided on does not hold up the others."""
        body = body_object(request.data, {"decision", "notes"})
        decisions = {"accept": review.review_accept_all, "reject": review.review_reject_all}
        decide = decisions.get(str(body.get("decision")))
        if decide is None:
            raise InvalidInput("decision must be accept or reject.", field="decision")
        done = decide(
            user_id=self.user_id, memory_ids=id_list(body.get("notes"), field="notes"), change=self.change
        )
        failed = [
            {"id": str(key), "code": error.code, "message": error.message}
            for key, error in done.failed.items()
        ]
        return Response({"count": done.count, "failed": failed})

    def _rows(self, notes: list[Memory]) -> list[dict[str, Any]]:
        return [waiting_json(waiting) for waiting in waiting_of(self.user_id, notes)]


@extend_schema(tags=["review"])
class AcceptView(NotesView):
    """Yes."""

    @extend_schema(operation_id="review_accept", request=ReviewAccept, responses=MemoryOutput)
    def post(self, request: Request, memory_id: str) -> Response:
        """Do what a waiting note proposes, or with another text; answers the note that holds it now."""
        content = body_object(request.data, {"content"}).get("content")
        note = review.review_accept(
            user_id=self.user_id, memory_id=parse_id(memory_id), content=content, change=self.change
        )
        return Response(self.note(note.pk))


@extend_schema(tags=["review"])
class RejectView(NotesView):
    """No."""

    @extend_schema(operation_id="review_reject", request=ReviewReject, responses={204: None})
    def post(self, request: Request, memory_id: str) -> Response:
        """Turn a waiting note down; it can be restored for 30 days."""
        key = parse_id(memory_id)
        reason = body_object(request.data, {"reason"}).get("reason")
        why = clean_text(reason or "", field="reason", max_chars=MAX_REASON_CHARS, allow_empty=True)
        review.review_reject(user_id=self.user_id, memory_id=key, change=replace(self.change, reason=why))
        return Response(status=204)


@extend_schema(tags=["review"])
class ReviewMergeView(NotesView):
    """Into another."""

    @extend_schema(operation_id="review_merge", request=ReviewMerge, responses=MemoryOutput)
    def post(self, request: Request, memory_id: str) -> Response:
        """Let an active note take in a waiting one."""
        key = parse_id(memory_id)
        body = body_object(request.data, {"into", "content"})
        selectors.memory_get(self.user_id, key)
        if "into" not in body:
            raise InvalidInput("into is missing.", code="missing_field", field="into")
        note = review.review_merge(
            user_id=self.user_id,
            memory_id=key,
            into_id=parse_id(body["into"]),
            content=body.get("content"),
            change=self.change,
        )
        return Response(self.note(note.pk))


@extend_schema(tags=["review"])
class ContradictionsView(NotesView):
    """What cannot both be true."""

    @extend_schema(
        operation_id="contradictions_list",
        responses=page_of("ContradictionPage", ContradictionOutput(many=True)),
    )
    def get(self, request: Request) -> Response:
        """The open contradictions: pairs of active notes, oldest first."""
        return self.page(selectors.open_contradictions(self.user_id), _contradiction_json)


@extend_schema(tags=["review"])
class ContradictionView(NotesView):
    """One contradiction."""

    @extend_schema(operation_id="contradictions_resolve", request=ContradictionKeep, responses={204: None})
    def post(self, request: Request, edge_id: str) -> Response:
        """Say which note is true: the other is superseded by it. Null says that both are."""
        key = parse_id(edge_id)
        body = body_object(request.data, {"keep"})
        if not selectors.open_contradictions(self.user_id).filter(pk=key).exists():
            raise NotFound("There is no open contradiction with this id.")
        if "keep" not in body:
            raise InvalidInput("keep is missing.", code="missing_field", field="keep")
        keep = body["keep"]
        services.contradiction_resolve(
            user_id=self.user_id,
            edge_id=key,
            keep_id=None if keep is None else parse_id(keep),
            change=self.change,
        )
        return Response(status=204)


def waiting_json(waiting: Waiting) -> dict[str, Any]:
    """A note that waits, with what stands against it."""
    other = waiting.other
    similar = other and {"id": str(other.pk), "content": other.content, "similarity": waiting.similarity}
    return {
        **memory_json(waiting.note),
        "proposal": str(waiting.action),
        "most_similar": similar,
        "diff": list(map(Piece.to_json, waiting.diff)),
    }


def _contradiction_json(edge: Any) -> dict[str, Any]:
    return {**edge_json(edge), "notes": [memory_json(edge.source), memory_json(edge.target)]}
