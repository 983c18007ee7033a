"""A yes or no of the user, as programs write it."""

from apps.core.errors import InvalidInput

_YES = ("allow", "approve", "approved", "accept", "yes", "true")
_NO = ("decline", "declined", "deny", "denied", "reject", "no", "false")


def is_yes(value: object) -> bool:
    """Whether a `decision` is a yes: true or false, or one of the usual words. InvalidInput for anything else."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _YES and word not in _NO:
        raise InvalidInput("decision must be “allow” or “decline”.", field="decision")
    return word in _YES
