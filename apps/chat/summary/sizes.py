"""How large the messages of a conversation are, in estimated tokens, without reading them anew for every turn."""

from collections.abc import Mapping
from uuid import UUID

from apps.chat.models import Message
from apps.core.text import estimate_tokens

KEPT = 100_000  # sizes remembered in a process, some ten megabytes; then it begins anew

_known: dict[tuple[UUID, int], int] = {}
"""Tokens by message and the length of its blocks: a message whose blocks were changed is mostly of another length, and
these are estimates."""


def message_tokens(lengths: Mapping[UUID, int]) -> dict[UUID, int]:
    """The tokens of these messages' blocks, whose lengths in characters are given; of new ones the blocks are read."""
    sizes = {key: _known.get((key, length)) for key, length in lengths.items()}
    unknown = [key for key, size in sizes.items() if size is None]
    if len(_known) + len(unknown) > KEPT:
        _known.clear()
    rows = Message.objects.unscoped().filter(id__in=unknown).values_list("id", "blocks") if unknown else ()
    for key, blocks in rows:
        sizes[key] = _known[key, lengths[key]] = estimate_tokens(blocks)
    return {key: size for key, size in sizes.items() if size is not None}
