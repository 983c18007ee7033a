"""Features for ranking a passage beside its words and its vector, packed into 66 bytes.

Packed, so that loading a user's whole index is one pass over a few columns without making Python objects.
"""

import re
import struct
from collections.abc import Collection, Sequence
from enum import IntFlag
from functools import lru_cache
from hashlib import blake2b
from math import inf
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Document, Source
from apps.search.text.analysis import split_words

SOURCE_CODES = {Source.MEMORY: 0, Source.CONVERSATION: 1, Source.FILE: 2, Source.CAPABILITY: 3}
PARTS_PER_POSITION = 1 << 16
_ASKS = re.compile("[?？؟]")
END_CHARS = 60
"""A passage asks something where so many characters at its end do."""

DTYPE = np.dtype(
    [
        ("session", "<u8"),
        ("conversation", "<u8"),
        ("document", "<u8"),
        ("order", "<i8"),
        ("happened", "<f8"),
        ("valid_from", "<f8"),
        ("valid_to", "<f8"),
        ("first_name", "<u4"),
        ("last_name", "<u4"),
        ("length", "<u2"),
        ("source", "u1"),
        ("flags", "u1"),
        ("language", "<u2"),
    ]
)
"""`session` and `conversation` are hashes (0: none), `document` the last 8 bytes of the source id, `order` the place
within the session, times are Unix seconds, `length` counts distinct stems, names are hashes of the speaker's."""

_PACK = struct.Struct("<QQQqdddIIHBBH")


class Flag(IntFlag):
    QUESTION = 1


def pack_features(
    document: Document, *, part: int, text: str, terms: Sequence[str], language: str
) -> bytes:
    """The 66 bytes of one passage, `part` of its document, with its distinct `terms`."""
    first, last = speaker_hashes(document.speaker)
    talk, own = document.conversation_id, uuid_hash(document.source_id.bytes)
    # Passages of one session share it; a document outside any conversation is its own.
    session = (
        text_hash(f"{talk.hex if talk else ''}/{document.session}", 8)
        if talk or document.session
        else own
    )
    return _PACK.pack(
        session,
        uuid_hash(talk.bytes) if talk else 0,
        own,
        document.position * PARTS_PER_POSITION + part,
        document.happened_at.timestamp(),
        document.valid_from.timestamp() if document.valid_from else -inf,
        document.valid_to.timestamp() if document.valid_to else inf,
        first,
        last,
        min(len(terms), 0xFFFF),
        SOURCE_CODES[document.source],
        Flag.QUESTION if _ASKS.search(text, max(len(text) - END_CHARS, 0)) else 0,
        int.from_bytes(language.encode()[:2].ljust(2, b"\0"), "little"),
    )


def packed_for(packed: bytes, source_id: UUID, code: int) -> bool:
    """Whether these are features of a passage of that document, whose kind has this code."""
    if len(packed) != _PACK.size:
        return False
    values = _PACK.unpack(packed)
    return bool(values[2] == uuid_hash(source_id.bytes) and values[10] == code)


def uuid_hash(value: bytes) -> int:
    """The last eight bytes of a UUID, which are random in versions 4 and 7."""
    return int.from_bytes(value[8:], "little")


def of_documents(hashes: NDArray[np.uint64], ids: Collection[UUID]) -> NDArray[np.bool_]:
    """A mask of the rows, given by the hashes of their documents, that belong to one of these."""
    known = np.fromiter((uuid_hash(one.bytes) for one in ids), dtype=np.uint64, count=len(ids))
    rows, _ = rows_among(hashes, np.unique(known))
    mask = np.zeros(len(hashes), dtype=bool)
    mask[rows] = True
    return mask


def rows_among(
    hashes: NDArray[np.uint64], known: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows whose hash is one of some ascending `known` ones, and the place there of each.

    Most are ruled out by their last bits: of ten thousand rows and a few hundred hashes in a tenth of the time of `np.isin`.
    """
    if not len(known):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    bits = np.zeros(1 << 16, dtype=bool)
    bits[known & 0xFFFF] = True
    rows = np.flatnonzero(bits[hashes & 0xFFFF])
    places = np.minimum(np.searchsorted(known, hashes[rows]), len(known) - 1)
    same = known[places] == hashes[rows]
    return rows[same], places[same]


def best_places(
    total: NDArray[np.float32], documents: NDArray[np.uint64], top_k: int
) -> NDArray[np.int64]:
    """The places of highest score, at most `top_k`, one per document (by hash, of each place), best first."""
    if not len(total):  # all that there was has left the index
        return np.empty(0, np.int64)
    wanted = top_k
    while True:
        wanted = min(wanted + min(top_k, 50), len(total))
        least = np.partition(total, len(total) - wanted)[len(total) - wanted]
        places = np.flatnonzero((total >= least) & (total > -np.inf))  # all that are as good as the last
        places = places[np.argsort(-total[places], kind="stable")]
        _, first = np.unique(documents[places], return_index=True)
        if len(first) >= top_k or len(places) < wanted or wanted == len(total):
            return np.asarray(places[np.sort(first)][:top_k])
        wanted *= 4


@lru_cache(maxsize=1024)
def speaker_hashes(speaker: str) -> tuple[int, int]:
    """Hashes of the first and the last word of a speaker's name; zeros where there is none."""
    words = split_words(speaker)
    return (text_hash(words[0]), text_hash(words[-1])) if words else (0, 0)


@lru_cache(maxsize=8192)
def text_hash(text: str, size: int = 4) -> int:
    """`size` bytes of a hash, never 0; of words that are casefolded four."""
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest(), "little") or 1
