"""Django's sessions in the database, with the query of every page prepared."""

from datetime import datetime

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone

from apps.core.db.prepared import prepared


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        session = _session.first(self.session_key or "", timezone.now())
        if session is None:
            self._session_key = None  # as Django's: whoever made it up gets another
        return session


@prepared
def _session(key: str, now: datetime) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key, expire_date__gt=now)
