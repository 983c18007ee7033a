"""Evidence for an item: who said it when, how far that is trusted, and whether it is new."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from apps.memory.models import Origin, Trust
from apps.memory.services import Change, Provenance
from apps.memory.trust import least_trust
from apps.memory.trust.judging import judged_among

from .claims import Claimed
from .items import Item
from .said import Segment


def judged_item(item: Item, segments: Sequence[Segment], *, tainted: bool) -> tuple[Item, Trust]:
    """An item as it may be kept, and how far it is trusted: computed from the words it rests on, never taken from the model.

    Where others' words were read it is the user's where it says one whole sentence of what it cites of them, else
    untrusted; what labels it is judged alike. Elsewhere it is trusted as the least of the segments that it cites, or of all.
    """
    cited = [segments[place] for place in item.evidence] or segments
    if not tainted:
        return item, least_trust(Trust.USER, *(segment.trust for segment in cited))
    own = [segment.text for segment in cited if segment.trust == Trust.USER and segment.whole]
    judged = judged_among(own, item.content, {"tags": list(item.tags)})
    trust = Trust.UNTRUSTED if judged.trust == Trust.UNTRUSTED else Trust.USER
    return replace(item, tags=tuple(judged.fields["tags"]), standing=False), trust


@dataclass(frozen=True, slots=True)
class Statement:
    """An item with what it rests on in its window: the segments it cites, or all where it cites none."""

    item: Item
    user_id: UUID
    conversation_id: UUID
    trust: Trust
    cited: Sequence[Segment]

    @classmethod
    def of(cls, item: Item, window: Claimed) -> "Statement":
        item, trust = judged_item(item, window.segments, tainted=window.tainted)
        return cls(
            item=item,
            user_id=window.user_id,
            conversation_id=window.conversation_id,
            trust=trust,
            cited=[window.segments[place] for place in item.evidence] or window.segments,
        )

    @property
    def is_read_before(self) -> bool:
        """Whether it rests on nothing but what the window before held."""
        return bool(self.item.evidence) and all(segment.seen for segment in self.cited)

    @property
    def said_at(self) -> datetime:
        return max(segment.said_at for segment in self.cited)

    @property
    def messages(self) -> set[UUID]:
        return {segment.message for segment in self.cited}

    @property
    def source_message(self) -> UUID:
        """The message that a note made of it names as its source."""
        fresh = [segment for segment in self.cited if not segment.seen]
        return (fresh or self.cited)[0].message

    @property
    def valid_from(self) -> datetime:
        """Since when it is true: what was said, else when it was said; never ahead, or search would not find it yet."""
        now, told = timezone.now(), self.item.valid_from
        return min(told if told and told <= now else self.said_at, now)

    @property
    def provenance(self) -> Provenance:
        return Provenance(
            origin=Origin.EXTRACTION,
            trust=self.trust,
            conversation_id=self.conversation_id,
            message_id=self.source_message,
        )

    def change(self, reason: str) -> Change:
        return Change(
            actor=Origin.EXTRACTION,
            reason=reason,
            trust=self.trust,
            sensitive=self.item.sensitive,
            conversation_id=self.conversation_id,
            message_id=self.source_message,
        )
