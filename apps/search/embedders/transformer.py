"""BERT and MPNet in numpy: a small contextual encoder, computed in this process without PyTorch, a server or a download.

Computed is what the files of a model describe: its layers, the mean over a text's tokens, length 1; and, for a text that is embedded by a
tower, what that was taught on top (`taught.py`).
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Matrix, unit_rows
from apps.search.embedders.taught import Tower
from apps.search.kept import array_kept

WORDS = "embeddings.word_embeddings.weight"
PLACES = "embeddings.position_embeddings.weight"
NEARNESS = "encoder.relative_attention_bias.weight"
MAX_TOKENS = 256
"""Tokens of one text that count, as the card of all-MiniLM-L6-v2 says and Ollama sets."""
BATCH_TOKENS = 1024
"""Texts of so many tokens are computed together: the weights are read once for all, and the layers' results stay in the cache."""
NEAREST, FARTHEST = 8, 128
"""How far apart tokens are tells, in MPNet, one by one up to so many, then by logarithm up to so many."""
OWN_NAMES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.attn.q": "query",
    "attention.attn.k": "key",
    "attention.attn.v": "value",
    "attention.attn.o": "mixed",
    "attention.output.dense": "mixed",
    "attention.LayerNorm": "mixed_norm",
    "attention.output.LayerNorm": "mixed_norm",
    "intermediate.dense": "inner",
    "output.dense": "outer",
    "output.LayerNorm": "outer_norm",
}
"""Names of a layer's parts in BERT and in MPNet -> those here."""

Floats = NDArray[np.float32]
Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model, as its `config.json` says. `first` is the row of the first token's place."""

    dimension: int
    layers: int
    heads: int
    epsilon: float
    first: int = 0


class Transformer:
    """`tokenizer` is a `tokenizer.json`; `read` gives the `model.safetensors`, where it is not kept at `path` yet. Raises what it raises,
    and what a tokenizer that is none does."""

    def __init__(self, shape: Shape, path: Path, tokenizer: bytes, read: Callable[[], bytes]) -> None:
        from tokenizers import Tokenizer

        self.shape = shape
        record = array_kept(path, lambda: _record(shape, read()))
        self.weights: Weights = {name: np.asarray(record[name][0]) for name in record.dtype.names or ()}
        self._tokenizer: Any = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, texts: Sequence[str], tower: Tower | None = None, most: int = MAX_TOKENS) -> Matrix:
        """Unit vectors, (len(texts), dimension), of the encoder as it came, or by one of its towers; of each text `most` tokens count."""
        tokens = [np.asarray(ids[:most]) for ids in self.tokens(texts)]
        result = np.zeros((len(texts), self.shape.dimension), dtype=np.float32)
        for places in together(tokens):
            result[places] = self._means([tokens[place] for place in places], tower or {})
        return unit_rows(result)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Those of each text, cut to what counts."""
        return [one.ids for one in self._tokenizer.encode_batch_fast(list(texts))]

    def is_too_long(self, text: str) -> bool:
        """Whether some of a text does not count."""
        return bool(self._tokenizer.encode(text).overflowing)

    def _means(self, texts: Sequence[NDArray[np.int64]], tower: Tower) -> Floats:
        """The mean of the last layer's states of each text, (texts, dimension); those of one length stand side by side."""
        lengths = np.array([len(text) for text in texts])
        ends = np.cumsum(lengths)
        given = self.weights
        flat = given[WORDS][np.concatenate(texts)].astype(np.float32)
        # Where in its text each token stands.
        places = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        flat += given[PLACES][places + self.shape.first]
        flat = self._normed(flat, "embeddings.LayerNorm")
        for number in range(self.shape.layers):
            mixed = self._attention(self._dense(flat, f"{number}.qkv", tower), lengths)
            flat = flat + self._dense(mixed, f"{number}.mixed", tower)
            flat = self._normed(flat, f"{number}.mixed_norm")
            inner = _gelu(self._dense(flat, f"{number}.inner", tower))
            flat = flat + self._dense(inner, f"{number}.outer", tower)
            flat = self._normed(flat, f"{number}.outer_norm")
        means: Floats = np.add.reduceat(flat, ends - lengths, axis=0)
        means /= lengths[:, None].astype(np.float32)
        return means

    def _dense(self, states: Floats, name: str, tower: Tower) -> Floats:
        result: Floats = states @ self.weights[f"{name}.weight"]
        result += self.weights[f"{name}.bias"]
        if name in tower:
            down, scale, up = tower[name]
            result += (states @ down.astype(np.float32) * scale) @ up.astype(np.float32)
        return result

    def _normed(self, states: Floats, name: str) -> Floats:
        centred: Floats = states - states.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", centred, centred)[:, None] / np.float32(states.shape[1])
        centred /= np.sqrt(variance + np.float32(self.shape.epsilon))
        centred *= self.weights[f"{name}.weight"]
        centred += self.weights[f"{name}.bias"]
        return centred

    def _attention(self, qkv: Floats, lengths: NDArray[np.int64]) -> Floats:
        """Each token's mean of the values of its text that it attends to, (tokens, dimension)."""
        size, heads = self.shape.dimension, self.shape.heads
        mixed, start = np.empty((len(qkv), size), dtype=np.float32), 0
        for length, texts in zip(*np.unique(lengths, return_counts=True), strict=True):
            here = slice(start, start + length * texts)
            cut = qkv[here].reshape(texts, length, 3, heads, size // heads)
            query, key, value = cut.transpose(2, 0, 3, 1, 4)
            scores = query @ key.transpose(0, 1, 3, 2)
            scores *= np.float32(1 / math.sqrt(size // heads))
            if self.nearness is not None:
                scores += self.nearness[:, :length, :length]
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            mixed[here] = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, size)
            start = here.stop
        return mixed

    @cached_property
    def nearness(self) -> Floats | None:
        """How much more each head attends to a token for where it stands from another, (heads, tokens, tokens); None in BERT."""
        if NEARNESS not in self.weights:
            return None
        apart = np.arange(MAX_TOKENS)[None, :] - np.arange(MAX_TOKENS)[:, None]
        far = np.abs(apart)
        by_log = np.log(np.maximum(far, 1) / NEAREST) / math.log(FARTHEST / NEAREST) * NEAREST
        steps = np.where(far < NEAREST, far, np.minimum(NEAREST + by_log, 2 * NEAREST - 1).astype(int))
        kept: Floats = self.weights[NEARNESS][steps + 2 * NEAREST * (apart > 0)].transpose(2, 0, 1)
        return np.ascontiguousarray(kept)


def together(tokens: Sequence[NDArray[np.int64]]) -> Iterator[list[int]]:
    """The places of texts, by length, as many at a time as are computed together."""
    batch: list[int] = []
    number = 0
    for place in sorted(range(len(tokens)), key=lambda place: len(tokens[place])):
        number += len(tokens[place])
        if batch and number > BATCH_TOKENS:
            yield batch
            batch, number = [], len(tokens[place])
        batch.append(place)
    if batch:
        yield batch


def tensors(file: bytes) -> dict[str, Floats]:
    """The tensors of a safetensors file: 8 bytes header length, JSON header, data."""
    length = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + length])
    data = memoryview(file)[8 + length :]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], dtype="<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def _record(shape: Shape, weights: bytes) -> NDArray[np.void]:
    """One record of all that is computed with: of each layer query, key and value as one matrix, matrices turned, words in half precision."""
    given = tensors(weights)
    found: dict[str, NDArray[Any]] = {
        WORDS: given[WORDS].astype("<f2"),
        PLACES: given[PLACES][: shape.first + MAX_TOKENS],
    }
    if (kinds := given.get("embeddings.token_type_embeddings.weight")) is not None:
        found[PLACES] = found[PLACES] + kinds[0]  # of the first of two texts, which is the only one
    kept = [name for name in given if name.startswith("embeddings.LayerNorm") or name == NEARNESS]
    found |= {name: given[name] for name in kept}
    for number in range(shape.layers):
        prefix = f"encoder.layer.{number}."
        layer = {}
        for name, tensor in given.items():
            part, _, kind = name.removeprefix(prefix).rpartition(".")
            if name.startswith(prefix):
                layer[f"{OWN_NAMES[part]}.{kind}"] = tensor
        for kind in ("weight", "bias"):
            three = [layer.pop(f"{part}.{kind}") for part in ("query", "key", "value")]
            layer[f"qkv.{kind}"] = np.concatenate(three)
        found |= {f"{number}.{name}": tensor.T for name, tensor in layer.items()}
    record = np.zeros(1, dtype=[(name, tensor.dtype, tensor.shape) for name, tensor in found.items()])
    for name, tensor in found.items():
        record[name][0] = tensor
    return record


def _gelu(inner: Floats) -> Floats:
    """The usual approximation of x * Phi(x) by a hyperbolic tangent, which Ollama computes with too."""
    curve = inner * inner
    curve *= np.float32(0.044715)
    curve += 1
    curve *= inner
    curve *= np.float32(math.sqrt(2 / math.pi))
    np.tanh(curve, out=curve)
    curve += 1
    curve *= inner
    curve *= np.float32(0.5)
    return curve
