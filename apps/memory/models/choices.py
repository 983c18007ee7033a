"""Choices for columns of notes and files, with their labels."""

from django.db import models


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
    """Whose words a note repeats; never rises when notes are merged or summarised."""

    USER = "user", "Your words"
    ASSISTANT = "assistant", "Izzy's words"
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
