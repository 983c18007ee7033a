"""One build at work: what its tools share."""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias
from uuid import UUID

from apps.builder.services.running import error_note
from apps.builder.workshop.bench import Bench
from apps.builder.workshop.post import Post
from apps.capabilities.models import CapabilityVersion
from apps.core.database import in_db

Network: TypeAlias = Literal["ask", "any", "never"]


@dataclass(kw_only=True)
class Workshop:
    """`network` is the user's preference for hosts, `answer_seconds` how long a question waits. `registered` is set when the
    build has succeeded."""

    build_id: UUID
    user_id: UUID
    name: str
    network: Network
    answer_seconds: float
    bench: Bench
    post: Post
    registered: CapabilityVersion | None = None
    declined: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)

    async def failed(self, text: str) -> None:
        """Keeps the newest failure: a build that gives up names it."""
        await in_db(partial(error_note, build_id=self.build_id, text=text))

    async def noted(self, text: str) -> str:
        """A tool's result behind what the model has to know first: late answers, a new sandbox."""
        notes = [await self._late(answer) for answer in self.post.late_answers()]
        return "".join(notes) + self.bench.note() + text

    async def _late(self, answer: dict[str, object]) -> str:
        if answer.get("decision") == "allow":
            hosts = set(self.unanswered)
            self.unanswered.clear()
            await self.bench.allow_hosts(hosts)
            return f"[The user has allowed {', '.join(sorted(hosts))} meanwhile.]\n"
        if answer.get("decision"):
            self.declined |= self.unanswered
            self.unanswered.clear()
            return "[The user has declined the hosts you asked for. Do without them.]\n"
        return f"[The user has answered your earlier question meanwhile: {answer.get('text', '')}]\n"
