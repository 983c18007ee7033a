"""Where the links in an answer lead: to the address itself, or through a page of ours that shows it whole, where the model may have
put it together from what others wrote."""

from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from django.core import signing
from django.urls import reverse

from apps.agent.web.named import WebRead, is_named_in
from apps.chat.markdown_links import Leads, directly
from apps.chat.models import Conversation
from apps.chat.selectors.words import taint_of


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
    row = Conversation.objects.unscoped().filter(id=conversation_id).values_list("user_id", flat=True).first()
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
