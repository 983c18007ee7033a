"""Where the links in an answer lead: to the address itself, or through a page of ours that shows it whole, where the model may
have put it together from what others wrote; and the host beside a text that says something else."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core import signing
from django.urls import reverse

from apps.agent.web.addresses import WebRead, is_named_in
from apps.chat.conversations.selectors import taint_of
from apps.chat.models import Conversation

if TYPE_CHECKING:
    from markdown_it.token import Token
Leads = Callable[[str], str]
"""The address that a link gets, from the web address that was written."""
_WEB = re.compile(r"(?:(https?):)?[/\\]{2,}|(https?):", re.IGNORECASE)
_MAIL = re.compile(r"mailto:", re.IGNORECASE)
_BEFORE = re.compile(r"(?:https?://)?(?:www\.)?", re.IGNORECASE)


def directly(url: str) -> str:
    """A link leads where it says."""
    return url


def web_address(href: str) -> str:
    """An address of the web in full, as a browser reads it; "" for any other: mail, or a place on this site."""
    match = _WEB.match(href)
    scheme = (match[1] or match[2] or "https").lower() if match else ""
    return f"{scheme}://{href[match.end() :].lstrip('/')}" if match else ""


def parts_of(url: str) -> tuple[str, str, str]:
    """A web address around its host, with the port, as it is connected to: what stands before, it, and what follows."""
    scheme, mark, rest = url.partition("://")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, at, host = place.rpartition("@")
    return f"{scheme}{mark}{user}{at}", host, rest[len(place) :]


def place_links(inline: "Token", leads: Leads) -> None:
    """Gives the links in a piece of text their addresses, and a token with the host to those whose text does not say it.

    Pictures become links: the page loads nothing from other hosts.
    """
    children = list(_pictures(inline.children or []))
    placed: list[Token] = []
    opened: Token | None = None
    words = ""
    for token in children:
        placed.append(token)
        if token.type == "link_open":
            opened, words = token, ""
        elif token.type == "link_close" and opened is not None:
            placed += _beside(opened, words)
            url = web_address(str(opened.attrGet("href") or ""))
            if parts_of(url)[1]:
                opened.attrSet("href", leads(url))
            opened = None
        else:
            words += token.content
    inline.children = placed


def _beside(link: "Token", words: str) -> "Iterator[Token]":
    from markdown_it.token import Token

    href = str(link.attrGet("href") or "")
    url, mail = web_address(href), _MAIL.match(href)
    place = parts_of(url)[1] if url else href[mail.end() :].partition("?")[0] if mail else ""
    if place and not _says(words, place):
        yield Token("html_inline", "", 0, content=f' <span class="link-host">({escape(place)})</span>')


def _says(words: str, place: str) -> bool:
    """Whether the text of a link begins with the host that it leads to, and so is its address or a part of that."""
    said, wanted = (
        text[match.end() :]
        for text in (words.strip().lower(), place.lower())
        if (match := _BEFORE.match(text))
    )
    return said.startswith(wanted) and said[len(wanted) : len(wanted) + 1] in {"", "/", "?", "#", ":"}


def _pictures(tokens: "Sequence[Token]") -> "Iterator[Token]":
    """The tokens with each picture as a link, or within a link as its description."""
    from markdown_it.token import Token

    within = False
    for token in tokens:
        within = token.type == "link_open" or (within and token.type != "link_close")
        if token.type != "image":
            yield token
            continue
        source = str(token.attrGet("src") or "")
        label = Token("text", "", 0, content=token.content or source or "image")
        if within:
            yield label
        else:
            attributes: dict[str, Any] = {"href": source}
            yield Token("link_open", "a", 1, attrs=attributes)
            yield label
            yield Token("link_close", "a", -1)


@dataclass(frozen=True)
class ConversationLinks:
    """`Leads` of the assistant's answers in one conversation. Synchronous; asks the database when the first link comes.

    Once others' words were read in it, only an address that stands in the user's messages, on a page that was read or among
    what a search found leads where it says.
    """

    user_id: UUID
    conversation_id: UUID
    _known: dict[str, str] = field(default_factory=dict)

    def __call__(self, url: str) -> str:
        if url not in self._known:
            named = self.named is None or is_named_in(url, self.named)
            self._known[url] = url if named else through(self.conversation_id, url)
        return self._known[url]

    @cached_property
    def named(self) -> set[str] | None:
        """The addresses that were named; None where nobody but the user spoke."""
        taint = taint_of(self.user_id, self.conversation_id)
        if not taint.is_tainted:
            return None
        return WebRead.of(self.user_id, self.conversation_id).names(taint.messages())


def links_now(conversation_id: UUID) -> Leads | None:
    """How links lead as of now, with all that is needed at hand: it asks the database no more. None where the conversation is
    gone."""
    row = (
        Conversation.objects.unscoped()
        .filter(id=conversation_id)
        .values_list("user_id", flat=True)
        .first()
    )
    if row is None:
        return None
    links = ConversationLinks(row, conversation_id)
    return directly if links.named is None else links


def through(conversation_id: UUID, url: str) -> str:
    """The address of the page that shows another one whole."""
    return reverse("chat:link", args=[conversation_id, _signer(conversation_id).sign_object(url)])


def url_of(conversation_id: UUID, signed: str) -> str:
    """The address that such a page shows. Raises `signing.BadSignature` for what Izzy did not make for this conversation."""
    return str(_signer(conversation_id).unsign_object(signed))


def _signer(conversation_id: UUID) -> signing.Signer:
    # Signed without a time, so that a text is rendered alike each time.
    return signing.Signer(salt=f"chat.link.{conversation_id}")
