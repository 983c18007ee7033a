"""Whether an address stands in a conversation as the user, a page or a search engine wrote it.

What the model has put together itself may carry something out: a page can talk it into opening
`https://evil.example/?what-the-user-said`. An address that others wrote whole holds nothing but their own words.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from apps.agent.models import ToolCall
from apps.agent.results import result_json
from apps.agent.tools.base import ToolFailure
from apps.agent.web.urls import checked_url
from apps.core.addresses import AddressRefused

_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_PATH = re.compile(r"[/?#]")
_ESCAPED = re.compile(r"(?:%[89A-F][0-9A-F])+")
_GOES_ON = r"(?![\w%~=&?@:!$*+-]|[./][\w%~=&?@:!$*+-])"
"""What follows an address would be more of it; a full stop, a bracket or a last slash would not."""


def is_named(user_id: UUID, conversation_id: UUID, said: Sequence[str], arguments: dict[str, Any]) -> bool:
    """Whether the page to open was named in the conversation, by what the user `said` or what was read. Synchronous."""
    return is_named_in(str(arguments["url"]), [*said, *texts_naming(user_id, conversation_id)])


def is_named_in(address: str, texts: Iterable[str]) -> bool:
    """Whether an address stands in one of the texts, or is the front page of a host that does; what follows a # is not sent.

    One that is none counts as named: it is refused without anything being sent.
    """
    try:
        url = checked_url(address)
    except (ToolFailure, AddressRefused):
        return True
    return _stands_in(texts, url.netloc.decode() + url.raw_path.decode(), _plain(address).partition("#")[0])


def spelled_in(address: str, texts: Iterable[str]) -> bool:
    """The same for a link of a page, which may lead anywhere and hands on what follows a #: it has to stand there too."""
    plain = _plain(address)
    return _stands_in(texts, plain, _ESCAPED.sub(_unescaped, plain))


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


def texts_naming(user_id: UUID, conversation_id: UUID) -> Iterator[str]:
    """What pages and search engines wrote in a conversation, and which pages were opened."""
    rows = ToolCall.objects.for_user(user_id).filter(conversation_id=conversation_id, is_error=False)
    done = rows.filter(state=ToolCall.State.DONE, name__in=("open_page", "web_search"))
    for name, given, result in done.values_list("name", "input", "result"):
        if name == "open_page":
            yield str(given.get("url", ""))
            yield result
        else:
            yield _found(result)


def _found(result: str) -> str:
    """The hits of a search, without the query: that one the model wrote."""
    answer = result_json(result)
    if isinstance(answer, dict):
        return "\n".join(_texts(answer.get("results")))
    # The text was cut. Inside of a JSON string, as the query is, no quotation mark stands alone.
    return result.partition(json.dumps("results") + ": [")[2]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
