"""Undoing a response's content encoding without ever holding more than was asked for (zip bombs)."""

import zlib
from collections.abc import AsyncIterator, Iterator

from apps.agent.tools.base import ToolFailure

ACCEPTED = "gzip, deflate"
STEP = 65_536

_WINDOW = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


async def decoded(raw: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The pieces of a body, decompressed, each at most 64 KB; stop reading and nothing more is decompressed.

    `encoding` is the Content-Encoding header. Raises `ToolFailure` for one that was not asked for, and for broken data.
    """
    names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
    names = [name for name in names if name != "identity"]
    if not names:
        async for piece in raw:
            yield piece
        return
    if len(names) > 1 or names[0] not in _WINDOW:
        raise ToolFailure(
            "The page is compressed in a way that cannot be read here. Try another page on the subject."
        )
    async for piece in _inflated(raw, names[0]):
        yield piece


async def _inflated(raw: AsyncIterator[bytes], name: str) -> AsyncIterator[bytes]:
    inflate = None
    async for piece in raw:
        if not piece:
            continue
        if inflate is None:
            inflate = zlib.decompressobj(_window(name, piece))
        for out in _steps(inflate, piece):
            yield out
        if inflate.eof:
            return


def _steps(inflate: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    while True:
        try:
            out = inflate.decompress(piece, STEP)
        except zlib.error as error:
            raise ToolFailure("The page arrived damaged. Try again, or another page.") from error
        piece = inflate.unconsumed_tail
        if out:
            yield out
        if inflate.eof or not (out or piece):
            return


def _window(name: str, first: bytes) -> int:
    """Some servers send `deflate` without its zlib header (RFC 9110, 8.4.1.2, names the habit)."""
    bare = name == "deflate" and (
        first[0] & 0x0F != 8 or (len(first) > 1 and (first[0] << 8 | first[1]) % 31)
    )
    return -zlib.MAX_WBITS if bare else _WINDOW[name]
