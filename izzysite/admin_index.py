"""The page that the admin opens on: health, counts, and what waits."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from apps.builder.models import Build
from apps.capabilities.models import Capability, CapabilityVersion
from apps.chat.models import OPEN_STATES, Conversation, Turn
from apps.core.backups import last_backup
from apps.core.health import State, checks, recent_result
from apps.memory.models import (
    OPEN_IMPORTS,
    CaptureWindow,
    Import,
    Memory,
    MemoryFile,
    Status,
    WindowState,
)

MARKS = {State.WORKS: "ok", State.NOT_SET_UP: "off", State.BROKEN: "bad"}


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Context of templates/admin/index.html; nothing in it is anybody's words."""
    context["health"] = [
        {
            "name": check.name,
            "state": result.state,
            "mark": MARKS[result.state],
            "message": result.message,
            "hint": result.hint,
        }
        for check, result in ((check, recent_result(check)) for check in checks())
    ]
    context["last_backup"] = last_backup()
    context["counts"] = [
        _figure("Users", get_user_model()._base_manager.all(), "accounts_user"),
        _figure("Memories", Memory.objects.unscoped(), "memory_memory"),
        _figure("Files", MemoryFile.objects.unscoped(), "memory_memoryfile"),
        _figure("Conversations", Conversation.objects.unscoped(), "chat_conversation"),
        _figure("Capabilities", Capability.objects.unscoped(), "capabilities_capability"),
        _figure("Builds", Build.objects.unscoped(), "builder_build"),
    ]
    pending = Memory.objects.unscoped().filter(status=Status.PENDING)
    windows = CaptureWindow.objects.unscoped()
    unapproved = CapabilityVersion.objects.unscoped().filter(untrusted=True, approved_at=None)
    imports = Import.objects.unscoped().filter(state__in=OPEN_IMPORTS)
    turns = Turn.objects.unscoped().filter(state__in=OPEN_STATES)
    waiting = [
        _figure("Memories in review", pending, "memory_memory", "status__exact=pending"),
        _figure(
            "Passages to read",
            windows.filter(state=WindowState.WAITING),
            "memory_capturewindow",
            "state__exact=waiting",
        ),
        _figure(
            "Passages given up",
            windows.filter(state=WindowState.GAVE_UP),
            "memory_capturewindow",
            "state__exact=gave_up",
        ),
        _figure(
            "Versions to approve",
            unapproved,
            "capabilities_capabilityversion",
            "untrusted__exact=1&approved_at__isempty=1",
        ),
        _figure("Imports under way", imports, "memory_import"),
        _figure("Turns under way", turns, "chat_turn"),
    ]
    context["waiting"] = [each for each in waiting if each["count"]]
    return context


def _figure(title: str, rows: "QuerySet[Any]", model: str, asked: str = "") -> dict[str, Any]:
    url = reverse(f"admin:{model}_changelist") + (f"?{asked}" if asked else "")
    return {"title": title, "count": rows.order_by().count(), "url": url}
