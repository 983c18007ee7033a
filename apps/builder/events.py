"""The messages of a build as server-sent events, from wherever the reader had got to."""

import time
from collections.abc import AsyncGenerator
from uuid import UUID

from apps.core.database import in_db
from apps.core.server_sent import server_sent

from .models import Build, BuilderMessage
from .notify import build_signal
from .selectors import messages_after
from .shapes import BuilderMessageOutput

POLL_SECONDS = 0.3
KEEP_ALIVE_SECONDS = 15.0


async def build_stream(build_id: UUID, after: int) -> AsyncGenerator[bytes, None]:
    """Every message above the number `after`, then each as it comes, until the build has ended and all were sent.

    `id` is a message's number, so that a reader that comes again with `Last-Event-ID` misses nothing and gets nothing twice.
    """
    news = build_signal(build_id)
    sent_at = time.monotonic()
    try:
        while True:
            found = await in_db(_news, build_id, after)
            if found is None:
                return
            messages, over = found
            for message in messages:
                after = message.number
                yield server_sent(
                    {"build": str(build_id), **BuilderMessageOutput.dump(message)}, message.number
                )
            if over:
                return
            if messages:
                sent_at = time.monotonic()
            elif time.monotonic() - sent_at >= KEEP_ALIVE_SECONDS:
                sent_at = time.monotonic()
                yield b": still here\n\n"
            await news.wait(POLL_SECONDS)
    finally:
        news.close()


def _news(build_id: UUID, after: int) -> tuple[list[BuilderMessage], bool] | None:
    """Read in this order: a build that is over has no message that comes later."""
    build = Build.objects.unscoped().filter(pk=build_id).first()
    if build is None:
        return None
    return messages_after(build, after), not build.is_open
