"""The lessons of `minilm`, taught on top of all-MiniLM-L6-v2: which notes matter to which messages, and which messages concern the user.

Its texts are compared with a message as two that are about the same; a note matters to more than that: an allergy to a
restaurant, a timid dog to fireworks. So the encoder has two towers, one for messages and one for notes, each of which adds a product of
two small matrices to each of its own (LoRA, arXiv:2106.09685). They, `concern` and the calibration stand in `minilm_taught.npz`, which
`scripts/teach_minilm.py` makes of the examples of `apps/search/proactive/`.
"""

import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Vector

FILE = Path(__file__).parent / "minilm_taught.npz"
TOWERS = ("message", "note")
STEPS = 127
"""A number is one of so many steps to either side of zero."""

Floats = NDArray[np.float32]
Tower = Mapping[str, tuple[Floats, Floats]]
"""Of each of the encoder's matrices, by name, the two whose product is added to it, (in, rank) and (rank, out)."""


@dataclass(frozen=True, slots=True)
class Taught:
    """`concern` is weights and offset for vectors of messages, (385,); `noise` and `match` calibrate cosines of messages with notes.

    `mark` tells the vectors of these towers from those of others.
    """

    messages: Tower
    notes: Tower
    concern: Vector
    noise: float
    match: float
    mark: bytes


@cache
def taught() -> Taught:
    """The contents of the file; 5 MB."""
    packed = FILE.read_bytes()
    with np.load(io.BytesIO(packed)) as file:
        parts = dict(file.items())
    messages, notes = (_tower(parts, f"{name}.") for name in TOWERS)
    noise, match = parts["scale"].tolist()
    mark = zlib.crc32(packed).to_bytes(4, "little")
    return Taught(messages, notes, parts["concern"], noise, match, mark)


def _tower(parts: Mapping[str, NDArray[Any]], prefix: str) -> Tower:
    names = [
        key[len(prefix) : -len(".scale")]
        for key in parts
        if key.startswith(prefix) and key.endswith(".scale")
    ]
    return {
        name: (
            parts[f"{prefix}{name}.down"] * parts[f"{prefix}{name}.scale"],
            parts[f"{prefix}{name}.up"].astype(np.float32),
        )
        for name in names
    }


def write(
    file: BinaryIO, towers: Mapping[str, Tower], concern: Vector, noise: float, match: float
) -> None:
    """Write a file that `taught` reads: each rank of a matrix in whole steps, an eighth of the size of numbers."""
    parts: dict[str, NDArray[Any]] = {
        "concern": concern.astype(np.float32),
        "scale": np.array([noise, match]),
    }
    for name, tower in towers.items():
        for matrix, (down, up) in tower.items():
            most = np.abs(down).max(axis=0) + 1e-12, np.abs(up).max(axis=1) + 1e-12
            parts[f"{name}.{matrix}.down"] = np.round(down / most[0] * STEPS).astype(np.int8)
            parts[f"{name}.{matrix}.up"] = np.round(up / most[1][:, None] * STEPS).astype(np.int8)
            parts[f"{name}.{matrix}.scale"] = (most[0] * most[1] / STEPS**2).astype(np.float32)
    np.savez_compressed(file, allow_pickle=False, **parts)
