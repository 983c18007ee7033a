"""Pages as `open_page` gives them, part by part."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from apps.agent.tools.base import ToolContext, ToolFailure
from apps.agent.tools.results import quoted
from apps.agent.web.fetching import fetch_page
from apps.agent.web.reader.parent import read_page
from apps.agent.web.tools import PART_CHARS

KEPT_SECONDS = 600.0
KEPT_CHARS = 8_000_000


@dataclass(frozen=True, slots=True)
class Read:
    """A page as it was read: `url` is where the redirects ended."""

    url: str
    title: str
    text: str
    notes: tuple[str, ...]


recent_pages: OrderedDict[tuple[UUID, str], tuple[float, Read]] = OrderedDict()
"""Pages that were read, and when, by user and address, so that the next part of one is not fetched again."""


async def page_part(context: ToolContext, url: str, offset: int) -> str:
    """One part of the page as quoted Markdown, with its title and where it came from."""
    key = (context.user_id, url)
    read_at, page = recent_pages.get(key, (0.0, None))
    if not offset or page is None or time.monotonic() - read_at > KEPT_SECONDS:
        page = await _read(context, url)
        recent_pages[key] = (time.monotonic(), page)
        recent_pages.move_to_end(key)
        while sum(len(kept.text) for _, kept in recent_pages.values()) > KEPT_CHARS:
            recent_pages.popitem(last=False)
    if offset and offset >= len(page.text):
        raise ToolFailure(f"The page ends before offset {offset}: it has {len(page.text)} characters.")
    end = min(offset + PART_CHARS, len(page.text))
    if end < len(page.text):  # at the end of a paragraph, else of a line, where one is near
        marks = (("\n\n", 2), ("\n", 1), (" ", 1))
        places = [
            page.text.rfind(mark, offset + PART_CHARS * 3 // 4, end) + size for mark, size in marks
        ]
        end = next((place for place in places if place > 1), end)
    notes = list(page.notes)
    if offset or end < len(page.text):
        notes.append(f"Characters {offset:,} to {end:,} of {len(page.text):,}.")
    if end < len(page.text):
        notes.append(f"For the next part call open_page with the same url and offset {end}.")
    fields = {"url": page.url, "title": page.title}
    return "\n".join([quoted("page", page.text[offset:end], **fields), *notes])


async def _read(context: ToolContext, url: str) -> Read:
    fetched = await fetch_page(url, progress=context.emit)
    await context.emit({"status": "extracting", "bytes": len(fetched.body)})
    document = await read_page(fetched, progress=context.emit)
    text = document.text.strip()
    if not text:
        raise ToolFailure(
            "There is no readable text on this page (it may need a browser, or be pictures only). Try another one."
        )
    notes = ["The document is longer than what is read; this is its beginning."] if fetched.cut else []
    if document.of:
        notes.append(f"PDF, {document.pages} of {document.of} pages were read.")
    elif not document.whole:
        notes.append("The document is longer than what is read; the end is missing.")
    return Read(fetched.url, document.title, text, tuple(notes))
