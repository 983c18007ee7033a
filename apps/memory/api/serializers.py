"""What the REST interface takes and gives, described to OpenAPI; `output.py` builds it, `fields.py` and `inputs.py` check it."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from apps.core.rest_views import ClosedInput, TextField, TimeParameter
from apps.memory.fields import BULK_LIMIT, MAX_CATEGORY_CHARS, MAX_CONTENT_CHARS, WRITABLE_STATUS
from apps.memory.models import PRIORITY_FLOOR, Kind, Origin, Status, Tier, Trust
from apps.memory.selectors import MAX_DEPTH, ORDERINGS
from apps.memory.selectors.filters import MAX_QUERY_CHARS
from apps.search.documents import Source


class MemoryInput(ClosedInput):
    """What a note is made from."""

    content = TextField(max_length=MAX_CONTENT_CHARS)
    tier = serializers.ChoiceField(Tier.choices, default=Tier.LONG_TERM)
    kind = serializers.ChoiceField(Kind.choices, default=Kind.GENERAL)
    importance = serializers.IntegerField(min_value=1, max_value=5, default=3)
    tags = serializers.ListField(child=serializers.CharField(), required=False)
    category = serializers.CharField(max_length=MAX_CATEGORY_CHARS, required=False, allow_null=True)
    status = serializers.ChoiceField([str(status) for status in WRITABLE_STATUS], default=Status.ACTIVE)
    valid_from = serializers.DateTimeField(required=False, allow_null=True)
    valid_to = serializers.DateTimeField(required=False, allow_null=True)
    priority = serializers.FloatField(
        min_value=0, max_value=1, required=False, help_text="0.9 long-term, 0.6 short-term unless given."
    )
    decay_rate = serializers.FloatField(
        min_value=0, max_value=1, required=False, help_text="0.005 long-term, 0.02 short-term unless given."
    )


class MemoryOutput(serializers.Serializer[Any]):
    """A note."""

    id = serializers.UUIDField()
    note_id = serializers.CharField(help_text="`note-` and the id: what the assistant uses.")
    content = serializers.CharField()
    tier = serializers.ChoiceField(Tier.choices)
    kind = serializers.ChoiceField(Kind.choices)
    importance = serializers.IntegerField()
    priority = serializers.FloatField(help_text="What it is now, after decay.")
    decay_rate = serializers.FloatField(help_text="Lost per chat turn.")
    faded = serializers.BooleanField(
        help_text=f"Priority below {PRIORITY_FLOOR}: recall_memory leaves it out."
    )
    tags = serializers.ListField(child=serializers.CharField())
    category = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    superseded_by = serializers.UUIDField(allow_null=True)
    review_reason = serializers.CharField(
        help_text="Why it waits or waited: untrusted, sensitive, everything."
    )
    proposed_action = serializers.CharField(
        help_text="add, update, supersede, merge: what accepting it does."
    )
    proposed_target = serializers.UUIDField(allow_null=True)
    origin = serializers.ChoiceField(Origin.choices)
    trust = serializers.ChoiceField(Trust.choices)
    source_conversation = serializers.UUIDField(allow_null=True)
    source_message = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    last_accessed = serializers.DateTimeField(allow_null=True)
    access_count = serializers.IntegerField()
    deleted_at = serializers.DateTimeField(allow_null=True)


class RelatedQuery(serializers.Serializer[Any]):
    depth = serializers.IntegerField(min_value=1, max_value=MAX_DEPTH, default=2, help_text="Links away.")


class MemoriesQuery(serializers.Serializer[Any]):
    """Which notes, and in what order; the fields are those of `NoteFilter`."""

    q = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=MAX_QUERY_CHARS,
        help_text="Words that all must occur in text or tags (see /search/ for meaning).",
    )
    tier = serializers.ChoiceField(Tier.choices, required=False)
    kind = serializers.ChoiceField(Kind.choices, required=False)
    tag = serializers.CharField(required=False, allow_blank=True)
    category = serializers.CharField(required=False, allow_blank=True)
    status = serializers.ChoiceField(Status.choices, required=False, help_text="Default: all but deleted.")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # the parameter, not Field.source
        Origin.choices, required=False, help_text="Where notes came from."
    )
    as_of = TimeParameter(required=False, help_text="What held at this time, as it read then.")
    ordering = serializers.ChoiceField(
        [sign + name for name in ORDERINGS for sign in ("", "-")],
        required=False,
        help_text="Default: -created_at.",
    )


class RelatedOutput(MemoryOutput):
    """A note and how it was reached."""

    depth = serializers.IntegerField()
    relation = serializers.CharField()
    weight = serializers.FloatField()
    via = serializers.UUIDField(help_text="The note before it on the way.")


class _State(serializers.Serializer[Any]):
    """A state of a note or file: what it held from `at` on, and who made it so."""

    version = serializers.IntegerField(help_text="Pass it to undo/ or restore/ as `version`.")
    current = serializers.BooleanField()
    actor = serializers.ChoiceField(Origin.choices)
    reason = serializers.CharField()
    at = serializers.DateTimeField()
    content = serializers.CharField()
    trust = serializers.ChoiceField(Trust.choices)


class VersionOutput(_State):
    """A state of a note."""

    action = serializers.CharField(
        help_text="created, updated, deleted, restored, archived, undone, superseded, merged, accepted"
    )
    tier = serializers.ChoiceField(Tier.choices)
    kind = serializers.ChoiceField(Kind.choices)
    importance = serializers.IntegerField()
    tags = serializers.ListField(child=serializers.CharField())
    category = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    decay_rate = serializers.FloatField()
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    priority = serializers.FloatField()
    superseded_by = serializers.UUIDField(allow_null=True)


class FileVersionOutput(_State):
    """A state of a file."""

    action = serializers.CharField(
        help_text="created, edited, renamed, deleted, restored, undone; kept: the oldest"
    )
    path = serializers.CharField()


class EdgeInput(ClosedInput):
    """A link to another note."""

    target = serializers.CharField(help_text="The other note's id.")
    relation = serializers.CharField(
        max_length=64, default="related", help_text="related, supersedes, contradicts, elaborates or any text"
    )
    weight = serializers.FloatField(min_value=0, max_value=1, default=1.0)


class EdgeOutput(serializers.Serializer[Any]):
    """A link between two notes."""

    id = serializers.UUIDField()
    source = serializers.UUIDField()  # type: ignore[assignment]  # the field, not Field.source
    target = serializers.UUIDField()
    relation = serializers.CharField()
    weight = serializers.FloatField()
    created_at = serializers.DateTimeField()


class RestoreInput(ClosedInput):
    """Without `version` a deleted or archived note comes back; with it a note goes back to that version."""

    version = serializers.IntegerField(min_value=1, required=False)


class UndoInput(ClosedInput):
    """Which version to go back to; the one before the last change unless given."""

    version = serializers.IntegerField(min_value=1, required=False)


class MergeInput(ClosedInput):
    """Notes to make one of."""

    notes = serializers.ListField(
        child=serializers.CharField(), min_length=2, max_length=20, help_text="Ids."
    )
    into = serializers.CharField(required=False, help_text="Which of them stays; the first unless given.")
    content = serializers.CharField(
        max_length=MAX_CONTENT_CHARS, required=False, help_text="The text; else all, one below the other."
    )


class _Limits(ClosedInput):
    """What limits a search."""

    sources = serializers.ListField(
        child=serializers.ChoiceField([str(source) for source in Source]),
        required=False,
        help_text="Default: all.",
    )
    conversation = serializers.CharField(required=False, help_text="Only what belongs to this conversation.")
    as_of = serializers.DateTimeField(required=False, help_text="What held at this time, as it read then.")
    tags = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Only notes with all of these tags."
    )
    threshold = serializers.FloatField(
        required=False,
        min_value=0,
        max_value=1,
        help_text="Nothing with a lower score; 0.45 keeps what is worth showing. Default: everything.",
    )


class SearchInput(_Limits):
    """What to look for."""

    query = TextField(max_length=10_000)
    top_k = serializers.IntegerField(min_value=1, max_value=100, default=10)


class ContextItem(serializers.Serializer[Any]):
    """A document that was found."""

    source = serializers.ChoiceField([str(source) for source in Source])  # type: ignore[assignment]  # the field, not Field.source
    id = serializers.UUIDField()
    external_id = serializers.CharField()
    score = serializers.FloatField(
        min_value=0, max_value=1, help_text="Falls from result to result; means the same for every query."
    )
    reason = serializers.CharField(
        help_text="Why it was found, in a few words: a tag, the same words, a date."
    )
    untrusted = serializers.BooleanField(
        required=False,
        help_text="Set (and true) where it repeats what pages, files or others said; else absent.",
    )


class HitOutput(ContextItem):
    """A search result."""

    text = serializers.CharField()
    parts = serializers.DictField(
        child=serializers.FloatField(),
        help_text="The weighted signals that decided the order, by name. `tag:…` and `category:…` are the share of the "
        "question's words that such a label of the note has.",
    )
    created_at = serializers.DateTimeField()


class SearchOutput(serializers.Serializer[Any]):
    """Search results, best first."""

    results = HitOutput(many=True)
    took_ms = serializers.FloatField()


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["content"],
                "properties": {
                    "role": {"type": "string"},
                    "content": {
                        "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
                        "description": "Text, or blocks, of which those of type text count.",
                    },
                },
            },
        ]
    }
)
class MessageField(serializers.JSONField):
    """A message: its text, or an object with its content."""


class ContextInput(_Limits):
    """Either a query or the newest messages of a conversation, the last three of which count."""

    openapi = {"oneOf": [{"required": ["query"]}, {"required": ["messages"]}]}
    query = TextField(max_length=10_000, required=False)
    messages = serializers.ListField(
        child=MessageField(),
        required=False,
        min_length=1,
    )
    budget_tokens = serializers.IntegerField(min_value=1, max_value=20_000, default=500)


class ContextOutput(serializers.Serializer[Any]):
    """Text for a model to read before it answers, within the budget."""

    text = serializers.CharField()
    tokens = serializers.IntegerField()
    items = ContextItem(many=True)


class MemoryBulkInput(ClosedInput):
    """Notes that are saved together, all or none."""

    memories = serializers.ListField(child=MemoryInput(), min_length=1, max_length=BULK_LIMIT)


BULK_OUTPUT = inline_serializer(
    "MemoryBulkOutput", {"count": serializers.IntegerField(), "results": MemoryOutput(many=True)}
)
