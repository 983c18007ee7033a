"""Checks the sandbox for doctor, /readyz and the instance page. Not essential: chat goes on without."""

import shutil

from django.conf import settings

from apps.core.health import CheckResult, not_set_up

from .bubblewrap.prepared import BWRAP
from .selection import AUTO, NONE, SWITCH_ON, SWITCHED_OFF, backend_named, chosen_name

WITH_A_SANDBOX = "With a sandbox your own tools run, and Izzy builds new ones."


def check_sandbox() -> CheckResult:
    name = chosen_name()
    if name == NONE:
        return not_set_up(SWITCHED_OFF, gives=WITH_A_SANDBOX, how=SWITCH_ON)
    found = backend_named(name).probe()
    if not found.ok and settings.IZZY_SANDBOX == AUTO and name == "bubblewrap" and not shutil.which(BWRAP):
        return not_set_up(found.message, gives=WITH_A_SANDBOX, how=found.hint)
    return found
