"""The lessons of the encoders that Izzy computes: which notes matter to which messages, and which messages concern the user.

As they came, a text is compared with a message as two that are about the same; a note matters to more than that: an allergy to a
restaurant, a timid dog to fireworks. So an encoder has two towers, one for messages and one for notes, each of which adds a product of
two small matrices to each of its own (LoRA, arXiv:2106.09685). They, `concern` and the calibration stand in a file for each encoder, which
`scripts/teach_encoder.py` makes of the examples of `apps/search/proactive/`.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import EmbedderDown, Vector
from apps.search.kept import UNREADABLE

FOLDER = Path(__file__).parent
TOWERS = ("message", "note")
STEPS = 127
"""A number is one of so many steps to either side of zero."""

Tower = Mapping[str, tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int8]]]
"""Of each of the encoder's matrices, by name, the two whose product is added to it, (in, rank) and (rank, out), and between them
how much each rank counts."""


@dataclass(frozen=True, slots=True)
class Taught:
    """`concern` is weights and offset for vectors of messages, (dimension + 1,); `noise` and `match` calibrate cosines of messages
    with notes.

    `mark` tells the notes' vectors from those of another tower.
    """

    messages: Tower
    notes: Tower
    concern: Vector
    noise: float
    match: float
    mark: bytes


def file_of(name: str) -> Path:
    """Where the lessons of the encoder of that name stand."""
    return FOLDER / f"{name}_taught.npz"


@cache
def taught(name: str) -> Taught:
    """The contents of the file of an encoder; 1 to 3 MB. Raises EmbedderDown."""
    path = file_of(name)
    try:
        with np.load(path) as file:
            parts = dict(file.items())
        return _of(parts)
    except UNREADABLE as error:
        raise EmbedderDown(f"{path.name}, of the embedder {name}, cannot be read: {error}") from error


def _of(parts: Mapping[str, NDArray[Any]]) -> Taught:
    messages, notes = (
        {
            matrix: (
                parts[f"{tower}.{matrix}.down"],
                parts[f"{tower}.{matrix}.scale"],
                parts[f"{tower}.{matrix}.up"],
            )
            for matrix in parts["matrices"].tolist()
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
