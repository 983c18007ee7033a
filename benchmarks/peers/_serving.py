"""The frame of a peer's process: it is given notes with finished vectors, and answers one question after the other.

Each peer is a module with `name` and a class `Peer(folder, dimension)` of `fill(owner, ids, texts, vectors)`, which may take
a faster way than a program would, `add(owner, ids, texts, vectors)`, as a program would, and `search(owner, text, vector)`.
It knows nothing of Izzy: `python -m benchmarks.peers.chroma FOLDER` runs in an environment of its own.
"""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

TOP = 10
OWNER, OTHER = "alice", "bob"


class PeerType(Protocol):
    def __init__(self, folder: Path, dimension: int) -> None: ...
    def fill(self, owner: str, ids: Sequence[str], texts: Sequence[str], vectors: Any) -> None: ...
    def add(self, owner: str, ids: Sequence[str], texts: Sequence[str], vectors: Any) -> None: ...
    def search(self, owner: str, text: str, vector: Any) -> list[str]: ...


def serve(kind: type[PeerType], folder: Path) -> None:
    """Adds and fills, says how long adding took, then answers a line with a question's number by its milliseconds and ids."""
    given = json.loads((folder / "notes.json").read_text())
    arrays = np.load(folder / "vectors.npz")
    vectors, asked = arrays["notes"], arrays["questions"]
    peer = kind(folder / "data", vectors.shape[1])
    added, batch = given["added"], given["batch"]
    times = []
    for start in range(0, added, batch):
        some = slice(start, min(start + batch, added))
        began = time.perf_counter()
        peer.add(OWNER, given["ids"][some], given["texts"][some], vectors[some])
        times.append((time.perf_counter() - began) / (some.stop - some.start))
    own = given["own"]
    for owner, start, end in ((OWNER, added, own), (OTHER, own, len(vectors))):
        for first in range(start, end, 1000):
            some = slice(first, min(first + 1000, end))
            peer.fill(owner, given["ids"][some], given["texts"][some], vectors[some])
    print(json.dumps({"seconds": statistics.median(times)}), flush=True)
    for line in sys.stdin:
        number = int(line)
        began = time.perf_counter()
        found = peer.search(OWNER, given["questions"][number], asked[number])
        print(json.dumps([(time.perf_counter() - began) * 1000, found]), flush=True)


if __name__ == "__main__":
    serve(import_module(sys.argv[1]).Peer, Path(sys.argv[2]))
