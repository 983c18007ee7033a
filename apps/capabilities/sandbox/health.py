"""What doctor, /readyz and the instance page say about the sandbox. Not essential: chat goes on without."""

from apps.core.health import CheckResult

from .selection import NONE, SWITCH_ON, SWITCHED_OFF, backend_named, chosen_name


def check_sandbox() -> CheckResult:
    name = chosen_name()
    if name == NONE:
        return CheckResult(False, SWITCHED_OFF, SWITCH_ON)
    return backend_named(name).probe()
