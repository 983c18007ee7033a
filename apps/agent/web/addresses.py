"""Which addresses are fetched at all, and which are opened or linked to without asking once others' words were read.

What the model has put together itself may carry something out: a page can talk it into opening
`https://evil.example/?what-the-user-said`. An address that others wrote whole holds nothing but their own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import UUID

from apps.agent.models import ToolCall
from apps.agent.tools.base import ApprovalQuery, ToolFailure
from apps.core.http.addresses import DEFAULT_PORTS, AddressRefused, canonical_host

if TYPE_CHECKING:
    import httpx  # takes a while, and links are looked at long before a page is opened

MAX_URL_CHARS = 4_000
FIRST_USER_PORT = 1024


def checked_url(text: str) -> httpx.URL:
    """The URL in its one spelling: http or https, no user part, no fragment, canonical host.

    Raises `ToolFailure` for what is no such URL, `AddressRefused` for a host that can never be public; whether it
    *is* public is found out when it is connected to.
    """
    import httpx

    text = text.strip()
    if re.search(r"[\x00-\x20\\\x7f]", text) or len(text) > MAX_URL_CHARS:
        raise ToolFailure(
            "That is not the address of a page. Give one such as https://example.org/page."
        )
    try:
        # `example.org/page` is what people write; `javascript:…` and `file:…` have a scheme of their own.
        has_scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)", text)
        url = httpx.URL(text if has_scheme else f"https://{text}")
        host, port = url.host, url.port
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolFailure(f"{text[:200]} is not the address of a page.") from error
    if url.scheme not in DEFAULT_PORTS or not host:
        raise ToolFailure("Only http:// and https:// pages can be opened.")
    if url.userinfo:
        raise ToolFailure(
            "An address with a user name or password in it is not opened. Leave that part out."
        )
    name = canonical_host(host)
    if port is not None and port < FIRST_USER_PORT and port not in DEFAULT_PORTS.values():
        raise AddressRefused(f"Port {port} is not one for web pages.", host=name)
    return url.copy_with(host=name, fragment=None)


def next_url(url: httpx.URL, location: str) -> httpx.URL:
    """Where a redirect leads, checked like the first address."""
    import httpx

    if not location:
        raise ToolFailure("The page redirects to nowhere. Try another one.")
    try:
        joined = url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolFailure("The page redirects to an address that is none. Try another one.") from error
    return checked_url(str(joined))


MAX_OPENED = 8  # pages of others' choosing opened without asking in a turn
MAX_EDGES = 4  # signs behind an address in a text that may belong to it or not

_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_HOST = re.compile(r"[^/?#]*")
_WORDS = re.compile(r"[^\s<>\"\[\]“”„«»|]+")
_BEFORE, _BEHIND = "(*_`'", ".,;:!?)}*_`'…"
_ASCII = "".join(map(chr, range(33, 127)))
# As results write them; inside of what others wrote no quotation mark stands like this.
_FOUND = re.compile(r'"url": "((?:[^"\\]|\\.)*)"')
_PAGE = re.compile(r'^<page url="([^"]*)"', re.MULTILINE)


def unnamed_host(query: ApprovalQuery) -> str:
    """The host (with its port) of a page that waits for the user's yes, "" for one that is opened without. Synchronous.

    Without asking open what the user typed and, MAX_OPENED in a turn, what a search of the conversation found, links on a page
    of the same host that was so opened, and what was opened before. An address that is none is refused without anything
    being sent.
    """
    address = str(query.arguments["url"])
    try:
        url = checked_url(address)
    except (ToolFailure, AddressRefused):
        return ""
    key = _key(address.partition("#")[0])
    read = WebRead.of(query.user_id, query.conversation_id)
    if key in addresses_in(query.own()):
        return ""
    linked = addresses_in(
        text for page, text, unasked in read.pages if unasked and _host(page) == _host(key)
    )
    calls = ToolCall.objects.for_user(query.user_id).filter(turn_id=query.turn_id)
    unasked = calls.filter(name="open_page", decision="").values_list("round", "position")
    if (
        key in read.found | read.opened | linked
        and sum(place < query.place for place in unasked) < MAX_OPENED
    ):
        return ""
    return url.netloc.decode()


@dataclass(frozen=True, slots=True)
class WebRead:
    """A conversation's reads from the web."""

    found: set[str] = field(default_factory=set)  # addresses that a search returned
    opened: set[str] = field(default_factory=set)  # addresses that were opened
    pages: list[tuple[str, str, bool]] = field(default_factory=list)  # address, text, whether unasked

    @classmethod
    def of(cls, user_id: UUID, conversation_id: UUID | None) -> WebRead:
        read = cls()
        rows = ToolCall.objects.for_user(user_id).filter(conversation_id=conversation_id, is_error=False)
        done = rows.filter(state=ToolCall.State.DONE, name__in=("open_page", "web_search"))
        for name, given, result, decision in done.values_list("name", "input", "result", "decision"):
            if name == "web_search":
                read.found.update(map(_key, _FOUND.findall(result)))
                continue
            read.opened.add(_key(str(given.get("url", "")).partition("#")[0]))
            page = _PAGE.search(result)
            read.pages.append((_key(page[1]) if page else "", result, not decision))
        return read

    def names(self, messages: Iterable[str]) -> set[str]:
        """Every address that the user's messages, a page or a search named; for `is_named_in`."""
        return self.found | self.opened | addresses_in([*messages, *(text for _, text, _ in self.pages)])


def is_named_in(address: str, named: set[str]) -> bool:
    """Whether the address of a link was named, with what follows its #, or is the front page of a host that was."""
    key = _key(address)
    return bool(key) and (key in named or key in map(_host, named))


def addresses_in(texts: Iterable[str]) -> set[str]:
    """Possible addresses in these texts, each in one spelling."""
    found = set()
    words = (word for text in texts for word in _WORDS.findall(text))
    for word in (word for word in words if "." in word.strip(".") or "://" in word):
        address = word.lstrip(_BEFORE)
        edges = min(len(address) - len(address.rstrip(_BEHIND)), MAX_EDGES)
        for end in (
            range(len(address) - edges, len(address) + 1) if len(address) <= MAX_URL_CHARS else ()
        ):
            found |= {_key(address[:end]), _key(address[:end].partition("#")[0])}
    return found


def _key(address: str) -> str:
    """An address in one spelling. Of a host the case tells nothing; in the rest it could spell something out."""
    plain = _SCHEME.sub("", address.strip())
    host = _host(plain)
    return quote(host.lower() + plain[len(host) :], safe=_ASCII).rstrip("/")


def _host(key: str) -> str:
    return _HOST.match(key)[0]  # type: ignore[index]  # it matches any text
