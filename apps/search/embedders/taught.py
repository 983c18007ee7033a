"""The lessons of `minilm`, taught on top of all-MiniLM-L6-v2: which notes matter to which messages, and which messages concern the user.

Its texts are compared with a message as two that are about the same; a note matters to more than that: an allergy to a
restaurant, a timid dog to fireworks. So the encoder has two towers, one for messages and one for notes, each of which adds a product of
two small matrices to each of its own (LoRA, arXiv:2106.09685). They, `concern` and the calibration stand in `minilm_taught.npz`, which
`scripts/teach_minilm.py` makes of the examples of `apps/search/proactive/`.
"""

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import EmbedderDown, Vector

FILE = Path(__file__).parent / "minilm_taught.npz"
TOWERS = ("message", "note")
STEPS = 127
"""A number is one of so many steps to either side of zero."""

Tower = Mapping[str, tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int8]]]
"""Of each of the encoder's matrices, by name, the two whose product is added to it, (in, rank) and (rank, out), and between them
how much each rank counts."""


@dataclass(frozen=True, slots=True)
class Taught:
    """`concern` is weights and offset for vectors of messages, (385,); `noise` and `match` calibrate cosines of messages with notes.

    `mark` tells the notes' vectors from those of another tower.
    """

    messages: Tower
    notes: Tower
    concern: Vector
    noise: float
    match: float
    mark: bytes


@cache
def taught() -> Taught:
    """The contents of the file; 1 MB. Raises EmbedderDown."""
    try:
        with np.load(FILE) as file:
            parts = dict(file.items())
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise EmbedderDown(f"{FILE.name}, of the embedder minilm, cannot be read: {error}") from error
    messages, notes = (
        {
            name: (
                parts[f"{tower}.{name}.down"],
                parts[f"{tower}.{name}.scale"],
                parts[f"{tower}.{name}.up"],
            )
            for name in parts["matrices"].tolist()
        }
        for tower in TOWERS
    )
    noise, match = parts["scale"].tolist()
    mark = zlib.crc32(b"".join(part.tobytes() for three in notes.values() for part in three))
    return Taught(messages, notes, parts["concern"], noise, match, mark.to_bytes(4, "little"))


def tower_of(added: Mapping[str, tuple[NDArray[np.float32], NDArray[np.float32]]]) -> Tower:
    """A tower of the two matrices that are added to each: every rank in whole steps, a quarter of the size of numbers."""
    tower = {}
    for name, (down, up) in added.items():
        most = np.abs(down).max(axis=0) + 1e-12, np.abs(up).max(axis=1) + 1e-12
        tower[name] = (
            np.round(down / most[0] * STEPS).astype(np.int8),
            (most[0] * most[1] / STEPS**2).astype(np.float32),
            np.round(up / most[1][:, None] * STEPS).astype(np.int8),
        )
    return tower


def write(
    file: BinaryIO, towers: Mapping[str, Tower], concern: Vector, noise: float, match: float
) -> None:
    """Write a file that `taught` reads."""
    parts: dict[str, NDArray[Any]] = {
        "concern": concern.astype(np.float32),
        "scale": np.array([noise, match]),
        "matrices": np.array(list(towers[TOWERS[0]])),
    }
    for tower, matrices in towers.items():
        for name, (down, scale, up) in matrices.items():
            parts |= {
                f"{tower}.{name}.down": down,
                f"{tower}.{name}.scale": scale,
                f"{tower}.{name}.up": up,
            }
    np.savez_compressed(file, allow_pickle=False, **parts)
