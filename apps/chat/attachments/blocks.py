"""Attachments in a request to the model. A message's blocks name them; their words and pictures are put in when it is sent, always the same
for the same model, so that the beginning of a request stays cached."""

from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Substr

from apps.agent.model.client import Endpoint, current_endpoint
from apps.agent.models import ModelCall
from apps.agent.tools.results import UNTRUSTED, quoted
from apps.chat.attachments.files import file_read
from apps.chat.attachments.reading import DOCUMENT_BYTES, DOCUMENT_PAGES, INLINE_CHARS
from apps.chat.attachments.selectors import TYPE, ids_in
from apps.chat.models import Attachment, AttachmentKind
from apps.core.errors import NotFound

MESSAGE_CHARS = 40_000
"""Of the texts beside one message together."""
PICTURES = 20
PICTURE_BYTES = 15_000_000
"""Pictures and PDFs that one request carries as they are, those named last first; the endpoint takes 32 MB."""
Blocks = list[dict[str, Any]]
GONE = "(A file was attached here. It has been deleted.)"
UNSEEN = "This model does not see images. Say so, and ask the user what it shows if you need to know."
EARLIER = (
    "It was shown earlier and is not sent with this request. attachment_read with its id shows it again."
)
ABOVE = "It is shown above, where it was attached."
NO_TEXT = (
    "No text could be read from this PDF: its pages may be pictures. Say so, and ask for what you need."
)


def references(keys: Iterable[UUID]) -> Blocks:
    """The blocks by which a message names its attachments."""
    return [{"type": TYPE, "id": str(key)} for key in keys]


def tokens_of(user_id: UUID, blocks: Iterable[str]) -> dict[UUID, int]:
    """The most that each attachment that is named in these messages' blocks takes in a request."""
    keys = {key for each in blocks for key in ids_in(each)}
    if not keys:
        return {}
    return dict(Attachment.objects.owned_by(user_id).filter(pk__in=keys).values_list("pk", "tokens"))


def expanded(
    user_id: UUID, messages: Blocks, model: str, sent: Collection[dict[str, Any]] = ()
) -> Blocks:
    """The messages with the attachments in them, as this model and the endpoint that is set take them. A picture is sent once, where
    it is named first, as in the requests before; it may stand in `sent`, what is expanded already of the same request."""
    keys = [UUID(b["id"]) for each in messages for b in each["content"] if b.get("type") == TYPE]
    if not keys:
        return messages
    found = Attachment.objects.owned_by(user_id).filter(pk__in=keys).defer("text")
    rows = found.annotate(beginning=Substr("text", 1, INLINE_CHARS)).in_bulk()
    pictures = _pictures(rows, keys, model, current_endpoint())
    there = [block["source"] for each in sent for block in each["content"] if "source" in block]
    for key, picture in pictures.items():
        if isinstance(picture, dict) and picture["source"] in there:
            pictures[key] = ABOVE
    return [message | {"content": _content(message["content"], rows, pictures)} for message in messages]


def sees_images(model: str, endpoint: Endpoint) -> bool:
    """Whether the model takes image blocks, by the beginning of its name (IZZY_VISION_MODELS)."""
    return not endpoint.is_offline and model.startswith(tuple(settings.IZZY_VISION_MODELS))


def _content(blocks: Blocks, rows: Mapping[UUID, Any], pictures: dict[UUID, Any]) -> Blocks:
    """The blocks with what they name; in `pictures` what has been sent becomes a sentence that says so."""
    count = sum(block.get("type") == TYPE for block in blocks)
    chars = min(INLINE_CHARS, MESSAGE_CHARS // max(count, 1))
    sent: Blocks = []
    for block in blocks:
        if block.get("type") != TYPE:
            sent.append(block)
            continue
        row = rows.get(UUID(block["id"]))
        if row is None:
            sent.append({"type": "text", "text": GONE})
            continue
        picture = pictures.get(row.pk)
        sent.append({"type": "text", "text": _described(row, chars, picture)})
        if isinstance(picture, dict):
            sent.append(picture)
            pictures[row.pk] = ABOVE
    return sent


def _described(row: Any, chars: int, picture: dict[str, Any] | str | None) -> str:
    """An attachment in words: its name and, of a text that is not sent as it is, the beginning."""
    fields = {"id": str(row.pk), "name": row.name, "type": row.media_type}
    fields |= {"pages": str(row.pages)} if row.pages else {}
    if isinstance(picture, dict):
        note = "It follows." if row.kind == AttachmentKind.IMAGE else "It follows, page by page."
        return UNTRUSTED + quoted(TYPE, note, **fields)
    if row.kind == AttachmentKind.IMAGE:
        return UNTRUSTED + quoted(TYPE, picture or UNSEEN, **fields)
    if not row.characters:
        return UNTRUSTED + quoted(TYPE, NO_TEXT, **fields)
    text = row.beginning[:chars]
    fields["characters"] = str(row.characters)
    lines = [UNTRUSTED + quoted(TYPE, text, **fields)]
    if row.characters > len(text):
        lines.append(
            f"These are the first {len(text):,} of {row.characters:,} characters. Read on with attachment_read, "
            f"offset {len(text)}, or a page."
        )
    return "\n".join(lines)


def _pictures(
    rows: Mapping[UUID, Any], keys: Collection[UUID], model: str, endpoint: Endpoint
) -> dict[UUID, dict[str, Any] | str]:
    """Blocks of the images and short PDFs that are sent as they are, those named last first while there is room; of the others a
    sentence where there is one to say."""
    found: dict[UUID, dict[str, Any] | str] = {}
    if not sees_images(model, endpoint):
        return found
    reads_pdf, room = endpoint.kind == ModelCall.Endpoint.ANTHROPIC, PICTURE_BYTES
    for key in dict.fromkeys(reversed(list(keys))):
        row = rows.get(key)
        if row is None or row.kind == AttachmentKind.TEXT:
            continue
        is_image = row.kind == AttachmentKind.IMAGE
        if not is_image and not (
            reads_pdf and 0 < row.pages <= DOCUMENT_PAGES and row.size <= DOCUMENT_BYTES
        ):
            continue
        sent = sum(isinstance(each, dict) for each in found.values())
        body = b""
        if sent < PICTURES and room > 0:
            with suppress(NotFound):
                body = file_read(row, shown=is_image)
        room -= len(body)
        if body and room >= 0:
            found[key] = _block(row, body, is_image)
        elif is_image:
            found[key] = EARLIER
    return found


def _block(row: Attachment, body: bytes, is_image: bool) -> dict[str, Any]:
    kind = row.shown_type if is_image else row.media_type
    source = {"type": "base64", "media_type": kind, "data": b64encode(body).decode()}
    return {"type": "image" if is_image else "document", "source": source}
