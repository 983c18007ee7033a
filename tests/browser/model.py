"""A model for the chat page, whose replies a test writes."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tests.peers.anthropic_server import Reply, is_side_job, reply, text


@dataclass
class Model:
    """The model's replies in the chat, one by one; the small model's side jobs (titles) get a word."""

    replies: deque[Reply] = field(default_factory=deque)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def add(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    def __call__(self, request: dict[str, Any]) -> Reply:
        if is_side_job(request):
            return reply(text("A title"))
        self.asked.append(request)
        return self.replies.popleft() if self.replies else reply(text("Nothing was scripted."))
