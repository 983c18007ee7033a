"""Choices of the forms, and checks of preferences."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.core.exceptions import ValidationError

from apps.core.registries import choices

APPROVALS = [("allow", "Always allow"), ("ask", "Ask me first"), ("never", "Never")]

LANGUAGES = [
    ("", "Detect it"),
    ("ar", "Arabic"),
    ("da", "Danish"),
    ("nl", "Dutch"),
    ("en", "English"),
    ("fi", "Finnish"),
    ("fr", "French"),
    ("de", "German"),
    ("el", "Greek"),
    ("hu", "Hungarian"),
    ("it", "Italian"),
    ("no", "Norwegian"),
    ("pt", "Portuguese"),
    ("ro", "Romanian"),
    ("ru", "Russian"),
    ("es", "Spanish"),
    ("sv", "Swedish"),
    ("tr", "Turkish"),
]


PUT_AWAY = {"first-steps": None, "passages": 1}
"""Notices that a person can put away, and after how many days each comes back (None: when it is asked for)."""


def time_zones() -> list[tuple[str, str]]:
    names = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return [(name, name.replace("_", " ")) for name in ["UTC", *names]]


def offered(name: str) -> list[tuple[str, str]]:
    """Choices higher apps registered as `name` (`toolsets`, `tools`, `models`)."""
    return choices[name]() if name in choices else []


LONGEST_NAME = 64
MOST_ENTRIES = 500


def validate_time_zone(value: object) -> None:
    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValidationError("There is no such time zone.") from error


def validate_language(value: object) -> None:
    if value not in dict(LANGUAGES):
        raise ValidationError("This language is not offered.")


def validate_toolsets(value: object) -> None:
    """A list of short names."""
    if (
        not isinstance(value, list)
        or len(value) > MOST_ENTRIES
        or not all(_is_name(name) for name in value)
    ):
        raise ValidationError("Toolsets are a list of names.")


def validate_approvals(value: object) -> None:
    """An object from a tool's name to allow, ask or never."""
    known = [choice for choice, _ in APPROVALS]
    if (
        not isinstance(value, dict)
        or len(value) > MOST_ENTRIES
        or not all(_is_name(name) and choice in known for name, choice in value.items())
    ):
        raise ValidationError("Approvals map a tool's name to allow, ask or never.")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME
