"""Whether a text affirms or denies: "not allergic to walnuts" has all the words of "allergic to walnuts"."""

import re

_DENIAL = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|neither|nor|cannot|stopped|quit|former|formerly|longer|\w+n['’]t|"
    r"nicht|kein\w*|nie|niemals|ohne|nunca|jamás|sin|pas|jamais|sans|non|mai|senza)\b",
    re.IGNORECASE,
)
_AVERSION = re.compile(
    r"\b(?:hat(?:e|es|ed|ing)|dislik\w*|avoid\w*|detest\w*|refus\w*|loath\w*|can['’]t stand|hass\w*|meid\w*|odia\w*|déteste\w*)\b",
    re.IGNORECASE,
)


def denies(text: str) -> bool:
    """Whether a statement denies something; denied twice is affirmed."""
    return (len(_DENIAL.findall(text)) + len(_AVERSION.findall(text))) % 2 == 1
