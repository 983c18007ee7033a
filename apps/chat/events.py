"""The one event that is the chat's own; the others are `apps.agent.events`."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TitleMade:
    """The conversation has got a title; may follow the end of the turn's stream."""

    type: ClassVar[str] = "title"
    title: str
