"""The files page: list, read, write, edit, history with undo, delete with undo; with HTMX and without."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.memory.files.services import file_delete, file_rename, file_write
from apps.memory.models import MemoryFile, Origin, Trust
from apps.memory.notes.revisions import Change

pytestmark = pytest.mark.django_db

PAGE = "/memory/files/"
HTMX = {"HX-Request": "true"}
PATH = "/memories/todo.md"


@pytest.fixture
def browser(alice: User, sign_in: Callable[[User], Client]) -> Client:
    return sign_in(alice)


def write(user: User, text: str = "Buy milk", path: str = PATH) -> MemoryFile:
    return file_write(user_id=user.pk, path=path, text=text)


def shown(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.content
    return str(answer.content.decode())


def url(file: MemoryFile, action: str) -> str:
    return f"{PAGE}{file.pk}/{action}/"


def test_the_page_lists_files_and_what_can_be_brought_back(browser: Client, alice: User) -> None:
    assert "No files yet" in shown(browser.get(PAGE))
    write(alice, "x" * 1536)
    write(alice, "gone", "/memories/gone.txt")
    file_delete(user_id=alice.pk, path="/memories/gone.txt")
    page = shown(browser.get(PAGE))
    assert PATH in page
    assert "1.5\xa0KB" in page
    assert page.index(PATH) < page.index("Deleted lately") < page.index("/memories/gone.txt")
    assert "xxx" not in page


def test_notes_and_files_lead_to_each_other(browser: Client) -> None:
    assert f'href="{PAGE}"' in shown(browser.get("/memory/browse/"))
    assert 'href="/memory/browse/"' in shown(browser.get(PAGE))


def test_the_page_keeps_to_the_policy(browser: Client, alice: User) -> None:
    file = write(alice, "<script>alert(1)</script>", "/memories/<b>&.txt")
    for address in (PAGE, url(file, "read"), url(file, "edit"), url(file, "history")):
        page = shown(browser.get(address))
        assert "<script>alert" not in page
        assert "<b>&" not in page
        assert " style=" not in page
        assert "onclick" not in page
    assert "script-src 'self'" in browser.get(PAGE)["Content-Security-Policy"]


def test_many_files_come_in_pages(browser: Client, alice: User) -> None:
    for number in range(51):
        write(alice, "x", f"/memories/{number:02}.txt")
    assert "1–50 of 51" in shown(browser.get(PAGE))
    last = shown(browser.get(PAGE, {"page": "2"}))
    assert "/memories/50.txt" in last
    assert "/memories/49.txt" not in last
    assert "51" in shown(browser.get(PAGE, {"page": "no number"}))


def test_a_file_is_read_and_closed(browser: Client, alice: User) -> None:
    file = write(alice, "Buy milk\n  and tea")
    assert "Buy milk\n  and tea" in shown(browser.get(url(file, "read"), headers=HTMX))
    assert "Buy milk" not in shown(browser.get(url(file, "card"), headers=HTMX))


def test_a_file_is_added(browser: Client, alice: User) -> None:
    answer = browser.post(f"{PAGE}new/", {"new-path": PATH, "new-content": "  one\r\ntwo\r\n"})
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    file = MemoryFile.objects.for_user(alice).get()
    assert (file.path, file.content, file.origin) == (PATH, "  one\ntwo\n", "user")


@pytest.mark.parametrize(
    "path", ["trips/porto.md", "memories/trips/porto.md", " /memories/trips/porto.md "]
)
def test_a_path_is_completed_with_the_directory_that_all_files_are_in(
    path: str, browser: Client, alice: User
) -> None:
    answer = browser.post(f"{PAGE}new/", {"new-path": path, "new-content": "x"}, follow=True)
    assert "Saved /memories/trips/porto.md." in answer.content.decode()
    assert MemoryFile.objects.for_user(alice).get().path == "/memories/trips/porto.md"


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("", "x", "Give the file a path"),
        ("/etc/passwd", "x", "Path must start with /memories"),
        ("/memories/.x", "x", "hidden"),
        (PATH, "x", "already exists"),
        (f"{PATH}/x", "x", "is a file"),
        ("/memories/b.txt", "x" * 100_001, "100000"),
        ("/memories/b.txt", "\x1b", "no text"),
        ("/memories/b.txt", "\x00", "Null characters"),
    ],
)
def test_what_cannot_be_added_is_said_at_its_field(
    browser: Client, alice: User, path: str, content: str, said: str
) -> None:
    write(alice)
    page = shown(browser.post(f"{PAGE}new/", {"new-path": path, "new-content": content}), 422)
    assert said in page
    assert MemoryFile.objects.for_user(alice).count() == 1


def test_a_file_is_edited_and_renamed_in_place(browser: Client, alice: User) -> None:
    file = write(alice)
    form = shown(browser.get(url(file, "edit"), headers=HTMX))
    assert "Buy milk" in form
    fields = {f"{file.pk}-path": "/memories/a/b.md", f"{file.pk}-content": "Buy tea"}
    card = shown(browser.post(url(file, "edit"), fields, headers=HTMX))
    assert "Buy tea" in card
    assert "/memories/a/b.md" in card
    file.refresh_from_db(from_queryset=MemoryFile.objects.for_user(alice))
    assert (file.path, file.content) == ("/memories/a/b.md", "Buy tea")
    answer = browser.post(url(file, "edit"), fields)
    assert (answer.status_code, answer["Location"]) == (302, PAGE)


def test_a_text_that_was_changed_elsewhere_meanwhile_gives_way_only_when_it_was_seen(
    browser: Client, alice: User
) -> None:
    file = write(alice, "Buy milk\nand tea")
    moved = {f"{file.pk}-path": "/memories/shop.md", f"initial-{file.pk}-content": "Buy milk\r\nand tea"}
    write(alice, "Buy bread")
    unchanged = {f"{file.pk}-content": "Buy milk\r\nand tea"}
    shown(browser.post(url(file, "edit"), moved | unchanged, headers=HTMX))
    file.refresh_from_db()
    assert (file.path, file.content) == ("/memories/shop.md", "Buy bread")

    entered = moved | {f"{file.pk}-content": "Buy eggs"}
    form = shown(browser.post(url(file, "edit"), entered, headers=HTMX), 422)
    assert "replace what is there: Buy bread" in form
    assert "Buy eggs</textarea>" in form
    entered |= {f"initial-{file.pk}-content": "Buy bread"}
    shown(browser.post(url(file, "edit"), entered, headers=HTMX))
    file.refresh_from_db()
    assert file.content == "Buy eggs"


def test_a_file_that_was_renamed_meanwhile_keeps_its_new_name(browser: Client, alice: User) -> None:
    file = write(alice)
    form = shown(browser.get(url(file, "edit"), headers=HTMX))
    assert f'name="initial-{file.pk}-path" value="{PATH}"' in form
    file_rename(user_id=alice.pk, old_path=PATH, new_path="/memories/shop.md")
    entered = {f"{file.pk}-path": PATH, f"initial-{file.pk}-path": PATH}
    entered |= {f"{file.pk}-content": "Buy eggs", f"initial-{file.pk}-content": "Buy milk"}
    shown(browser.post(url(file, "edit"), entered, headers=HTMX))
    file.refresh_from_db()
    assert (file.path, file.content) == ("/memories/shop.md", "Buy eggs")


@pytest.mark.parametrize("kept", ["\n", "\r\n", "\r"])
def test_a_text_is_edited_whatever_its_line_breaks(browser: Client, alice: User, kept: str) -> None:
    file = write(alice, f"Buy milk{kept}and tea")
    for was, becomes in (("tea", "rice"), ("rice", "eggs")):  # as a browser sends it
        entered = {
            f"{file.pk}-path": PATH,
            f"initial-{file.pk}-content": f"Buy milk\r\nand {was}",
            f"{file.pk}-content": f"Buy milk\r\nand {becomes}",
        }
        shown(browser.post(url(file, "edit"), entered, headers=HTMX))
        file.refresh_from_db()
        assert file.content == f"Buy milk\nand {becomes}"


def test_others_words_stay_theirs_where_a_file_is_only_renamed(browser: Client, alice: User) -> None:
    theirs = Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED)
    text = "A page says:\r\nbuy milk"
    file = file_write(user_id=alice.pk, path=PATH, text=text, change=theirs)
    moved = {f"{file.pk}-path": "/memories/shop.md"}
    as_shown = {f"initial-{file.pk}-content": text, f"{file.pk}-content": text}
    shown(browser.post(url(file, "edit"), moved | as_shown, headers=HTMX))
    file.refresh_from_db()
    assert (file.path, file.content, file.trust) == ("/memories/shop.md", text, Trust.UNTRUSTED)


def test_an_edit_that_cannot_be_comes_back_with_what_was_written(browser: Client, alice: User) -> None:
    file = write(alice)
    write(alice, "other", "/memories/other.txt")
    fields = {f"{file.pk}-path": "/memories/other.txt", f"{file.pk}-content": "Buy tea"}
    form = shown(browser.post(url(file, "edit"), fields, headers=HTMX), 422)
    assert "already exists" in form
    assert "Buy tea" in form
    assert MemoryFile.objects.for_user(alice).get(pk=file.pk).content == "Buy milk"


def test_deleting_leaves_a_way_back(browser: Client, alice: User) -> None:
    file = write(alice)
    left = shown(browser.post(url(file, "delete"), headers=HTMX))
    assert url(file, "restore") in left
    assert not MemoryFile.objects.for_user(alice).exists()
    for action in ("card", "read", "edit", "history"):
        assert browser.get(url(file, action)).status_code == 404
    assert PATH in shown(browser.post(url(file, "restore"), headers=HTMX))
    assert MemoryFile.objects.for_user(alice).get().content == "Buy milk"
    assert browser.post(url(file, "delete")).status_code == 302
    assert browser.post(url(file, "restore")).status_code == 302


def test_a_file_whose_place_is_taken_stays_deleted_and_says_why(browser: Client, alice: User) -> None:
    file = write(alice)
    file_delete(user_id=alice.pk, path=PATH)
    write(alice, "another")
    assert "another file" in shown(browser.post(url(file, "restore"), headers=HTMX), 422)
    assert [row.content for row in MemoryFile.objects.for_user(alice)] == ["another"]


def test_the_history_shows_each_version_with_a_way_back(browser: Client, alice: User) -> None:
    file = write(alice, "one")
    write(alice, "two")
    file_rename(user_id=alice.pk, old_path=PATH, new_path="/memories/new.md")
    history = shown(browser.get(url(file, "history"), headers=HTMX))
    assert history.count("Go back to this") == 2
    assert PATH in history
    card = shown(browser.post(url(file, "undo"), {"version": "1"}, headers=HTMX))
    assert ">one</pre>" in card
    assert PATH in card
    assert browser.post(url(file, "undo"), {"version": "2"}).status_code == 302


@pytest.mark.parametrize("version", ["", "x", "-1", "0", "99", "9" * 30, "²"])
def test_versions_that_never_were_are_404(browser: Client, alice: User, version: str) -> None:
    file = write(alice)
    assert browser.post(url(file, "undo"), {"version": version}).status_code == 404


def test_an_undo_to_a_place_taken_says_so(browser: Client, alice: User) -> None:
    file = write(alice)
    file_rename(user_id=alice.pk, old_path=PATH, new_path="/memories/new.md")
    write(alice, "another")
    history = shown(browser.post(url(file, "undo"), {"version": "1"}, headers=HTMX), 422)
    assert "another file" in history
    assert "Go back to this" in history


@pytest.mark.parametrize("action", ["card", "read", "edit", "history", "delete", "restore", "undo"])
@pytest.mark.parametrize("file_id", ["no-id", "0", "0197f3c2-0000-7000-8000-000000000000", "hers"])
def test_unknown_and_foreign_files_are_not_there(
    alice: User, bob: User, sign_in: Callable[[User], Client], action: str, file_id: str
) -> None:
    file = write(alice)
    address = f"{PAGE}{file.pk if file_id == 'hers' else file_id}/{action}/"
    client = sign_in(bob)
    method = client.post if action in {"delete", "restore", "undo"} else client.get
    assert method(address).status_code == 404
    assert client.post(f"{PAGE}{file.pk}/edit/", {f"{file.pk}-path": PATH}).status_code == 404
    assert MemoryFile.objects.for_user(alice).get().content == "Buy milk"


def test_the_admin_lists_files_and_deletes_in_two_steps(
    alice: User, admin: User, sign_in: Callable[[User], Client]
) -> None:
    file = write(alice)
    write(alice, "changed")
    client = sign_in(admin)
    for model in ("memoryfile", "memoryfilerevision"):
        for query in ("", "?q=todo", "?q=alice"):
            assert PATH in shown(client.get(f"/admin/memory/{model}/{query}"))
    assert "changed" in shown(client.get(f"/admin/memory/memoryfile/{file.pk}/change/"))
    for left in (1, 0):
        client.post(f"/admin/memory/memoryfile/{file.pk}/delete/", {"post": "yes"})
        assert MemoryFile.everything.count() == left
        assert not MemoryFile.objects.for_user(alice).exists()
