"""Folders of conversations: made, renamed, opened and deleted, on pages and by programs; what is moved into them one by one and
many at once, and what an export keeps of it."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.chat.conversations import folders
from apps.chat.conversations.folders import folder_create, folders_listed
from apps.chat.conversations.selectors import conversations_page
from apps.chat.conversations.services import conversation_change, conversation_create
from apps.chat.models import Conversation, Folder
from apps.core.errors import Conflict
from apps.memory.models import Memory, Origin, Trust
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import Change
from apps.memory.transfer.exporting import export_lines
from apps.memory.transfer.jobs import import_create
from apps.memory.transfer.running import imports_run

HTMX = {"HX-Request": "true"}
JSON = {"Accept": "application/json"}
SignIn = Callable[[User], Client]


@pytest.fixture
def browser(alice: User, sign_in: SignIn) -> Client:
    return sign_in(alice)


def make(user: User, title: str, folder: Folder | None = None, **marks: Any) -> Conversation:
    place = conversation_create(user_id=user.pk, title=title, folder=folder)
    return conversation_change(user_id=user.pk, conversation_id=place.pk, **marks) if marks else place


def inside(user: User) -> dict[str, list[str]]:
    return {
        str(folder): [row.title for row in folder.rows]  # type: ignore[attr-defined]
        for folder in folders_listed(user.pk)
    }


def change(client: Client, path: str, body: dict[str, Any]) -> Any:
    return client.patch(f"/api/v1/{path}/", body, content_type="application/json")


def test_a_conversation_in_a_folder_stands_there_alone_unless_it_is_pinned(alice: User) -> None:
    work = folder_create(user_id=alice.pk, name="Work")
    make(alice, "Plain")
    make(alice, "Report", work)
    make(alice, "Pinned", work, pinned=True)
    make(alice, "Away", work, archived=True)
    assert [row.title for row in conversations_page(alice.pk)[0]] == ["Pinned", "Plain"]
    assert inside(alice) == {"Work": ["Report"]}


def test_the_page_shows_what_is_in_no_folder_and_both_lists_have_a_place_to_drag_it_to(
    alice: User, browser: Client
) -> None:
    work = folder_create(user_id=alice.pk, name="Work")
    make(alice, "Report", work)
    page = browser.get("/conversations/?folder=none")
    assert list(page.context["listed"]) == []
    assert "Nothing outside of folders" in page.content.decode()
    beside = '<p class="sidebar-empty" data-folder="">'
    assert beside in browser.get("/conversations/", headers=HTMX).content.decode()
    plain = make(alice, "Plain")
    page = browser.get("/conversations/?folder=none")
    assert list(page.context["listed"]) == [plain]
    assert (
        'href="/conversations/?folder=none" data-folder="" aria-current="page"' in page.content.decode()
    )
    assert beside not in browser.get("/conversations/", headers=HTMX).content.decode()


def test_the_list_shows_the_newest_of_an_open_folder_and_of_a_closed_one_its_name(
    alice: User, browser: Client
) -> None:
    work, other = (folder_create(user_id=alice.pk, name=name) for name in ("Work", "<i>Other</i>"))
    for number in range(10):
        make(alice, f"Number {number}", work)
        make(alice, f"Else {number}", other)
    assert inside(alice)["Work"] == [f"Number {9 - number}" for number in range(8)]
    closed = browser.post(f"/folders/{other.pk}/open/", headers=HTMX).content.decode()
    assert 'aria-expanded="false"' in closed
    assert "&lt;i&gt;Other" in closed
    sidebar = browser.get("/memory/").content.decode()
    assert "Number 9" in sidebar
    assert "All in this folder" in sidebar
    assert "Else 9" not in sidebar
    page = browser.get(f"/conversations/?folder={work.pk}")
    assert len(page.context["listed"]) == 10
    assert f"?folder={work.pk}" in browser.get("/conversations/").content.decode()


@pytest.mark.parametrize("many", [1, 40])
def test_the_list_asks_as_often_whatever_the_number_of_folders(
    alice: User, browser: Client, django_assert_max_num_queries: Any, many: int
) -> None:
    for number in range(many):
        make(alice, f"In {number}", folder_create(user_id=alice.pk, name=f"Folder {number}"))
    with django_assert_max_num_queries(20):
        browser.get("/conversations/")


def test_folders_are_made_renamed_and_deleted_on_pages_and_keep_what_is_in_them(
    alice: User, browser: Client
) -> None:
    assert browser.post("/folders/new/", {"name": " Work "})["Location"].startswith("/conversations/")
    work = Folder.objects.for_user(alice).get(name="Work")
    place = make(alice, "Report", work)
    again = browser.post("/folders/new/", {"name": "WORK"}, headers=JSON)
    assert (again.status_code, again.json()) == (
        422,
        {"message": "There is a folder of this name already."},
    )
    refused = browser.post("/folders/new/", {"name": "WORK"})
    assert refused.status_code == 422
    assert 'value="WORK"' in refused.content.decode()
    browser.post(f"/folders/{work.pk}/rename/", {"name": "work"})
    assert "The conversation in it stays" in browser.get(f"/folders/{work.pk}/delete/").content.decode()
    url = browser.post(f"/folders/{work.pk}/delete/", headers=JSON).json()["url"]
    assert "1 conversation stays in your list" in browser.get(url).content.decode()
    place.refresh_from_db()
    assert place.folder_id is None
    assert not Folder.objects.for_user(alice).exists()


def test_a_conversation_is_moved_from_its_menu_into_a_folder_that_may_be_new(
    alice: User, browser: Client
) -> None:
    work, place = folder_create(user_id=alice.pk, name="Work"), make(alice, "Report")
    url = f"/c/{place.pk}/move/"
    assert "Work" in browser.get(url, headers=HTMX).content.decode()
    said = browser.post(url, {"folder": str(work.pk)}, headers=JSON).json()["said"]
    assert (said, inside(alice)) == ("Moved “Report” to “Work”.", {"Work": ["Report"]})
    browser.post(url, {"folder": "new", "name": "Home"})
    assert inside(alice) == {"Home": ["Report"], "Work": []}
    browser.post(url, {"folder": ""})
    assert inside(alice) == {"Home": [], "Work": []}
    for wrong in ({"folder": "new", "name": ""}, {"folder": "nonsense"}):
        assert browser.post(url, wrong, headers=JSON).status_code == 422


def test_many_are_moved_and_archived_at_once_or_none(alice: User, bob: User, browser: Client) -> None:
    work = folder_create(user_id=alice.pk, name="Work")
    keys = [str(make(alice, title).pk) for title in ("One", "Two")]
    his = str(make(bob, "His").pk)

    def bulk(ticked: list[str], **given: str) -> str:
        answer = browser.post("/conversations/bulk/", {"conversations": ticked, **given})
        return browser.get(answer["Location"]).content.decode()

    assert "no longer there" in bulk([*keys, his], do="move", folder=str(work.pk))
    assert inside(alice) == {"Work": []}
    assert "Moved 2 conversations to “<bdi>Work</bdi>”." in bulk(keys, do="move", folder=str(work.pk))
    assert sorted(inside(alice)["Work"]) == ["One", "Two"]
    assert "Tick some conversations first." in bulk([], do="archive")
    assert "Archived 2 conversations." in bulk(keys, do="archive")
    assert Conversation.objects.for_user(alice).filter(archived=True).count() == 2
    bulk(keys, do="restore")
    assert "out of the folder" in bulk(keys, do="move", folder="none", back=f"folder={work.pk}")
    assert inside(alice) == {"Work": []}


def test_what_was_done_to_many_is_undone(
    alice: User, bob: User, browser: Client, sign_in: SignIn
) -> None:
    work, home = (folder_create(user_id=alice.pk, name=name) for name in ("Work", "Home"))
    keys = [str(make(alice, title).pk) for title in ("One", "Two")]

    def bulk(**given: str) -> str:
        answer = browser.post("/conversations/bulk/", {"conversations": keys, **given})
        return browser.get(answer["Location"]).content.decode()

    def undo(page: str, client: Client = browser) -> None:
        given = {name: re.findall(f'name="{name}" value="([^"]*)"', page) for name in ("step", "undo")}
        assert client.post("/conversations/undo/", given).status_code == 302

    told = Change(actor=Origin.USER, trust=Trust.USER, conversation_id=UUID(keys[0]))
    note = memory_create(user_id=alice.pk, content="Figs are fine.", change=told)
    bulk(do="move", folder=str(work.pk))
    browser.post(
        "/conversations/bulk/", {"conversations": keys[:1], "do": "move", "folder": str(home.pk)}
    )
    undo(bulk(do="move", folder="none"))
    assert inside(alice) == {"Home": ["One"], "Work": ["Two"]}
    undo(bulk(do="archive"))
    assert not Conversation.objects.for_user(alice).filter(archived=True).exists()
    # A search finds what was archived before beside the others.
    Conversation.objects.for_user(alice).filter(pk=keys[0]).update(archived=True)
    found = bulk(do="archive", back="q=One&page=1")
    undo(found)
    assert Conversation.objects.for_user(alice).get(archived=True).title == "One"
    assert found.count('name="back" value="q=One&amp;') == 2  # also once it is undone
    bulk(do="archive")
    assert "Undo" not in bulk(do="archive")
    bulk(do="restore")

    asked = browser.get("/conversations/delete/", {"conversations": keys}).content.decode()
    assert "Delete 2 conversations?" in asked
    assert "Figs are fine." in asked
    assert "Tick some" in browser.get("/conversations/delete/").content.decode()
    deleted = bulk(do="delete", memories="yes")
    assert "Deleted 2 conversations and 1 memory." in deleted
    assert not Memory.objects.owned_by(alice.pk).filter(pk=note.pk).exists()
    assert browser.get(f"/c/{keys[0]}/").status_code == 404
    undo(deleted, sign_in(bob))
    assert browser.get(f"/c/{keys[0]}/").status_code == 404
    undo(deleted)
    assert inside(alice) == {"Home": ["One"], "Work": ["Two"]}
    assert Memory.objects.owned_by(alice.pk).filter(pk=note.pk).exists()
    his = make(bob, "His")
    browser.post("/conversations/bulk/", {"conversations": [*keys, his.pk], "do": "delete"})
    assert browser.get(f"/c/{keys[0]}/").status_code == 200


def test_a_program_makes_folders_and_moves_conversations(
    alice: User, api: Callable[[User], Client]
) -> None:
    program = api(alice)
    made = program.post("/api/v1/folders/", {"name": "Work"}, content_type="application/json").json()
    assert (made["name"], made["conversations"], made["opened"]) == ("Work", 0, True)
    place = program.post(
        "/api/v1/conversations/",
        {"title": "Report", "folder": made["id"]},
        content_type="application/json",
    ).json()
    assert place["folder"] == made["id"]
    make(alice, "Other")
    listed = program.get(f"/api/v1/conversations/?folder={made['id']}").json()["results"]
    assert [row["title"] for row in listed] == ["Report"]
    assert change(program, f"folders/{made['id']}", {"name": "Job"}).json()["conversations"] == 1
    assert program.get("/api/v1/folders/").json()["results"][0]["name"] == "Job"
    assert (
        change(program, f"conversations/{place['id']}", {"title": "New"}).json()["folder"] == made["id"]
    )
    assert change(program, f"conversations/{place['id']}", {"folder": None}).json()["folder"] is None
    assert program.delete(f"/api/v1/folders/{made['id']}/").status_code == 204
    assert program.get(f"/api/v1/conversations/?folder={made['id']}").status_code == 404


def test_nobody_sees_or_uses_somebody_elses_folder(alice: User, bob: User, browser: Client) -> None:
    his, place = folder_create(user_id=bob.pk, name="Secret"), make(alice, "Hers")
    assert change(browser, f"conversations/{place.pk}", {"folder": str(his.pk)}).status_code == 404
    assert browser.post(f"/c/{place.pk}/move/", {"folder": str(his.pk)}).status_code == 422
    assert browser.get(f"/conversations/?folder={his.pk}").status_code == 404
    for path in ("rename", "delete", "open"):
        assert browser.post(f"/folders/{his.pk}/{path}/", {"name": "Mine"}).status_code == 404
    place.refresh_from_db()
    assert (place.folder_id, Folder.objects.for_user(bob).get().name) == (None, "Secret")
    assert b"Secret" not in browser.get("/conversations/").content


def test_there_are_so_many_folders_and_no_more(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_FOLDERS", 2)
    for name in ("One", "Two"):
        folder_create(user_id=alice.pk, name=name)
    with pytest.raises(Conflict):
        folder_create(user_id=alice.pk, name="Three")


def test_a_name_is_the_same_in_either_spelling_of_its_letters(alice: User, bob: User) -> None:
    composed, apart = (unicodedata.normalize(form, "Café") for form in ("NFC", "NFD"))
    make(alice, "Menu", folder_create(user_id=alice.pk, name=apart))
    with pytest.raises(Conflict):
        folder_create(user_id=alice.pk, name=composed)
    folder_create(user_id=bob.pk, name=composed)
    import_create(user_id=bob.pk, chunks=[b"".join(export_lines(alice.pk))], own=True)
    imports_run()
    assert inside(bob) == {composed: ["Menu"]}


def records(user: User) -> Iterator[dict[str, Any]]:
    return map(json.loads, b"".join(export_lines(user.pk)).splitlines())


def test_an_export_has_the_folders_and_what_is_in_them(alice: User) -> None:
    make(alice, "Report", folder_create(user_id=alice.pk, name="Work"))
    folder_create(user_id=alice.pk, name="Empty")
    rows = list(records(alice))
    assert [row["name"] for row in rows if row["type"] == "folder"] == ["Work", "Empty"]
    assert [row["folder"] for row in rows if row["type"] == "conversation"] == ["Work"]
