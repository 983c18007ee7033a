"""Passages, the unit of search, and what keeps every process' index of them fresh."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.core.models import choices_checked
from apps.search.documents import Facet, Source


@choices_checked
class EmbeddingSpace(models.Model):
    """One embedder's vector space: the base space of the bundled vectors, or the side space of the encoder beside them.

    Base vectors are in `Passage.vector`, side vectors in `Passage.side_vector`. Vectors of two spaces are never compared:
    each has a calibration of its own. Another encoder gets a new row, once the vectors of the one before it are gone.
    """

    instance_wide = True  # no user's rows

    class Role(models.TextChoices):
        BASE = "base"
        SIDE = "side"

    role = models.CharField(max_length=4, choices=Role, unique=True)
    name = models.CharField(
        max_length=200, help_text="The IZZY_EMBEDDER value that makes these vectors."
    )
    dimension = models.PositiveIntegerField()
    query_prefix = models.CharField(max_length=200, blank=True)
    document_prefix = models.CharField(max_length=200, blank=True)
    noise = models.FloatField(help_text="Cosine of unrelated texts: calibrated similarity 0.")
    match = models.FloatField(help_text="Cosine of texts that say the same: calibrated similarity 1.")
    concern = models.BinaryField(
        null=True,
        help_text="What it was taught by example; of an encoder that comes taught, by which version the vectors are.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.role})"


class IndexOwner(models.Model):
    """A user as search sees them: a short `number` that prefixes their terms, and a change number.

    `change` grows in every transaction that writes or removes a passage of the user; rows carry the value
    they were written with, so another process reads only what came after the value it knows.
    """

    number = models.AutoField(primary_key=True)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    change = models.BigIntegerField(default=0)
    tombstones_from = models.BigIntegerField(
        default=0,
        help_text="Deletions up to this change are forgotten: an index older than it loads anew.",
    )

    def __str__(self) -> str:
        return f"owner {self.number}"


@choices_checked
class Passage(models.Model):
    """About 500 tokens of one document, or one occasion on which it matters. Written by `apps.search.services` alone.

    `features` and the vectors are packed bytes (see `features.py`), so that a user's index is
    loaded by one pass over a few columns. `terms` are the stems that full-text search holds for the row.
    """

    id = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    change = models.BigIntegerField()
    features = models.BinaryField()
    vector = models.BinaryField(null=True, help_text="None where the bundled vectors are missing.")
    side_vector = models.BinaryField(
        null=True, help_text="None where it waits for the encoder; zeros where that cannot embed it."
    )
    source = models.CharField(max_length=12, choices=[(s.value, s.value) for s in Source])
    source_id = models.UUIDField()
    part = models.PositiveIntegerField(default=0, help_text="Which piece of its document, from 0.")
    facet = models.CharField(
        max_length=12, choices=[(f.value, f.value) for f in Facet], default=Facet.TEXT
    )
    conversation_id = models.UUIDField(null=True)
    session = models.CharField(max_length=200, blank=True)
    position = models.IntegerField(default=0)
    speaker = models.CharField(max_length=200, blank=True)
    external_id = models.CharField(max_length=200, blank=True)
    happened_at = models.DateTimeField()
    valid_from = models.DateTimeField(null=True)
    valid_to = models.DateTimeField(null=True)
    past = models.BooleanField(
        default=False, help_text="What the document said before: for searches as of another time."
    )
    text = models.TextField()
    terms = models.TextField()
    labels = models.TextField(
        blank=True,
        default="",
        help_text="JSON of [kind, words, stems]: its terms hold the stems, its text need not.",
    )

    class Meta:
        indexes = [
            models.Index(fields=["user", "change"], name="passage_user_change"),
            models.Index(fields=["source_id", "part"], name="passage_source"),
            models.Index(fields=["id"], condition=Q(vector=None), name="passage_no_vector"),
            models.Index(fields=["id"], condition=Q(side_vector=None), name="passage_no_side_vector"),
            models.Index(
                fields=["user", "change"], condition=Q(facet="occasions"), name="passage_occasions"
            ),
            models.Index(fields=["user"], condition=Q(past=True), name="passage_past"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.source_id} #{self.part}"


class Tombstone(models.Model):
    """A removed passage, kept until every process may be expected to have seen it."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    change = models.BigIntegerField()
    passage_id = models.BigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["user", "change"], name="tombstone_user_change"),
            models.Index(fields=["created_at"], name="tombstone_created"),
        ]

    def __str__(self) -> str:
        return f"removed passage {self.passage_id}"
