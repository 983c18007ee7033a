"""Choices of the forms."""

from zoneinfo import available_timezones

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


def time_zones() -> list[tuple[str, str]]:
    names = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return [(name, name.replace("_", " ")) for name in ["UTC", *names]]


def offered(name: str) -> list[tuple[str, str]]:
    """Choices higher apps registered as `name` (`toolsets`, `tools`, `models`)."""
    return choices[name]() if name in choices else []
