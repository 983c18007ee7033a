"""Django's own tables that may repeat a text: the admin's log and the sessions."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet

from apps.core.purging.disk import scrub_request
from apps.core.purging.places import PLACES, Hits, PurgePart, model_of, rows_of
from apps.core.purging.trace import MARKER, Trace, redact

_FORGOTTEN = {"object_repr": MARKER, "change_message": ""}


def clear(trace: Trace, hits: Hits) -> None:
    """The log's entries about the purged rows keep what was done and when, not what the row said."""
    _forget(_entries(trace))
    for session, data in _sessions(trace.user_id):
        if (cleaned := redact(data, trace)) != data:
            session.session_data = SessionStore().encode(cleaned)
            session.save(update_fields=["session_data"])


def _entries(trace: Trace) -> QuerySet[LogEntry]:
    """Admin log entries on the purged rows; their user is the superuser, not the owner."""
    return LogEntry.objects.filter(object_id__in=[str(key) for key in trace.ids | trace.messages])


def _forget(entries: QuerySet[LogEntry]) -> int:
    return entries.exclude(**_FORGOTTEN).update(**_FORGOTTEN)


def _sessions(user_id: UUID) -> Iterator[tuple[Session, dict[str, Any]]]:
    """The user's sessions, decoded: their data is packed and signed."""
    for session in Session.objects.iterator(chunk_size=200):
        data = session.get_decoded()
        if data.get("_auth_user_id") == str(user_id):
            yield session, data


def account_forget(user_id: UUID) -> int:
    """Before an account goes: the admin's log of its rows loses their words, its sessions end, the disk is cleaned."""
    changed = int(admin_log_forget(user_id))
    for session, _ in _sessions(user_id):
        session.delete()
        changed += 1
    transaction.on_commit(scrub_request)
    return changed


def admin_log_forget(user_id: UUID) -> bool:
    """The admin's log of an account's rows loses their words; whether it had any."""
    changed = 0
    for model in {model_of(column) for place in PLACES for column in place.columns} - {LogEntry}:
        entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(model))
        if logged := set(entries.exclude(**_FORGOTTEN).values_list("object_id", flat=True)):
            own = {str(pk) for pk in rows_of(model, user_id).values_list("pk", flat=True)}
            changed += _forget(entries.filter(object_id__in=logged & own))
    return changed > 0


PURGING = PurgePart(
    clear=clear,
    counts={
        "admin.log": lambda trace: _entries(trace).exclude(**_FORGOTTEN).count(),
        "sessions": lambda trace: sum(redact(data, trace) != data for _, data in _sessions(trace.user_id)),
    },
)
