"""Reads about accounts."""

from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.choices import PUT_AWAY
from apps.accounts.models import APIToken, Preferences, User
from apps.core.db.prepared import prepared


def preferences_for(user_id: UUID) -> Preferences:
    """The user's preferences; unsaved defaults where none were ever stored."""
    return _preferences.first(user_id) or Preferences(user_id=user_id)


@prepared
def _preferences(user_id: UUID) -> QuerySet[Preferences]:
    return Preferences.objects.filter(user_id=user_id)


def uses_memory(user: User) -> bool:
    """Whether notes may be read and kept for a user whose preferences are loaded, or are read now."""
    return (getattr(user, "preferences", None) or Preferences()).use_memory


def user_language(user_id: UUID) -> str:
    """The language code the user prefers, "" where it is to be detected."""
    return _language.first(user_id) or ""


@prepared
def _language(user_id: UUID) -> QuerySet[Preferences, str]:
    return Preferences.objects.filter(user_id=user_id).values_list("language", flat=True)


def user_time_zone(user_id: UUID) -> ZoneInfo:
    """The user's time zone; UTC where none was chosen, or where this machine no longer knows it."""
    return zone_named(_time_zone.first(user_id) or "")


@prepared
def _time_zone(user_id: UUID) -> QuerySet[Preferences, str]:
    return Preferences.objects.filter(user_id=user_id).values_list("time_zone", flat=True)


def zone_named(name: str) -> ZoneInfo:
    """The zone of a stored name; UTC for "" and for one that this machine does not know."""
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def is_put_away(preferences: Preferences, name: str) -> bool:
    """Whether the notice of that name stays out of sight for now."""
    at, days = preferences.put_away.get(name), PUT_AWAY[name]
    if at is None:
        return False
    return days is None or timezone.now() - datetime.fromisoformat(at) < timedelta(days=days)


def any_user_exists() -> bool:
    return User.objects.exists()


def tokens_kept(user_id: UUID) -> QuerySet[APIToken]:
    """The user's tokens that were not revoked, newest first; expired ones too."""
    return APIToken.objects.for_user(user_id).filter(revoked_at=None)
