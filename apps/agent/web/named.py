"""Which addresses are opened without asking once others' words were read in a conversation.

What the model has put together itself may carry something out: a page can talk it into opening
`https://evil.example/?what-the-user-said`. An address that others wrote whole holds nothing but their own words.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from apps.agent.models import ToolCall
from apps.agent.tools.base import Asking, ToolFailure
from apps.agent.web.urls import checked_url
from apps.core.addresses import AddressRefused

MAX_FOLLOWED = 8
"""Of so many pages in a turn links are followed without asking."""

_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_PATH = re.compile(r"[/?#]")
_ESCAPED = re.compile(r"(?:%[89A-F][0-9A-F])+")
_GOES_ON = r"(?![\w%~=&?@:!$*+-]|[./][\w%~=&?@:!$*+-])"
"""What follows an address would be more of it; a full stop, a bracket or a last slash would not."""
# As results write them; inside of what others wrote no quotation mark stands like this.
_FOUND = re.compile(r'"url": "((?:[^"\\]|\\.)*)"')
_PAGE = re.compile(r'^<page url="([^"]*)"', re.MULTILINE)


def unnamed_host(asking: Asking) -> str:
    """The host (with its port) of a page that waits for the user's yes, "" for one that is opened without. Synchronous.

    Without asking open: what the user typed, what a search of the conversation found, what was opened before, and, of
    MAX_FOLLOWED pages in a turn, links on a page of the same host that was so opened. An address that is none is refused
    without anything being sent.
    """
    address = str(asking.arguments["url"])
    place = _place(address)
    host = place.partition("/")[0]
    spellings = (place, _plain(address).partition("#")[0])
    read = _Read.of(asking.user_id, asking.conversation_id)
    if place in {"", *map(_place, [*read.found, *read.opened])} or _stands_in(asking.own(), *spellings):
        return ""
    linked = [text for url, text, unasked in read.pages if unasked and _place(url).partition("/")[0] == host]
    return "" if _stands_in(linked, *spellings) and _opened_in_turn(asking) < MAX_FOLLOWED else host


def texts_naming(user_id: UUID, conversation_id: UUID) -> Iterator[str]:
    """What pages wrote in a conversation, which were opened, and which a search found."""
    read = _Read.of(user_id, conversation_id)
    yield from [*read.found, *read.opened, *(text for _, text, _ in read.pages)]


def spelled_in(address: str, texts: Iterable[str]) -> bool:
    """Whether the address of a link stands in one of the texts, with what follows its #, or is the front page of a host that
    does."""
    plain = _plain(address)
    return _stands_in(texts, plain, _ESCAPED.sub(_unescaped, plain))


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read from the web in a conversation."""

    found: list[str] = field(default_factory=list)  # addresses that a search returned
    opened: list[str] = field(default_factory=list)  # addresses that were opened
    pages: list[tuple[str, str, bool]] = field(
        default_factory=list
    )  # address, text, whether it opened unasked

    @classmethod
    def of(cls, user_id: UUID, conversation_id: UUID) -> "_Read":
        read = cls()
        rows = ToolCall.objects.for_user(user_id).filter(conversation_id=conversation_id, is_error=False)
        done = rows.filter(state=ToolCall.State.DONE, name__in=("open_page", "web_search"))
        for name, given, result, decision in done.values_list("name", "input", "result", "decision"):
            if name == "web_search":
                read.found.extend(_FOUND.findall(result))
                continue
            read.opened.append(str(given.get("url", "")))
            page = _PAGE.search(result)
            read.pages.append((page[1] if page else "", result, not decision))
        return read


def _opened_in_turn(asking: Asking) -> int:
    """How many pages were opened without asking in the turn, before this call."""
    rows = ToolCall.objects.for_user(asking.user_id).filter(
        turn_id=asking.turn_id, name="open_page", decision=""
    )
    return sum(place < asking.place for place in rows.values_list("round", "position"))


def _place(address: str) -> str:
    """Host, port and path of an address in one spelling; "" for what is none, or never opened."""
    try:
        url = checked_url(address)
    except (ToolFailure, AddressRefused):
        return ""
    return (url.netloc + url.raw_path).decode().rstrip("/")


def _stands_in(texts: Iterable[str], *spellings: str) -> bool:
    # An empty spelling would stand in every text.
    places = {place for spelling in spellings if (place := spelling.rstrip("/"))}
    if not places:
        return False
    end = f"/?{_GOES_ON}" if any(map(_PATH.search, places)) else r"(?![\w-]|\.\w)"
    pattern = re.compile(rf"(?<![\w.@-])(?:{'|'.join(map(_spelling, places))}){end}")
    folded = [place.lower() for place in places]
    return any(pattern.search(text) for text in texts if any(map(text.lower().__contains__, folded)))


def _plain(address: str) -> str:
    return _SCHEME.sub("", address.strip())


def _unescaped(escaped: re.Match[str]) -> str:
    """Signs that are no ASCII as people write them; the others could be written so or so, and tell something by that."""
    try:
        return bytes.fromhex(escaped[0].replace("%", "")).decode()
    except UnicodeDecodeError:
        return escaped[0]


def _spelling(place: str) -> str:
    """Of a host the case tells nothing; in the rest of an address it could spell something out."""
    end = match.start() if (match := _PATH.search(place)) else len(place)
    return f"(?i:{re.escape(place[:end])}){re.escape(place[end:])}"
