"""Why a capability is not run, or not made."""

from apps.core.errors import Conflict


class CapabilityRefused(Conflict):
    """It exists but may not run now. Codes: `building`, `failed`, `disabled`, `not_approved`, `tampered`,
    `missing_secret`. `extra` names the capability."""

    default_code = "not_active"


def refused(code: str, name: str, message: str) -> CapabilityRefused:
    return CapabilityRefused(message, code=code, capability=name)
