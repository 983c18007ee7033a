"""The bundled embedder: WordLlama's 256-dimension token vectors, averaged. No model runs, nothing can be down.

Its two files are read directly: importing wordllama would take half a second.
"""

import json
import math
from collections.abc import Collection, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import EmbedderMissing, Matrix, QueryWeights, Vector
from apps.search.text.analysis import RUN

DIMENSION = 256
WORD_START = "\u2581"
"""How the vocabulary marks a token that begins a word."""
MAX_TOKENS = 4096
"""Tokens of one text that count."""
SIGN_WEIGHT = 0.05
"""Weight in a query of a token that belongs to no word, beside words of 0..1."""
LATIN_END = 0x250
"""The code point after the last Latin letter."""


class StaticEmbedder:
    """Documents: the mean of token vectors weighted by log(token id + 2), the token's rank in the vocabulary, so that
    a stored vector depends on its text alone. Queries: weighted by the owner's own frequencies as far as they are known.
    """

    name = "static"
    dimension = DIMENSION
    query_prefix = ""
    document_prefix = ""
    noise = 0.05
    match = 0.85

    def __init__(self) -> None:
        spec = find_spec("wordllama")
        if spec is None or not spec.submodule_search_locations:
            raise EmbedderMissing(
                "The bundled vectors need the package wordllama, which has no build for this platform. "
                "Search works by keywords; set IZZY_EMBEDDER to another embedder for search by meaning."
            )
        self._folder = Path(spec.submodule_search_locations[0])

    @cached_property
    def _vectors(self) -> NDArray[np.float16]:
        """Token vectors, mapped from the file (safetensors: 8 bytes header length, JSON header, data)."""
        path = self._folder / "weights" / "l2_supercat_256.safetensors"
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        entry = header["embedding.weight"]
        start = 8 + length + entry["data_offsets"][0]
        return np.memmap(path, dtype="<f2", mode="r", offset=start, shape=tuple(entry["shape"]))

    @cached_property
    def _ranks(self) -> NDArray[np.float32]:
        """Weight of each token, 0..1: log(id + 2), scaled."""
        ranks = np.log(np.arange(len(self._vectors)) + 2.0)
        return np.asarray(ranks / ranks[-1], dtype=np.float32)

    @cached_property
    def _weighted(self) -> Matrix:
        """Token vectors times their weights, 32 MB: made when many texts are embedded at once."""
        return np.asarray(self._vectors, dtype=np.float32) * self._ranks[:, None]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(
            str(self._folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
        )
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return tokenizer

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if len(texts) == 1:
            return self.embed_query(texts[0])[None]
        result = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        batch = self._tokenizer.encode_batch_fast(
            [text.lower() for text in texts], add_special_tokens=False
        )
        # A sum for each text: `np.add.reduceat` over them all takes five times as long.
        for row, item in enumerate(batch):
            np.add.reduce(self._weighted.take(item.ids, axis=0), axis=0, out=result[row])
        lengths = np.linalg.norm(result, axis=1, keepdims=True)
        return np.asarray(result / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    def embed_query(self, text: str, weights: QueryWeights | None = None) -> Vector:
        lowered = text.lower()
        encoded = self._tokenizer.encode(lowered, add_special_tokens=False)
        if not encoded.ids:
            return np.zeros(DIMENSION, dtype=np.float32)
        tokens = np.asarray(encoded.ids)
        weigh = self._ranks[tokens]
        if weights is not None:
            words = _words_of(lowered, encoded.offsets)
            found = (
                SIGN_WEIGHT if word is None else weights.words.get(word[2], SIGN_WEIGHT)
                for word in words
            )
            own = np.fromiter(found, dtype=np.float32, count=len(words))
            weigh = weights.trust * own + (1 - weights.trust) * weigh
        total = weigh @ self._vectors[tokens].astype(np.float32)
        return np.asarray(total / max(math.sqrt(float(total @ total)), 1e-9), dtype=np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return np.stack([self.embed_query(text) for text in texts])

    embed_messages = embed_queries

    def vocabulary_words(self) -> list[str]:
        """The vocabulary's whole lower-case words of four letters and more, the most frequent first."""
        entries = sorted((token, word) for word, token in self._tokenizer.get_vocab().items())
        words = [word[1:] for _, word in entries if word.startswith(WORD_START)]
        return [word for word in words if len(word) > 3 and word.isalpha() and word.islower()]

    def word_lengths(self, words: Sequence[str]) -> Vector:
        """The length of each word's vector, the sum of its tokens' (len(words),): 2 for "a", 28 for "risotto", which tells of a
        subject."""
        batch = self._tokenizer.encode_batch_fast(
            [word.lower() for word in words], add_special_tokens=False
        )
        sums = [np.asarray(self._vectors[item.ids], dtype=np.float32).sum(axis=0) for item in batch]
        return np.array([math.sqrt(float(total @ total)) for total in sums], dtype=np.float32)

    def plain_mean(self, text: str) -> Vector:
        """The unweighted mean of the token vectors: the baseline that benchmarks compare with."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        rows = self._vectors[tokens].astype(np.float32)
        return np.asarray(rows.mean(axis=0) if len(tokens) else np.zeros(DIMENSION, dtype=np.float32))


def can_read(words: Collection[str]) -> bool:
    """Whether the bundled vectors mean anything for words: they know other scripts than Latin by letters alone."""
    latin = sum(all(ord(sign) < LATIN_END for sign in word) for word in words)
    return 2 * latin >= len(words)


def _words_of(text: str, offsets: list[tuple[int, int]]) -> list[tuple[int, int, str] | None]:
    """For each token the word (its start, end and text) that it is a piece of; None for signs between words."""
    spans = [(found.start(), found.end(), found.group()) for found in RUN.finditer(text)]
    result: list[tuple[int, int, str] | None] = []
    place = 0
    for start, end in offsets:
        while place < len(spans) and spans[place][1] <= start:
            place += 1
        result.append(spans[place] if place < len(spans) and spans[place][0] < end else None)
    return result
