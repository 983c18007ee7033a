"""Draws the PNG icons of static/img from the shapes of icon.svg: `python scripts/icons.py`."""

import struct
import zlib
from pathlib import Path

import numpy as np

GREEN, WHITE = (14, 106, 92), (255, 255, 255)
OUT = Path(__file__).resolve().parents[1] / "static" / "img"
FINER = 4
"""Points a pixel, each way."""


def drawn(size: int, *, round_corners: bool, scale: float = 1.0) -> np.ndarray:
    """RGBA of `size` x `size` pixels; `scale` shrinks the figure on its ground, for masks that cut off the edges."""
    step = 32 / (size * FINER)
    y, x = np.mgrid[0 : size * FINER, 0 : size * FINER] * step + step / 2
    radius, inner = 9.0, np.maximum(np.abs(np.stack([x - 16, y - 16])) - (16 - 9.0), 0)
    ground = np.hypot(*inner) <= radius if round_corners else np.ones_like(x, dtype=bool)
    fx, fy = (x - 16) / scale + 16, (y - 16) / scale + 16
    head = np.hypot(fx - 16, fy - 8.8) <= 2.7
    notch = 24.5 - 1.8 * (1 - np.minimum(np.abs(fx - 16) / 2.4, 1))
    body = (np.abs(fx - 16) <= 2.4) & (fy >= 14) & (fy <= notch)
    figure = (head | body)[..., None]
    rgba = np.concatenate([np.where(figure, WHITE, GREEN), ground[..., None] * 255], axis=2).astype(
        float
    )
    alpha = rgba[..., 3:] / 255
    fine = np.concatenate([rgba[..., :3] * alpha, alpha], axis=2)
    mean = fine.reshape(size, FINER, size, FINER, 4).mean(axis=(1, 3))
    colour = mean[..., :3] / np.maximum(mean[..., 3:], 1e-6)
    return np.concatenate([colour, mean[..., 3:] * 255], axis=2).round().astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def main() -> None:
    for name, size, corners, scale in (
        ("icon-192.png", 192, True, 1.0),
        ("icon-512.png", 512, True, 1.0),
        ("icon-mask.png", 512, False, 0.8),
        ("icon-touch.png", 180, False, 0.9),
    ):
        (OUT / name).write_bytes(png(drawn(size, round_corners=corners, scale=scale)))


if __name__ == "__main__":
    main()
