"""Files as tests attach them."""

import io
from functools import cache
from uuid import UUID

from PIL import Image
from pypdf import PdfWriter

from apps.accounts.models import User
from apps.chat.attachments.services import attachment_add
from apps.core.db.pool import in_db

SAID = "The meeting about the heron is on Friday at ten."


@cache
def png(width: int = 40, height: int = 30) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(file, "PNG")
    return file.getvalue()


@cache
def pdf(pages: int = 2, password: str = "") -> bytes:
    """Pages that say their number, written by hand: no library here sets text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(pages))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number in range(pages):
        stream = f"BT /F1 12 Tf 20 100 Td (This is page {number + 1}. {SAID}) Tj ET"
        page = f"/Contents {5 + 2 * number} 0 R /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 500 200] {page} >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}"
    tail = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    whole = body + (head + tail).encode()
    if not password:
        return whole
    writer, file = PdfWriter(clone_from=io.BytesIO(whole)), io.BytesIO()
    writer.encrypt(password)
    writer.write(file)
    return file.getvalue()


async def attach(user: User, name: str, body: bytes | str) -> UUID:
    """The id of a file that was brought and not sent yet."""
    sent = body.encode() if isinstance(body, str) else body
    row = await in_db(attachment_add, user_id=user.pk, name=name, body=sent)
    return row.pk
