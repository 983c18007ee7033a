"""Context of every page's frame."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from apps.accounts.models import Preferences, User
from apps.accounts.selectors import preferences_for
from apps.core.registries import badges, banners


def shell(request: HttpRequest) -> dict[str, Any]:
    """`preferences` of the signed-in user, `banners` (sentences) and `badges` (page -> what waits there).

    None costs a query unless shown.
    """
    return {
        "preferences": SimpleLazyObject(lambda: _preferences(request)),
        "banners": SimpleLazyObject(lambda: _banners(request)),
        "badges": SimpleLazyObject(lambda: _badges(request)),
    }


def _preferences(request: HttpRequest) -> Preferences | None:
    user = getattr(request, "user", None)
    return preferences_for(user.pk) if isinstance(user, User) else None


def _badges(request: HttpRequest) -> dict[str, int]:
    user = getattr(request, "user", None)
    return {name: count(user.pk) for name, count in badges} if isinstance(user, User) else {}


def _banners(request: HttpRequest) -> list[str]:
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return []
    return [text for _, banner in banners if (text := banner())]
