"""One build at work: what its tools share."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from uuid import UUID

from apps.accounts.secrets import secret_values
from apps.agent.scrub import Scrubber
from apps.builder.services.running import error_note
from apps.builder.workshop.bench import Bench
from apps.builder.workshop.post import Post
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
    declined: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)
    declined_secrets: set[str] = field(default_factory=set)
    asked_secrets: set[tuple[frozenset[str], frozenset[str]]] = field(default_factory=set)

    async def failed(self, text: str) -> None:
        """Keeps the newest failure, without secrets: a build that gives up names it."""
        await in_db(_note_failure, self.build_id, self.user_id, text)

    async def noted(self, text: str) -> str:
        """A tool's result behind what the model has to know first: late answers, a new sandbox."""
        notes = [await self._late(answer) for answer in self.post.late_answers()]
        return "".join(notes) + self.bench.note() + text

    async def _late(self, answer: dict[str, Any]) -> str:
        allowed = answer.get("decision") == "allow"
        said = "allowed" if allowed else "declined"
        if answer.get("kind") == "secrets":
            names = set(answer["secrets"])
            self.declined_secrets = (
                self.declined_secrets - names if allowed else self.declined_secrets | names
            )
            return f"[The user has {said} the secrets {', '.join(sorted(names))} meanwhile.]\n"
        if answer.get("kind") == "network":
            hosts = set(answer["hosts"])
            self.unanswered -= hosts
            if allowed:
                await self.bench.allow_hosts(hosts)
            else:
                self.declined |= hosts
            return f"[The user has {said} {', '.join(sorted(hosts))} meanwhile.]\n"
        return f"[The user has answered your earlier question meanwhile: {answer.get('text', '')}]\n"


def _note_failure(build_id: UUID, user_id: UUID, text: str) -> None:
    error_note(build_id=build_id, text=Scrubber(secret_values(user_id)).text(text))
