"""Chooses the backend that runs tools (what IZZY_SANDBOX says, or the best that works here), and checks it for doctor, /readyz and
the instance page. It is not essential: chat goes on without."""

import shutil
from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from apps.core.health import CheckResult, not_set_up

from .base import Backend, SandboxUnavailable
from .bubblewrap.prepared import BWRAP

AUTO, NONE = "auto", "none"
BACKENDS = {
    "e2b": "apps.capabilities.sandbox.e2b.backend.E2BBackend",
    "bubblewrap": "apps.capabilities.sandbox.bubblewrap.backend.BubblewrapBackend",
}
SWITCHED_OFF = "Running tools is switched off (IZZY_SANDBOX=none)."
SWITCH_ON = "Set IZZY_SANDBOX=auto and restart."


@cache
def backend_named(name: str) -> Backend:
    """The process's one backend of that name; it is not asked whether it works."""
    backend: Backend = import_string(BACKENDS[name])()
    return backend


def chosen_name() -> str:
    """`e2b`, `bubblewrap` or `none`; `auto` is E2B where it has a key."""
    name: str = settings.IZZY_SANDBOX
    if name != AUTO:
        return name
    return "e2b" if settings.E2B_API_KEY else "bubblewrap"


def current_backend() -> Backend:
    """Raises SandboxUnavailable, with the cause and what to do, where there is none: nothing runs unsandboxed."""
    name = chosen_name()
    if name == NONE:
        raise SandboxUnavailable(SWITCHED_OFF, hint=SWITCH_ON)
    backend = backend_named(name)
    found = backend.probe()
    if not found.ok:
        raise SandboxUnavailable(f"{found.message} {found.hint}".strip(), hint=found.hint)
    return backend


WITH_A_SANDBOX = "With a sandbox your own tools run, and Izzy builds new ones."


def check_sandbox() -> CheckResult:
    name = chosen_name()
    if name == NONE:
        return not_set_up(SWITCHED_OFF, gives=WITH_A_SANDBOX, how=SWITCH_ON)
    found = backend_named(name).probe()
    if (
        not found.ok
        and settings.IZZY_SANDBOX == AUTO
        and name == "bubblewrap"
        and not shutil.which(BWRAP)
    ):
        return not_set_up(found.message, gives=WITH_A_SANDBOX, how=found.hint)
    return found
