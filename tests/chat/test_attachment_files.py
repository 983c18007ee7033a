"""Files as they are brought, kept, given out again, taken along and taken away."""

import io
import json
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as live
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.chat.attachments import files
from apps.chat.attachments.kinds import clean_name
from apps.chat.attachments.services import attachments_prune
from apps.chat.conversations.services import conversation_create, conversation_delete
from apps.chat.models import Attachment
from apps.core.backups import named_files
from apps.core.integrity import checks as all_checks
from tests.chat.attached import SAID, pdf, png

API = "/api/v1/attachments/"


def bring(client: Client, name: str, body: bytes | str, **fields: str) -> Any:
    sent = body.encode() if isinstance(body, str) else body
    return client.post(
        API, {"file": SimpleUploadedFile("x", sent), **fields} | {"file": named(name, sent)}
    )


def named(name: str, body: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, body)


def lying(user: User) -> list[Path]:
    folder = Path(live.IZZY_DATA_DIR) / files.ROOT / str(user.pk)
    return sorted(folder.iterdir()) if folder.exists() else []


def test_a_file_is_brought_read_and_given_out_as_it_was(alice: User, api: Callable[..., Client]) -> None:
    client = api(alice)
    made = bring(client, "plan.md", SAID).json()
    assert (made["kind"], made["name"], made["conversation"]) == ("text", "plan.md", None)
    assert client.get(API).json()["count"] == 1
    content = client.get(f"{API}{made['id']}/content/")
    assert content.content == SAID.encode()
    assert content["Content-Type"] == "application/octet-stream"
    assert content["Content-Disposition"] == 'attachment; filename="plan.md"'
    assert content["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in content["Content-Security-Policy"]
    part = client.get(f"{API}{made['id']}/text/?offset=4").json()
    assert (part["text"], part["next"]) == (SAID[4:], None)
    assert client.get(f"{API}{made['id']}/content/?shown=true").status_code == 404
    assert client.delete(f"{API}{made['id']}/").status_code == 204
    assert client.get(f"{API}{made['id']}/").status_code == 404
    assert lying(alice) == []


def test_an_image_is_shown_as_a_small_copy_that_was_made_anew(
    alice: User, api: Callable[..., Client]
) -> None:
    client, body = api(alice), png(2000, 1000) + b"<script>alert(1)</script>"
    made = bring(client, "a.png", body).json()
    assert (made["width"], made["height"]) == (1568, 784)
    shown = client.get(f"{API}{made['id']}/content/?shown=true")
    assert shown["Content-Type"] == "image/png"
    assert shown["Content-Disposition"] == "inline"
    assert b"<script>" not in shown.content
    assert client.get(f"{API}{made['id']}/content/").content == body
    assert len(lying(alice)) == 2


@pytest.mark.parametrize("mode", ["1", "P", "L", "I;16", "LA"])
def test_a_scan_keeps_its_lines_however_its_greys_are_kept(
    mode: str, alice: User, api: Callable[..., Client]
) -> None:
    from PIL import Image

    client, page, file = api(alice), Image.new("L", (1800, 3400), "white"), io.BytesIO()
    for y in range(20, 3400, 40):
        page.paste(0, (0, y, 1800, y + 1))
    wide = Image.frombytes(
        "I;16", page.size, bytes(each for grey in page.tobytes() for each in (grey, grey))
    )
    (wide if mode == "I;16" else page.convert(mode)).save(file, "PNG")
    made = bring(client, "scan.png", file.getvalue()).json()
    shown = client.get(f"{API}{made['id']}/content/?shown=true").content
    copy = Image.open(io.BytesIO(shown)).convert("L")
    greys = copy.tobytes()[copy.width // 2 :: copy.width]  # down its middle
    lines = sum(before > 200 >= grey for before, grey in pairwise(greys))
    assert (lines, greys[0]) == (85, 255)


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("empty.txt", b" \n", "empty_file"),
        ("marked.csv", b"\xef\xbb\xbf\r\n", "empty_file"),
        ("letter.docx", b"PK\x03\x04" + b"\x00\x01" * 50, "unknown_kind"),
        ("photo.png", b"hello", "wrong_kind"),
        ("photo.jpg", b"\xff\xd8\xff\xe0" + b"\x00" * 50, "damaged_file"),
        ("bomb.png", png(2, 2)[:16] + b"\x00\x00\x75\x30\x00\x00\x75\x30" + png(2, 2)[24:], ""),
        ("broken.pdf", b"%PDF-1.7 and nothing else", "damaged_file"),
        ("locked.pdf", pdf(1, "secret"), "locked_pdf"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_sentence_that_names_it(
    name: str, body: bytes, code: str, alice: User, api: Callable[..., Client]
) -> None:
    refused = bring(api(alice), name, body)
    assert refused.status_code in {400, 413}
    answer = refused.json()
    assert name in answer["message"]
    assert answer["code"] == (code or answer["code"])
    assert not Attachment.objects.for_user(alice).exists()
    assert lying(alice) == []


def test_a_text_that_speaks_of_pdfs_is_a_text(alice: User, api: Callable[..., Client]) -> None:
    made = bring(api(alice), "formats.md", "A PDF begins with `%PDF-1.7`.").json()
    assert (made["kind"], made["media_type"]) == ("text", "text/markdown")


def test_an_image_of_too_many_pixels_is_not_decoded(alice: User, api: Callable[..., Client]) -> None:
    from PIL import Image

    path = Path(live.IZZY_DATA_DIR) / "bomb.png"
    Image.new("1", (20_000, 20_000)).save(path)
    refused = bring(api(alice), "bomb.png", path.read_bytes())
    assert (refused.status_code, refused.json()["code"]) == (413, "too_many_pixels")


def test_a_file_too_large_and_one_too_many_are_refused(
    alice: User, api: Callable[..., Client], settings: Settings
) -> None:
    client = api(alice)
    settings.IZZY_ATTACHMENT_LIMIT = 1_000
    refused = bring(client, "big.txt", "x" * 1_001)
    assert (refused.status_code, refused.json()["extra"]["limit"]) == (413, 1_000)
    settings.IZZY_ATTACHMENT_QUOTA = 1_500
    assert bring(client, "first.txt", "x" * 900).status_code == 201
    full = bring(client, "second.txt", "x" * 900)
    assert (full.status_code, full.json()["code"]) == (409, "quota_exceeded")
    assert client.post(API, {"other": "x"}).json()["code"] == "no_file"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\plan.txt", "plan.txt"),
        ("\u202egpj.exe.txt", "gpj.exe.txt"),
        ("a\nb\x00c.txt", "a b c.txt"),
        (".hidden", "hidden"),
        ("", "file"),
        (None, "file"),
        ("<script>alert(1)<script>.txt", "<script>alert(1)<script>.txt"),
        ("تقرير.pdf", "تقرير.pdf"),
        ("👩‍💻.md", "👩‍💻.md"),
    ],
)
def test_names_are_one_part_on_one_line_in_their_own_direction(given: object, kept: str) -> None:
    assert clean_name(given) == kept


def test_a_long_name_keeps_its_ending() -> None:
    name = clean_name("n" * 300 + ".markdown")
    assert len(name) == 120
    assert name.endswith("….markdown")


def test_a_line_of_50_kb_is_read_and_given_out_in_parts(alice: User, api: Callable[..., Client]) -> None:
    client = api(alice)
    made = bring(client, "line.csv", "x" * 50_000).json()
    part = client.get(f"{API}{made['id']}/text/").json()
    assert (len(part["text"]), part["next"]) == (16_000, 16_000)


def test_with_the_conversation_go_its_files(
    alice: User, api: Callable[..., Client], django_capture_on_commit_callbacks: Any
) -> None:
    place = conversation_create(user_id=alice.pk)
    made = bring(api(alice), "plan.txt", SAID, conversation=str(place.pk)).json()
    Attachment.objects.for_user(alice).filter(pk=made["id"]).update(conversation=place)
    assert len(lying(alice)) == 1
    conversation_delete(user_id=alice.pk, conversation_id=place.pk)
    assert lying(alice) == []
    assert not Attachment.objects.for_user(alice).exists()


def test_what_was_never_sent_goes_after_a_day(alice: User, api: Callable[..., Client]) -> None:
    for name in ("old.txt", "new.txt"):
        bring(api(alice), name, SAID)
    old = Attachment.objects.for_user(alice).filter(name="old.txt")
    old.update(created_at="2026-01-01T10:00Z")
    attachments_prune()
    assert [row.name for row in Attachment.objects.for_user(alice)] == ["new.txt"]
    assert len(lying(alice)) == 1


def test_with_the_account_go_its_files(alice: User, admin: User, api: Callable[..., Client]) -> None:
    bring(api(alice), "plan.txt", SAID)
    [path] = lying(alice)
    user_delete(user=alice)
    assert not path.exists()


def test_the_check_finds_a_row_without_its_file_and_removes_a_file_without_its_row(
    alice: User, api: Callable[..., Client]
) -> None:
    bring(api(alice), "plan.txt", SAID)
    [path] = lying(alice)
    checks = dict(all_checks())
    assert not list(checks["attachments: files"].find(None))
    stray = path.with_name("01a208ac-e464-7848-b5d0-f8f1de45c3f8")
    stray.write_bytes(b"lost")
    hours_ago = time.time() - 7_200
    os.utime(stray, (hours_ago, hours_ago))
    found = list(checks["attachments: strays"].find(None))
    assert [each.subject for each in found] == [(str(alice.pk), stray.name)]
    fix = checks["attachments: strays"].fix
    assert fix is not None
    fix(found)
    assert lying(alice) == [path]
    path.unlink()
    [missing] = checks["attachments: files"].find(alice.pk)
    assert missing.user_id == alice.pk


def test_an_attachment_with_other_bytes_or_an_empty_copy_is_found(
    alice: User, api: Callable[..., Client]
) -> None:
    check = dict(all_checks())["attachments: files"]
    bring(api(alice), "a.png", png())
    path, shown = lying(alice)
    assert not list(check.find(None))
    body, copy = path.read_bytes(), shown.read_bytes()
    for file, damaged in ((path, body[::-1]), (shown, b"")):
        file.write_bytes(damaged)
        [changed] = check.find(alice.pk)
        assert changed.user_id == alice.pk
        path.write_bytes(body)
        shown.write_bytes(copy)
    shown.unlink()
    assert len(list(check.find(alice.pk))) == 1


def test_a_backup_takes_the_files_along(alice: User, api: Callable[..., Client]) -> None:
    made = bring(api(alice), "a.png", png()).json()
    named = dict(named_files["attachments"]())
    assert set(named) == {
        f"attachments/{alice.pk}/{made['id']}",
        f"attachments/{alice.pk}/{made['id']}.shown",
    }


def test_it_is_put_under_memories_by_hand(alice: User, api: Callable[..., Client]) -> None:
    client = api(alice)
    made = bring(client, "plan.md", SAID).json()
    kept = client.post(f"{API}{made['id']}/keep/", {}, content_type="application/json")
    assert (kept.status_code, kept.json()["path"]) == (201, "/memories/attachments/plan.md")
    image = bring(client, "a.png", png()).json()
    refused = client.post(f"{API}{image['id']}/keep/", {}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (400, "no_text")
    assert "image" in json.dumps(refused.json())
