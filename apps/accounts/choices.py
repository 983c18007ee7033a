"""Choices of the forms, and checks of preferences."""

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.core.exceptions import ValidationError

from apps.core.registries import choices

ANOTHER = "another"
"""Choice of a model whose name stands in `other_model`."""
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

SPEECH_LANGUAGES = [
    ("", "As the browser"),
    ("ar-SA", "Arabic"),
    ("zh-CN", "Chinese (Mandarin)"),
    ("cs-CZ", "Czech"),
    ("da-DK", "Danish"),
    ("nl-NL", "Dutch"),
    ("en-GB", "English (Great Britain)"),
    ("en-US", "English (United States)"),
    ("fi-FI", "Finnish"),
    ("fr-FR", "French"),
    ("de-DE", "German"),
    ("el-GR", "Greek"),
    ("he-IL", "Hebrew"),
    ("hi-IN", "Hindi"),
    ("hu-HU", "Hungarian"),
    ("it-IT", "Italian"),
    ("ja-JP", "Japanese"),
    ("ko-KR", "Korean"),
    ("nb-NO", "Norwegian"),
    ("pl-PL", "Polish"),
    ("pt-BR", "Portuguese (Brazil)"),
    ("pt-PT", "Portuguese (Portugal)"),
    ("ro-RO", "Romanian"),
    ("ru-RU", "Russian"),
    ("es-ES", "Spanish (Spain)"),
    ("es-MX", "Spanish (Mexico)"),
    ("sv-SE", "Swedish"),
    ("tr-TR", "Turkish"),
    ("uk-UA", "Ukrainian"),
]
SPEECH_RATES = [
    (0.75, "Slower"),
    (1.0, "As the voice is"),
    (1.25, "Somewhat faster"),
    (1.5, "Faster"),
    (2.0, "Twice as fast"),
]
SPEECH_PAUSES = [
    (0, "No, I send it"),
    (2, "After 2 seconds of silence"),
    (4, "After 4 seconds of silence"),
    (8, "After 8 seconds of silence"),
]

PUT_AWAY = {"first-steps": None, "passages": 1}
"""Notices that a person can put away, and after how many days each comes back (None: when it is asked for)."""


@cache
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


def validate_speech_language(value: object) -> None:
    if value not in dict(SPEECH_LANGUAGES):
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
