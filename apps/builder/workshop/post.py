"""A build's side of the queue: telling the user, and waiting for answers."""

import asyncio
from functools import partial
from typing import Any
from uuid import UUID

from apps.agent.tools.base import ToolFailure
from apps.builder.models import BuilderMessage
from apps.builder.services.running import progress_add, question_add
from apps.core.database import in_db

MAX_PROGRESS_CHARS = 400


class BuildEnded(ToolFailure):
    """The build is over, by the user's wish or because another process has it."""


class Post:
    """Messages of one build. The pool hands in what users say (`deliver`)."""

    def __init__(self, build_id: UUID) -> None:
        self.build_id = build_id
        self._last = ""
        self._answers: dict[str, dict[str, Any]] = {}
        self._news = asyncio.Event()

    async def progress(self, text: str, stage: str) -> None:
        """One line for the user; the same one twice in a row is told once."""
        line = " ".join(text.split())[:MAX_PROGRESS_CHARS]
        if line and line != self._last:
            self._last = line
            await in_db(partial(progress_add, build_id=self.build_id, text=line, stage=stage))

    async def ask(self, payload: dict[str, Any], *, seconds: float) -> dict[str, Any] | None:
        """Asks and waits; the answer's payload, or None when nobody answered in time."""
        self._last = ""
        asked = await in_db(
            partial(question_add, build_id=self.build_id, payload=payload | {"seconds": round(seconds)})
        )
        if asked is None:
            raise BuildEnded("This build has ended.")
        try:
            async with asyncio.timeout(seconds):
                while str(asked) not in self._answers:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return None
        return self._answers.pop(str(asked))

    def late_answers(self) -> list[dict[str, Any]]:
        """Answers that came after the builder had gone on; each once."""
        late, self._answers = list(self._answers.values()), {}
        return late

    def deliver(self, message: BuilderMessage) -> None:
        """An answer has come."""
        self._answers[str(message.payload.get("question", ""))] = message.payload
        self._news.set()
