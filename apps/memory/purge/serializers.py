"""The shapes of purges for the API's description."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.memory.models import Purged, PurgeState


@extend_schema_field(
    {"oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "string", "format": "uuid"}}]}
)
class RedactField(serializers.JSONField):
    """True for all source messages, or the ids of some."""


class FilePurgeInput(serializers.Serializer[Any]):
    """`redact`: also replace these messages that say the same."""

    redact = RedactField(required=False, help_text="true: all of source_messages; or a list of their ids.")


class PurgeInput(FilePurgeInput):
    """`also`: further notes to purge with it."""

    also = serializers.ListField(child=serializers.CharField(), required=False, help_text="At most 100 ids.")


class PlaceOutput(serializers.Serializer[Any]):
    """One place that was looked into, counted in rows."""

    place = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # the name of one of its own attributes
    why = serializers.CharField(help_text="Why something is left there.")
    found = serializers.IntegerField()
    removed = serializers.IntegerField()
    left = serializers.IntegerField()


class PointerOutput(serializers.Serializer[Any]):
    """A message that says the same, without its words."""

    id = serializers.UUIDField()
    conversation = serializers.UUIDField()
    redacted = serializers.BooleanField()


class DiskOutput(serializers.Serializer[Any]):
    """Whether what was removed is off the disk too."""

    state = serializers.ChoiceField(["done", "scheduled"])
    at = serializers.DateTimeField(allow_null=True)


class ReceiptOutput(serializers.Serializer[Any]):
    """What a purge found, removed and left. Holds no word of what was purged."""

    id = serializers.UUIDField()
    source = serializers.ChoiceField(Purged.choices)  # type: ignore[assignment]  # likewise
    memory_id = serializers.UUIDField(help_text="The note, or the file.")
    ids = serializers.ListField(child=serializers.UUIDField())
    state = serializers.ChoiceField(PurgeState.choices)
    by_sweep = serializers.BooleanField()
    started_at = serializers.DateTimeField()
    purged_at = serializers.DateTimeField(allow_null=True)
    places = PlaceOutput(many=True)
    left = PlaceOutput(many=True)
    source_messages = PointerOutput(many=True)
    related = serializers.ListField(child=serializers.UUIDField())
    disk = DiskOutput()


class SourceOutput(serializers.Serializer[Any]):
    """A message that says the same and could be redacted too."""

    id = serializers.UUIDField()
    conversation = serializers.UUIDField()
    role = serializers.CharField()
    title = serializers.CharField()
    excerpt = serializers.CharField()
    recorded = serializers.BooleanField(help_text="The note itself names it as its source.")
    created_at = serializers.DateTimeField()


class RelatedNoteOutput(serializers.Serializer[Any]):
    """Another note that says the same, or replaced it."""

    id = serializers.UUIDField()
    note_id = serializers.CharField()
    content = serializers.CharField()
    status = serializers.CharField()


class PreviewOutput(serializers.Serializer[Any]):
    """What a purge would touch beside the note itself."""

    source = serializers.ChoiceField(Purged.choices)  # type: ignore[assignment]  # likewise
    id = serializers.UUIDField()
    source_messages = SourceOutput(many=True)
    related = RelatedNoteOutput(many=True)
