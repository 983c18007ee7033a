"""Whether an address stands in a conversation as the user, a page or a search engine wrote it.

What the model has put together itself may carry something out: a page can talk it into opening
`https://evil.example/?what-the-user-said`. An address that others wrote whole holds nothing but their own words.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from apps.agent.models import ToolCall
from apps.agent.results import result_json
from apps.agent.tools.base import ToolFailure
from apps.agent.web.urls import checked_url
from apps.core.addresses import AddressRefused

_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_GOES_ON = r"(?![\w%~=&?@:!$*+-]|[./][\w%~=&?@:!$*+-])"
"""What follows an address would be more of it; a full stop, a bracket or a last slash would not."""


def is_named(user_id: UUID, conversation_id: UUID, said: Sequence[str], arguments: dict[str, Any]) -> bool:
    """Whether the page to open was named in the conversation: by the user, by a page that was read, or by a search; or
    is the front page of a host that was. Synchronous.

    An address that is none counts as named: it is refused without anything being sent.
    """
    try:
        url = checked_url(str(arguments["url"]))
    except (ToolFailure, AddressRefused):
        return True
    end = r"(?![\w-]|\.\w)" if url.raw_path in (b"/", b"") else f"/?{_GOES_ON}"
    canonical = url.netloc.decode() + url.raw_path.decode()
    as_given = _SCHEME.sub("", str(arguments["url"]).strip()).partition("#")[0]
    # An empty spelling would stand in every text.
    places = "|".join(_spelling(place) for place in {canonical.rstrip("/"), as_given.rstrip("/")} if place)
    pattern = re.compile(rf"(?<![\w.@-])(?:{places}){end}")
    return any(pattern.search(text) for text in [*said, *_read(user_id, conversation_id)])


def _spelling(place: str) -> str:
    """Of a host the case tells nothing; in the rest of an address it could spell something out."""
    host, slash, path = place.partition("/")
    return f"(?i:{re.escape(host)}){slash}{re.escape(path)}"


def _read(user_id: UUID, conversation_id: UUID) -> Iterator[str]:
    """What pages and search engines wrote, and which pages were opened."""
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
