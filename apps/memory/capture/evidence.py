"""What an item rests on: whose words it repeats, and whether they are new."""

from collections.abc import Iterable, Sequence

from apps.memory.models import Trust
from apps.memory.trust import least_trust
from apps.memory.trust.grounding import rephrases

from .said import Segment


def trust_of_item(content: str, evidence: Sequence[int], segments: Sequence[Segment]) -> Trust:
    """How far an item may be trusted: computed from the words it rests on, never taken from the model.

    The least trust of the segments it cites, where it rephrases what they say without borrowing from untrusted ones;
    else, and where it cites none, the least of the whole window.
    """
    cited = [segments[place] for place in evidence]
    others = [one.text for one in segments if one.trust == Trust.UNTRUSTED and one not in cited]
    if cited and rephrases(content, [segment.text for segment in cited], others):
        return least_trust(*(segment.trust for segment in cited))
    return least_trust(Trust.USER, *(segment.trust for segment in segments))


def is_read_before(evidence: Iterable[int], segments: Sequence[Segment]) -> bool:
    """Whether an item rests on nothing but what the window before held."""
    places = list(evidence)
    return bool(places) and all(segments[place].seen for place in places)
