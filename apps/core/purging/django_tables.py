"""Django's own tables that may repeat a text: the admin's log and the sessions."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import transaction

from apps.core.purging.columns import Column, columns
from apps.core.purging.disk import scrub_request
from apps.core.purging.places import Hits, Place
from apps.core.purging.trace import MARKER, Trace, found_in, redact_value
from apps.core.registries import purge_places, purgers, thinners


def register_places() -> None:
    # By its name the first of them: once rows are gone nobody knows any more whose the log's entries were about.
    thinners.register("admin's log", admin_log_forget)
    purgers.register("admin's log and sessions", account_forget)
    purge_places.register(
        "admin.log",
        Place(
            label="The admin's log",
            columns=(
                "admin.logentry.object_repr",
                "admin.logentry.change_message",
                "admin.logentry.object_id",
            ),
            clear=admin_log_clear,
            look=admin_log_left,
        ),
    )
    purge_places.register(
        "sessions",
        Place(
            label="Browser sessions",
            columns=("sessions.session.session_data",),
            wordless=True,
            clear=sessions_clear,
            look=sessions_left,
        ),
    )


def _entries(trace: Trace) -> Any:
    """What superusers did to the purged rows; the log's own user is the superuser, not the owner."""
    forms = [form for key in trace.ids | trace.messages for form in (str(key), key.hex)]
    return LogEntry.objects.filter(object_id__in=forms)


def admin_log_clear(trace: Trace, hits: Hits) -> int:
    """Entries about the purged rows keep what was done and when, not what the row said."""
    told = _entries(trace).exclude(object_repr=MARKER, change_message="")
    return int(told.update(object_repr=MARKER, change_message=""))


def admin_log_left(trace: Trace) -> int:
    return int(_entries(trace).exclude(object_repr=MARKER, change_message="").count())


def _sessions(trace: Trace) -> Iterable[tuple[Session, dict[str, Any]]]:
    """The user's sessions that quote what is purged, decoded: their data is packed and signed."""
    for session in Session.objects.iterator(chunk_size=200):
        data = session.get_decoded()
        if data.get("_auth_user_id") == str(trace.user_id) and any(
            found_in(trace.exclusive, str(value)) for value in data.values()
        ):
            yield session, data


def sessions_clear(trace: Trace, hits: Hits) -> int:
    changed = 0
    for session, data in _sessions(trace):
        session.session_data = SessionStore().encode(redact_value(data, trace))
        session.save(update_fields=["session_data"])
        changed += 1
    return changed


def sessions_left(trace: Trace) -> int:
    return sum(1 for _ in _sessions(trace))


def account_forget(user_id: UUID) -> int:
    """Before an account goes: the admin's log of its rows loses their words, its sessions end, the disk is cleaned."""
    changed = int(admin_log_forget(user_id))
    for session in Session.objects.iterator(chunk_size=200):
        if session.get_decoded().get("_auth_user_id") == str(user_id):
            session.delete()
            changed += 1
    transaction.on_commit(scrub_request)
    return changed


def admin_log_forget(user_id: UUID) -> bool:
    """The admin's log of an account's rows loses their words; whether it had any."""
    return sum(_entries_of_rows(column, user_id) for column in _owned_models()) > 0


def _owned_models() -> Iterable[Column]:
    """One column of each model whose rows belong to a user."""
    return {column.model: column for column in columns() if column.owner}.values()


def _entries_of_rows(column: Column, user_id: UUID) -> int:
    content_type = ContentType.objects.get_for_model(column.model)
    entries = LogEntry.objects.filter(content_type=content_type).exclude(
        object_repr=MARKER, change_message=""
    )
    logged = list(entries.values_list("pk", "object_id"))
    if not logged:
        return 0
    own = {str(pk) for pk in column.rows(user_id).values_list("pk", flat=True)}
    gone = [pk for pk, object_id in logged if object_id in own]
    return int(LogEntry.objects.filter(pk__in=gone).update(object_repr=MARKER, change_message=""))
