"""Whose words a memory repeats, and what follows from it."""

from apps.memory.models import Origin, Trust

_RANK = {Trust.UNTRUSTED: 0, Trust.ASSISTANT: 1, Trust.USER: 2}
_BY_ORIGIN = {
    Origin.USER: Trust.USER,
    Origin.API: Trust.USER,
    Origin.IMPORT: Trust.UNTRUSTED,
    Origin.FILE: Trust.UNTRUSTED,
}


def least_trust(first: Trust | str, *others: Trust | str) -> Trust:
    """The lowest of these: user, then assistant, then untrusted. What comes out of a merge is trusted no more."""
    return min(map(Trust, (first, *others)), key=_RANK.__getitem__)


def trust_of(origin: Origin | str) -> Trust:
    """How far the words of a writer are trusted where nothing more is known of them."""
    return _BY_ORIGIN.get(Origin(origin), Trust.ASSISTANT)
