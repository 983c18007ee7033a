"""Base models of a user's memory, and the choices of their columns."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.core.ids import uuid7
from apps.core.models import UserOwned


class Tier(models.TextChoices):
    SHORT_TERM = "short_term", "Short term"
    LONG_TERM = "long_term", "Long term"


class Kind(models.TextChoices):
    DECISION = "decision", "Decision"
    INSIGHT = "insight", "Insight"
    FACT = "fact", "Fact"
    PREFERENCE = "preference", "Preference"
    PROJECT = "project", "Project"
    CONVERSATION = "conversation", "Conversation"
    GENERAL = "general", "General"


class Status(models.TextChoices):
    ACTIVE = "active", "Active"
    PENDING = "pending", "Waiting for review"
    ARCHIVED = "archived", "Archived"
    SUPERSEDED = "superseded", "Superseded"
    DELETED = "deleted", "Deleted"


class Origin(models.TextChoices):
    """Where a note, or a change of one, came from."""

    USER = "user", "You"
    ASSISTANT = "assistant", "Izzy"
    EXTRACTION = "extraction", "Extraction"
    IMPORT = "import", "Import"
    API = "api", "API"
    MCP = "mcp", "MCP"
    FILE = "file", "File"


class Trust(models.TextChoices):
    """The author of the words that a note repeats; never rises when notes are merged or summarised."""

    USER = "user", "Your words"
    ASSISTANT = "assistant", "Izzy’s words"
    UNTRUSTED = "untrusted", "Untrusted"


class Relation(models.TextChoices):
    """The relations Izzy itself knows; an edge may carry any other short text."""

    RELATED = "related", "Related"
    SUPERSEDES = "supersedes", "Supersedes"
    CONTRADICTS = "contradicts", "Contradicts"
    ELABORATES = "elaborates", "Elaborates"


class Action(models.TextChoices):
    """A change made to a note."""

    UPDATED = "updated", "Changed"
    DELETED = "deleted", "Deleted"
    RESTORED = "restored", "Restored"
    ARCHIVED = "archived", "Archived"
    UNDONE = "undone", "Went back"
    SUPERSEDED = "superseded", "Superseded"
    MERGED = "merged", "Merged"
    ACCEPTED = "accepted", "Accepted"


class FileAction(models.TextChoices):
    """A change made to a file."""

    EDITED = "edited", "Edited"
    RENAMED = "renamed", "Renamed"
    DELETED = "deleted", "Deleted"
    RESTORED = "restored", "Restored"
    UNDONE = "undone", "Went back"


class OccasionsBy(models.TextChoices):
    """The maker of a note's occasions; those of the user are never made anew."""

    NONE = "", "Nobody yet"
    MODEL = "model", "Izzy"
    RULES = "rules", "Izzy, by rule"
    USER = "user", "You"


class OccasionsWait(models.TextChoices):
    """Work that the worker has yet for the occasions of a note."""

    NONE = "", "Nothing"
    CHECK = "check", "Compare them with what the user writes"
    MODEL = "model", "Ask the model"


class Proposal(models.TextChoices):
    """Effect of accepting a note that waits for review."""

    ADD = "add", "New note"
    UPDATE = "update", "Change of a note"
    SUPERSEDE = "supersede", "Replaces a note"
    MERGE = "merge", "Adds to a note"


class ReviewReason(models.TextChoices):
    """Why a note waits for review."""

    UNTRUSTED = "untrusted", "from an untrusted source"
    SENSITIVE = "sensitive", "sensitive"
    EVERYTHING = "everything", "you review everything"


STANDING = "standing"
"""The category of what is put beside the first message of every conversation: how the user wants to be treated, and what
must never be overlooked, whatever the message is about."""


class Owned(UserOwned):
    """A row of one user. Its model has an index that begins with the user, so the foreign key needs none."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, db_index=False, related_name="+"
    )

    class Meta:
        abstract = True


class Revision(UserOwned):
    """A state that a note or file had, kept when a change replaced it.

    Versions count from 1. A row holds version `version` and tells which change ended it; the newest version is the note
    or file itself.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    version = models.PositiveIntegerField()
    content = models.TextField(blank=True)
    actor = models.CharField(max_length=16, choices=Origin)
    reason = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True
