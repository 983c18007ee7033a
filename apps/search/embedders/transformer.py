"""all-MiniLM-L6-v2 in numpy: a small contextual encoder, computed in this process without PyTorch, a server or a download.

Weights and tokenizer come from the package of the word vectors (`requirements-words.lock`, Apache License 2.0), a zip. Computed is
what its files describe: BERT of six layers, the mean over a text's tokens, length 1. Documents are embedded by the tower of notes that it
was taught, messages to look for notes with by that of messages (`minilm_taught`), questions as it came.
"""

import json
import math
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import EmbedderDown, EmbedderMissing, Matrix, unit_rows
from apps.search.embedders.minilm_taught import Tower, taught
from apps.search.kept import array_kept, kept_file

PACKAGE = "all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
WORDS = "embeddings.word_embeddings.weight"
DIMENSION, LAYERS, HEADS = 384, 6, 12
HEAD = DIMENSION // HEADS
MAX_TOKENS = 256
"""Tokens of one text that count, as the model's card says and Ollama sets."""
BATCH_TOKENS = 1024
"""Texts of so many tokens are computed together: the weights are read once for all, and the layers' results stay in the cache."""
EPSILON = 1e-12

Floats = NDArray[np.float32]
Weights = Mapping[str, NDArray[Any]]
_lock = threading.Lock()


def weights_file() -> Path | None:
    """The package's file, a zip of `model.safetensors` and `tokenizer.json`; None where it is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model.zip"


def _installed() -> Path:
    if (path := weights_file()) is None:
        raise EmbedderMissing("The weights of the embedder minilm are not installed: run `make setup`.")
    return path


class MiniLMEmbedder:
    """`minilm`: the first text that is embedded loads the model. Raises EmbedderMissing."""

    name = "minilm"
    dimension = DIMENSION
    query_prefix = document_prefix = ""
    noise, match = 0.13, 0.86
    """Between those of documents (0.16, 0.90: `manage.py benchmark encoder`) and of questions with documents (0.11, 0.81)."""

    def __init__(self) -> None:
        _installed()
        taught()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return model().embed(texts, taught().notes)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return model().embed(texts)

    def embed_messages(self, texts: Sequence[str]) -> Matrix:
        return model().embed(texts, taught().messages)


class MiniLM:
    """Takes 66 MB, which processes share where they could be kept. Raises EmbedderMissing and EmbedderDown."""

    def __init__(self) -> None:
        from tokenizers import Tokenizer

        path = _installed()
        try:
            with zipfile.ZipFile(path) as packed:
                self.weights = _kept(packed)
                self._tokenizer: Any = Tokenizer.from_buffer(packed.read("tokenizer.json"))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise EmbedderDown(f"The weights of the embedder minilm cannot be read: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, texts: Sequence[str], tower: Tower | None = None) -> Matrix:
        """Unit vectors, (len(texts), 384), of the encoder as it came, or by one of its towers."""
        tokens = [np.asarray(ids) for ids in self.tokens(texts)]
        result = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for places in _together(tokens):
            result[places] = self._means([tokens[place] for place in places], tower or {})
        return unit_rows(result)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Those of each text, cut to what counts."""
        return [one.ids for one in self._tokenizer.encode_batch_fast(list(texts))]

    def is_too_long(self, text: str) -> bool:
        """Whether some of a text does not count."""
        return bool(self._tokenizer.encode(text).overflowing)

    def _means(self, texts: Sequence[NDArray[np.int64]], tower: Tower) -> Floats:
        """The mean of the last layer's states of each text, (texts, 384); those of one length stand side by side."""
        lengths = np.array([len(text) for text in texts])
        ends = np.cumsum(lengths)
        given = self.weights
        flat = given[WORDS][np.concatenate(texts)].astype(np.float32)
        # Where in its text each token stands.
        places = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        flat += given["embeddings.position_embeddings.weight"][places]
        flat += given["embeddings.token_type_embeddings.weight"][0]
        flat = _normed(flat, given, "embeddings.LayerNorm")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}."
            attended = _attention(_dense(flat, given, f"{layer}qkv", tower), lengths)
            flat = flat + _dense(attended, given, f"{layer}attention.output.dense", tower)
            flat = _normed(flat, given, f"{layer}attention.output.LayerNorm")
            inner = _gelu(_dense(flat, given, f"{layer}intermediate.dense", tower))
            flat = flat + _dense(inner, given, f"{layer}output.dense", tower)
            flat = _normed(flat, given, f"{layer}output.LayerNorm")
        means: Floats = np.add.reduceat(flat, ends - lengths, axis=0)
        means /= lengths[:, None].astype(np.float32)
        return means


def model() -> MiniLM:
    """The process' one encoder. Raises EmbedderMissing and EmbedderDown."""
    with _lock:
        return _loaded()


@cache
def _loaded() -> MiniLM:
    return MiniLM()


def _kept(packed: zipfile.ZipFile) -> Weights:
    """The weights as they are computed with, mapped from a file beside the packages; made there by the first who needs them."""
    path = kept_file(f"minilm-{packed.getinfo(WEIGHTS).CRC:08x}.npy")
    return _fields(array_kept(path, lambda: _turned(_tensors(packed.read(WEIGHTS)))))


def _fields(record: NDArray[np.void]) -> Weights:
    return {name: np.asarray(record[name][0]) for name in record.dtype.names or ()}


def _turned(given: dict[str, Floats]) -> NDArray[np.void]:
    """One record of all weights: of each layer query, key and value as one matrix, matrices turned, words in half precision."""
    found: dict[str, NDArray[Any]] = {WORDS: given.pop(WORDS).astype("<f2")}
    found |= {name: tensor for name, tensor in given.items() if name.startswith("embeddings.")}
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}."
        layer = {name: tensor for name, tensor in given.items() if name.startswith(prefix)}
        for kind in ("weight", "bias"):
            parts = [f"{prefix}attention.self.{part}.{kind}" for part in ("query", "key", "value")]
            layer[f"{prefix}qkv.{kind}"] = np.concatenate([layer.pop(part) for part in parts])
        found |= {name: tensor.T for name, tensor in layer.items()}
    record = np.zeros(1, dtype=[(name, tensor.dtype, tensor.shape) for name, tensor in found.items()])
    for name, tensor in found.items():
        record[name][0] = tensor
    return record


def _tensors(file: bytes) -> dict[str, Floats]:
    """The tensors of a safetensors file: 8 bytes header length, JSON header, data."""
    length = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + length])
    data = memoryview(file)[8 + length :]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], dtype="<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def _together(tokens: Sequence[NDArray[np.int64]]) -> Iterator[list[int]]:
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


def _dense(states: Floats, given: Weights, name: str, tower: Tower) -> Floats:
    result: Floats = states @ given[f"{name}.weight"]
    result += given[f"{name}.bias"]
    if name in tower:
        down, scale, up = tower[name]
        result += (states @ down.astype(np.float32) * scale) @ up.astype(np.float32)
    return result


def _normed(states: Floats, given: Weights, name: str) -> Floats:
    centred: Floats = states - states.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", centred, centred)[:, None] / np.float32(DIMENSION)
    centred /= np.sqrt(variance + np.float32(EPSILON))
    centred *= given[f"{name}.weight"]
    centred += given[f"{name}.bias"]
    return centred


def _attention(qkv: Floats, lengths: NDArray[np.int64]) -> Floats:
    """Each token's mean of the values of its text that it attends to, (tokens, 384)."""
    mixed, start = np.empty((len(qkv), DIMENSION), dtype=np.float32), 0
    for length, texts in zip(*np.unique(lengths, return_counts=True), strict=True):
        here = slice(start, start + length * texts)
        query, key, value = qkv[here].reshape(texts, length, 3, HEADS, HEAD).transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2)
        scores *= np.float32(1 / math.sqrt(HEAD))
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed[here] = (scores @ value).transpose(0, 2, 1, 3).reshape(-1, DIMENSION)
        start = here.stop
    return mixed


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
