"""Images as models and pages get them: decoded and made anew, so that what is broken, huge or hidden in one goes no further."""

import io
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MAX_PIXELS = 50_000_000
"""Of one image, all of which is decoded: 200 MB."""
MAX_SIDE = 1568
"""Pixels. Larger images are made smaller by the model's endpoint anyway."""
MAX_PNG_BYTES = 1_000_000
QUALITY = 85


def read_image(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
    """`{"picture", "type", "width", "height"}`: the first frame in base64, upright, at most MAX_SIDE pixels wide and high, without
    what else the file says (place, camera). `{"pixels"}` alone for one of more than MAX_PIXELS. Raises what Pillow does."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None  # it is counted here
    with Image.open(io.BytesIO(body), formats=FORMATS) as found:
        if found.width * found.height > MAX_PIXELS:
            yield {"pixels": found.width * found.height}
            return
        was_png = found.format == "PNG"
        found.draft("RGB", (MAX_SIDE, MAX_SIDE))
        found.load()
        image: Image.Image = ImageOps.exif_transpose(found)
    mode = "RGBA" if image.has_transparency_data else "RGB"
    if image.mode in {"1", "P"}:  # which would lose every other line of a scan by being made smaller
        image = image.convert(mode)
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    if image.mode.startswith("I"):  # 16 bits of grey, which would all be white otherwise
        image = image.convert("I").point(lambda grey: grey / 256).convert("L")
    image = image.convert(mode)
    picture, kind = b"", "image/png"
    if was_png or image.mode == "RGBA":
        picture = _saved(image, "PNG")
    if not picture or len(picture) > MAX_PNG_BYTES:
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
        picture, kind = _saved(white, "JPEG"), "image/jpeg"
    yield {
        "picture": b64encode(picture).decode(),
        "type": kind,
        "width": image.width,
        "height": image.height,
    }


def _saved(image: Any, kind: str) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, optimize=True, **({"quality": QUALITY} if kind == "JPEG" else {}))
    return file.getvalue()
